"""Coordinate steps on the dual variables of some samples, the others being as they are.

    D(y) = (1/W) sum_i s_i phi*(y_i/s_i) + |u|^2/(2 l2 W^2),   u = A'y,

is what they minimise. The pure functions here are sent to where blocks of samples are. An intercept is a feature whose
value is `column` for every sample, with the penalty l2/2 on the distance from a center that moves (`fitting/dual.py`):
its entry of u begins at a number other than 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.erm import ERM, DualERM
from coordwise.kernels import Plan, Run
from coordwise.losses import Loss
from coordwise.penalties import L2
from coordwise.recording import Progress
from coordwise.rows import Rows
from coordwise.samples.block import Block
from coordwise.solve import solve
from coordwise.validation import FloatArray

__all__ = [
    "PRODUCTS",
    "Gathered",
    "Statement",
    "balanced",
    "counted",
    "descended",
    "doubled",
    "finished",
    "gathered",
    "halved",
    "sizes_of",
    "swept",
]


PRODUCTS = 3  # entries that a round touches, in those of A: a certificate is two products


class Statement(NamedTuple):
    """The problem of which blocks hold parts; `column` is 0 without an intercept."""

    loss: Loss
    l2: float
    total: float
    column: float


class Gathered(NamedTuple):
    """Samples of all blocks that are here together, which of each block they are, and all samples' A'y."""

    block: Block
    places: list[NDArray[np.intp]]
    y: FloatArray
    image: FloatArray


def passed(
    block: Block, y: FloatArray, image: FloatArray, statement: Statement, share: float, seed: int
) -> tuple[FloatArray, FloatArray]:
    """(y, image) after an exact step on every sample once, at random, where `image` is A'y of all samples.

    Quadratic parts of D are `share` times as large as they are.
    """
    rows = block.by_sample(statement.column)
    terms = statement.loss.terms(1 / statement.total, block.b, block.s, block.threads)
    smooth = share / (statement.l2 * statement.total**2)
    curvature = rows.norms2() * smooth
    idle = curvature == 0
    y = y.copy()
    if idle.any():  # no weights change what these are
        best = terms.minimizers(*y.shape)[idle]
        y[idle] = np.where(np.isfinite(best), best, y[idle])
    plan = Plan(accelerated=False, prox=True, step=np.where(idle, 1.0, curvature))
    members = np.flatnonzero(~idle).astype(np.uint32) if idle.any() else None
    if members is not None and len(members) == 0:
        return y, image
    run = Run(rows, terms, smooth, plan, cells=None, members=members, seed=seed, x0=y, known=image)
    run.advance(steps=block.m if members is None else len(members))
    return run.point(), run.image()


def halved(block: Block, pairs: FloatArray, *, factors: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Keep the first half of columns that come in pairs, balanced (`balanced`)."""
    return balanced(pairs[:, : block.outputs], factors), []


