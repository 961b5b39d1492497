"""The algorithms line by line, on full vectors: the specification, the slow path of `minimize`, the tests' oracle.

Every function is a generator over the given indices that yields the iterate y_{k+1} (a fresh array) after each step;
nothing is rearranged for speed. `partial(i, x)` is the i-th partial derivative of f at x, L the coordinate smoothness,
and `prox(i, t, theta)` = argmin over y of psi_i(y) + (y - t)^2/(2 theta) makes a method minimise f + sum_i psi_i.

With `blocks` (footnote 11), i is a block with the coordinates blocks[i]: `partial(i, x)` is that part of the gradient,
L_i its Lipschitz constant, |grad_i f(x + U_i h) - grad_i f(x)| <= L_i |h|, and psi_i, with its `prox`, a function of
the block. L, p and the norm weights have one entry per block; the lines of the algorithms stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordwise.validation import FloatArray

__all__ = [
    "acdm",
    "acdm_probabilities",
    "acdm_theta",
    "apcg",
    "approx",
    "kaczmarz",
    "linear_coupling",
    "nu_acdm",
    "nu_acdm_ns",
    "rcdm",
]

Partial = Callable[[int, FloatArray], Any]  # a number, or an array for a block
Prox = Callable[[int, Any, float], Any]
Blocks = Sequence[NDArray[np.intp]] | None


def nu_acdm(
    partial: Partial,
    L: FloatArray,
    x0: FloatArray,
    indices: Iterable[int],
    *,
    sigma: float,
    beta: float = 0.0,
    blocks: Blocks = None,
) -> Iterator[FloatArray]:
    """Algorithm 1, NU_ACDM(beta, f, x_0, T); the numbers are its lines."""
    alpha = (1 - beta) / 2  # 1
    S = np.sum(L**alpha)
    p = L**alpha / S  # 2
    tau = 2 / (1 + np.sqrt(4 * S**2 / sigma + 1))  # 3
    eta = 1 / (tau * S**2)
    y, z = x0.copy(), x0.copy()  # 4
    for i in indices:  # 5, 7
        x = tau * z + (1 - tau) * y  # 6
        g, at = partial(i, x), _places(blocks, i)
        y = x.copy()  # 8
        y[at] -= g / L[i]
        z = z + eta * sigma * x  # 9
        z[at] -= eta / (p[i] * L[i] ** beta) * g
        z /= 1 + eta * sigma
        yield y.copy()  # 11


def nu_acdm_ns(
    partial: Partial, L: FloatArray, x0: FloatArray, indices: Iterable[int], *, beta: float = 0.0, blocks: Blocks = None
) -> Iterator[FloatArray]:
    """Algorithm 2, NU_ACDM^ns(beta, f, x_0, T); the numbers are its lines."""
    alpha = (1 - beta) / 2  # 1
    S = np.sum(L**alpha)
    p = L**alpha / S  # 2
    y, z = x0.copy(), x0.copy()  # 3
    for k, i in enumerate(indices):  # 4, 7
        eta = (k + 2) / (2 * S**2)  # 5
        tau = 1 / (eta * S**2)
        x = tau * z + (1 - tau) * y  # 6
        g, at = partial(i, x), _places(blocks, i)
        y = x.copy()  # 8
        y[at] -= g / L[i]
        z = z.copy()  # 9
        z[at] -= eta / (p[i] * L[i] ** beta) * g
        yield y.copy()  # 10


def linear_coupling(
    partial: Partial,
    L: FloatArray,
    x0: FloatArray,
    indices: Iterable[int],
    *,
    p: FloatArray,
    weights: FloatArray,
    sigma: float | None,
    prox: Prox | None = None,
    z0: FloatArray | None = None,
    tau0: float = 1.0,
    blocks: Blocks = None,
) -> Generator[FloatArray, None, FloatArray]:
    """The recursion behind both algorithms for any p and any norm weights w, with psi if `prox` is given.

    sigma > 0 (strong convexity of f in |.|_w): tau and eta are constant. sigma = None: they follow Algorithm 2, or
    tau_0 = min_i p_i, tau_(k+1) = (sqrt(tau_k^4 + 4 tau_k^2) - tau_k^2)/2 if there is a psi. The generator returns z:
    with it as z0, and the last iterate as x0, another recursion goes on where this one ended; with a psi and sigma =
    None with tau0, its next tau, unless min_i p_i is smaller.
    """
    active = L > 0
    Theta = np.max(L[active] / (weights[active] * p[active] ** 2))
    lowest = p[active].min()
    if sigma is not None:
        tau = 2 / (1 + np.sqrt(4 * Theta / sigma + 1))
        if prox is not None:
            tau = min(tau, lowest / (1 + lowest))
    else:
        tau = min(lowest, tau0) if prox is not None else 1.0
    drift = 0.0
    y, z = x0.copy(), (x0 if z0 is None else z0).copy()
    for k, i in enumerate(indices):
        if sigma is not None:
            drift = tau
        elif prox is None:
            tau = 2 / (k + 2)
        eta = 1 / (tau * Theta)
        theta = (1 - drift) * eta / (p[i] * weights[i])
        x = tau * z + (1 - tau) * y
        g, at = partial(i, x), _places(blocks, i)
        z_hat = (1 - drift) * z + drift * x
        z = z_hat.copy()
        y = x.copy()
        if prox is None:
            z[at] -= theta * g
            y[at] -= g / L[i]
        else:
            z[at] = prox(i, z_hat[at] - theta * g, theta)
            y[at] += tau / ((1 - drift) * p[i]) * (z[at] - z_hat[at])
        if sigma is None and prox is not None:
            tau = (np.sqrt(tau**4 + 4 * tau**2) - tau**2) / 2
        yield y.copy()
    return z


def acdm_probabilities(L: FloatArray, beta: float = 0.0) -> FloatArray:
    """p_i ~ max(L_i^(1-beta), mean of L^(1-beta)), footnote 4."""
    share = np.maximum(L ** (1 - beta), np.mean(L ** (1 - beta)))
    return share / share.sum()


def acdm_theta(L: FloatArray, beta: float = 0.0, *, proved: bool = False) -> float:
    """Theta = n S, S = sum_i L_i^(1-beta), or n R^2/S with R = sum_i max(L_i^(1-beta), S/n) (docs/acdm.md)."""
    power = L ** (1 - beta)
    n, S = len(L), np.sum(power)
    R = np.sum(np.maximum(power, S / n)) if proved else S
    return float(n * R**2 / S)


def acdm(
    partial: Partial,
    L: FloatArray,
    x0: FloatArray,
    indices: Iterable[int],
    *,
    sigma: float,
    beta: float = 0.0,
    proved: bool = False,
    prox: Prox | None = None,
    blocks: Blocks = None,
) -> Iterator[FloatArray]:
    """ACDM (Lee and Sidford) in their notation: y_k the extrapolated point, v_k the centre of the estimate sequence.

    With zeta_0 = sigma their sequences zeta_(k+1) = (1 - theta_k) zeta_k + theta_k sigma and theta_k^2 Theta =
    zeta_(k+1) stay where they are, and so do alpha_k, beta_k and gamma_k.
    """
    p, w = acdm_probabilities(L, beta), L**beta
    theta = np.sqrt(sigma / acdm_theta(L, beta, proved=proved))
    alpha_k, beta_k, gamma_k = theta / (1 + theta), 1 - theta, theta / sigma
    x, v = x0.copy(), x0.copy()
    for i in indices:
        y = alpha_k * v + (1 - alpha_k) * x
        g, at = partial(i, y), _places(blocks, i)
        v_hat = beta_k * v + (1 - beta_k) * y
        v, x = v_hat.copy(), y.copy()
        step = gamma_k / (p[i] * w[i])
        if prox is None:
            v[at] -= step * g
            x[at] -= g / L[i]
        else:
            v[at] = prox(i, v_hat[at] - step * g, step)
            x[at] += theta / p[i] * (v[at] - v_hat[at])
        yield x.copy()


def approx(partial: Partial, L: FloatArray, x0: FloatArray, indices: Iterable[int]) -> Iterator[FloatArray]:
    """APPROX (Fercoq and Richtarik), serial and without a psi; also APCG without strong convexity: theta_0 = 1/n."""
    n = len(L)
    theta = 1 / n
    x, z = x0.copy(), x0.copy()
    for i in indices:
        y = (1 - theta) * x + theta * z
        move = -partial(i, y) / (n * theta * L[i])
        z = z.copy()
        z[i] += move
        x = y.copy()
        x[i] += n * theta * move
        theta = (np.sqrt(theta**4 + 4 * theta**2) - theta**2) / 2
        yield x.copy()


def apcg(
    partial: Partial,
    L: FloatArray,
    x0: FloatArray,
    indices: Iterable[int],
    *,
    sigma: float,
    prox: Prox | None = None,
    blocks: Blocks = None,
) -> Iterator[FloatArray]:
    """APCG (Lin, Lu and Xiao) with a constant alpha; x and z in their notation, y the extrapolated point."""
    n = len(L)
    alpha = np.sqrt(sigma) / n
    x, z = x0.copy(), x0.copy()
    for i in indices:
        y = (x + alpha * z) / (1 + alpha)
        g, at = partial(i, y), _places(blocks, i)
        z_hat = (1 - alpha) * z + alpha * y
        z_next = z_hat.copy()
        theta = 1 / (n * alpha * L[i])
        z_next[at] = z_hat[at] - theta * g if prox is None else prox(i, z_hat[at] - theta * g, theta)
        x = y + n * alpha * (z_next - z) + n * alpha**2 * (z - y)
        z = z_next
        yield x.copy()


def rcdm(
    partial: Partial,
    L: FloatArray,
    x0: FloatArray,
    indices: Iterable[int],
    *,
    prox: Prox | None = None,
    blocks: Blocks = None,
) -> Iterator[FloatArray]:
    """RCDM: x_i -= g/L_i, or prox(i, x_i - g/L_i, 1/L_i). With L_i the exact curvature this is SDCA."""
    x = x0.copy()
    for i in indices:
        g, at = partial(i, x), _places(blocks, i)
        t = x[at] - g / L[i]
        x[at] = t if prox is None else prox(i, t, 1 / L[i])
        yield x.copy()


def kaczmarz(A: FloatArray, b: FloatArray, x0: FloatArray, indices: Iterable[int]) -> Iterator[FloatArray]:
    """x_{k+1} = x_k + (b_i - <a_i, x_k>)/|a_i|^2 a_i (section 2)."""
    x = x0.copy()
    for i in indices:
        x = x + (b[i] - A[i] @ x) / (A[i] @ A[i]) * A[i]
        yield x.copy()


def _places(blocks: Blocks, i: int) -> Any:
    """The coordinates that index i stands for."""
    return i if blocks is None else blocks[i]
