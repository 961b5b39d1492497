"""Methods for strongly convex objectives on those that are not: by regularisation, as footnote 3 describes it.

    F_sigma(x) = F(x) + (sigma/2) |x - x_0|_w^2,    w = L^beta,

is sigma-strongly convex. With sigma = epsilon/|x_0 - x*|^2, a point within epsilon/2 of its minimum is within epsilon
of the minimum of F. Where the distance is not known, sigma is halved in stages of 3/theta steps each, 1 - theta being
the rate that the method has there. With a = (E[F_sigma(x)] - min F_sigma)/(sigma |x_0 - x*|^2) at the end of a stage,
the next one ends with at most 4 e^-3 (a + 1/4), which soon is below 0.1: then E[F(x)] - min F <= 0.6 sigma
|x_0 - x*|^2. The stages grow by sqrt(2), so all steps so far are at most 3.5 times those of the last stage.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from coordwise.interrupts import Interrupted
from coordwise.methods.accelerated import ACDM, NUACDM
from coordwise.methods.base import Method
from coordwise.objectives import Objective, Sums
from coordwise.results import Certificate, History, Result, Status
from coordwise.rows import Rows
from coordwise.schedules import Schedule, Split, power
from coordwise.validation import FloatArray, check_number

__all__ = ["Regularized", "WithSquare"]

STEPS = 3.0  # of a stage, in units of 1/theta


@dataclass(frozen=True)
class Regularized(Method):
    """A method for strongly convex objectives, applied to F(x) + (sigma/2) |x - x_0|_w^2 (footnote 3 of the paper).

    The gap, the value and the history are those of F itself, and passes count the entries of its matrix.

    Parameters
    ----------
    method : ACDM or NUACDM, default ACDM()
        Without a sigma or weights of its own. Its beta gives the norm, w = L^beta; distances are meant in that.
    sigma : float, optional
        epsilon/|x_0 - x*|^2, where a bound of the distance is known: then F(x) - min F <= epsilon once the regularised
        objective is within epsilon/2 of its minimum. None: sigma begins at the mean of L/w and is halved until the run
        converges.

    Notes
    -----
    For objectives with a quadratic G (the dual of an l2 penalty, least squares, linear systems). Every stage makes a
    sparse copy of the matrix with one more entry per coordinate.
    """

    name: ClassVar[str] = "regularized"
    method: Method = field(default_factory=ACDM)
    sigma: float | None = None

    def __post_init__(self) -> None:
        inner = self.method
        if not isinstance(inner, (ACDM, NUACDM)):
            kind = type(inner).__name__
            raise TypeError(f"method must be ACDM or NUACDM, which strong convexity makes faster, not {kind}.")
        if inner.sigma is not None or getattr(inner, "weights", None) is not None:
            raise ValueError(
                f"method={inner!r} has parameters that the regularisation decides; leave out sigma and weights."
            )
        if self.sigma is not None:
            check_number("sigma", self.sigma, low=0, strictly=True)

    def schedule(self, objective: Objective) -> Schedule:
        """The first stage's."""
        center = np.zeros((objective.rows.count, objective.outputs))
        return self.method.schedule(WithSquare(objective, self._first(objective), center, self.beta))

    @property
    def beta(self) -> float:
        """That of the method."""
        assert isinstance(self.method, (ACDM, NUACDM))
        return self.method.beta

    def describe(self, **found: object) -> str:
        """See `Method.describe`."""
        sigma = "halved" if self.sigma is None else f"{self.sigma:.4g}"
        return f"regularized({self.method.describe()}, sigma={sigma})"

    def _first(self, objective: Objective) -> float:
        if self.sigma is not None:
            return self.sigma
        split = Split.of(objective, move=False)
        return float(np.mean(split.of_active(split.L) ** (1 - self.beta))) if split.active.any() else 1.0

    def solve(
        self,
        objective: Objective,
        drive: Callable[..., Result],
        *,
        max_passes: float,
        max_iterations: int | None,
        time_limit: float | None,
        random_state: int,
        x0: Any,
        callback: Callable[..., object] | None,
        record_every: float,
        **options: Any,
    ) -> Result:
        """The stages one after another; `drive` is `coordwise.solve.solve`, whose arguments the others are."""
        begun = time.perf_counter()
        center = objective.start(x0)
        stages, x, sigma = Stages(objective), objective.shaped(center), self._first(objective)
        while True:
            stage = WithSquare(objective, sigma, center, self.beta)
            constants = self.method.schedule(stage).constants
            assert constants.tau is not None
            stretch = stages.begin(stage, constants.iterations_per_pass)  # passes of the stage in one of the objective
            left = (max_passes - stages.passes) * stretch
            length = math.inf if self.sigma is not None else STEPS / constants.tau / constants.iterations_per_pass
            try:
                result = drive(
                    stage,
                    self.method,
                    max_passes=max(min(left, length), 1e-9),
                    max_iterations=None if max_iterations is None else max_iterations - stages.iterations,
                    time_limit=None if time_limit is None else max(time_limit - (time.perf_counter() - begun), 0.0),
                    random_state=(random_state + len(stages.results)) % 2**63,
                    x0=x,
                    callback=None if callback is None else stages.told(callback),
                    record_every=record_every * stretch,
                    **options,
                )
            except Interrupted as stop:
                stages.end(stop.result)
                found = stages.result(self.describe())
                work = f"{found.passes:.1f} passes"
                raise Interrupted.at(found, found.certificate, found.gap, work) from None
            stages.end(result)
            if result.status is not Status.MAX_PASSES or stages.passes >= max_passes or left <= length:
                return stages.result(self.describe())
            x, sigma = result.point, sigma / 2


