"""The dual over the samples; an intercept is found by the proximal point method on a lightly penalised one."""

from __future__ import annotations

import numpy as np

from coordwise.erm import ERM, DualERM
from coordwise.fitting.model import LinearModel
from coordwise.samples.appended import with_column
from coordwise.validation import FloatArray

__all__ = ["WithIntercept"]


class WithIntercept(DualERM):
    """The dual of P(w, c) + (rho/2)(c - center)^2, with c = v w_(d+1) and rho = lam/v^2.

    The appended column v is large enough that rho is far below the curvature of P in c, so that a few moves of the
    center end at the intercept without penalty, and small enough to leave the L_i about as they were.
    """

    def __init__(self, model: LinearModel, column: float, problem: ERM) -> None:
        super().__init__(problem)
        self.column = column
        self.image0 = np.zeros((model.d + 1, model.outputs))

    def move(self, center: FloatArray) -> None:
        """Put the penalty's center elsewhere; the next run sees it."""
        assert self.image0 is not None
        self.image0[-1] = -center * self.penalty.l2 * self.problem.total / self.column

    @staticmethod
    def of(model: LinearModel, center: FloatArray) -> WithIntercept:
        """The objective with a column that suits the model."""
        norms = model.problem.rows("rows").norms2()
        column = float(np.sqrt(max(model.penalty.l2 * model.total * max(model.loss.gamma, 1e-3), norms.mean(), 1e-12)))
        problem = ERM(
            with_column(model.A, column),
            model.b,
            loss=model.loss,
            penalty=model.penalty,
            sample_weight=model.weights,
        )
        objective = WithIntercept(model, column, problem)
        objective.move(center)
        return objective
