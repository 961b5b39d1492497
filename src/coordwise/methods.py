"""Methods: immutable descriptions that turn an objective into a `Schedule` for the kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from coordwise import kernels
from coordwise.curvature import LocalWeights
from coordwise.kernels import Plan
from coordwise.objectives import LinearSystem, Objective
from coordwise.schedules import (
    Schedule,
    Split,
    at_least_mean,
    constants_of,
    distribution,
    inverse,
    not_strongly_convex,
    optimal,
    plain,
    power,
    raised,
    strongly_convex,
)
from coordwise.validation import FloatArray, check_array, check_choice, check_number

__all__ = [
    "ACDM",
    "APCG",
    "APPROX",
    "METHODS",
    "NUACDM",
    "RCDM",
    "SDCA",
    "ACDMns",
    "Auto",
    "Kaczmarz",
    "Method",
    "NUACDMns",
    "check_weights",
    "get_method",
]


@dataclass(frozen=True)
class Method(ABC):
    """Base of all methods."""

    name: ClassVar[str] = ""

    @abstractmethod
    def schedule(self, objective: Objective) -> Schedule:
        """The method's constants for this objective; ValueError with a sentence if it cannot be applied."""

    def describe(self, **found: object) -> str:
        """Name and parameters, with what was found out about them."""
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}
        shown.update(found)
        if getattr(self, "weights", None) is not None:
            shown = {"weights": "given"} | {k: v for k, v in shown.items() if k != "beta"}
        inside = ", ".join(
            f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in shown.items() if v is not None
        )
        return f"{self.name}({inside})"


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
        _check_sigma(self.sigma)

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
            split, weights = _held(split, given)
        known = split.sigma(weights)
        sigma = known if self.sigma is None else float(self.sigma)
        if not sigma > 0:
            return self._adaptive(objective)
        if split.prox and given is None:
            _check_moved(sigma, known)
        split = split.holding(sigma * weights)
        return strongly_convex(self, objective, split, weights, optimal(split, weights), sigma)

    def weighted(self, objective: Objective) -> Callable[[FloatArray], Schedule]:
        """Schedules of this method with other weights."""
        return lambda weights: replace(self, weights=weights).schedule(objective)

    def _adaptive(self, objective: Objective) -> Schedule:
        split = Split.of(objective, move=False)
        weights = power(split.L, self.beta)
        if self.weights is not None:
            split, weights = _held(split, check_weights(self.weights, objective.rows.count))
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
        _check_sigma(self.sigma)

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
            _check_moved(sigma, split.sigma(weights))
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
        _check_sigma(self.sigma, adaptive=False)

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
            _check_moved(sigma, known)
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


@dataclass(frozen=True)
class RCDM(Method):
    """RCDM (Nesterov), not accelerated: x_i -= g_i/L_i (or its proximal step) with p_i ~ L_i^(1-beta)."""

    name: ClassVar[str] = "rcdm"
    beta: float = 0.0

    def __post_init__(self) -> None:
        check_number("beta", self.beta, low=0, high=1)

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective, move=False)
        return plain(self, objective, split, distribution(split.L, 1 - self.beta), self.beta)


@dataclass(frozen=True)
class Kaczmarz(Method):
    """Randomized Kaczmarz (Strohmer and Vershynin, Theorem 2.1): x += (b_i - <a_i, x>)/|a_i|^2 a_i, p_i ~ |a_i|^2."""

    name: ClassVar[str] = "kaczmarz"

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        if not isinstance(objective, LinearSystem):
            raise ValueError(
                f"kaczmarz solves linear systems only, not {type(objective).__name__}; use LinearSystem(A, b), or "
                "'rcdm' (the same step on other objectives)."
            )
        split = Split.of(objective, move=False)
        return plain(self, objective, split, distribution(split.L, 1.0), 0.0)


@dataclass(frozen=True)
class SDCA(Method):
    """Exact minimisation over one coordinate at a time, not accelerated.

    Exact where G is quadratic (l2 penalties, linear systems, least squares); elsewhere one proximal step with the
    curvature bound L_i.

    Parameters
    ----------
    order : {"permutation", "uniform", "norms"}
        A fresh random permutation every N steps; independent uniform draws; draws with p_i ~ L_i (squared norms).
    """

    name: ClassVar[str] = "sdca"
    order: str = "permutation"

    def __post_init__(self) -> None:
        check_choice("order", self.order, ("permutation", "uniform", "norms"))

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective)
        curvature = objective.curvature
        active = curvature > 0
        if self.order == "norms":
            p = distribution(np.where(active, split.L, 0.0), 1.0)
        else:
            p = active / max(int(active.sum()), 1)
        # A coordinate that G does not see starts at its minimiser; any positive curvature keeps it there.
        plan = Plan(accelerated=False, prox=True, step=np.where(active, curvature, 1.0))
        cells = None if self.order == "permutation" else kernels.alias_cells(p)
        constants = constants_of(objective, split, p if active.any() else split.active / 1.0, np.ones_like(split.L))
        return Schedule(plan, cells, ~active, constants, self.describe())