class WithSquare(Objective):
    """F(x) + (sigma/2) |x - center|_w^2, w = L^beta, for the kernel, but with the certificate of F.

    The square is part of G: every b_i has one entry more, sqrt(sigma w_i/smooth).
    """

    def __init__(self, objective: Objective, sigma: float, center: FloatArray, beta: float = 0.0) -> None:
        if objective.blocks is not None:
            raise ValueError(
                "regularized takes single coordinates; for groups use 'nu_acdm', which restarts adaptively."
            )
        shape = objective.coordinates.shape
        if not isinstance(objective.smooth, float) or objective.minus_last:
            raise ValueError(
                f"{type(objective).__name__} has a G that is not quadratic, and regularised needs one: the dual of an "
                "l2 penalty, LeastSquares or LinearSystem. Use 'nu_acdm', which restarts adaptively."
            )
        if shape.curvature > 0:
            raise ValueError("this objective is strongly convex already; use the method itself, without Regularized.")
        self.inner = objective
        self.strong = sigma * power(Split.of(objective, move=False).L, beta)
        size = np.sqrt(self.strong / objective.smooth)
        self.rows = Rows(sp.hstack([_matrix(objective.rows), sp.diags_array(size)], format="csr"))
        self.coordinates, self.smooth = objective.coordinates, objective.smooth
        self.outputs, self.flat, self.width = objective.outputs, objective.flat, objective.rows.width
        self.certificate_name, self.threads = objective.certificate_name, objective.threads
        first = np.zeros((self.width, self.outputs)) if objective.image0 is None else objective.image0
        self.image0 = np.vstack([first, -size[:, None] * center])

    def certificate(self, image: FloatArray, sums: Sums) -> Certificate:
        """See `Objective.certificate`: that of F."""

        def inner_sums(omega: FloatArray) -> dict[str, FloatArray]:
            return sums(np.vstack([omega, np.zeros((self.rows.count, self.outputs))]))

        return self.inner.certificate(np.ascontiguousarray(image[: self.width]), inner_sums)

    def solution(self, image: FloatArray) -> FloatArray | None:
        """See `Objective.solution`."""
        return self.inner.solution(np.ascontiguousarray(image[: self.width]))

    def dual_variables(self, x: FloatArray, image: FloatArray, certificate: Certificate) -> FloatArray | None:
        """See `Objective.dual_variables`."""
        return self.inner.dual_variables(x, np.ascontiguousarray(image[: self.width]), certificate)


def _matrix(rows: Rows) -> Any:
    """The matrix by coordinate as a sparse array."""
    if rows.dense is not None:
        return sp.csr_array(rows.dense)
    values, indices, starts = rows.arrays
    return sp.csr_array((values, indices, starts), shape=(rows.count, rows.width))


class Stages:
    """The results of the stages, counted in passes over the objective's own matrix."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.results: list[Result] = []
        self.iterations, self.passes, self.seconds = 0, 0.0, 0.0
        self._rows: list[History] = []
        self._entries = 1.0

    def begin(self, stage: WithSquare, iterations_per_pass: float) -> float:
        """How many passes over the stage's matrix take as many steps as one over the objective's, on average."""
        self._entries = float(stage.rows.nnz)
        own = self._entries / iterations_per_pass - 1  # entries of a step
        nnz = self.objective.rows.nnz
        return nnz / own / iterations_per_pass if nnz and own > 0 else 1.0

    def own(self, iterations: Any, passes: Any) -> Any:
        """Passes over the objective's matrix: every step has touched one entry that is not its."""
        nnz = self.objective.rows.nnz
        return (passes * self._entries - iterations) / nnz if nnz else iterations / self.objective.rows.count

    def told(self, callback: Callable[..., object]) -> Callable[..., object]:
        """The user's callback, with all stages in its numbers."""
        before = self.iterations, self.passes, self.seconds, len(self.results)

        def follow(progress: Any) -> object:
            iterations, passes, seconds, restarts = before
            return callback(
                replace(
                    progress,
                    iterations=iterations + progress.iterations,
                    passes=passes + self.own(progress.iterations, progress.passes),
                    seconds=seconds + progress.seconds,
                    restarts=restarts,
                    predicted_passes_left=math.nan,
                )
            )

        return follow

    def end(self, result: Result) -> None:
        """A stage has ended."""
        h, skip = result.history, 1 if self.results else 0  # its first record is the last one of the stage before
        moved = replace(
            h,
            iterations=h.iterations + self.iterations,
            passes=self.own(h.iterations, h.passes) + self.passes,
            seconds=h.seconds + self.seconds,
            restarts=np.full_like(h.restarts, len(self.results)),
        )
        self._rows.append(History(*(column[skip:] for column in vars(moved).values())))
        self.passes += self.own(result.iterations, result.passes)
        self.iterations += result.iterations
        self.seconds += result.seconds
        self.results.append(result)

    def result(self, description: str) -> Result:
        """The last stage if it converged, else the best point of all."""
        last = self.results[-1]
        best = last if last.converged else min(self.results, key=lambda found: float(np.max(found.gap)))
        columns = zip(*(vars(part).values() for part in self._rows), strict=True)
        return replace(
            best,
            status=last.status,
            last=last.last,
            constants=last.constants,
            iterations=self.iterations,
            passes=self.passes,
            seconds=self.seconds,
            history=History(*(np.concatenate(column) for column in columns)),
            method=description,
            storage=self.objective.rows.storage,
        )
