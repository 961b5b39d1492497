"""Which solver should I use: the same problem by every library at hand, timed to the same accuracy."""
