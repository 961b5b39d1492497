"""NU_ACDM and its accelerated relatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from coordwise.methods.base import Method, check_moved, check_sigma, check_weights
from coordwise.objectives import Objective
from coordwise.schedules import (
    Schedule,
    Split,
    acdm_theta,
    at_least_mean,
    estimate_sequence,
    not_strongly_convex,
    optimal,
    power,
    raised,
    strongly_convex,
)
from coordwise.validation import FloatArray, check_choice, check_number

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
        weight stays where it is. Under a `GroupL1` penalty there is one weight per group.
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
        given = None if self.weights is None else check_weights(self.weights, objective.count)
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
            split, weights = split.holding_still(check_weights(self.weights, objective.count))
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
    """ACDM (Lee and Sidford) for strongly convex objectives: p_i ~ max(L_i^(1-beta), mean of L^(1-beta)).

    Sampling and iteration count are the published ones; recursion and constants are derived in docs/acdm.md.
    With theta = sqrt(sigma/Theta), S = sum_i L_i^(1-beta) and w_i = L_i^beta, a step is

        y = (x + theta v)/(1 + theta),              g = the i-th partial derivative at y,
        x = y, but x_i = y_i - g/L_i,               v = (1 - theta) v + theta y, but v_i -= theta g/(sigma p_i w_i).

    Parameters
    ----------
    beta : float in [0, 1], default 0
        Norm weights w_i = L_i^beta.
    sigma : float, "adaptive" or None
        Strong convexity in the norm |.|_w; None for what the objective is known to have. Without any, and for
        "adaptive", the sampling of ACDM runs in Algorithm 2 with adaptive restarts, which is not Lee and Sidford's;
        `Regularized` is what they would do.
    constants : {"proved", "published", "tight"}, default "proved"
        * "proved": Theta = n R^2/S with R = sum_i max(L_i^(1-beta), S/n), which lies between n S and 4 n S: what the
          proof of the published theorem needs for the worst L with the same n, S and R.
        * "published": Theta = n S, so that the published count, sqrt(n S/sigma) log(1/epsilon) iterations, is taken at
          its word. Tables 2 and 3 of the NU_ACDM paper compare with this, and so does `coordwise reproduce`. Where some
          L_i^(1-beta) are close to their mean no proof covers it, and it may diverge; the result's
          ``constants.rate_per_pass`` is None there.
        * "tight": Theta = max_i L_i/(w_i p_i^2), the smallest that the proof allows for the L at hand, in the recursion
          of Algorithm 1. It is this library's own variant, not Lee and Sidford's method: with few large L_i it is about
          as fast as NU_ACDM.

    Notes
    -----
    docs/acdm.md derives all three.
    """

    name: ClassVar[str] = "acdm"
    beta: float = 0.0
    sigma: float | Literal["adaptive"] | None = None
    constants: str = "proved"

    def __post_init__(self) -> None:
        check_number("beta", self.beta, low=0, high=1)
        check_sigma(self.sigma)
        check_choice("constants", self.constants, ("published", "proved", "tight"))

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
        p = at_least_mean(split, self.beta)
        if self.constants == "tight":
            return strongly_convex(self, objective, split, weights, p, sigma)
        Theta = acdm_theta(split.of_active(split.L), self.beta, proved=self.constants == "proved")
        return estimate_sequence(self, objective, split, weights, p, sigma, Theta)


@dataclass(frozen=True)
class ACDMns(Method):
    """ACDM's sampling in Algorithm 2, unpublished: nobody has proposed it; it isolates the effect of the sampling.

    Lee and Sidford give no method for objectives without strong convexity. This one differs from `NUACDMns` in the
    probabilities and in Theta = max_i L_i/(w_i p_i^2), which Theorem 6.1 then needs in place of S^2. What footnote 3 of
    the NU_ACDM paper describes is `Regularized`.
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
        n = max(int(split.active.sum()), 1)
        split = split.holding(sigma * split.L)
        return estimate_sequence(self, objective, split, split.L, split.active / n, sigma, float(n) ** 2)


@dataclass(frozen=True)
class APPROX(Method):
    """APPROX (Fercoq and Richtarik), serial: uniform sampling, norm weights L, no strong convexity needed.

    Parameters
    ----------
    start : {"fast", "published"}, default "fast"
        The first tau. "published": tau_0 = 1/n, also that of APCG without strong convexity. "fast": the same with a
        proximal term, which needs it, and tau_0 = 1 without one, as in Algorithm 2: then the method is
        ``NUACDMns(beta=1)`` step by step.
    """

    name: ClassVar[str] = "approx"
    start: str = "fast"

    def __post_init__(self) -> None:
        check_choice("start", self.start, ("fast", "published"))

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective, move=False)
        p = split.active / max(int(split.active.sum()), 1)
        return not_strongly_convex(self, objective, split, split.L, p, slow_start=self.start == "published")
