"""Exceptions that carry the best point so far: what Ctrl-C raises, and what samples that were lost raise."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Failed", "Interrupted"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a call of this library. `result` is the best point that it had reached, with its certificate.

    It is a `KeyboardInterrupt`: it ends loops and searches around the call, and ``except Exception`` does not catch it.
    The message says in one sentence how good the point is. A second Ctrl-C while the point is being prepared raises a
    plain `KeyboardInterrupt`, and so does one while the arguments are still being checked.

    Attributes
    ----------
    result : Result, Minimum, Fit, list of Fit, Path or PathOverC
        What the call would have returned, with the status "interrupted":

        * `coordwise.solve` and all functions of `coordwise.linalg`, with ``full_output`` and without: a `Result`.
        * `coordwise.minimize`: a `Minimum`.
        * ``fit`` of an estimator: its ``result_``. The estimator has ``coef_``, ``intercept_``, ``dual_gap_`` and its
          other attributes of that point, zero weights if no better ones were found. Estimators that end in CV have the
          best parameters among those that were scored (nan if there are none), and the weights are zero until the fit
          of all samples has begun.
        * ``path`` of an estimator: the path as far as it was computed; of its last model the gap says how good it is.

    Examples
    --------
    >>> import numpy as np, coordwise as cw
    >>> def impatient(progress):
    ...     raise KeyboardInterrupt  # as Ctrl-C does
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> try:
    ...     cw.solve(cw.LinearSystem(A, A @ [1.0, 2.0]), callback=impatient)
    ... except cw.Interrupted as stop:
    ...     print(stop.result.status)
    interrupted
    """

    @classmethod
    def at(cls, result: Any, certificate: str, gap: Any, work: str) -> Interrupted:
        """With a result, whose certificate (of the name and the value given) took so much work."""
        has = f"{certificate} {float(np.max(gap)):.3g} after {work}"
        return cls(f"Ctrl-C ended the call; the best point so far, `result` of this exception, has {has}.", result)

    def __init__(self, message: str = "", result: Any = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.result)


class Failed(RuntimeError):
    """Samples were lost, and a call cannot go on. `result` is the best point so far, as that of `Interrupted` is."""

    def __init__(self, message: str = "", result: Any = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.result)
