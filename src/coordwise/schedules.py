"""Schedules: what a method comes down to on one objective, and the recursions methods are made of.

The accelerated methods share one recursion (linear coupling). With a distribution p, norm weights w_i > 0 and sigma the
strong convexity in |x|_w^2 = sum_i w_i x_i^2,

    Theta = max_i L_i/(w_i p_i^2),   tau = 2/(1 + sqrt(4 Theta/sigma + 1)),   eta = 1/(tau Theta),

and p_i ~ sqrt(L_i/w_i) minimises Theta. w = L^beta with that p is NU_ACDM (Algorithm 1).

Where h_i is smooth, it is part of f and a step is a coordinate gradient step (L_i includes its curvature). Where it is
not, it enters by its proximal step, and f holds sigma w_i of its strong convexity (L_i grows by as much).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from coordwise import kernels
from coordwise.kernels import Plan
from coordwise.objectives import Look, Objective
from coordwise.results import Constants
from coordwise.sampling import power_distribution
from coordwise.theory import coupling
from coordwise.validation import FloatArray

__all__ = [
    "Schedule",
    "Split",
    "acdm_theta",
    "at_least_mean",
    "constants_of",
    "distribution",
    "estimate_sequence",
    "inverse",
    "not_strongly_convex",
    "optimal",
    "plain",
    "power",
    "promised",
    "raised",
    "strongly_convex",
]


class Described(Protocol):
    """What a schedule wants to know of its method: how to name it."""

    def describe(self, **found: object) -> str:
        """Name and parameters, with what was found out about them."""


@dataclass(frozen=True)
class Schedule:
    """A method made concrete for one objective."""

    plan: Plan
    cells: NDArray[np.uint32] | None  # None: random permutations
    idle: NDArray[np.bool_]  # coordinates that are never drawn
    constants: Constants
    description: str
    members: NDArray[np.uint32] | None = None  # whose permutations are drawn; None: of all
    places: FloatArray | None = None  # N x K: where the coordinates that are never drawn have to be
    restarts: bool = False  # adaptive restarts (see coordwise.restarts)
    careful: Callable[[], Schedule] | None = None  # takes over if this one loses its pace (see coordwise.pace)
    renew: Callable[[Look], Schedule | None] | None = None  # what to go on with (see coordwise.curvature)

    def without_arrays(self) -> Schedule:
        """What is of interest once a run has taken over the arrays, so that their memory is free again."""
        plan = replace(self.plan, step=np.empty(0), theta=None, move=None)
        return replace(self, plan=plan, cells=None, idle=np.empty(0, np.bool_), members=None, places=None)


@dataclass(frozen=True)
class Split:
    """What belongs to f and what to the proximal step.

    `L` is the coordinate smoothness of f, `own` the strong convexity of the coordinate terms. With a proximal step,
    `move` is the part of it that f holds: L = curvature of G + move.
    """

    prox: bool
    L: FloatArray
    own: FloatArray
    base: FloatArray | None  # with a proximal step that f shares: the curvature of G alone
    move: FloatArray | None
    active: NDArray[np.bool_]
    strong: FloatArray | None = None  # f holds sum_i strong_i x_i^2/2 beside the terms (`Objective.strong`)

    @classmethod
    def of(cls, objective: Objective, *, move: bool = True) -> Split:
        """All strong convexity of the terms in f (`move`), or none of it where they enter by a proximal step."""
        shape = objective.coordinates.shape
        L = objective.curvature
        curved = objective.term_curvature
        gone = np.isinf(curved)  # zero weights: x_i = 0 for good
        if gone.any():
            curved, L = np.where(gone, 0.0, curved), np.where(gone, 0.0, L)
        own = curved if shape.curvature > 0 else np.broadcast_to(0.0, L.shape)
        prox, base, moved = not shape.differentiable, None, None
        if not prox:
            L += curved
        elif move and objective.strong is None:
            base, moved, L = L, own, L + own
        _check_scales(L)
        return cls(prox, L, own, base, moved, L > 0, objective.strong)

    def sigma(self, weights: FloatArray) -> float:
        """min_i own_i / w_i over the active coordinates: strong convexity of the terms in the norm |.|_w.

        Where f holds squares that are not the terms', theirs.
        """
        curved = self.own if self.strong is None else self.strong
        if not curved.any() or not self.active.any():
            return 0.0
        return float(np.min(self.of_active(curved) / self.of_active(weights)))

    def of_active(self, values: FloatArray) -> FloatArray:
        """The active coordinates' part of an array, without a copy if that is all of it."""
        return values if len(self._which) == len(values) else values[self._which]

    @cached_property
    def _which(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.active)

    def holding_still(self, weights: FloatArray) -> tuple[Split, FloatArray]:
        """The same split with coordinates of infinite weight never drawn, and weights that are finite."""
        held = np.isinf(weights)
        if not held.any():
            return self, weights
        split = replace(self, L=np.where(held, 0.0, self.L), active=self.active & ~held)
        return split, np.where(held, 1.0, weights)

    def holding(self, move: FloatArray) -> Split:
        """The same split with exactly `move` of the terms' convexity in f; nothing changes without a proximal step.

        Linear coupling needs no more than sigma w_i there, and with more the proximal step could lose its convexity:
        1/theta_i >= sigma w_i is all that is guaranteed.
        """
        if self.base is None:
            return self
        move = np.where(self.active, move, 0.0)
        return replace(self, L=np.where(self.active, self.base + move, 0.0), move=move)


