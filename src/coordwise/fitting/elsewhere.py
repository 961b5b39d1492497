"""Fitting a linear model to a source: samples that are elsewhere, seen by the oracle's verbs alone."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coordwise.drive import Limits, Outcome, drive
from coordwise.fitting.checkpoint import Checkpoint
from coordwise.fitting.fit import Fit
from coordwise.fitting.gathered import MOST, fit_gathered
from coordwise.fitting.offsets import FAR, Offsets, shift_of
from coordwise.interrupts import Failed, Interrupted
from coordwise.losses import Loss
from coordwise.oracle import Oracle, Problem
from coordwise.penalties import ElasticNet
from coordwise.recording import Progress
from coordwise.results import Status
from coordwise.samples.base import InOrder, RowsLost, Samples
from coordwise.samples.source import Source, Targets, Weights
from coordwise.solvers import SOLVERS, Descent, Solver
from coordwise.validation import FloatArray

__all__ = ["Column", "Elsewhere", "Moved", "fit_source", "solvers_of", "unfitted"]


@dataclass(frozen=True)
class Moved:
    """Targets, from which a level is taken off. A function that can be sent to where the targets are."""

    targets: Targets | None
    level: FloatArray

    def __call__(self, y: FloatArray) -> FloatArray:
        """See the class."""
        found = y if self.targets is None else self.targets(y)
        return found.reshape(len(found), -1) - self.level


@dataclass(frozen=True)
class Column:
    """One of several targets. A function that can be sent to where the targets are."""

    targets: Targets | None
    k: int

    def __call__(self, y: FloatArray) -> FloatArray:
        """See the class."""
        found = y if self.targets is None else self.targets(y)
        return found.reshape(len(found), -1)[:, self.k]


@dataclass(frozen=True)
class Elsewhere:
    """The samples of a fit: a source, what is made of its targets and weights, and the feature of the intercept.

    With `scaling`, a finite number, the intercept is the weight of a feature of that value, penalised as the others.
    The weights of a `checkpoint` are where the fit begins, and those that it finds are kept there.
    """

    source: Source
    targets: Targets | None = None
    weights: Weights | None = None
    intercept: bool = True
    scaling: float = math.inf
    threads: int = 1
    checkpoint: Checkpoint | None = None

    @property
    def free(self) -> bool:
        """Whether there is an intercept that is not penalised."""
        return self.intercept and math.isinf(self.scaling)

    def column(self, k: int) -> Elsewhere:
        """The same with one of the targets."""
        return replace(self, targets=Column(self.targets, k))

    def offsets(self, loss: Loss) -> Offsets:
        """What is taken off features and targets that lie far from 0, going by the first rows."""
        head = getattr(self.source, "head", None)
        if not self.free or head is None:
            return Offsets.none()
        X, y, _ = head()
        level = np.zeros(1)
        if not loss.classification:
            b = y if self.targets is None else self.targets(y)
            b = np.asarray(b, np.float64).reshape(len(b), -1)
            far = np.abs(b.mean(axis=0)) > FAR * b.std(axis=0)
            level = np.where(far, np.median(b, axis=0), 0.0)
        return Offsets(shift_of(X), level)

    def samples(self, offsets: Offsets) -> Samples:
        """As solvers visit them."""
        targets = Moved(self.targets, offsets.level) if offsets.level.any() else self.targets
        constant = self.intercept if self.free else self.scaling if self.intercept else False
        options: dict[str, Any] = {"constant": True if constant == 1 else constant, "threads": self.threads}
        if offsets.shift is not None:
            options["shift"] = offsets.shift
        return self.source.samples(targets, weights=self.weights, **options)


def solvers_of(strategy: str, loss: Loss) -> tuple[Solver, ...]:
    """Those that may run: for "auto" all, without coordinate steps if the loss is smooth; else the one of that name.

    Coordinate steps, once chosen for Huber's loss on 240 x 12 samples, read them 1000 times where Newton's steps read
    them 50 times.

    Raises
    ------
    ValueError
        If none has this name.
    """
    if strategy == "auto":
        return tuple(solver for solver in SOLVERS if loss.gamma == 0 or not isinstance(solver, Descent))
    found = tuple(solver for solver in SOLVERS if solver.name == strategy)
    if not found:
        names = ", ".join(repr(solver.name) for solver in SOLVERS)
        raise ValueError(
            f"strategy={strategy!r} needs the samples in memory; for samples that are elsewhere use 'auto' or one of "
            f"{names}."
        )
    return found


def fit_source(
    data: Elsewhere,
    loss: Loss,
    penalty: Callable[[float], ElasticNet],
    *,
    tol: float,
    max_passes: float = 1000,
    time_limit: float | None = None,
    strategy: str = "auto",
    start: tuple[FloatArray, FloatArray] | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Fit:
    """Minimise P(w, c) as `coordwise.fitting.fit.fit` does, with `penalty` as a function of W = sum_i s_i.

    The loop is `coordwise.drive.drive`; for a loss with a kink and at most `coordwise.fitting.gathered.MOST` entries in
    chunks it is that of a fit in memory, which is far better at them. The dual variables stay with the samples, and the
    `y` of the result is empty; its `results` hold the `Outcome`. `start` is (w, c).

    Raises
    ------
    ValueError
        If no solver applies, or the penalty needs coordinates.
    Interrupted, Failed
        On Ctrl-C, and if samples are lost, with the best point so far, a `Fit`, as the `result` (None if samples were
        lost before the fit began).
    """
    begun = time.perf_counter()
    solvers = solvers_of(strategy, loss)
    try:
        offsets = data.offsets(loss)
        samples = data.samples(offsets)
        total = samples.sizes.total
    except RowsLost as error:
        raise Failed(f"{error} The fit had not begun.") from error
    if not total > 0:
        raise ValueError("sample_weight must have at least one positive entry.")
    r = penalty(total)
    if r.positive:
        raise ValueError(
            "positive=True needs the samples in memory; for samples that are elsewhere use positive=False."
        )
    left = math.inf if time_limit is None else max(time_limit - (time.perf_counter() - begun), 0.0)
    if loss.gamma == 0 and strategy == "auto" and isinstance(samples, InOrder) and samples.sizes.nnz <= MOST:

        def moved(found: Fit) -> Fit:
            w, c = _split(np.vstack([found.w, found.c]) if data.free else found.w, data, offsets)
            return replace(found, w=w, c=c)

        options = {"tol": tol, "max_passes": max_passes, "callback": callback, "n_jobs": data.threads}
        try:
            return moved(
                fit_gathered(
                    samples, loss, r, intercept=data.free, time_limit=None if math.isinf(left) else left, **options
                )
            )
        except Interrupted as stop:
            raise Interrupted(str(stop), moved(stop.result)) from None
        except RowsLost as error:
            raise Failed(f"{error} The fit had not begun.") from error
    oracle = Oracle(samples, Problem(loss, r.l2, data.free, r.l1))
    kept = None if data.checkpoint is None else data.checkpoint.of(data.targets, data.weights, data.scaling, offsets)
    callback = callback if kept is None else kept.watching(callback)

    def fitted(outcome: Outcome) -> Fit:
        if kept is not None:
            kept.keep(outcome.w)
        return _fit_of(outcome, data, offsets, loss.coupled, time.perf_counter() - begun)

    try:
        weights = None if start is None else _start_of(data, offsets, *start)
        if kept is not None and (found := kept.weights(oracle.shape)) is not None:
            weights = found
        limits = Limits(left, max_passes)
        return fitted(drive(oracle, solvers, tol, start=weights, limits=limits, callback=callback))
    except Interrupted as stop:
        raise Interrupted(str(stop), fitted(stop.result)) from None
    except Failed as lost:
        raise Failed(str(lost), fitted(lost.result)) from lost.__cause__


def _start_of(data: Elsewhere, offsets: Offsets, w: FloatArray, c: FloatArray) -> FloatArray:
    """Weights of all features, that of the intercept the last row."""
    if not data.intercept:
        return w
    return np.vstack([w, offsets.removed(w, c) if data.free else c / data.scaling])


def _split(w: FloatArray, data: Elsewhere, offsets: Offsets) -> tuple[FloatArray, FloatArray]:
    """Weights and intercepts for the data as they are, of all weights with that of the intercept as the last row."""
    if not data.intercept:
        return w, np.zeros(w.shape[1])
    w, last = w[:-1], w[-1]
    return w, offsets.restored(w, last) if data.free else last * data.scaling


def _fit_of(outcome: Outcome, data: Elsewhere, offsets: Offsets, coupled: bool, seconds: float) -> Fit:
    """Weights and intercepts for the data as they are."""
    w, c = _split(outcome.w, data, offsets)
    if coupled and data.free:  # a common shift changes nothing: the one with sum 0, as in memory
        c = c - c.mean()
    names = ", then ".join(outcome.solvers) or f"none: {outcome.status.value} before the fit"
    return Fit(
        w,
        c,
        np.zeros((0, w.shape[1])),
        outcome.value,
        outcome.gap,
        np.where(np.isfinite(outcome.scale), outcome.scale, 1.0),
        outcome.status,
        float(outcome.passes),
        int(outcome.work.rounds),
        seconds,
        f"{names}: {outcome.work.rounds:.0f} visits of samples that are elsewhere",
        (outcome,),
    )


def unfitted(shape: tuple[int, int], status: Status) -> Fit:
    """What is left of a fit of weights of this shape (d, K) that has not begun: zeros, of which nothing is known."""
    unknown = np.full(shape[1], np.inf)
    nothing = np.zeros((0, shape[1]))
    why = f"none: {status.value} before the fit"
    return Fit(
        np.zeros(shape), np.zeros(shape[1]), nothing, unknown, unknown, np.ones(shape[1]), status, 0.0, 0, 0.0, why, ()
    )
