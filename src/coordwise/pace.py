"""Whether a run keeps the pace that its constants promise: the safeguard of norm weights that are only hoped for.

A schedule may claim more strong convexity than is known (`coordwise.methods.Auto`). Linear coupling then promises the
factor exp(-1/passes_per_fold) a pass without a proof. The certificate tells: a run that keeps this pace is as fast as
the proof would make it; the first time one that has lost it is seen, its careful schedule, for which there is a proof,
takes over from the same y and z. What is lost is the passes between two looks.
"""

from __future__ import annotations

import math

__all__ = ["Pace"]


class Pace:
    """Compares the certified error with a promised factor per pass, over windows of one e-fold or more."""

    def __init__(self, rate_per_pass: float) -> None:
        self.fold = math.inf if rate_per_pass >= 1 else -1 / math.log(max(rate_per_pass, 1e-300))
        self._seen: list[tuple[float, float]] = []

    def lost(self, passes: float, error: float, share: float = 1.0, factor: float = 1.0) -> bool:
        """Whether the error fell by less than promised since the last look that is an e-fold or more away.

        `share` is the part of the promise that counts, on a logarithmic scale, and `factor` what the error may be above
        it: the theorems have one, too.
        """
        earlier = [look for look in self._seen if look[0] <= passes - (1 - 1e-9) * self.fold]
        self._seen.append((passes, error))
        if not earlier:
            return False
        since, was = earlier[-1]
        return not error <= factor * was * math.exp(-share * (passes - since) / self.fold)

    def renewed(self, rate_per_pass: float) -> Pace:
        """Another promise, with the same looks."""
        pace = Pace(rate_per_pass)
        pace._seen = self._seen
        return pace
