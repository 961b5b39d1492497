"""One system and the attempts at it: what `coordwise.linalg.solve` tries, on how many equations, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from coordwise.linalg.conjugate import Iterate, cgls
from coordwise.linalg.consistency import (
    NO_SOLUTION,
    Watch,
    about_zero_rows,
    certainly_inconsistent,
    without_zero_rows,
)
from coordwise.linalg.direct import factorised
from coordwise.linalg.following import Ending, follow, result_of
from coordwise.linalg.parallel import about_parallel_rows
from coordwise.linalg.products import Products
from coordwise.linalg.request import Request, norms, rank_note
from coordwise.linalg.rowaction import run_objective
from coordwise.methods import NUACDM, SDCA, Method
from coordwise.objectives import LinearSystem
from coordwise.results import Result, Status
from coordwise.validation import FloatArray

__all__ = ["System"]

UNEVEN = 3.0  # rows are scaled where their norms differ by more than this (ninth decile over first)
SAMPLE = 4  # equations per unknown in the first sample
KACZMARZ_SAMPLE = 16
WORTH = 4  # a sample pays where the system is this many times larger
TALL = 50  # equations per unknown from where Kaczmarz solves the sample
SHORT = 128  # sides up to which a dense matrix is factorised at once
LONG = 6000  # and beyond which it never is
FACTOR = 12  # a factorisation costs about short/FACTOR iterations of conjugate gradients
KACZMARZ_PASSES = 50  # over the sample, before it is given up
TRIAL = 12  # steps of conjugate gradients before row action is thought of
SOON = 30  # unless so many more promise to be enough
FLAT = 10.0  # and |A| over a typical row norm from where it is better
MORE_ROWS = 1.2  # with at least this many equations per unknown
POWER_STEPS = 4
CHECK_EVERY = 8  # steps between two questions whether the system has a solution
TRIES = 3  # at one sample


@dataclass(frozen=True)
class Part:
    """Some of the equations, or all of them."""

    products: Products
    b: FloatArray
    weights: FloatArray | None  # of the squared residuals; None: ones
    what: str
    share: float  # entries, of those of A
    whole: bool

    @property
    def short(self) -> int:
        """The shorter side."""
        return min(self.products.shape)


class System:
    """Ax = b: its row norms, the point reached so far, and how it was reached."""

    def __init__(self, products: Products, request: Request, ending: Ending) -> None:
        self.products, self.ending = products, ending
        self.m, self.n = products.shape
        self.goal = request.residual_goal
        self.norms2 = products.row_norms2()
        self.request, self.missing, self.notes = without_zero_rows(request, self.norms2)
        self.method = "none"
        self.flat = False

    def solved(self, method: str) -> Result:
        """By "cgls" or "direct" on all equations; "auto" by the rules of `coordwise.linalg.auto`."""
        ending = self.ending
        ending.x = self.request.start(self.n)
        ending.gap = at_start = self.residual(ending.x)
        try:
            self.settle(method)
        except KeyboardInterrupt:
            ending.status = Status.INTERRUPTED
        if ending.status is not Status.CONVERGED:
            ending.gap = self.residual(ending.x)
            ending.x = np.where(ending.gap <= at_start, ending.x, self.request.start(self.n))
        return self.result()

    def settle(self, method: str) -> None:
        """Until there is a status; what can be seen before anything is tried comes first."""
        ending = self.ending
        self.notes += about_parallel_rows(self.products, self.norms2, self.request.b, self.goal)
        if np.all(ending.gap <= self.goal):
            ending.status = Status.CONVERGED
            self.notes.append("the start is a solution")
        else:
            self.attempt(method)

    def attempt(self, method: str) -> None:
        """Until there is a status."""
        weights = self.scaling()
        whole = Part(self.products, self.request.b, weights, "all rows", 1.0, True)
        if method == "direct":
            self.factorise(whole)
            self.ending.status = self.ending.status or Status.STALLED
            return
        for part in self.samples(weights) if method == "auto" else ():
            if self.by_sample(part):
                return
        self.by_all(whole, auto=method == "auto")

    def scaling(self) -> FloatArray | None:
        """1/|a_i|^2 where the rows differ much in norm."""
        positive = self.norms2[self.norms2 > 0]
        low, high = np.quantile(positive[:: max(len(positive) // 10_000, 1)], [0.1, 0.9]) if len(positive) else (1, 1)
        if high <= UNEVEN**2 * low:
            return None
        self.notes.append(f"rows scaled to norm 1: their norms differ by a factor {np.sqrt(high / low):.3g} or more")
        return np.divide(1.0, self.norms2, out=np.zeros(self.m), where=self.norms2 > 0)

    def samples(self, weights: FloatArray | None) -> Iterator[Part]:
        """Random equations: some per unknown, then four times as many, and so on while that saves work."""
        size = (KACZMARZ_SAMPLE if self.m >= TALL * self.n else SAMPLE) * self.n
        if self.m < size * WORTH:
            return
        rng = np.random.default_rng(self.request.seed)
        rows = self.products.rows()
        while self.m >= size * WORTH:
            chosen = np.sort(rng.choice(self.m, size, replace=False, shuffle=False))
            products = Products(rows.part(chosen), True)
            part = None if weights is None else weights[chosen]
            share = products.matrix.nnz / max(rows.nnz, 1)
            yield Part(products, self.request.b[chosen], part, f"{size} of {self.m} rows", share, False)
            size *= 4

    def by_sample(self, part: Part) -> bool:
        """Solve a sample, look at the other equations, and aim lower while that may help; whether there is a status."""
        ending = self.ending
        aim = 0.3 * self.request.goal(norms(part.b))
        for _ in range(TRIES):
            reached = self.reach(part, aim)
            if ending.status is None:
                ending.gap = self.residual(ending.x)
                ending.passes += 1
                ending.record(ending.gap)
                worst = float(np.max(ending.gap / self.goal))
                if worst <= 1:
                    ending.status = Status.CONVERGED
                elif reached and worst < 100:
                    aim = aim / (2 * worst)
                    continue
            break
        return ending.status is not None

    def reach(self, part: Part, aim: FloatArray) -> bool:
        """Whether the residual on a sample came down to `aim`."""
        dense = part.products.dense is not None
        if dense and part.short <= SHORT:
            self.factorise(part)
            return False  # it cannot be made better
        if self.m >= TALL * self.n:
            return self.by_rows(part, aim, SDCA(), "kaczmarz", KACZMARZ_PASSES) is Status.CONVERGED
        limit = part.short / FACTOR if dense else 2.0 * self.n
        reached = self.conjugate(part, aim, limit)
        if reached is None and dense and part.short <= LONG:
            self.factorise(part)
            return False
        return reached is Status.CONVERGED

    def by_all(self, whole: Part, *, auto: bool) -> None:
        """All equations, to a status."""
        ending, factor = self.ending, auto and self.products.dense is not None and whole.short <= LONG
        if factor and whole.short <= SHORT:
            self.factorise(whole)
        elif factor:
            self.conjugate(whole, self.goal, whole.short / FACTOR)
            if ending.status is None:
                self.factorise(whole)
        elif auto:
            self.conjugate(whole, self.goal, None, then_rows=True)
            if self.flat:
                beta = 0.0 if whole.weights is None else 1.0
                left = self.request.maxiter - ending.passes
                ending.status = self.by_rows(whole, self.goal, NUACDM(beta=beta, sigma="adaptive"), "nu_acdm", left)
        if ending.status is None:
            self.conjugate(whole, self.goal, None)

    def conjugate(self, part: Part, aim: FloatArray, limit: float | None, *, then_rows: bool = False) -> Status | None:
        """CGLS from where we are; how it ended, None if the limit on iterations came first.

        With `then_rows`, it also ends where row action promises more: `flat` is then True.
        """
        products, b, weights = part.products, part.b, part.weights
        lengths = np.sqrt(products.row_norms2())
        looks = 0

        def judge(now: Iterate) -> Status | None:
            nonlocal looks
            looks += 1
            if then_rows and looks == TRIAL and not self.soon(now, aim) and self.flat_rows(part):
                self.flat = True
                return Status.STOPPED
            asked = looks % CHECK_EVERY == 0 or not now.moving
            none = asked and certainly_inconsistent(now, b, self.goal, weights, lengths)
            return Status.INCONSISTENT if none else None

        self.method = f"cgls on {part.what}"
        status = follow(
            lambda x: cgls(products, b, x, weights=weights),
            self.ending.x,
            lambda x: norms(b - products.forward(x)),
            self.request,
            aim,
            ending=self.ending,
            size=norms(b),
            limit=limit,
            judge=judge,
            share=part.share,
        ).status
        if self.flat and status is Status.STOPPED:
            status = self.ending.status = None
        elif status is Status.INCONSISTENT:
            self.notes.append(NO_SOLUTION)
        elif not part.whole and status in (Status.CONVERGED, Status.STALLED):
            self.ending.status = None  # the other equations have the last word
        return status

    def by_rows(self, part: Part, aim: FloatArray, method: Method, name: str, most: float) -> Status:
        """Row action by the kernel from where we are, for at most so many passes over the part."""
        request, ending = self.request, self.ending
        objective = LinearSystem(
            part.products.rows(), request.shaped(part.b), center=request.shaped(ending.x), scale=aim
        )
        shift = part.b - part.products.forward(ending.x) if ending.x.any() else part.b
        watch = Watch(part.products, shift, self.goal, part.weights)
        limit = None if request.time_limit is None else max(request.time_limit - ending.seconds, 0.0)
        within = replace(request, maxiter=max(int(most), 1), time_limit=limit, x0=None)
        result = run_objective(objective, within, method, watch)
        self.method = f"{name} on {part.what}"
        ending.x, ending.gap = result.x.reshape(self.n, -1), np.atleast_1d(np.asarray(result.gap))
        history = result.history
        for iterations, passes, gap in zip(history.iterations, history.passes, history.gap, strict=True):
            done = ending.passes + part.share * float(passes)
            ending.rows.append((ending.iterations + int(iterations), done, ending.seconds, np.atleast_1d(gap)))
        ending.iterations += result.iterations
        ending.passes += part.share * result.passes
        if watch.verdict and result.status is not Status.INTERRUPTED:
            ending.status = watch.verdict
            self.notes.append(watch.note)
        elif result.status in (Status.STOPPED, Status.INTERRUPTED, Status.TIME_LIMIT):
            ending.status = result.status
        return ending.status or result.status

    def soon(self, now: Iterate, aim: FloatArray) -> bool:
        """Whether conjugate gradients, going on at the rate of their last steps, need no more than `SOON` of them."""
        here, before = np.maximum(norms(now.residual), aim), self.ending.rows[-1 - TRIAL // 3][3]
        rate = np.log(np.maximum(before / here, 1.0)) / (TRIAL // 3)
        return bool(np.all(np.log(here / aim) <= SOON * rate))

    def flat_rows(self, part: Part) -> bool:
        """Whether |A| is far more than a typical row norm: then row action needs fewer passes than conjugate gradients.

        Those need about |A| |A^-1| iterations, NU_ACDM about (mean of |a_i|) |A^-1| passes, each up to a constant.
        """
        if np.count_nonzero(self.norms2) < MORE_ROWS * self.n:
            return False
        v = np.random.default_rng(self.request.seed).standard_normal((self.n, 1))
        weights = np.ones(self.m) if part.weights is None else part.weights
        for _ in range(POWER_STEPS):
            v /= np.linalg.norm(v)
            v = part.products.backward(weights[:, None] * part.products.forward(v))
        largest = np.sqrt(np.linalg.norm(v))
        row_norms = np.sqrt(weights * self.norms2)
        self.ending.passes += POWER_STEPS
        typical = float(row_norms[row_norms > 0].mean())
        if largest <= FLAT * typical:
            return False
        self.notes.append(
            f"{TRIAL} steps of cgls came not far, and |A| is {largest / typical:.3g} times a typical row norm"
        )
        return True

    def factorise(self, part: Part) -> None:
        """QR; sets a status if its answer solves all equations, or certifies that nothing does."""
        assert part.products.dense is not None
        ending = self.ending
        x, rank = factorised(part.products.dense, part.b, self.request.x0, weights=part.weights)
        ending.passes += part.share * part.short / FACTOR
        gap = self.residual(x)
        better = np.all(np.isfinite(x)) and np.max(gap / self.goal) <= np.max(ending.gap / self.goal)
        if better:
            ending.x, ending.gap, self.method = x, gap, f"direct (QR) on {part.what}"
            self.notes += rank_note(rank, part.short) if part.whole else ()
        ending.record(ending.gap)
        if np.all(ending.gap <= self.goal):
            ending.status = Status.CONVERGED
        elif better:
            r = part.b - part.products.forward(x)
            z = r if part.weights is None else part.weights[:, None] * r
            now, lengths = Iterate(x, r, part.products.backward(z)), np.sqrt(part.products.row_norms2())
            if certainly_inconsistent(now, part.b, self.goal, part.weights, lengths):
                ending.status = Status.INCONSISTENT
                self.notes.append(NO_SOLUTION)

    def residual(self, x: FloatArray) -> FloatArray:
        """|b - Ax| on all equations."""
        return norms(self.request.b - self.products.forward(x) if x.any() else self.request.b)

    def result(self) -> Result:
        """With the residual on all equations at the point returned."""
        ending = self.ending
        gap = ending.gap if ending.status is Status.CONVERGED else self.residual(ending.x)
        if ending.status is Status.STALLED and np.all(gap <= self.goal):
            ending.status = Status.CONVERGED
        if self.missing.any():
            gap = np.hypot(gap, self.missing)
            ending.status = about_zero_rows(ending.status)
        return result_of(
            ending,
            self.request,
            gap=gap,
            goal=self.goal,
            value=np.square(gap) / 2,
            L=self.norms2,
            method=self.method,
            certificate="residual norm",
            storage=self.products.matrix.storage,
            notes=tuple(self.notes),
        )
