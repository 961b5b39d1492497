"""The primal of empirical risk minimisation over groups of features: a step takes all features of a group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordwise.custom import CustomLoss
from coordwise.erm import ERM, PrimalERM
from coordwise.group_penalties import GroupL1
from coordwise.kernels import MOST_IN_BLOCK, Run, Terms
from coordwise.mixtures import Mixture
from coordwise.objectives import Local, Look
from coordwise.partition import Partition, largest_eigenvalues
from coordwise.results import Certificate
from coordwise.validation import FloatArray

__all__ = ["GroupERM"]


@dataclass(frozen=True)
class GroupTerms(Terms):
    """The terms of a `GroupL1`: as those of one coordinate, but for the corner, which is that of a whole group."""

    penalty: GroupL1 | None = None

    def in_corner(self, y: FloatArray) -> NDArray[np.bool_]:
        """Which groups of y (N x 1) are 0 and have a kink there; one row per group."""
        assert self.penalty is not None
        zero = self.penalty.partition.sums(y != 0) == 0
        return zero & (self.penalty.kinks + self.penalty.feature_l1 > 0)[:, None]


class GroupERM(PrimalERM):
    """P(w) over the features with a `GroupL1` penalty, for one output and a smooth loss.

    A step of coordinate descent takes the features of one group g (footnote 11 of the paper), by the group's proximal
    step. L_g is the largest eigenvalue of A_g' M A_g, where M holds the bounds of the losses' curvatures, and the
    features of g are drawn with p_g ~ sqrt(L_g/w_g); `Result.constants` are those of groups.

    The dual point of the certificate is y_i = s_i phi'(<a_i, w>; b_i), scaled into the domain of r* where the penalty
    has no l2 part: the largest factor with which |S(v_g)| <= l1 weights_g for every group (`GroupL1`).
    """

    penalty: GroupL1

    def __init__(self, problem: ERM, offset: Any = None) -> None:
        penalty = problem.penalty
        assert isinstance(penalty, GroupL1)
        if problem.loss.gamma == 0:
            raise ValueError(
                f"loss={problem.loss.name!r} has a kink, which penalty=GroupL1 cannot be solved with; use a smooth "
                "loss, such as 'huber', 'smooth_hinge', 'squared_hinge' or 'squared_epsilon_insensitive'."
            )
        if isinstance(problem.loss, (Mixture, CustomLoss)):
            raise ValueError(
                "loss must be one of the library's for penalty=GroupL1; mixtures and losses of one's own are not taken."
            )
        if problem.b.shape[1] > 1:
            raise ValueError(
                f"b has {problem.b.shape[1]} columns, and penalty=GroupL1 takes one; solve a problem for each column."
            )
        largest = int(penalty.partition.sizes.argmax())
        if penalty.partition.sizes[largest] > MOST_IN_BLOCK:
            raise ValueError(
                f"groups has {penalty.partition.sizes[largest]} features in group {largest}; coordinate descent takes "
                f"groups of up to {MOST_IN_BLOCK} features."
            )
        super().__init__(problem, offset)
        self.coordinates = GroupTerms(penalty.shape, 1.0, None, None, penalty=penalty)
        self.blocks = penalty.blocks

    def __repr__(self) -> str:
        features = len(self.partition.of)
        return f"<GroupERM: {self.count} blocks of {features} coordinates; {self.rows.storage}>"

    @property
    def partition(self) -> Partition:
        """The groups."""
        return self.penalty.partition

    @property
    def count(self) -> int:
        """Number of groups."""
        return self.partition.count

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Stored entries of each group."""
        return self.partition.sums(self.rows.lengths)

    def coordinates_of(self, drawn: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which features belong to some of the groups."""
        return drawn[self.partition.of]

    @property
    def curvature(self) -> FloatArray:
        """L_g without the penalty's part: the largest eigenvalue of the group's Hessian bound."""
        return self._curvature.copy()

    @cached_property
    def _curvature(self) -> FloatArray:
        smooth = self.smooth
        if isinstance(smooth, Terms):
            weights, scale = smooth.weights, smooth.scale / smooth.shape.curvature
        else:
            weights, scale = None, float(smooth or 0.0)
        norms2 = self.rows.norms2(weights)
        found = largest_eigenvalues(self.rows, self.partition, weights, norms2, self.threads)
        found *= scale
        return found

    def exact(self, x: FloatArray) -> tuple[FloatArray, Certificate]:
        """See `Objective.exact`."""
        image = self.image(x)
        return image, self.certificate(image, lambda omega: self._sums(x, omega))

    def certify_run(self, run: Run, g: FloatArray | None = None) -> Certificate:
        """See `Objective.certify_run`."""
        return self.certificate(run.image(), lambda omega: self._sums(run.point(), omega, g))

    def _sums(self, x: FloatArray, omega: FloatArray, g: FloatArray | None = None) -> dict[str, FloatArray]:
        products = self.rows.dots(omega, self.threads)
        if g is not None:
            g[:] = products
        if self.penalty.l2 == 0:
            return {"value": self.penalty.value(x), "moments": products}
        values = self.penalty.fenchel_young(x, -products)
        return {"value": self.penalty.value(x), "fenchel_young": values.sum(0)}

    def _share(self, sums: dict[str, FloatArray]) -> FloatArray:
        return self.penalty.feasible_share(sums["moments"])

    def gap_of(self, look: Look, which: NDArray[np.bool_]) -> FloatArray:
        """The part of the gap that some groups make up."""
        return self.penalty.fenchel_young(look.x, -look.g)[which].sum(0)

    def local_curvature(self, look: Look, slack: float, doubt: float) -> Local | None:
        """Groups at 0 are held while their slopes stay in the subgradients there, as `held_at_zero` has it.

        A group's slope moves by sqrt(2 L_g gap) at most, in the Euclidean norm.
        """
        if not self.coordinates.shape.corners:
            return None
        L = self._curvature
        far = np.sqrt(L) * np.sqrt(2 * np.maximum(look.certificate.gap, 0))
        zero = self.partition.sums(look.x != 0)[:, 0] == 0
        held = zero & (self.penalty.slack(look.g)[:, 0] > doubt * far)
        if held.all():  # somebody has to be drawn
            held[:] = False
        return Local(np.where(held, np.inf, np.where(L > 0, L, 1.0)), np.zeros_like(look.x))
