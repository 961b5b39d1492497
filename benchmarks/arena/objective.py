"""Linear models: P(w, c) = (1/n) sum_i phi(<a_i, w> + c; b_i) + l1 |w|_1 + (l2/2) |w|^2, c = 0 without intercept."""

import numpy as np
from benchopt import BaseObjective

from coordwise.bench.problems import Data, Problem
from coordwise.bench.rows import Row


class Objective(BaseObjective):
    """One problem: a loss, a penalty, and the penalty's weight.

    `weight` is lam n (scale "lam_n"), or lam as a share of the smallest l1 weight with the solution 0 ("lam_max").
    The elastic net has an l1_ratio of 1/2.
    """

    name = "linear models"
    min_benchopt_version = "1.7"
    sampling_strategy = "tolerance"
    parameters = {
        "loss, penalty, scale": [("logistic", "l2", "lam_n")],
        "weight": [1.0],
        "intercept": [False],
    }
    test_dataset_name = "generated"

    def set_data(self, X, y):
        """See `BaseObjective.set_data`."""
        data = Data(X, y)
        row = Row("", self.loss, self.penalty, self.weight, self.scale, intercept=self.intercept)
        self.problem = Problem(row.statement(data), data)

    def get_objective(self):
        """The problem, and its pieces for solvers that do not know `coordwise.bench`."""
        return self.problem.pieces()

    def evaluate_result(self, w, c=0.0, gap=None):
        """P(w, c), as a share of P(0, 0) too."""
        value = self.problem.value(w, c)
        return {"value": value, "share": value / self.problem.at_zero}

    def get_one_result(self):
        """Where all begin."""
        return {"w": np.zeros(self.problem.d), "c": 0.0}
