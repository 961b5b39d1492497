"""The problems of the suite: every source of data with losses, penalties and accuracies that are drawn once for all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from data import SOURCES, Source, Table, hash_of

CLASSES = ("logistic", "squared_hinge", "hinge", "smooth_hinge")
NUMBERS = ("squared", "huber", "l2l1", "absolute", "epsilon_insensitive", "squared_epsilon_insensitive", "quantile")
KAPPAS = (0.3, 3.0, 30.0, 300.0, 3e3, 3e4, 3e5)  # mean |a_i|^2 / (lam n)
SHARES = (0.3, 0.1, 0.03, 0.01, 0.003)  # of the smallest l1 weight that gives w = 0
SMOOTH = ("logistic", "squared_hinge", "smooth_hinge", "squared", "huber", "squared_epsilon_insensitive")


@dataclass(frozen=True)
class Task:
    """One problem with the accuracy that is asked for: gap <= tol P(0)."""

    source: Source
    loss: str
    penalty: str
    strength: float
    intercept: bool
    weighted: bool
    tol: float

    @property
    def key(self) -> str:
        """Its name."""
        which = f"kappa {self.strength:g}" if self.penalty == "l2" else f"{self.strength:g} lam_max"
        extras = ", intercept" * self.intercept + ", weights" * self.weighted
        return f"{self.source.name}: {self.loss}, {self.penalty} {which}{extras}, to {self.tol:g}"

    def model(self) -> Any:
        """A linear model that nothing is known of yet; the data are read or made once for tasks in a row."""
        from coordwise import ERM
        from coordwise.fitting.model import LinearModel
        from coordwise.losses import get_loss
        from coordwise.penalties import ElasticNet

        A, b, weights = targets(self.source, self.loss in CLASSES, self.weighted)
        n, total = A.shape[0], A.shape[0] if weights is None else float(weights.sum())
        if self.penalty == "l2":
            squares = A.multiply(A).sum() if sp.issparse(A) else np.einsum("ij,ij->", A, A)
            penalty = ElasticNet(0.0, float(squares) / n / (self.strength * n))
        else:
            slopes = get_loss(self.loss).derivative(np.zeros((n, 1)), b[:, None], 1.0)[:, 0]
            lam = self.strength * float(np.abs(A.T @ (slopes if weights is None else weights * slopes)).max()) / total
            ratio = 1.0 if self.penalty == "l1" else 0.5
            penalty = ElasticNet(lam * ratio, lam * (1 - ratio))
        return LinearModel(ERM(A, b, loss=self.loss, penalty=penalty, sample_weight=weights), self.intercept)


@lru_cache(maxsize=1)
def table(source: Source) -> Table:
    """Of the last source that was asked for."""
    return source.table()


def targets(source: Source, classes: bool, weighted: bool) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Matrix, targets (noisy signs or noisy numbers of the scores) and sample weights."""
    A, t = table(source)
    rng = np.random.default_rng(hash_of(source.name) + classes)
    n = len(t)
    signs = source.make is None and len(np.unique(t)) == 2
    if classes and signs:
        b = t
    elif classes:
        share = rng.choice([0.5, 0.5, 0.05])  # balanced, or few of one class
        noisy = t / max(t.std(), 1e-300) + 0.5 * rng.logistic(size=n)
        b = np.where(noisy > np.quantile(noisy, 1 - share), 1.0, -1.0)
    else:
        b = t + (0.0 if source.make is None else 0.3 * max(t.std(), 1e-300) * rng.standard_t(3, n))
    return A, b, rng.lognormal(0.0, 1.0, n) if weighted else None


def tasks(*, quick: bool = False) -> list[Task]:
    """The suite; the sources of files only where these are."""
    folder = os.environ.get("COORDWISE_DATA", "")
    found: list[Task] = []
    for source in SOURCES:
        if source.make is None and not os.path.isfile(os.path.join(folder, source.name.split()[0] + ".svm.xz")):
            continue
        if source.quick or not quick:
            found += drawn(source)[: 2 if quick else None]
    return found


def drawn(source: Source) -> list[Task]:
    """Six tasks of a source: smooth losses with an l2 penalty, kinks, l1 penalties, of classes and of numbers."""
    rng = np.random.default_rng(hash_of("tasks of " + source.name))
    numbers = source.name.startswith("casp")
    only = {True} if source.make is None and not numbers else {False} if numbers else {True, False}

    def pick(losses: tuple[str, ...], penalty: str) -> Task:
        strength = float(rng.choice(KAPPAS if penalty == "l2" else SHARES))
        return Task(
            source,
            str(rng.choice(losses)),
            penalty,
            strength,
            bool(rng.random() < 0.5),
            bool(rng.random() < 0.15),
            float(rng.choice([1e-3, 1e-6])),
        )

    found = []
    if True in only:
        found += [pick(("logistic",), "l2"), pick(("squared_hinge", "smooth_hinge", "logistic"), "l2")]
        found += [pick(("hinge",), "l2"), pick(("logistic", "squared_hinge"), "l1")]
    if False in only:
        found += [pick(("squared",), "l2"), pick(("squared",), "l1")]
        found += [pick(NUMBERS, "l2"), pick(tuple(x for x in NUMBERS if x in SMOOTH), "elastic_net")]
    else:
        found += [pick(("logistic",), "l2"), pick(("squared",), "l1")]
    return found
