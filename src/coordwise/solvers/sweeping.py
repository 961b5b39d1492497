"""Sweeps over blocks in this process, and steps on the samples that these gather."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

import numpy as np

from coordwise.oracle import Candidate, Oracle
from coordwise.samples.base import Kept
from coordwise.solvers.images import Image, factors_of
from coordwise.solvers.local import PRODUCTS, Gathered, balanced, finished, gathered, sizes_of, swept
from coordwise.solvers.news import News
from coordwise.validation import FloatArray

__all__ = ["sweeping"]

DOUBT, GROWTH = 0.1, 2.0  # of the change of w that the gap allows; its growth where the gap does not fall by half
CLOSE = 0.1  # of the gap: how well the gathered samples are solved
ROOM, LEAST = 20.0, 50.0  # passes that this may take, in passes over all samples, and over those that were gathered
STILL = 30  # sweeps without a smaller gap after which rounding is to blame


def sweeping(oracle: Oracle, start: FloatArray, goal: FloatArray, most: float, seed: int) -> Iterator[Candidate]:
    """One candidate after every sweep, whose point was certified by it; at most so many entries are gathered."""
    image = Image.at(oracle, start)
    y, news = image.y, News()
    far, doubt = math.inf, DOUBT
    for k in count():
        w, certain = image.weights(), y
        image.move()
        if oracle.problem.intercept:
            factors = factors_of(np.sum([sizes_of(part) for part in y], axis=0))
            certain = tuple(balanced(part, factors) for part in y)
        y, state = oracle.sweep(
            PRODUCTS,
            swept,
            y,
            certain,
            state={"image": image.value},
            w=w,
            statement=image.statement,
            far=far,
            most=min(most / max(oracle.samples.sizes.nnz, 1), 1.0),
            seed=seed + k,
        )
        found = image.candidate(w, certain, state["sums"])
        yield found
        if np.all(found.gap <= goal) or news.since(found, goal) > STILL:
            return
        doubt = doubt if news.halved else min(doubt * GROWTH, 1.0)
        far = doubt * math.sqrt(2 * float(news.gap.max()) / oracle.problem.l2)
        image.value = state["image"]
        near = gathered(state)
        if near is not None:
            _finish(oracle, image, near, y, np.maximum(CLOSE * news.gap, goal / 4), seed + k)


def _finish(oracle: Oracle, image: Image, near: Gathered, y: Kept, goal: FloatArray, seed: int) -> None:
    """Solve for the gathered samples, and put what was found in its places of y, which nobody else has seen yet."""
    room = max(ROOM * oracle.samples.sizes.nnz / max(near.block.rows.nnz, 1), LEAST)
    own, image.value, passes = finished(near, image.statement, goal, room, seed, oracle.poll)
    oracle.work.entries += passes * near.block.rows.nnz
    ends = np.cumsum([len(which) for which in near.places])[:-1]
    for part, which, new in zip(y, near.places, np.split(own, ends), strict=True):
        part[which] = new
