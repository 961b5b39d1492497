"""Newton's method by conjugate gradients as a probe: begun where it may be cheaper, given up where its rate says no.

What a strategy costs is counted in entries of A, as `coordwise.fitting.strategies` does. Theory says how fast conjugate
gradients are at worst. They are often far faster, and the first steps tell. So the probe begins where it would cost
less than the forecast B of the other strategy if each of its steps reduced the gap by a factor e. It is given up once
it has cost `PROBE` B and does not promise an end within `STAY` B, and in any case after `CAP` B. As far as forecasts
are right, both together cost at most 1 + CAP = 3 times B, and at most (1 + PROBE)/PROBE = 3 times the probe alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from coordwise.fitting.by_oracle import Spent, newton_cg, oracle_of, passes_of
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.runners import Options, Outcome, Runner, follow
from coordwise.fitting.strategies import ENTRY, forecast_of_dual, forecast_of_newton, steps_of_newton
from coordwise.oracle import Oracle
from coordwise.results import Status

__all__ = ["budget", "with_probe"]

PROBE, STAY, CAP = 0.5, 0.7, 2.0  # derived: see above
# Rough ratios of costs, which no program measures yet.
VISIT = 2e4  # entries that are read in the time that a visit takes by itself (20 microseconds)
SAMPLE, LOSS = 4.0, 30.0  # the same for what a visit does with a sample, and for a loss with its derivative
PASSES = 4  # products of a Newton step beside those of conjugate gradients


def budget(model: LinearModel, name: str, tol: float) -> float | None:
    """The forecast of a strategy that the probe should precede, in entries; None where there should be none."""
    plain = model.penalty.l1 == 0 and not model.penalty.positive and model.penalty.l2 > 0
    if name not in ("newton", "dual") or not plain or model.loss.gamma == 0 or not tol > 0 or model.n < model.d:
        return None
    expected = forecast_of_newton(model, tol) if name == "newton" else forecast_of_dual(model, tol)
    return expected if _at_best(model, tol) < STAY * expected else None


def with_probe(runner: Runner, B: float) -> Runner:
    """A runner that is preceded by a probe, which may spend so much, and begins where that was given up."""

    def run(model: LinearModel, options: Options) -> Outcome:
        probe = _Probe(model, options, B)
        first = follow(model, options, probe.rounds(), passes=lambda: probe.passes)
        spent = replace(first, part=probe.passes - first.steps, strategy=f"newton_cg: {probe.why}")
        left = options.max_passes - probe.passes
        if first.status is not Status.MAX_PASSES or left <= 0:
            return spent
        second = runner(model, replace(options, start=first.found, max_passes=left))
        return replace(
            second,
            found=second.found.better(first.found),
            part=second.passes - second.steps + probe.passes,
            strategy=f"{second.strategy or options.kept.strategy}, after {probe.passes:.0f} passes of newton_cg",
        )

    return run


class _Probe:
    """The rounds of the probe as long as its costs allow, and what they took."""

    def __init__(self, model: LinearModel, options: Options, B: float) -> None:
        self.model, self.options, self.B = model, options, B
        self.oracle: Oracle = oracle_of(model, options.limit, options.max_passes)
        self.why = "conjugate gradients promise to cost less than Gram matrices, or than steps over the samples"

    @property
    def passes(self) -> float:
        """Entries touched / nnz."""
        return passes_of(self.oracle)

    @property
    def cost(self) -> float:
        """In entries of sparse rows."""
        work = self.oracle.work
        return _entry(self.model) * work.entries + (VISIT + SAMPLE * self.model.n * self.model.outputs) * work.rounds

    def rounds(self) -> Iterator[Candidate]:
        """Candidates until the probe is given up, which may be in the middle of a step."""
        asked = self.oracle.poll

        def poll() -> None:
            assert asked is not None
            asked()
            promising = left <= STAY * self.B
            if self.cost > (CAP if promising else PROBE) * self.B:
                raise Spent
            if not promising and self.passes > PROBE * self.options.max_passes:
                raise Spent  # the other strategy is to have its share of the passes

        self.oracle.poll = poll
        goal = self.options.tol * self.model.scale
        before, spent, left = 1.0, 0.0, math.inf
        for found in newton_cg(self.model, self.options.tol, self.oracle, self.options.start):
            yield found
            error = float(np.max(found.gap / np.where(goal > 0, goal, 1.0)))
            if error <= 1:
                return
            fallen, step = math.log(max(before / error, 1.0)), self.cost - spent
            left = math.log(error) / fallen * step if fallen > 0 else math.inf
            before, spent = error, self.cost


def _entry(model: LinearModel) -> float:
    return 1.0 if sp.issparse(model.A) else ENTRY


def _at_best(model: LinearModel, tol: float) -> float:
    """Entries of the probe, if each step of conjugate gradients took off an e-fold of the gap."""
    rows, _ = model.problem.any_rows()
    pairs, steps = max(-math.log(tol), 1.0), steps_of_newton(tol)
    visits = pairs + steps * (5 + 4 * model.intercept)
    samples = SAMPLE * visits + LOSS * steps * (1 + 3 * model.intercept)
    entries = 2 * pairs + PASSES * steps
    return _entry(model) * rows.nnz * entries * model.outputs + samples * model.n * model.outputs + VISIT * visits
