"""What each technique gains: the same problems with one of them switched off in turn.

Over the samples (news20) in passes to a duality gap of 1e-6 P(0), and seconds; with few features (w8a) and few of many
features (news20, l1) in seconds; and what a pass costs next to reading the data once. Times are medians of a few fits;
compare within a line only. A switch is a patch of the library from outside, so nothing here is an option for users.

    OMP_NUM_THREADS=1 python benchmarks/techniques.py [--most 1000] [--repeats 3] [--tol 1e-6] [--only WORD ...]
    python benchmarks/techniques.py --only "Dense data"     # what threads of linear algebra do to each other
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

import coordwise as cw
from coordwise import curvature, erm, methods, recording
from coordwise.datasets import load
from coordwise.erm import DualERM, PrimalERM
from coordwise.fitting import active_set, krylov, newton, runners, semismooth, weighted, working
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.quadratic import Quadratic
from coordwise.fitting.rough import Rough
from coordwise.kernels import NO_PACKING, PACK_IN_SINGLE
from coordwise.plane import Plane
from coordwise.recording import Log
from coordwise.rows import Rows
from coordwise.starting import start

Switch = Callable[[], Any] | str | tuple[str, Callable[[], Any]]  # a patch, the name of another strategy, or both


@contextmanager
def residuals_as_duals() -> Iterator[None]:
    """Dual variables of ridge regression are the present residuals."""

    def taken(self: Any, x: Any, image: Any) -> None:
        self.x[:], self.image[:] = x, image
        squares = (np.square(x).sum(axis=1), np.square(image).sum(axis=1) / self.shift)
        self.dual = sum(squares) / 2 - (self.f * x).sum(axis=1)

    with mock.patch.object(krylov.Run, "_mix", taken):
        yield


@contextmanager
def everyone_drawn() -> Iterator[None]:
    """No coordinate is held; the slopes of corners still make up for curvature."""
    whole = DualERM.local_curvature

    def local(self: DualERM, look: Any, slack: float, doubt: float) -> Any:
        return whole(self, look, slack, 1e9)  # with so much doubt nobody is

    with mock.patch.object(DualERM, "local_curvature", local):
        yield


@contextmanager
def accelerated_soon() -> Iterator[None]:
    """Exact steps in the beginning only, whatever they promise later."""
    with (
        mock.patch.object(curvature.LocalWeights, "_pays", return_value=False),
        mock.patch.object(curvature, "SOON", -np.inf),
    ):
        yield


@contextmanager
def library_products() -> Iterator[None]:
    """Gram matrices by scipy's sparse product, or by BLAS, of all samples."""

    def gram(self: Rows, weights: Any, threads: int = 1, beside: Any = None) -> Any:
        if self.dense is not None:
            whole = self.dense if beside is None else np.hstack([self.dense, beside])
            return whole.T @ (weights[:, None] * whole)
        A = sp.csr_array(self.arrays, shape=(self.count, self.width))
        A = A if beside is None else sp.hstack([A, sp.csr_array(beside)], format="csr")
        return (A.T @ (sp.diags_array(weights) @ A)).toarray()

    with mock.patch.object(Rows, "gram", gram), mock.patch.object(weighted.Gram, "of_most", return_value=None):
        yield


@contextmanager
def features_drawn() -> Iterator[None]:
    """No feature is held at zero."""
    with (
        mock.patch.object(PrimalERM, "local_curvature", return_value=None),
        mock.patch.object(Quadratic, "local_curvature", return_value=None),
    ):
        yield


@contextmanager
def zeros_not_asked() -> Iterator[None]:
    """Gaps over the features are those of derivatives, however much larger than P."""
    plain = PrimalERM.certificate

    def certificate(self: PrimalERM, image: Any, sums: Any) -> Any:
        found: dict[str, Any] = {}

        def kept(omega: Any) -> Any:
            found.update(sums(omega))
            return found

        whole = plain(self, image, kept)
        return replace(whole, gap=found["fenchel_young"])

    with mock.patch.object(PrimalERM, "certificate", certificate):
        yield


@contextmanager
def momentum_lost() -> Iterator[None]:
    """Every change of an active set restarts the momentum."""
    change = Log.change

    def restarted(self: Log, schedule: Any) -> None:
        if self.schedule.restarts:
            self.restart()
        change(self, schedule)

    with mock.patch.object(Log, "change", restarted):
        yield


