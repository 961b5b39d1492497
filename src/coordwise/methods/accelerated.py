"""NU_ACDM and its accelerated relatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from coordwise import kernels
from coordwise.kernels import Plan
from coordwise.methods.base import Method, check_moved, check_sigma, check_weights
from coordwise.objectives import Objective
from coordwise.schedules import (
    Schedule,
    Split,
    at_least_mean,
    constants_of,
    inverse,
    not_strongly_convex,
    optimal,
    power,
    raised,
    strongly_convex,
)
from coordwise.validation import FloatArray, check_number

__all__ = ["ACDM", "APCG", "APPROX", "NUACDM", "ACDMns", "NUACDMns"]


@dataclass(frozen=True, eq=False)
class NUACDM(Method):
    """NU_ACDM for strongly convex objectives, Algorithm 1: p_i ~ L_i^((1-beta)/2), or p_i ~ sqrt(L_i/w_i).

    E[f(y_T)] - f* <= O(1) (1 - tau)^T (f(x_0) - f*), tau = 2/(1 + sqrt(4 S^2/sigma + 1)), S = sum_i sqrt(L_i/w_i).

    Parameters
    ----------
    beta : float in [0, 1], default 0
        Norm weights w_i = L_i^beta.
    sigma : float, "adaptive" or None
        Strong convexity in the norm |.|_w. None: what the objective is known to have, and adaptive restarts if it has
        none (linear systems, hinge, ...). "adaptive": restarts of the non-strongly convex form in any case.
    weights : array of shape (N,), optional
        Norm weights in place of L^beta. Where h_i enters by its proximal step, sigma * weights is the curvature moved
        out of it: with sigma=1, weights_i is a lower bound of h_i'' where the run takes place. A coordinate of infinite
        weight stays where it is.
    """

    name: ClassVar[str] = "nu_acdm"
    beta: float = 0.0
    sigma: float | Literal["adaptive"] | None = None
    weights: ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_number("beta", self.beta, low=0, high=1)
        check_sigma(self.sigma)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NUACDM):
            return NotImplemented
        same = (self.weights is None) == (other.weights is None)
        same = same and (self.weights is None or np.array_equal(self.weights, np.asarray(other.weights)))
        return same and (self.beta, self.sigma) == (other.beta, other.sigma)

    def __hash__(self) -> int:
        return hash((self.beta, self.sigma))

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        if self.sigma == "adaptive":
            return self._adaptive(objective)
        split = Split.of(objective)
        given = None if self.weights is None else check_weights(self.weights, objective.rows.count)
        weights = power(split.L, self.beta)
        if given is not None:
            split, weights = split.holding_still(given)
        known = split.sigma(weights)
        sigma = known if self.sigma is None else float(self.sigma)
        if not sigma > 0:
            return self._adaptive(objective)
        if split.prox and given is None:
            check_moved(sigma, known)
        split = split.holding(sigma * weights)
        return strongly_convex(self, objective, split, weights, optimal(split, weights), sigma)

    def weighted(self, objective: Objective) -> Callable[[FloatArray], Schedule]:
        """Schedules of this method with other weights."""
        return lambda weights: replace(self, weights=weights).schedule(objective)

    def _adaptive(self, objective: Objective) -> Schedule:
        split = Split.of(objective, move=False)
        weights = power(split.L, self.beta)
        if self.weights is not None:
            split, weights = split.holding_still(check_weights(self.weights, objective.rows.count))
        p = optimal(split, weights)
        if split.prox:
            p = raised(p, split.active)
        return not_strongly_convex(self, objective, split, weights, p, restarts=True, sigma="adaptive")


@dataclass(frozen=True)
class NUACDMns(Method):
    """NU_ACDM for objectives that need not be strongly convex, Algorithm 2: p_i ~ L_i^((1-beta)/2).

    E[f(y_T)] - f* <= 2 |x_0 - x*|^2_{L_beta} S^2_{(1-beta)/2} / (T + 1)^2. With a proximal term, tau_0 = min_i p_i and
    tau_(k+1) = (sqrt(tau_k^4 + 4 tau_k^2) - tau_k^2)/2, which keeps the iterates in the domain.
    """

    name: ClassVar[str] = "nu_acdm_ns"
    beta: float = 0.0

    def __post_init__(self) -> None:
        check_number("beta", self.beta, low=0, high=1)

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective, move=False)
        weights = power(split.L, self.beta)
        return not_strongly_convex(self, objective, split, weights, optimal(split, weights))


@dataclass(frozen=True)
class ACDM(Method):
    """ACDM (Lee and Sidford): p_i ~ max(L_i^(1-beta), mean of L^(1-beta)), with the constants its proof guarantees.

    sigma=None takes what the objective is known to have; without strong convexity, the ns form with adaptive restarts.
    """

    name: ClassVar[str] = "acdm"
    beta: float = 0.0
    sigma: float | Literal["adaptive"] | None = None

    def __post_init__(self) -> None:
        check_number("beta", self.beta, low=0, high=1)
        check_sigma(self.sigma)

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective)
        sigma = split.sigma(power(split.L, self.beta)) if self.sigma is None else self.sigma
        if isinstance(sigma, str) or not sigma > 0:
            split = Split.of(objective, move=False)
            weights = power(split.L, self.beta)
            p = at_least_mean(split, self.beta)
            return not_strongly_convex(self, objective, split, weights, p, restarts=True, sigma="adaptive")
        weights = power(split.L, self.beta)
        if split.prox:
            check_moved(sigma, split.sigma(weights))
        split = split.holding(sigma * weights)
        return strongly_convex(self, objective, split, weights, at_least_mean(split, self.beta), sigma)


@dataclass(frozen=True)
class ACDMns(Method):
    """ACDM for objectives that need not be strongly convex: its sampling in Algorithm 2, with Theta as guaranteed.

    Lee and Sidford give no such form; next to `NUACDMns` it differs in the probabilities alone.
    """

    name: ClassVar[str] = "acdm_ns"
    beta: float = 0.0

    def __post_init__(self) -> None:
        check_number("beta", self.beta, low=0, high=1)

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective, move=False)
        weights = power(split.L, self.beta)
        return not_strongly_convex(self, objective, split, weights, at_least_mean(split, self.beta))


@dataclass(frozen=True)
class APCG(Method):
    """APCG (Lin, Lu and Xiao): uniform sampling, norm weights L (beta = 1), alpha = sqrt(sigma_1)/n.

    y = (x + alpha z)/(1 + alpha), z drifts by alpha. sigma is the strong convexity in the L_1 norm, None for what the
    objective is known to have.
    """

    name: ClassVar[str] = "apcg"
    sigma: float | None = None

    def __post_init__(self) -> None:
        check_sigma(self.sigma, adaptive=False)

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective)
        known = split.sigma(split.L)
        sigma = known if self.sigma is None else float(self.sigma)
        if not sigma > 0:
            raise ValueError(
                "apcg needs strong convexity, and this objective is not known to have any; pass APCG(sigma=...) with "
                "the strong convexity in the norm sum_i L_i x_i^2, or use 'approx' or 'auto'."
            )
        if split.prox:
            check_moved(sigma, known)
        n = int(split.active.sum())
        alpha = min(np.sqrt(sigma) / n, 1.0 / n)
        p = split.active / n
        plan = Plan(
            accelerated=True,
            prox=split.prox,
            step=inverse(p) if split.prox else inverse(split.L),
            theta=inverse(p * split.L),
            move=split.holding(sigma * split.L).move,
            tau=alpha / (1 + alpha),
            drift=alpha,
            theta_scale=1 / (n * n * alpha),
            couple=alpha,
        )
        constants = constants_of(
            objective, split, p, split.L, sigma=sigma, tau=alpha, Theta=float(n) ** 2, contraction=1 - alpha
        )
        return Schedule(plan, kernels.alias_cells(p), ~split.active, constants, self.describe(sigma=sigma))


@dataclass(frozen=True)
class APPROX(Method):
    """APPROX (Fercoq and Richtarik), serial: uniform sampling, norm weights L, no strong convexity needed.

    With a proximal term tau_0 = 1/n as published; without one tau_0 = 1, as in Algorithm 2.
    """

    name: ClassVar[str] = "approx"

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective, move=False)
        p = split.active / max(int(split.active.sum()), 1)
        return not_strongly_convex(self, objective, split, split.L, p)
