"""Which solver runs: what work costs on a machine, and how one solver hands over to another."""