OVER_SAMPLES: dict[str, Callable[[], Any]] = {
    "everything": nullcontext,
    "few exact steps": accelerated_soon,
    "no active sets": everyone_drawn,
    "worst-case curvature": lambda: mock.patch.object(DualERM, "local_curvature", return_value=None),
    "no hopeful weights": lambda: mock.patch.object(methods.Auto, "varied", np.inf),
    "rows not packed": lambda: mock.patch.object(Rows, "packing", NO_PACKING),
}
LOOSE: dict[str, Switch] = {
    "everything": "dual",
    "weights of the duals": ("dual", lambda: mock.patch.object(Plane, "known", False)),
}
FEW_FEATURES: dict[str, Switch] = {
    "everything": nullcontext,
    "start at zero": lambda: mock.patch.object(runners, "rough_start", return_value=Rough()),
    "full steps": lambda: mock.patch.object(newton, "flattest", return_value=1.0),
    "nobody led across": lambda: mock.patch.object(newton, "aimed", lambda t, y: np.zeros_like(t)),
    "duals not mended": lambda: mock.patch.object(newton, "MENDS", 0),
    "spoilt duals asked": lambda: mock.patch.object(newton._Output, "spoilt", return_value=0.0),
    "derivatives as duals": lambda: mock.patch.object(newton, "FALL", 0.0),
    "all samples": lambda: mock.patch.object(weighted, "LITTLE", 0.0),
    "Gram by scipy or BLAS": library_products,
    "every Gram anew": lambda: mock.patch.object(weighted, "SOME", -1.0),
    "over the samples": "dual",
}
KINKS: dict[str, Switch] = {
    "everything": nullcontext,
    "start at zero": lambda: mock.patch.object(runners, "rough_start", return_value=Rough()),
    "over the samples": "dual",
}
WEAK: dict[str, Switch] = {
    "Krylov spaces": "krylov",
    "no preconditioner": ("krylov", lambda: mock.patch.object(krylov, "ROOT", 0.0)),
    "residuals as duals": ("krylov", residuals_as_duals),
    "over the samples": "dual",
}
WIDE: dict[str, Switch] = {"everything": nullcontext, "Gram matrix": "gram", "Krylov spaces": "krylov"}
LONG: dict[str, Switch] = {"everything": nullcontext, "Newton's method": "newton", "over the samples": "dual"}
BOTH: dict[str, Switch] = {
    "everything": nullcontext,
    "features alone": "primal",
    "zeros not asked": ("primal", zeros_not_asked),
    "over the samples": "dual",
}
STRAIGHT: dict[str, Switch] = {
    "everything": nullcontext,
    "duals not solved for": lambda: mock.patch.object(semismooth, "WORTH", 0.0),
    "over the samples": "dual",
}
SETS: dict[str, Switch] = {
    "everything": nullcontext,
    "systems alone": lambda: mock.patch.object(active_set, "FEW", np.inf),
    "all features": "primal",
}
DENSE: dict[str, Switch] = {
    "everything": nullcontext,
    "threads of scipy too": lambda: mock.patch("coordwise.fitting.fit.one_scipy_thread", nullcontext),
}
SMALL: dict[str, Switch] = {
    "everything": nullcontext,
    "a record each pass": lambda: mock.patch.object(recording, "RECORD", 0.0),
}
SPARSE: dict[str, Switch] = {
    "everything": nullcontext,
    "first set of 100": lambda: mock.patch.object(working, "TIMES", 0.0),
    "small systems": lambda: mock.patch.multiple(
        working, RARELY=12.0, MANY=np.inf, FEWER=np.inf, SPARSE=450, LARGEST=300
    ),
    "no exact small sets": lambda: mock.patch.multiple(working, EXACT=0, SPARSE=0),
    "nobody held at zero": features_drawn,
    "momentum lost": momentum_lost,
    "the gap tells": lambda: mock.patch.object(erm, "gap_power", return_value=1.0),
    "working sets": "working_set",
    "all features": "primal",
}


def news20(normalised: bool) -> tuple[Any, Any]:
    data = load("news20")
    A = data.A
    if normalised:
        norms = np.sqrt(A.multiply(A).sum(axis=1))
        A = sp.csr_array(sp.diags_array(1 / np.where(norms > 0, norms, 1.0)) @ A)
        A.sort_indices()
    return A, data.b


def standardised(A: Any) -> Any:
    dense = A.toarray()
    return (dense - dense.mean(0)) / np.where(dense.std(0) > 0, dense.std(0), 1.0)


def long_rows(n: int, d: int, density: float) -> tuple[Any, Any]:
    """Samples with many entries."""
    rng = np.random.default_rng(0)
    A = sp.random_array((n, d), density=density, rng=rng, format="csr")
    return A, np.where(A @ rng.standard_normal(d) > 0, 1.0, -1.0)


