"""Empirical risk minimisation over samples that are elsewhere."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from coordwise.drive import Limits, Outcome, drive
from coordwise.interrupts import Failed, Interrupted
from coordwise.losses import Loss, get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.penalties import ElasticNet, get_penalty
from coordwise.recording import Progress
from coordwise.results import Constants, History, Result
from coordwise.samples.source import Source
from coordwise.validation import FloatArray, check_array, check_callable, check_count, check_labels, check_number

__all__ = ["SourceERM"]


@dataclass(frozen=True)
class Labelled:
    """Targets as they are, if they suit a loss. A function that can be sent to where the targets are."""

    loss: str

    def __call__(self, y: FloatArray) -> FloatArray:
        """See the class."""
        check_labels("b", y, self.loss)
        return y


class SourceERM:
    """minimise over w in R^d   P(w) = (1/W) sum_i s_i phi(<a_i, w>; b_i) + l1 |w|_1 + (l2/2) |w|^2,   W = sum_i s_i.

    What ``coordwise.ERM(source, ...)`` returns: the problem of `coordwise.ERM` on a `coordwise.datasets.Folder`, say,
    for `coordwise.solve`. Coordinate methods need the samples in memory, so there is no `dual`.

    Parameters
    ----------
    source : Source
    b : array of shape (n,) or (n, K), optional
        Targets in place of those in the source; likewise `sample_weight`.
    loss, penalty, lam, l1_ratio
        As for `coordwise.ERM`, without formulas of your own.
    """

    def __init__(
        self,
        source: Any,
        b: Any = None,
        loss: Any = "squared",
        penalty: Any = "l2",
        lam: float | None = None,
        *,
        l1_ratio: float | None = None,
        positive: bool = False,
        sample_weight: Any = None,
        loss_codes: Any = None,
    ) -> None:
        if isinstance(loss, (list, tuple)) or loss_codes is not None:
            raise TypeError("a list of losses needs the samples in memory; for samples elsewhere give one loss.")
        self.loss: Loss = get_loss(loss)
        if not isinstance(self.loss, Loss):
            raise TypeError("a loss of your own needs the samples in memory; for samples elsewhere give one by name.")
        found = get_penalty(penalty, lam, l1_ratio, positive)
        if not isinstance(found, ElasticNet) or found.positive:
            raise TypeError(f"penalty={found} needs the samples in memory; elsewhere there are l2, l1 and elastic_net.")
        self.penalty: ElasticNet = found
        given = b is not None or sample_weight is not None
        self.source: Source = source.beside(b, sample_weight) if given else source
        if self.source.target_shape is None:
            raise ValueError(f"b is missing: {source!r} holds no targets. Pass an array of {source.shape[0]} rows.")
        self.n_samples, self.n_features = self.source.shape
        self.flat = self.source.target_shape == ()

    def __repr__(self) -> str:
        return f"ERM({self.source!r}, loss={self.loss}, penalty={self.penalty})"

    def primal(self) -> SourceERM:
        """The problem itself: `coordwise.solve` takes it."""
        return self

    def dual(self, smoothing: float | None = None) -> NoReturn:
        """TypeError: coordinates are samples there."""
        raise TypeError(
            "dual() needs the samples in memory. For samples that are elsewhere call coordwise.solve(problem), which "
            "certifies its solution by the duality gap as well."
        )

    def value(self, w: Any) -> Any:
        """P(w): one pass."""
        d, K = self.n_features, 1 if self.flat else int(np.prod(self.source.target_shape or ()))
        table = check_array("w", w, (d,) if self.flat else (d, K)).reshape(d, K)
        value = self._oracle(1).at(table).value
        return float(value[0]) if self.flat else value

    def _oracle(self, threads: int) -> Oracle:
        targets = Labelled(self.loss.name) if self.loss.classification else None
        samples = self.source.samples(targets, threads=threads)
        return Oracle(samples, Problem(self.loss, self.penalty.l2, False, self.penalty.l1))

    def solved(
        self,
        method: Any,
        *,
        tol: float,
        max_passes: float,
        time_limit: float | None,
        x0: Any,
        callback: Callable[[Progress], object] | None,
        n_jobs: int,
    ) -> Result:
        """`coordwise.solve`: gap <= tol * scale for every output, scale being P(0)."""
        from coordwise.fitting.elsewhere import solvers_of  # it needs problems in memory, and these refer to this one

        if not isinstance(method, str):
            raise TypeError(f"method={method!r} needs the samples in memory; for samples elsewhere use method='auto'.")
        check_callable("callback", callback)
        threads = (os.cpu_count() or 1) if n_jobs == -1 else check_count("n_jobs", n_jobs, low=1)
        seconds = math.inf if time_limit is None else check_number("time_limit", time_limit, low=0, infinite=True)
        passes = check_number("max_passes", max_passes, low=0, strictly=True, infinite=True)
        limits = Limits(seconds, passes)
        oracle = self._oracle(threads)
        start = None
        if x0 is not None:
            start = check_array("x0", x0, oracle.shape[:1] if self.flat else oracle.shape).reshape(oracle.shape)
        tol, solvers = check_number("tol", tol, low=0), solvers_of(method, self.loss)
        try:
            return self._result(drive(oracle, solvers, tol, start=start, limits=limits, callback=callback))
        except Interrupted as stop:
            raise Interrupted(str(stop), self._result(stop.result)) from None
        except Failed as lost:
            raise Failed(str(lost), self._result(lost.result)) from lost.__cause__

    def _result(self, outcome: Outcome) -> Result:
        """An outcome in the words of `coordwise.solve`; constants of coordinates are not known."""

        def scalar(values: FloatArray) -> Any:
            return float(values[0]) if self.flat else values

        looks, unknown = outcome.history, math.nan
        values = np.array([look.value for look in looks]).reshape(len(looks), -1)
        errors = np.array([look.error for look in looks])[:, None] * outcome.scale
        value, gap = (table[:, 0] if self.flat else table for table in (values, np.minimum(errors, values)))
        rounds, passes, seconds = (
            np.array([getattr(look, name) for look in looks], np.float64) for name in ("rounds", "passes", "seconds")
        )
        x = outcome.w[:, 0] if self.flat else outcome.w
        return Result(
            x=x,
            point=x,
            last=x,
            value=scalar(outcome.value),
            gap=scalar(outcome.gap),
            primal=scalar(outcome.value),
            scale=scalar(outcome.scale),
            status=outcome.status,
            iterations=int(outcome.work.rounds),
            passes=float(outcome.passes),
            seconds=outcome.seconds,
            history=History(rounds, passes, seconds, value, gap, value, np.zeros(len(looks))),
            constants=Constants(unknown, unknown, unknown, unknown, 1.0),
            method=", then ".join(outcome.solvers) or "none",
            certificate="duality gap",
            storage="elsewhere",
        )