def _check_scales(L: FloatArray) -> None:
    most, least = np.max(L), np.min(L, where=L > 0, initial=np.inf)
    if not most <= 1e290 or least < 1e-290:
        raise ValueError(
            "A, lam and the weights give coordinate smoothness parameters beyond the range of floating point "
            f"({least:.3g} to {most:.3g}); rescale A (divide it by a typical row norm) or change lam."
        )


def power(L: FloatArray, exponent: float) -> FloatArray:
    """L^exponent with 1 where L = 0 (never used there)."""
    return np.broadcast_to(1.0, L.shape) if exponent == 0 else np.where(L > 0, L, 1.0) ** exponent


def inverse(values: FloatArray) -> FloatArray:
    """1/values, with 0 for 0: such coordinates are never drawn."""
    with np.errstate(divide="ignore", over="ignore"):
        found = np.asarray(1.0 / values)
    found[values == 0] = 0.0
    return found


def distribution(L: FloatArray, exponent: float) -> FloatArray:
    """p_i ~ L_i^exponent; uniform if no L_i is positive and nothing depends on it."""
    return power_distribution(L, exponent) if np.any(L > 0) else np.full_like(L, 1 / len(L))


def optimal(split: Split, weights: FloatArray) -> FloatArray:
    """p_i ~ sqrt(L_i/w_i), which minimises Theta."""
    return distribution(split.L / weights, 0.5)


def at_least_mean(split: Split, beta: float) -> FloatArray:
    """p_i ~ max(L_i^(1-beta), mean of L^(1-beta)): ACDM's sampling."""
    share = np.zeros_like(split.L)
    if not split.active.any():
        return np.full_like(share, 1 / len(share))
    part = (split.L[split.active] / split.L.max()) ** (1 - beta)
    share[split.active] = np.maximum(part, part.mean())
    return share / share.sum()


def acdm_theta(L: FloatArray, beta: float, *, proved: bool) -> float:
    """Theta of ACDM as published: n S, or n R^2/S with R = sum_i max(L_i^(1-beta), S/n) where it is `proved`."""
    if len(L) == 0:
        return 1.0
    most = float(L.max()) ** (1 - beta)
    share = (L / L.max()) ** (1 - beta)
    S = float(share.sum())
    R = float(np.maximum(share, S / len(L)).sum()) if proved else S
    return len(L) * R * R / S * most


def raised(p: FloatArray, active: NDArray[np.bool_]) -> FloatArray:
    """No p_i below half of uniform: the proximal ns form starts at tau_0 = min_i p_i, which a short row would ruin."""
    higher = np.where(active, np.maximum(p, 0.5 / max(int(active.sum()), 1)), 0.0)
    return higher / higher.sum() if active.any() else p


def largest_theta(split: Split, weights: FloatArray, p: FloatArray) -> float:
    """Theta = max_i L_i/(w_i p_i^2)."""
    if not split.active.any():
        return 1.0
    return float(np.max(split.of_active(split.L) / (split.of_active(weights) * split.of_active(p) ** 2)))


def promised(objective: Objective, split: Split, weights: FloatArray) -> float:
    """The rate per pass that `strongly_convex` promises with sigma = 1 and the best p, without making the schedule.

    Coordinates of infinite weight are never drawn. `split` is `Split.of` the objective, whose terms enter by proximal
    steps.
    """
    assert split.base is not None
    roots = np.sqrt(split.base / weights + 1)  # of L_i/w_i
    drawn = split.active & np.isfinite(weights)
    if not drawn.any():
        return 1.0
    roots *= drawn
    S = float(roots.sum())
    tau = feasible(coupling(S * S, 1.0), float(np.min(roots, where=drawn, initial=np.inf)) / S)
    return float((1 - tau) ** steps_per_pass(objective, roots / S))


def steps_per_pass(objective: Objective, p: FloatArray) -> float:
    """How many steps touch as many entries as there are, on average."""
    per_step = float(np.dot(p, objective.lengths))
    return objective.rows.nnz / per_step if per_step > 0 else float(objective.count)


def feasible(tau: float, lowest: float) -> float:
    """y stays a convex combination of the z's, hence in the domain, while tau/((1 - tau) p_i) <= 1."""
    return min(tau, lowest / (1 + lowest))