def correlated(n: int, d: int) -> tuple[Any, Any]:
    """Dense samples whose neighbouring features are correlated by 0.7, and targets from every tenth of them."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    for j in range(1, d):
        A[:, j] = 0.7 * A[:, j - 1] + np.sqrt(0.51) * A[:, j]
    return A, A[:, ::10] @ rng.standard_normal(len(A[0, ::10])) + rng.standard_normal(n)


def lassos(name: str, A: Any, b: Any) -> list[Any]:
    return [
        (
            f"lasso, {name}, lam_max/{part}",
            lambda part=part: cw.ERM(A, b, penalty="l1", lam=float(np.abs(A.T @ b).max()) / len(b) / part),
        )
        for part in (10, 100, 1000)
    ]


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median seconds, and the last result; one run only if it is long."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < 10:
        begun = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times), result


def solved(problem: cw.ERM, args: argparse.Namespace) -> cw.Result:
    return cw.solve(problem.dual(), tol=args.tol, max_passes=args.most)


def over_samples(args: argparse.Namespace) -> None:
    print(f"\nOver the samples, passes (and seconds) to a gap of {args.tol:g} P(0); at most {args.most:g} passes")
    print(f"{'':46}" + "".join(f"{name:>25}" for name in OVER_SAMPLES))
    for normalised in (False, True):
        A, b = news20(normalised)
        for loss in ("squared", "logistic", "squared_hinge", "hinge"):
            for weight in (1.0, 1e-2):
                cells = []
                for switch in OVER_SAMPLES.values():
                    with switch():
                        problem = cw.ERM(A, b, loss=loss, lam=weight / len(b))
                        seconds, result = timed(partial(solved, problem, args), args.repeats)
                    passes = f"{result.passes:.0f}" if result.converged else f">{args.most:g}"
                    cells.append(f"{passes} ({seconds:.2f} s)")
                title = f"{loss}, news20 {'normalised' if normalised else 'raw'}, lam n = {weight:g}"
                print(f"{title:46}" + "".join(f"{cell:>25}" for cell in cells), flush=True)


def by_fitting(
    args: argparse.Namespace, title: str, switches: dict[str, Switch], rows: Any, tol: float | None = None
) -> None:
    """Seconds of `fit`."""
    if not args.wants(title):
        return
    tol = args.tol if tol is None else tol
    print(f"\n{title}, seconds to a gap of {tol:g} P(0)")
    print(f"{'':46}" + "".join(f"{name:>22}" for name in switches))
    for name, make in rows:
        cells = []
        for switch in switches.values():
            strategy, patched = (switch, nullcontext) if isinstance(switch, str) else ("auto", switch)
            if isinstance(switch, tuple):
                strategy, patched = switch
            with patched():
                seconds, result = timed(
                    lambda make=make, strategy=strategy: fit(
                        LinearModel(make(), False), tol=tol, strategy=strategy, max_passes=1e5, time_limit=10
                    ),
                    args.repeats,
                )
            cells.append(f"{seconds:.3f}" if result.converged else f">{seconds:.0f}")
        print(f"{name:46}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


def limits() -> None:
    """One accelerated pass against reading as many bytes in order, which no method that looks at every row can beat."""
    vector = np.ones(2**25)
    reading = min(timed(vector.sum, 1)[0] for _ in range(5)) / vector.nbytes  # seconds a byte
    print(f"\nThe limit: memory is read in order at {1e-9 / reading:.1f} GB/s")
    print(f"{'':30}{'bytes a pass':>16}{'read in':>12}{'a pass takes':>16}{'certificate':>14}{'of the limit':>14}")
    covtype = load("covtype")
    dense = standardised(covtype.A)
    w8a = load("w8a")
    for name, (A, b) in {
        "news20 raw": news20(False),
        "news20 normalised": news20(True),
        "w8a": (w8a.A, w8a.b),
        "covtype, sparse": (covtype.A, covtype.b),
        "covtype, dense": (dense, covtype.b),
    }.items():
        objective = cw.ERM(A, b, lam=1 / len(b)).dual()
        rows = objective.rows
        run = start(objective, cw.NUACDM().schedule(objective), 0, objective.start(None))
        a_pass = min(timed(partial(run.advance, entries=rows.nnz), 1)[0] for _ in range(7))
        look = min(timed(partial(objective.certify_run, run), 1)[0] for _ in range(7))
        an_entry = 8 if rows.dense is not None else (8 if rows.packing == PACK_IN_SINGLE else 12)
        size = an_entry * rows.nnz + 64 * rows.count
        print(
            f"{name:30}{size / 2**20:12.1f} MiB{1e3 * size * reading:9.2f} ms{1e3 * a_pass:13.2f} ms"
            f"{1e3 * look:11.2f} ms{size * reading / a_pass:14.0%}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=1000, help="passes that a run may take")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="only sections with one of the words")
    args = parser.parse_args()
    args.wants = lambda title: not args.only or any(word in title for word in args.only)
    if args.wants("Over the samples"):
        over_samples(args)
    w8a, covtype = load("w8a"), load("covtype")
    for data in (w8a, covtype, load("news20")):
        print(f"{data.name}: {data.origin}")

    def rows_of(name: str, A: Any, b: Any, losses: tuple[str, ...], weights: tuple[float, ...]) -> list[Any]:
        return [
            (
                f"{loss}, {name}, lam n = {weight:g}",
                lambda loss=loss, weight=weight: cw.ERM(A, b, loss=loss, lam=weight / len(b)),
            )
            for loss in losses
            for weight in weights
        ]

    some = rows_of("w8a", w8a.A, w8a.b, ("logistic", "squared_hinge"), (1.0, 1e-2, 1e-4))
    some += rows_of("covtype", covtype.A, covtype.b, ("logistic",), (1.0, 1e-2, 1e-4))
    dense = standardised(covtype.A)
    some += rows_of("covtype standardised", dense, covtype.b, ("logistic", "squared_hinge"), (1.0, 1e-2, 1e-4))
    by_fitting(args, "Few features", FEW_FEATURES, some)
    some = rows_of("w8a", w8a.A, w8a.b, ("l2l1", "hinge"), (1.0, 1e-2, 1e-4))
    by_fitting(args, "Few features and losses with kinks", KINKS, some)
    A, b = news20(True)
    some = rows_of("news20 normalised", A, b, ("logistic", "squared_hinge", "hinge"), (1.0, 1e-2, 1e-4))
    for tol in (1e-2, 1e-3):
        by_fitting(args, "Loose tolerances", LOOSE, some, tol)
    some = rows_of("news20 normalised", A, b, ("squared",), (1e-2, 1e-4))
    some += rows_of("news20 raw", *news20(False), ("squared",), (1e-2, 1e-4))
    for tol in (3e-3, 1e-4):
        by_fitting(args, "Weak penalties", WEAK, some, tol)
    some = rows_of("news20 normalised", A, b, ("squared_hinge",), (1e-4, 1e-6))
    some = rows_of("news20 raw", *news20(False), ("squared_hinge",), (1e-2, 1e-4, 1e-6)) + some
    by_fitting(args, "Weak penalties and losses with straight parts", STRAIGHT, some)
    some = []
    for shape in ((1000, 500, 0.5), (5000, 900, 0.2), (20_000, 200, 0.5)):
        name = "{} x {}, {:.0%}".format(*shape)
        some += rows_of(name, *long_rows(*shape), ("logistic", "squared_hinge"), (100.0, 1.0, 1e-2))
    by_fitting(args, "Samples with many entries", LONG, some)
    rows = [
        (
            f"elastic net, news20 normalised, lam n = {weight:g}",
            lambda weight=weight: cw.ERM(A, b, penalty="elastic_net", lam=weight / len(b), l1_ratio=0.5),
        )
        for weight in (1.0, 1e-2, 1e-4)
    ]
    for tol in (1e-2, 1e-3, 1e-4):
        by_fitting(args, "Elastic nets", BOTH, rows, tol)
    rows = lassos("news20 normalised", A, b) + lassos("news20 raw", *news20(False))
    by_fitting(args, "Few of many features", SPARSE, rows)
    rows = lassos("w8a", w8a.A, w8a.b)
    for n, d in ((3000, 400), (3000, 800), (300, 900)):
        rows += lassos(f"{n} x {d}", *correlated(n, d))
    by_fitting(args, "Gram matrices and l1", SETS, rows)
    some = []
    for n, d in ((4000, 2500), (2500, 4000)):
        some += rows_of(f"{n} x {d}", *correlated(n, d), ("squared",), (1e4, 1.0, 1e-2))
    by_fitting(args, "Dense ridge regression", WIDE, some)
    dense, targets = correlated(3000, 400)
    some = rows_of("3000 x 400", dense, np.sign(targets), ("logistic", "squared_hinge", "hinge"), (1.0, 1e-2))
    by_fitting(args, "Dense data", DENSE, some)
    some = rows_of("1000 x 2000, 2%", *long_rows(1000, 2000, 0.02), ("logistic", "squared_hinge", "hinge"), (1.0, 1e-2))
    by_fitting(args, "Small data", SMALL, some, 1e-4)
    if args.wants("The limit"):
        limits()


if __name__ == "__main__":
    main()
