"""Linear models as a problem on samples: the bridge from `LinearModel` to `coordwise.oracle`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coordwise import oracle as house
from coordwise.deadlines import TimeUp
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.samples import Block, Memory
from coordwise.solvers import NewtonCG

__all__ = ["Spent", "newton_cg", "oracle_of", "passes_of"]


class Spent(Exception):
    """As much work as was allowed has been done."""


def oracle_of(model: LinearModel, limit: float = np.inf, most: float = np.inf) -> house.Oracle:
    """The model's problem on its samples in memory.

    Verbs raise `TimeUp` after the limit (of `time.perf_counter`), and `Spent` after so many passes over the entries.
    """

    def poll() -> None:
        if time.perf_counter() > limit:
            raise TimeUp
        if passes_of(oracle) >= most:
            raise Spent

    problem = model.problem
    rows, threads = problem.any_rows(), problem.threads
    block = Block(model.A, model.b, model.weights, constant=model.intercept, rows=rows, threads=threads)
    statement = house.Problem(model.loss, model.penalty.l2, model.intercept)
    oracle = house.Oracle(Memory(block), statement, poll)
    return oracle


def passes_of(oracle: house.Oracle) -> float:
    """Entries touched / nnz."""
    return oracle.work.entries / max(oracle.samples.sizes.nnz, 1)


def newton_cg(
    model: LinearModel, tol: float, oracle: house.Oracle, start: Candidate | None = None
) -> Iterator[Candidate]:
    """Newton's method by conjugate gradients, from `start` or zeros: the best candidate at the start and every step.

    It ends where the work that is allowed has been done, with the first candidate at least.
    """
    w = np.zeros(oracle.shape)
    best = model.nothing if start is None else model.recertified(start)
    yield best
    if start is not None:
        w[: model.d] = start.w
        if model.intercept:
            w[-1] = start.c
    goal = np.where(model.scale > 0, tol * model.scale, tol**2)
    try:
        for found in NewtonCG().rounds(oracle, w, goal):
            c = found.w[-1] if model.intercept else np.zeros(model.outputs)
            (y,) = found.y
            now = Candidate(found.w[: model.d], c, y, found.value, found.gap)
            if model.intercept:  # the derivatives add up to 0 only as far as rounding of scores and targets allows
                now = model.recertified(replace(now, y=model.feasible(y)))
            best = now.better(best)
            yield best
    except Spent:
        return