def strongly_convex(
    method: Described, objective: Objective, split: Split, weights: FloatArray, p: FloatArray, sigma: float
) -> Schedule:
    """Algorithm 1 for any p and w, with its proximal form."""
    Theta = largest_theta(split, weights, p)
    tau = coupling(Theta, sigma)
    if split.prox:
        tau = feasible(tau, float(split.of_active(p).min()))
    plan = Plan(
        accelerated=True,
        prox=split.prox,
        step=inverse(p) if split.prox else inverse(split.L),
        theta=inverse(p * weights),
        move=split.move,
        tau=tau,
        drift=tau,
        theta_scale=(1 - tau) / (tau * Theta),
        couple=tau / (1 - tau),
    )
    constants = constants_of(objective, split, p, weights, sigma=sigma, tau=tau, Theta=Theta, contraction=1 - tau)
    return Schedule(plan, kernels.alias_cells(p), ~split.active, constants, method.describe(sigma=sigma))


def estimate_sequence(
    method: Described,
    objective: Objective,
    split: Split,
    weights: FloatArray,
    p: FloatArray,
    sigma: float,
    Theta: float,
) -> Schedule:
    """The recursion of ACDM and APCG for any p and w: y = (x + theta v)/(1 + theta), v drifts by theta.

    theta = sqrt(sigma/Theta); with a proximal step at most min_i p_i, so that x stays in the domain. A rate of
    1 - theta is promised where Theta >= max_i L_i/(w_i p_i^2).
    """
    theta = min(math.sqrt(sigma / Theta), 0.99)  # 1, for a single coordinate, would leave no momentum to divide by
    if split.prox and split.active.any():
        theta = min(theta, float(split.of_active(p).min()))
    plan = Plan(
        accelerated=True,
        prox=split.prox,
        step=inverse(p) if split.prox else inverse(split.L),
        theta=inverse(p * weights),
        move=split.move,
        tau=theta / (1 + theta),
        drift=theta,
        theta_scale=theta / sigma,
        couple=theta,
    )
    proved = sigma / theta**2 >= largest_theta(split, weights, p) * (1 - 1e-12)
    constants = constants_of(
        objective, split, p, weights, sigma=sigma, tau=theta, Theta=Theta, contraction=1 - theta if proved else None
    )
    return Schedule(plan, kernels.alias_cells(p), ~split.active, constants, method.describe(sigma=sigma))


def not_strongly_convex(
    method: Described,
    objective: Objective,
    split: Split,
    weights: FloatArray,
    p: FloatArray,
    restarts: bool = False,
    slow_start: bool = False,
    **found: object,
) -> Schedule:
    """Algorithm 2 for any p and w, with its proximal form, whose tau_0 = min_i p_i `slow_start` asks for anyway."""
    Theta = largest_theta(split, weights, p)
    lowest = float(split.of_active(p).min()) if split.active.any() else 1.0
    plan = Plan(
        accelerated=True,
        prox=split.prox,
        step=inverse(p) if split.prox else inverse(split.L),
        theta=inverse(p * weights),
        rule=kernels.RECURRENT if split.prox or slow_start else kernels.VANISHING,
        tau=lowest if split.prox or slow_start else 1.0,
        theta_scale=1 / Theta,
    )
    constants = constants_of(objective, split, p, weights, Theta=Theta)
    return Schedule(plan, kernels.alias_cells(p), ~split.active, constants, method.describe(**found), restarts=restarts)


def plain(method: Described, objective: Objective, split: Split, p: FloatArray, beta: float) -> Schedule:
    """x_i -= g_i/L_i, or its proximal form; sigma/S_{1-beta} a step with strong convexity."""
    step = np.where(split.active, split.L, 1.0) if split.prox else inverse(split.L)
    weights = power(split.L, beta)
    sigma = contraction = None
    if not split.prox and (known := split.sigma(weights)) > 0:
        sigma = known
        contraction = 1 - sigma / float(np.sum(split.of_active(split.L) ** (1 - beta)))
    constants = constants_of(objective, split, p, weights, sigma=sigma, contraction=contraction)
    plan = Plan(accelerated=False, prox=split.prox, step=step)
    return Schedule(plan, kernels.alias_cells(p), ~split.active, constants, method.describe())


def constants_of(
    objective: Objective,
    split: Split,
    p: FloatArray,
    weights: FloatArray,
    *,
    sigma: float | None = None,
    tau: float | None = None,
    Theta: float | None = None,
    contraction: float | None = None,
) -> Constants:
    """What the result reports of the theory; `contraction` is the factor per step that it promises."""
    L = split.of_active(split.L) if split.active.any() else np.zeros(1)
    per_pass = steps_per_pass(objective, p)
    ratio = L / split.of_active(weights) if split.active.any() else np.ones(1)
    most = float(ratio.max())
    ratio /= most
    roots = float(np.sqrt(ratio).sum())
    return Constants(
        L_min=float(L.min()),
        L_mean=float(L.mean()),
        L_max=float(L.max()),
        L_sum=float(L.sum()),
        iterations_per_pass=per_pass,
        S=math.sqrt(most) * roots,
        Theta=Theta,
        sigma=sigma,
        tau=tau,
        rate_per_pass=None if contraction is None else float(contraction**per_pass),
        speedup=math.sqrt(len(ratio) * float(ratio.sum())) / roots,  # as `theory.speedup` has it
    )