@dataclass(frozen=True)
class Auto(Method):
    """Exact steps, then NU_ACDM: with known strong convexity where there is some, with adaptive restarts elsewhere.

    Duals of empirical risks begin with exact coordinate steps and are accelerated when that pays, on the coordinates
    that are not held in a corner of their terms, with norm weights from the curvature where the run is
    (`coordwise.curvature`). Where that curvature is the same everywhere (squared loss), the weights are the strong
    convexity of each coordinate's own term, sigma = 1. Without sample weights these are all equal, which is beta = 0;
    with them, S = sum_i sqrt(1 + curvature_i/own_i) is never larger than for beta = 0. Where L_i/own_i varies, more
    hopeful weights sqrt(own_i L_i) come before, with the sigma that promises the same rate: long rows are drawn less
    often, and until the directions in which that sigma does not hold are all that is left, it is up to twice as fast.
    Once the certificate falls slower than promised, the known weights take over (`coordwise.pace`). Losses with kinks
    have no known sigma: restarts find the rate, in the norm beta = 1, which does not depend on how rows or columns are
    scaled. That is also what linear systems and primal problems (where the data have far more curvature than the
    penalty) begin with.
    """

    name: ClassVar[str] = "auto"
    varied: ClassVar[float] = 4.0  # how much L_i/own_i must vary for other weights to matter

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective)
        own = split.own[split.active]
        strong = len(own) > 0 and own.min() > 0
        if not objective.sigma_is_tight or not (strong or objective.coordinates.shape.corners):
            return self._restarted(objective)
        exact = replace(SDCA().schedule(objective), description="sdca, before nu_acdm")
        ahead = NUACDM(sigma=1.0 if strong else "adaptive")
        careful = self._hopeful if strong else self._restarted
        local = LocalWeights(objective, exact, ahead.weighted(objective), lambda: careful(objective))
        return replace(exact, renew=local.renew)

    def _restarted(self, objective: Objective) -> Schedule:
        return NUACDM(beta=1.0, sigma="adaptive").schedule(objective)

    def _hopeful(self, objective: Objective) -> Schedule:
        split = Split.of(objective)
        own = split.of_active(split.own)
        ratio = split.of_active(split.L) / own
        if ratio.max() <= self.varied * ratio.min():
            return self._careful(objective)
        hopeful = np.where(split.active, np.sqrt(split.own * split.L), 1.0)
        S, S_own = np.sqrt(split.of_active(split.L / hopeful)).sum(), np.sqrt(ratio).sum()
        schedule = NUACDM(sigma=float(S / S_own) ** 2, weights=hopeful).schedule(objective)
        return replace(
            schedule,
            description="nu_acdm(weights=sqrt(own curvature * L), sigma hoped for)",
            careful=lambda: self._careful(objective),
        )

    def _careful(self, objective: Objective) -> Schedule:
        split = Split.of(objective)
        own = split.of_active(split.own)
        if own.max() == own.min():
            return NUACDM().schedule(objective)
        schedule = NUACDM(sigma=1.0, weights=np.where(split.active, split.own, 1.0)).schedule(objective)
        return replace(schedule, description="nu_acdm(weights=own curvature, sigma=1)")


METHODS: dict[str, type[Method]] = {
    method.name: method for method in (Auto, NUACDM, NUACDMns, ACDM, ACDMns, APCG, APPROX, RCDM, Kaczmarz, SDCA)
}


def get_method(method: str | Method) -> Method:
    """A method by name with its default parameters, or the method itself."""
    if isinstance(method, type) and issubclass(method, Method):
        raise TypeError(f"method is the class {method.__name__}; make a method of it: {method.__name__}().")
    return method if isinstance(method, Method) else METHODS[check_choice("method", method, METHODS)]()


def _held(split: Split, weights: FloatArray) -> tuple[Split, FloatArray]:
    """Without the coordinates of infinite weight."""
    held = np.isinf(weights)
    return (split.without(held), np.where(held, 1.0, weights)) if held.any() else (split, weights)


def _check_sigma(sigma: object, *, adaptive: bool = True) -> None:
    if sigma is None or (adaptive and isinstance(sigma, str) and sigma == "adaptive"):
        return
    if isinstance(sigma, str):
        raise ValueError(
            f"sigma={sigma!r} is not known; give a positive number, None" + (" or 'adaptive'." if adaptive else ".")
        )
    check_number("sigma", sigma, low=0, strictly=True)


def _check_moved(sigma: float, known: float) -> None:
    if sigma > known * (1 + 1e-12):
        raise ValueError(
            f"sigma={sigma:.4g} is more than the coordinate terms are known to have ({known:.4g}), and the rest of "
            "this objective is not used; give a smaller sigma, sigma=None, or weights with sigma (see NUACDM)."
        )


def check_weights(weights: Any, count: int) -> FloatArray:
    """Norm weights as a positive array, one per coordinate."""
    array = check_array("weights", weights, (count,), finite=False)
    if np.any(np.isnan(array)):
        raise ValueError(
            f"weights holds NaN (first at index {int(np.argmax(np.isnan(array)))}); give positive numbers."
        )
    if not np.all(array > 0):
        raise ValueError("weights must be positive, one per coordinate.")
    return array
