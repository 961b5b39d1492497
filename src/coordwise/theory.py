"""The theory in numbers: Table 1, speed-up factors, and the bounds of Theorems 5.1 and 6.1.

L is always the vector of coordinate smoothness parameters, S_alpha = sum_i L_i^alpha, and
|x|^2_{L_beta} = sum_i L_i^beta x_i^2. Coordinates with L_i = 0 take no part.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coordwise.validation import FloatArray, check_array, check_choice, check_count, check_number

__all__ = ["METHODS", "S", "coupling", "iterations", "ns_bound", "speedup", "strongly_convex_bound"]

METHODS = ("rcdm", "acdm", "apcg", "nu_acdm")


def S(L: Any, alpha: float) -> float:
    """S_alpha = sum_i L_i^alpha (Definition 4.3)."""
    return float(np.sum(_positive(L) ** check_number("alpha", alpha)))


def speedup(L: Any, *, beta: float = 0.0, weights: Any = None) -> float:
    """sqrt(n S_{1-beta}) / S_{(1-beta)/2}: how much faster NU_ACDM is than ACDM in theory (Tables 2 and 3).

    With `weights` w in place of L^beta: sqrt(n sum_i L_i/w_i) / sum_i sqrt(L_i/w_i). At least 1, at most sqrt(n).
    """
    L = check_array("L", L, (None,))
    active = _active(L)
    if weights is None:
        beta = check_number("beta", beta, low=0, high=1)
        ratio = (L[active] / L[active].max()) ** (1 - beta)
    else:
        w = check_array("weights", weights, L.shape)[active]
        if np.any(w <= 0):
            raise ValueError("weights must be positive.")
        ratio = L[active] / w
        ratio = ratio / ratio.max()
    return math.sqrt(len(ratio) * float(ratio.sum())) / float(np.sqrt(ratio).sum())


def coupling(Theta: float, sigma: float) -> float:
    """The coupling tau = 2 / (1 + sqrt(4 Theta/sigma + 1)), line 3 of Algorithm 1 (Theta = S_alpha^2 there)."""
    Theta = check_number("Theta", Theta, low=0, strictly=True)
    sigma = check_number("sigma", sigma, low=0, strictly=True)
    return 2 / (1 + math.sqrt(4 * Theta / sigma + 1))


def iterations(
    L: Any,
    *,
    epsilon: float,
    method: str = "nu_acdm",
    beta: float = 0.0,
    sigma: float | None = None,
    distance: float | None = None,
) -> float:
    """The iteration counts of Table 1, without the constants hidden in O(.).

    With `sigma` (strong convexity in the L_beta norm), to a relative error epsilon:
        rcdm  S_{1-beta}/sigma log(1/epsilon);   acdm  sqrt(n S_{1-beta}/sigma) log(1/epsilon);
        apcg  n/sqrt(sigma) log(1/epsilon), beta = 1;   nu_acdm  S_{(1-beta)/2}/sqrt(sigma) log(1/epsilon).
    With `distance` |x_0 - x*| in the L_beta norm instead, to f(x) - min f <= epsilon, an absolute error in units of f:
        rcdm  S_{1-beta} distance^2/epsilon;   acdm  sqrt(n S_{1-beta}/epsilon) log(1/epsilon) distance;
        apcg  n/sqrt(epsilon) distance, beta = 1;   nu_acdm  S_{(1-beta)/2}/sqrt(epsilon) distance.

    Raises
    ------
    ValueError
        Unless exactly one of `sigma` and `distance` is given; for apcg with beta other than 1; for epsilon above 1
        where the count has the factor log(1/epsilon).
    """
    method = check_choice("method", method, METHODS)
    beta = check_number("beta", beta, low=0, high=1)
    epsilon = check_number("epsilon", epsilon, low=0, strictly=True)
    L = _positive(L)
    if method == "apcg" and beta != 1:
        raise ValueError("apcg has a bound for beta=1 only; pass beta=1 with sigma or distance in the L_1 norm.")
    if (sigma is None) == (distance is None):
        raise ValueError("give either sigma (strongly convex) or distance (not strongly convex).")
    if epsilon > 1 and (sigma is not None or method == "acdm"):
        raise ValueError(
            f"epsilon={epsilon:g} is out of range; it must be > 0 and <= 1, since the count is a multiple of "
            "log(1/epsilon)."
        )
    half, full = S(L, (1 - beta) / 2), S(L, 1 - beta)
    plain = full if method == "rcdm" else None
    accelerated = {"acdm": math.sqrt(len(L) * full), "apcg": float(len(L)), "nu_acdm": half}
    if sigma is not None:
        sigma = check_number("sigma", sigma, low=0, strictly=True)
        log = math.log(1 / epsilon)
        return log * (plain / sigma if plain is not None else accelerated[method] / math.sqrt(sigma))
    assert distance is not None
    distance = check_number("distance", distance, low=0)
    if plain is not None:
        return plain * distance**2 / epsilon
    log = math.log(1 / epsilon) if method == "acdm" else 1.0
    return accelerated[method] / math.sqrt(epsilon) * log * distance


def strongly_convex_bound(L: Any, *, sigma: float, beta: float, T: int, gap0: float, distance: float) -> float:
    """Theorem 5.1 with its constant: (1 - tau)^T (f(x_0) - f* + tau/(2 eta (1 - tau)) |x_0 - x*|^2_{L_beta})."""
    beta = check_number("beta", beta, low=0, high=1)
    T, gap0 = check_count("T", T), check_number("gap0", gap0, low=0)
    distance = check_number("distance", distance, low=0)
    Theta = S(L, (1 - beta) / 2) ** 2
    tau = coupling(Theta, sigma)
    eta = 1 / (tau * Theta)
    return (1 - tau) ** T * (gap0 + tau / (2 * eta * (1 - tau)) * distance**2)


def ns_bound(L: Any, *, beta: float, T: int, distance: float) -> float:
    """Theorem 6.1: 2 |x_0 - x*|^2_{L_beta} S^2_{(1-beta)/2} / (T + 1)^2."""
    beta = check_number("beta", beta, low=0, high=1)
    T, distance = check_count("T", T), check_number("distance", distance, low=0)
    return 2 * distance**2 * S(L, (1 - beta) / 2) ** 2 / (T + 1) ** 2


def _active(L: FloatArray) -> Any:
    if np.any(L < 0) or not np.any(L > 0):
        raise ValueError("L must be non-negative with at least one positive entry.")
    return L > 0


def _positive(L: Any) -> FloatArray:
    L = check_array("L", L, (None,))
    return L[_active(L)]
