"""Whether steps are worth going on with: those over the samples, or those with Gram matrices that could take over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.recording import Progress, says_stop

__all__ = ["Trial", "while_falling"]

SOON, LATER = 4, 8  # passes after which it is judged
HOPELESS = 0.3  # relative gap after the first of them
WORTH = 24.0  # passes: about what an interior-point method takes
PATIENCE = 1.4  # times that: steps over the samples become faster
FIRST, LAST = 10, 4  # Newton steps before they are judged, and that they are judged by
MANY = 30  # more of them than so many are too many


class Trial:
    """A callback that ends a run over the samples whose certificate falls too slowly, and says so in `why`.

    Of several runs, as an intercept takes, the first is judged.

    Parameters
    ----------
    tol : float
        Of the run.
    callback : callable, optional
        What else it asks.
    looks : tuple of int
        Passes after which it is judged: by the gap, and by the passes that are left, going by what happened in between.
    worth : float
        What these may be: about what the other method takes.
    """

    def __init__(
        self,
        tol: float,
        callback: Callable[[Progress], object] | None,
        looks: tuple[int, int] = (SOON, LATER),
        worth: float = WORTH,
    ) -> None:
        self.tol, self.callback, self.looks, self.worth = tol, callback, looks, worth
        self.why = ""
        self._best = math.inf
        self._judged: list[tuple[float, float]] = []  # passes, and the best gap by then

    def __call__(self, progress: Progress) -> bool:
        """See `Progress`."""
        if self.callback is not None and says_stop(self.callback(progress)):
            return True
        self._best = min(self._best, float(np.max(progress.gap / np.maximum(progress.scale, 1e-300))))
        due = len(self._judged) < 2 and progress.passes >= self.looks[len(self._judged)]
        if not due or self._best <= self.tol:
            return False
        self._judged.append((progress.passes, self._best))
        if len(self._judged) == 1:
            slow = self._best > HOPELESS
        else:
            (first, high), (last, low) = self._judged
            left = math.log(low / self.tol) if self.tol > 0 else math.inf
            slow = left * (last - first) > PATIENCE * self.worth * math.log(high / low)
        if slow:
            self.why = f"over the samples the gap was {self._best:.1g} P(0) after {progress.passes:.0f} passes"
        return slow


def while_falling(model: LinearModel, rounds: Iterator[Candidate], tol: float) -> Iterator[Candidate]:
    """Rounds of Newton's method, unless those that are left, going by the last ones, are too many for the dual.

    It is good at losses of which fewer bend than there are features, while Newton steps are hardly determined by these.
    """
    gaps: list[float] = []
    for found in rounds:
        yield found
        gaps.append(float(np.max(found.gap / np.maximum(model.scale, 1e-300))))
        if len(gaps) > FIRST and 0 < tol < gaps[-1] < np.inf:
            fallen = math.log(gaps[-1 - LAST] / gaps[-1]) / LAST
            if math.log(gaps[-1] / tol) > MANY * fallen and _bent(model, found) <= model.d:
                return


def _bent(model: LinearModel, found: Candidate) -> int:
    """Losses with a curvature, in the output that has most of them."""
    curvatures = model.loss.second_derivative(model.scores(found.w, found.c), model.b, 1.0)
    return int(np.count_nonzero(curvatures, axis=0).max())