def doubled(block: Block, y: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Keep y twice, side by side."""
    return np.hstack([y, y]), []


def counted(block: Block, y: FloatArray) -> tuple[None, list[FloatArray]]:
    """`sizes_of` dual variables."""
    return None, [sizes_of(y)]


def balanced(y: FloatArray, factors: FloatArray) -> FloatArray:
    """Positive entries times factors[0], negative ones times factors[1], per output."""
    return np.where(y > 0, factors[0], factors[1]) * y


def sizes_of(y: FloatArray) -> FloatArray:
    """Sums of the positive entries, and of the moduli of the negative ones."""
    return np.stack([np.maximum(y, 0).sum(axis=0), -np.minimum(y, 0).sum(axis=0)])


def certified(block: Block, y: FloatArray, t: FloatArray, loss: Loss) -> list[FloatArray]:
    """Sums of the losses at scores t and of the conjugates at y, and A'y."""
    terms = block.terms(loss)
    return [terms.value(t), terms.conjugate(np.ascontiguousarray(y)), block.adjoint(y)]


def descended(
    block: Block,
    pairs: FloatArray,
    *,
    w: FloatArray,
    factors: FloatArray,
    image: FloatArray,
    theta: float,
    sigma: float,
    restart: bool,
    seed: int,
    statement: Statement,
) -> tuple[FloatArray, list[FloatArray]]:
    """One accelerated round on a block, whose kept array has y and z side by side.

    The certificate of w and of the y before; then z moves by steps that count themselves sigma theta times, and y goes
    the way theta to the new z. `image` is A'((1 - theta) y + theta z) of all samples.
    """
    y, z = pairs[:, : block.outputs], pairs[:, block.outputs :]
    sums = certified(block, balanced(y, factors), block.product(w), statement.loss)
    before = np.ascontiguousarray(y if restart else z)
    share = sigma * theta
    after, there = passed(block, before, image / share, statement, share, seed)
    y = (1 - theta) * y + theta * after
    if not restart and theta < 1:  # rounding may leave the domain
        y = block.terms(statement.loss).clip(y)
    sums += [there - image / share, block.terms(statement.loss).conjugate(np.ascontiguousarray(y)), sizes_of(y)]
    return np.hstack([y, after]), sums


def swept(
    block: Block,
    y: FloatArray,
    certain: FloatArray,
    *,
    state: dict[str, Any],
    w: FloatArray,
    statement: Statement,
    far: float,
    most: float,
    seed: int,
) -> tuple[FloatArray, dict[str, Any]]:
    """The certificate of w and `certain`; an exact step on every sample; samples that may have to move yet.

    state["image"] is A'y of all samples, as the blocks before have left it; `far` is how much w may still change, and
    at most `most` of the entries of the block are gathered.
    """
    t = block.product(w)
    sums = certified(block, certain, t, statement.loss)
    y, image = passed(block, y, state["image"], statement, 1.0, seed)
    which = _open(block, y, t, statement, far, most, seed)
    rows = block.by_sample(statement.column)
    found = (rows.part(which).arrays if len(which) else None, block.b[which], _taken(block.s, which), y[which], which)
    added = [a + b for a, b in zip(state["sums"], sums, strict=True)] if "sums" in state else sums
    return y, {
        "image": image,
        "sums": added,
        "found": [*state.get("found", []), found],
        "width": rows.width,
        "threads": block.threads,
    }


def _taken(s: FloatArray | None, which: NDArray[np.intp]) -> FloatArray | None:
    return None if s is None else s[which]


def _open(
    block: Block, y: FloatArray, t: FloatArray, statement: Statement, far: float, most: float, seed: int
) -> NDArray[np.intp]:
    """Samples that are not in a corner of their conjugates, or that a move of w by `far` may take out of it.

    Where they are too many, those that least takes out; at random among samples that are in no corner.
    """
    if not statement.loss.shape.corners:
        return np.empty(0, np.intp)
    slope, away, _ = block.terms(statement.loss).held(y, t)
    rows = block.by_sample(statement.column)
    norms = np.sqrt(rows.norms2())[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        withstands = np.where(away > 0, -1.0, np.where(norms > 0, slope / norms, np.inf)).min(axis=1)
    if block.s is not None:
        withstands[block.s == 0] = np.inf
    which = np.random.default_rng(seed).permutation(np.flatnonzero(withstands <= far))
    ranked = which[np.argsort(withstands[which], kind="stable")]
    few = np.searchsorted(np.cumsum(rows.lengths[ranked]), most * rows.nnz, side="right")
    return np.sort(ranked[:few])


def gathered(state: dict[str, Any]) -> Gathered | None:
    """The samples that a sweep found, as one block; None if there are none."""
    parts = [part for part in state["found"] if part[0] is not None]
    places = [part[4] for part in state["found"]]
    if not parts:
        return None
    b, y = (np.concatenate([part[k] for part in parts]) for k in (1, 3))
    s = None if parts[0][2] is None else np.concatenate([part[2] for part in parts])
    if len(parts[0][0]) == 1:
        A: Any = np.concatenate([part[0][0] for part in parts])
    else:
        A = sp.vstack([sp.csr_array(part[0], shape=(len(part[1]), state["width"])) for part in parts], format="csr")
    return Gathered(Block(A, b, s, threads=state["threads"]), places, y, state["image"])


class _Part(ERM):
    """Some samples as a problem of their own, whose losses count 1/W each all the same."""

    def __init__(self, block: Block, rows: Rows, statement: Statement) -> None:
        self.penalty, self.loss = L2(statement.l2), statement.loss
        self.b, self.flat, self.sample_weight = block.b, False, block.s
        self.total, self.threads, self._rows = statement.total, block.threads, {"rows": rows}
        self.n_samples, self.n_features = rows.count, rows.width


def finished(
    found: Gathered,
    statement: Statement,
    goal: FloatArray,
    passes: float,
    seed: int,
    poll: Callable[[], object] | None,
) -> tuple[FloatArray, FloatArray, float]:
    """(y, A'y of all samples, passes) with D minimised over these samples to a gap <= goal, by what suits them best."""
    problem = _Part(found.block, found.block.by_sample(), statement)
    objective = DualERM(problem)
    before = objective.image(found.y)
    objective.image0 = found.image - before
    scale = problem.value_at_zero
    tol = float(np.min(np.where(scale > 0, goal / np.where(scale > 0, scale, 1.0), np.inf)))

    def watch(progress: Progress) -> None:
        if poll is not None:
            poll()

    result = solve(
        objective,
        tol=tol if np.isfinite(tol) else 1.0,
        max_passes=passes,
        random_state=seed,
        x0=found.y,
        callback=watch,
        n_jobs=found.block.threads,
    )
    return result.point, found.image + (objective.rows.combine(result.point) - before), result.passes
