"""What the methods of `minimize` come down to: probabilities, norm weights and constants, for the core and in NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from coordwise import reference, sampling
from coordwise.kernels import CONSTANT, RECURRENT, VANISHING, Plan
from coordwise.methods import ACDM, APCG, APPROX, NUACDM, RCDM, ACDMns, Method, NUACDMns, check_weights
from coordwise.theory import coupling
from coordwise.validation import FloatArray

__all__ = ["Recursion"]


@dataclass(frozen=True)
class Recursion:
    """A method on a function with coordinate smoothness L; `prox` tells whether there is a proximal step."""

    kind: Literal["coupling", "sequence", "plain"]
    method: Method
    L: FloatArray
    p: FloatArray
    weights: FloatArray
    sigma: float | None  # None: Algorithm 2 and its proximal form
    prox: bool
    Theta: float = np.nan  # of an estimate sequence, which moves by sqrt(sigma/Theta)

    @classmethod
    def of(cls, method: Method, L: FloatArray, sigma: float | None, prox: bool) -> Recursion:
        """Refuses methods that need sigma where there is none, and those that need more than callables."""
        n = len(L)
        beta = float(getattr(method, "beta", 0.0))
        if isinstance(method, (NUACDM, ACDM, APCG)) and sigma is None:
            raise ValueError(
                f"method={method.name!r} needs sigma, the strong convexity of f; without one use 'nu_acdm_ns'."
            )
        if isinstance(method, RCDM):
            return cls("plain", method, L, sampling.power_distribution(L, 1 - beta), L**beta, None, prox)
        if isinstance(method, APCG):
            return cls("sequence", method, L, np.full(n, 1 / n), L, sigma, prox, float(n) ** 2)
        if isinstance(method, APPROX):
            return cls("coupling", method, L, np.full(n, 1 / n), L, None, prox)
        if isinstance(method, ACDM) and method.constants != "tight":
            Theta = reference.acdm_theta(L, beta, proved=method.constants == "proved")
            p = reference.acdm_probabilities(L, beta)
            return cls("sequence", method, L, p, L**beta, sigma, prox, Theta)
        if isinstance(method, (ACDM, ACDMns)):
            known = sigma if isinstance(method, ACDM) else None
            return cls("coupling", method, L, reference.acdm_probabilities(L, beta), L**beta, known, prox)
        if isinstance(method, NUACDM) and method.weights is not None:
            weights = check_weights(method.weights, n)
            if not np.all(np.isfinite(weights)):
                raise ValueError(
                    "weights must be finite for callables; leave coordinates that stay out of the function."
                )
            return cls("coupling", method, L, sampling.power_distribution(L / weights, 0.5), weights, sigma, prox)
        if isinstance(method, (NUACDM, NUACDMns)):
            known = sigma if isinstance(method, NUACDM) else None
            return cls("coupling", method, L, sampling.power_distribution(L, (1 - beta) / 2), L**beta, known, prox)
        raise ValueError(
            f"method={method.name!r} cannot be run on callables; use nu_acdm, nu_acdm_ns, acdm, acdm_ns, apcg, approx "
            "or rcdm."
        )

    def steps(self, partial: Any, prox: Any, x0: FloatArray, indices: Iterable[int]) -> Iterator[FloatArray]:
        """The iterates, line by line (`coordwise.reference`)."""
        L, method, sigma = self.L, self.method, float(self.sigma or 0)
        if self.kind == "plain":
            return reference.rcdm(partial, L, x0, indices, prox=prox)
        if self.kind == "sequence" and isinstance(method, ACDM):
            proved = method.constants == "proved"
            return reference.acdm(partial, L, x0, indices, sigma=sigma, beta=method.beta, proved=proved, prox=prox)
        if self.kind == "sequence":
            return reference.apcg(partial, L, x0, indices, sigma=sigma, prox=prox)
        if self._from_1_over_n and not self.prox:
            return reference.approx(partial, L, x0, indices)
        return reference.linear_coupling(
            partial, L, x0, indices, p=self.p, weights=self.weights, sigma=self.sigma, prox=prox
        )

    @property
    def _from_1_over_n(self) -> bool:
        return isinstance(self.method, APPROX) and self.method.start == "published"

    def plan(self) -> Plan:
        """The same for the core, with a step of 1/L for plain steps (`core/callable_run.hpp`)."""
        p = self.p
        step = 1 / p if self.prox and self.kind != "plain" else 1 / self.L
        if self.kind == "plain":
            return Plan(accelerated=False, prox=self.prox, step=step)
        theta = 1 / (p * self.weights)
        if self.kind == "sequence":
            assert self.sigma is not None
            alpha = float(np.sqrt(self.sigma / self.Theta))
            return Plan(
                accelerated=True,
                prox=self.prox,
                step=step,
                theta=theta,
                rule=CONSTANT,
                tau=alpha / (1 + alpha),
                drift=alpha,
                theta_scale=alpha / self.sigma,
                couple=alpha,
            )
        Theta = float(np.max(self.L / (self.weights * p**2)))
        lowest = float(p.min())
        if self.sigma is None:
            rule, tau = (RECURRENT, lowest) if self.prox or self._from_1_over_n else (VANISHING, 1.0)
            return Plan(True, self.prox, step, theta, rule=rule, tau=tau, theta_scale=1 / Theta)
        tau = coupling(Theta, self.sigma)
        if self.prox:
            tau = min(tau, lowest / (1 + lowest))
        return Plan(
            accelerated=True,
            prox=self.prox,
            step=step,
            theta=theta,
            rule=CONSTANT,
            tau=tau,
            drift=tau,
            theta_scale=(1 - tau) / (tau * Theta),
            couple=tau / (1 - tau),
        )
