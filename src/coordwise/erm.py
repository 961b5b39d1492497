"""Empirical risk minimisation, equation (2.1), and its two coordinate objectives: the dual (2.2) and the primal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from coordwise.custom import CustomLoss, CustomPenalty, SeparablePenalty
from coordwise.custom_terms import LossTerms, left_over
from coordwise.kernels import Terms
from coordwise.losses import Loss, get_loss
from coordwise.mixtures import Mixture
from coordwise.objectives import Local, Look, Objective, Sums, held_at_zero, over_outputs, targets
from coordwise.penalties import ElasticNet, GroupL1, Penalty, get_penalty
from coordwise.plane import Plane
from coordwise.results import Certificate
from coordwise.rows import Rows, as_matrix
from coordwise.validation import FloatArray, check_array, check_labels, check_number, check_range
from coordwise.varied import VariedTerms

NEAR = 0.1  # of the largest |phi'|: how far a dual variable may be from the corner that it is put into

__all__ = ["ERM", "DualERM", "PrimalERM", "feasible_share", "gap_power", "shrink"]


class ERM:
    r"""minimise over w in R^d   P(w) = (1/n) sum_i phi(<a_i, w>; b_i) + r(w).

    With sample weights s_i the mean becomes (1/W) sum_i s_i phi(<a_i, w>; b_i), W = sum_i s_i: a weight of 2 is the
    same as repeating the row, a weight of 0 as leaving it out. The dual is

        minimise over y in R^n   D(y) = (1/W) sum_i s_i phi*(y_i / s_i; b_i) + r*(-(1/W) A'y),

    and P(w) + D(y) >= 0 is the duality gap: it bounds both P(w) - min P and D(y) - min D.

    Parameters
    ----------
    A : array or scipy sparse array, shape (n, d), or source
        Samples are rows. A source, such as a `coordwise.datasets.Folder`, makes a problem for `coordwise.solve` alone,
        whose samples are read from where they are; b is then None for the targets that it has.
    b : array of shape (n,) or (n, K)
        Targets; -1 and +1 for classification losses. K columns are K problems sharing A.
    loss : str or Loss, default "squared"
        squared, l2l1, huber, absolute, quantile, logistic, squared_hinge, smooth_hinge, hinge, epsilon_insensitive,
        squared_epsilon_insensitive; or an object from `coordwise.losses` with parameters of its own; or a list of
        those, `loss_codes` telling which of them each row has; or a `coordwise.losses.CustomLoss`.
    penalty : {"l2", "l1", "elastic_net"} or penalty object, default "l2"
        (lam/2)|w|^2, lam |w|_1, or lam (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); or an object from
        `coordwise.penalties`, of which `GroupL1` has norms of groups of features, and a subclass of `CustomPenalty` any
        formula.
    lam : float
        Weight of a penalty given by name, > 0.
    l1_ratio : float, optional
        For the elastic net.
    positive : bool, default False
        Restrict w to w >= 0.
    sample_weight : array of shape (n,), optional
        Non-negative, not all zero.
    loss_codes : array of int, shape (n,), optional
        With a list of losses: row i has ``loss[loss_codes[i]]``. Labels are -1 and +1 on rows of classification losses.
        Steps take one thread then.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong with it and what would work.

    Examples
    --------
    >>> import numpy as np, coordwise as cw
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((50, 20)); b = rng.standard_normal(50)
    >>> problem = cw.ERM(A, b, loss="squared", penalty="l2", lam=0.1)
    >>> result = cw.solve(problem.dual(), tol=1e-9)
    >>> bool(problem.gap(result.x, result.y) <= 1e-9 * problem.value(np.zeros(20)))
    True
    """

    names: ClassVar[tuple[str, str]] = ("A", "b")  # in errors

    def __new__(cls, A: Any = None, *args: Any, **options: Any) -> Any:
        """A problem in memory, or a `SourceERM` where A is a source."""
        if hasattr(A, "target_shape"):  # modules of samples, which refer to this one, are not needed before
            from coordwise.erm_elsewhere import SourceERM
            from coordwise.samples.source import is_source

            if is_source(A):
                return SourceERM(A, *args, **options)
        return super().__new__(cls)

    def __init__(
        self,
        A: Any,
        b: Any = None,
        loss: str | Loss | CustomLoss | Sequence[str | Loss] = "squared",
        penalty: str | Penalty | CustomPenalty = "l2",
        lam: float | None = None,
        *,
        l1_ratio: float | None = None,
        positive: bool = False,
        sample_weight: Any = None,
        loss_codes: Any = None,
    ) -> None:
        self.penalty = get_penalty(penalty, lam, l1_ratio, positive)
        self.A = as_matrix(A, self.names[0])
        self._rows: dict[str, Rows] = {}
        self.threads = 1  # for products with the data, and sums over them
        n, d = (int(length) for length in self.A.shape)
        self.n_samples, self.n_features = n, d
        if isinstance(self.penalty, GroupL1):
            self.penalty.check_features(d, f"columns of {self.names[0]}")
        self.b, self.flat = targets(b, n, "rows of A", self.names[1])
        self.loss = _loss_of(loss, loss_codes, n)
        if isinstance(self.loss, Mixture):
            self.loss.check_labels(self.names[1], self.b)
        elif self.loss.classification:
            check_labels(self.names[1], self.b, self.loss.name)
        self.sample_weight: FloatArray | None = None
        self.total = float(n)
        if sample_weight is not None:
            weight = check_array("sample_weight", sample_weight, (n,))
            if np.any(weight < 0) or not np.any(weight > 0):
                raise ValueError("sample_weight must be non-negative with at least one positive entry.")
            check_range("sample_weight", weight, low=1e-140, high=1e140)  # they are divided by their sum
            self.sample_weight, self.total = weight.copy(), float(weight.sum())

    def __repr__(self) -> str:
        outputs = "" if self.flat else f", {self.b.shape[1]} outputs"
        return f"ERM({self.n_samples} x {self.n_features}{outputs}, loss={self.loss}, penalty={self.penalty})"

    def rows(self, by: Literal["rows", "columns"]) -> Rows:
        """A by rows or by columns, prepared once."""
        if by not in self._rows:
            other: Literal["rows", "columns"] = "columns" if by == "rows" else "rows"
            if sp.issparse(self.A) and self.A.format == ("csr" if other == "rows" else "csc"):
                known, given = other in self._rows, self.rows(other)
                self._rows[by] = given.turned(by, self.threads)
                if given.copied and not known:  # one copy is enough
                    del self._rows[other]
            else:
                self._rows[by] = Rows(self.A, by, argument=self.names[0], threads=self.threads)
        return self._rows[by]

    def any_rows(self) -> tuple[Rows, bool]:
        """Whichever direction is prepared already, or needs no copy, and whether it is by rows."""
        by_rows = "rows" in self._rows
        if not self._rows:
            by_rows = self.A.format != "csc" if sp.issparse(self.A) else bool(self.A.flags.c_contiguous)
        return self.rows("rows" if by_rows else "columns"), by_rows

    def product(self, w: FloatArray) -> FloatArray:
        """A w for w of shape (d, K), unchecked."""
        rows, by_rows = self.any_rows()
        w = np.ascontiguousarray(w)
        return rows.dots(w, self.threads) if by_rows else rows.combine(w, self.threads)

    def adjoint(self, y: FloatArray) -> FloatArray:
        """A'y for y of shape (n, K), unchecked."""
        rows, by_rows = self.any_rows()
        y = np.ascontiguousarray(y)
        return rows.combine(y, self.threads) if by_rows else rows.dots(y, self.threads)

    def moments(self, y: FloatArray) -> FloatArray:
        """(1/W) A'y for y of shape (n, K), unchecked."""
        product = self.adjoint(y)
        product /= self.total
        return product

    @property
    def frobenius2(self) -> float:
        """sum_ij a_ij^2."""
        return float(self.any_rows()[0].norms2().sum())

    def reach(self, y: FloatArray) -> FloatArray:
        """sum_i |y_i| |a_i| for y of shape (n, K), or a bound of it: how large sums in A'y may become on the way."""
        rows, by_rows = self.any_rows()
        if by_rows:
            return np.sqrt(rows.norms2()) @ np.abs(y)
        return np.sqrt(self.frobenius2) * np.linalg.norm(y, axis=0)

    @property
    def terms(self) -> Terms:
        """(1/W) s_i phi(.; b_i) with their conjugates."""
        return self.loss.terms(1 / self.total, self.b, self.sample_weight, self.threads)

    def predict(self, w: Any) -> FloatArray:
        """A w, of shape (n,) or (n, K)."""
        return self._shaped(self.product(self._table("w", w, self.n_features)))

    def value(self, w: Any) -> Any:
        """P(w)."""
        table = self._table("w", w, self.n_features)
        losses = self.terms.value(self._table("A w", self.predict(w), self.n_samples))
        return self._scalar(losses + self.penalty.value(table))

    def dual_value(self, y: Any) -> Any:
        """D(y); inf outside the domain of the conjugates."""
        table = self._table("y", y, self.n_samples)
        return self._scalar(self.terms.conjugate(table) + self.penalty.conjugate(-self.moments(table)))

    def gap(self, w: Any, y: Any) -> Any:
        """P(w) + D(y)."""
        return self.value(w) + self.dual_value(y)

    def primal_point(self, y: Any) -> FloatArray:
        """The weights w = grad r*(-(1/W) A'y) that belong to dual variables y; the penalty needs an l2 part."""
        if self.penalty.l2 == 0:
            if isinstance(self.penalty, GroupL1):
                raise ValueError("penalty=GroupL1 without an l2 part gives no w for a y; solve the primal.")
            _refuse_dual_of_custom(self.penalty)
            raise ValueError("penalty='l1' alone gives no w for a y; solve the primal, or smooth: dual(smoothing=...).")
        return self._shaped(self.penalty.conjugate_gradient(-self.moments(self._table("y", y, self.n_samples))))

    def dual_point(self, w: Any) -> FloatArray:
        """y_i = s_i phi'(<a_i, w>), scaled towards 0 if that is what makes D(y) finite."""
        t = self._table("A w", self.predict(w), self.n_samples)
        y = self.terms.subgradients(t)
        if self.penalty.l2 == 0:
            y = y * feasible_share(self.penalty, self.moments(y))
        return self._shaped(y)

    def dual(self, smoothing: float | None = None) -> DualERM:
        """The dual objective over samples: any loss; a penalty with an l2 part.

        With penalty="l1", `smoothing` adds (smoothing/2)|w|^2 to the penalty as section 7.1 does. The minimiser w of
        the smoothed problem then satisfies P(w) - min P <= (smoothing/2) |w*|^2 <= (smoothing/2) (P(0)/lam)^2; the last
        bound is `DualERM.smoothing_error`.
        """
        return DualERM(self, smoothing)

    def primal(self, offset: Any = None) -> PrimalERM:
        """The primal objective over features: smooth losses, any penalty.

        `offset` (a number, or one per output) is added to all predictions: a fixed intercept. Under a `GroupL1` penalty
        coordinate descent takes the features of a group together, and there is one output.
        """
        if isinstance(self.penalty, GroupL1):
            from coordwise.group_erm import GroupERM  # which is a PrimalERM

            return GroupERM(self, offset)
        return PrimalERM(self, offset)

    @property
    def value_at_zero(self) -> FloatArray:
        """P(0), one per output: the scale of the stopping inequality."""
        return self.terms.value(np.zeros((self.n_samples, self.b.shape[1])))

    def _table(self, argument: str, value: Any, count: int) -> FloatArray:
        return check_array(argument, value, (count,) if self.flat else (count, self.b.shape[1])).reshape(count, -1)

    def _shaped(self, table: FloatArray) -> FloatArray:
        return table[:, 0] if self.flat else table

    def _scalar(self, values: FloatArray) -> Any:
        return float(values[0]) if self.flat else values


def _refuse_dual_of_custom(penalty: Any) -> None:
    if isinstance(penalty, SeparablePenalty):
        raise ValueError(
            f"penalty={penalty!r} is not known to be strongly convex, so its dual is not smooth. Use problem.primal(), "
            "or set strong_convexity and define derivative_of_conjugate."
        )


def _loss_of(loss: Any, codes: Any, n: int) -> Any:
    if isinstance(loss, (list, tuple)):
        return Mixture(loss, codes, n)
    if codes is not None:
        raise ValueError("loss_codes is for a list of losses, as in loss=['squared', 'huber'].")
    return get_loss(loss)


class DualERM(Objective):
    """D(y) over the samples (equation 2.2): rows of A are coordinates, G(v) = r*(-v/W), h_i = (1/W) (s_i phi)^*.

    A run stops when P(w) + D(y) <= tol * P(0) for every output, w = grad r*(-(1/W) A'y), or a better w if `any_weights`
    will do. With `smoothing`, P, D and
    the result's `primal` and `gap` are those of the smoothed problem, whose solution is `smoothing_error` away at most.
    """

    certificate_name = "duality gap"
    any_weights = False  # whether a run may end with better weights than its dual variables lead to (coordwise.plane)

    def __init__(self, problem: ERM, smoothing: float | None = None) -> None:
        penalty = problem.penalty
        if isinstance(penalty, GroupL1):
            raise ValueError(
                "penalty=GroupL1 ties features together, so its dual has no coordinate gradients that are cheap. Use "
                "problem.primal(), with a smooth loss."
            )
        self.smoothing_error: float | FloatArray | None = None
        if smoothing is not None:
            if penalty.l2 > 0 and not isinstance(penalty, SeparablePenalty):
                raise ValueError(
                    "smoothing is for penalties without an l2 part; this one has one: leave smoothing out."
                )
            penalty = penalty.smoothed(check_number("smoothing", smoothing, low=0, strictly=True))
            error = smoothing / 2 * (problem.value_at_zero / problem.penalty.l1) ** 2
            self.smoothing_error = problem._scalar(error)
            self.certificate_name = "duality gap of the smoothed problem"
        elif penalty.l2 == 0:
            _refuse_dual_of_custom(penalty)
            at_zero = float(np.max(problem.value_at_zero))
            advice = 2e-3 * penalty.l1**2 / at_zero if at_zero > 0 else 1e-3
            raise ValueError(
                "penalty='l1' has a dual without smoothness. Use problem.primal(), or problem.dual(smoothing=lam2) "
                f"to solve with (lam2/2)|w|^2 added; lam2={advice:.2g} keeps the error below 1e-3 P(0)."
            )
        self.problem, self.penalty = problem, penalty
        self.rows = problem.rows("rows")
        self.outputs, self.flat = problem.b.shape[1], problem.flat
        self.coordinates = problem.terms
        n = problem.total
        self.smooth = 1 / (penalty.l2 * n**2) if penalty.quadratic else penalty.dual_terms(n)
        self._at_zero = problem.value_at_zero

    def certificate(self, image: FloatArray, sums: Sums) -> Certificate:
        """P(w) + D(y) as a sum of Fenchel-Young terms, each >= 0."""
        n = self.problem.total
        v = image / n
        if isinstance(self.smooth, Terms):
            w = self.penalty.conjugate_gradient(-v)
            s = sums(-w / n)
            dual, primal = self.penalty.conjugate(-v), self.penalty.value(w)
            if isinstance(self.penalty, SeparablePenalty):  # whose formulas may not fit
                s["fenchel_young"] = s["fenchel_young"] + left_over(self.penalty.custom, w, -v)
        else:  # w = -v/l2, and r(w) = r*(-v)
            s = sums(v / (self.penalty.l2 * n))
            dual = primal = self.penalty.conjugate(v)
        return Certificate(s["value"] + dual, s["fenchel_young"], self._at_zero, s["conjugate"] + primal)

    def confirmed(self, x: FloatArray, image: FloatArray, found: Certificate) -> tuple[FloatArray, Certificate]:
        """See `Objective.confirmed`. The losses and conjugates in `found` belong to x and to the w of `image`.

        What is left of P(w) + D(x) is r(w) + r*(v) - <w, v> at v = -(1/W) A'x, which is |v - v'|^2/(2 l2) at most: w is
        the gradient of r*, with Lipschitz constant 1/l2, at the v' that comes from `image`.
        """
        apart = (self.image(x) - image) / self.problem.total
        return image, replace(found, gap=found.gap + np.square(apart).sum(0) / (2 * self.penalty.l2))

    def local_curvature(self, look: Look, slack: float, doubt: float) -> Local | None:
        """Curvature of the conjugates near x, as `coordwise.curvature` describes; the least over all outputs."""
        problem, shape = self.problem, self.coordinates.shape
        if isinstance(self.coordinates, VariedTerms):
            return None
        given = problem.sample_weight
        s = np.ones(1) if given is None else np.where(given > 0, given, 1.0)
        t = -problem.total * look.g
        if shape.logistic:
            dual = np.abs(look.x) / s[:, None]
            implied = np.exp(-np.abs(t))  # min(q, 1 - q) = 1/(1 + exp|t|) for q = phi'(t)
            implied /= 1 + implied
            ends = over_outputs(np.max, np.maximum(np.minimum(dual, 1 - dual), implied))
            a = np.minimum(0.5, slack * ends + 1e-9)
            return Local(1 / (problem.total * s * a * (1 - a)), None)
        if not shape.corners:
            return None
        # |w - w*| <= sqrt(2 gap/l2) bounds how far a score may move; slack says which part of that is thought possible.
        curvature = self.curvature
        far = np.sqrt(self.rows.norms2())[:, None] * np.sqrt(2 * np.maximum(look.certificate.gap, 0) / self.penalty.l2)
        slope, away, places = self.coordinates.held(look.x, t)
        moves = curvature[:, None] * problem.total * away  # of the score, if y_i goes to the corner
        near = NEAR * s[:, None] * np.max(np.abs(places) / s[:, None], axis=0)  # what many move at once adds up
        held = over_outputs(np.all, (slope > moves + far * doubt) & (away <= near))
        if held.all():  # somebody has to be drawn
            held[:] = False
        if shape.curvature == 0:
            return Local(np.where(held, np.inf, np.where(curvature > 0, curvature, 1.0)), places)
        # A corner's slope makes up for a parabola as far as y may be from it.
        slope = np.maximum(slope - far * slack / 100, 0.0)
        more = 2 * slope * s[:, None] / (shape.quad * (slack * away + 1e-4 * s[:, None]))
        weights = shape.quad / (problem.total * s) * (1 + over_outputs(np.min, more))
        return Local(np.where(held, np.inf, weights), places)

    def dual_variables(self, x: FloatArray, image: FloatArray, certificate: Certificate) -> FloatArray:
        """x itself."""
        return x

    def solution(self, image: FloatArray) -> FloatArray:
        """The weights w = grad r*(-(1/W) A'y)."""
        return self.penalty.conjugate_gradient(-image / self.problem.total)

    def plane(self) -> Plane | None:
        """See `Objective.plane`."""
        if not self.any_weights or isinstance(self.smooth, Terms) or self.image0 is not None or self.outputs > 1:
            return None
        return Plane(self.problem.terms, self.penalty.l2, self.problem.total)

    def beside(self, primal: FloatArray, x: FloatArray) -> tuple[FloatArray, Certificate]:
        """See `Objective.beside`."""
        image = self.image(x)
        value = self.coordinates.conjugate(x) + self.penalty.conjugate(-image / self.problem.total)
        return image, Certificate(value, np.maximum(value + primal, 0.0), self._at_zero, primal)


class PrimalERM(Objective):
    """P(w) over the features: columns of A are coordinates, G(v) = (1/W) sum_i s_i phi(v_i; b_i), h_j = r_j.

    The dual point of the certificate is y_i = s_i phi'(<a_i, w>; b_i), scaled into the domain of r* if the penalty is
    l1 alone, or one that is known where that is better: 0 unless another is given (`learn`), since D(0) = 0, no loss
    being negative. A run stops when P(w) + D(y) <= tol * P(0) for every output.
    """

    certificate_name = "duality gap"
    sigma_is_tight = False

    def __init__(self, problem: ERM, offset: Any = None) -> None:
        loss = problem.loss
        if loss.gamma == 0:
            raise ValueError(
                f"loss={loss.name!r} has a kink, so its primal has no coordinate gradients. Use problem.dual()"
                + ("." if problem.penalty.l2 > 0 else " with a penalty that has an l2 part, or with smoothing=...")
            )
        self.problem, self.penalty = problem, problem.penalty
        self.rows = problem.rows("columns")
        self.outputs, self.flat = problem.b.shape[1], problem.flat
        self.coordinates = problem.penalty.terms()
        self._residual = loss.name == "squared" and problem.sample_weight is None  # the image is Aw - b, not Aw
        if self._residual:
            self.smooth, self.image0 = 1 / problem.total, -problem.b
        else:
            self.smooth = problem.terms
        given = check_array("offset", 0.0 if offset is None else offset)
        if given.shape not in ((), (1,), (self.outputs,)):
            raise ValueError(f"offset has shape {given.shape}; it must be a number, or one for each of the outputs.")
        self._offset = np.broadcast_to(given, (self.outputs,))
        if offset is not None:
            self.image0 = self._offset + (np.zeros_like(problem.b) if self.image0 is None else self.image0)
        self._at_zero = problem.value_at_zero
        self._known, self._known_at = np.zeros((problem.n_samples, self.outputs)), np.zeros(self.outputs)
        if isinstance(problem.terms, LossTerms) or isinstance(self.penalty, SeparablePenalty):  # which may be negative
            none = np.zeros((problem.n_features, self.outputs))
            self._known_at = problem.terms.conjugate(self._known) + self.penalty.conjugate(none)
        self.gap_power = gap_power(self.penalty)

    def learn(self, y: Any, value: Any) -> None:
        """Dual variables that are known, of the shape of b, and D(y), less c sum_i y_i/W with an offset c.

        Where that is not below 0, zeros are better.
        """
        value = np.broadcast_to(np.asarray(value, np.float64), (self.outputs,))
        self._known = np.where(value < 0, self.problem._table("y", y, self.problem.n_samples), 0.0)
        self._known_at = np.where(value < 0, value, 0.0)

    def certificate(self, image: FloatArray, sums: Sums) -> Certificate:
        """P(w) + D(y), y the derivatives of the losses or what is known."""
        terms = self.problem.terms
        t = image + self.problem.b if self._residual else image
        y = terms.subgradients(t)
        s = sums(y / self.problem.total)
        losses = terms.value(t)
        value = losses + s["value"]
        if isinstance(terms, LossTerms):  # whose formulas may not fit
            s["fenchel_young"] = s["fenchel_young"] + terms.apart(t, y)
        least = np.maximum(value + self._known_at, 0)
        if self.penalty.l2 > 0:
            better = s["fenchel_young"] <= least
            gap = np.where(better, s["fenchel_young"], least)
            return Certificate(value, gap, self._at_zero, value, np.where(better, 1.0, np.nan))
        share = self._share(s)
        # an offset c makes the losses phi(t + c), whose conjugates are phi*(y) - c y
        conjugates = terms.conjugate(share * y) - self._offset * share * y.sum(0) / self.problem.total
        # P + D with D = (1/W) sum phi*(y) + r*(-(1/W) A'y); r* of l1 vanishes at the scaled point
        if isinstance(self.penalty, SeparablePenalty):
            conjugates = conjugates + self.penalty.conjugate(-share * self.problem.moments(y))
        better = conjugates <= self._known_at
        gap = np.where(better, np.maximum(value + conjugates, 0), least)
        return Certificate(value, gap, self._at_zero, value, np.where(better, share, np.nan))

    def _share(self, sums: dict[str, FloatArray]) -> FloatArray:
        """The largest factor <= 1 that takes derivatives of the losses into the domain of the dual, without l2."""
        assert not isinstance(self.penalty, GroupL1)
        return shrink(self.penalty, sums["lowest"], sums["highest"])

    def dual_variables(self, x: FloatArray, image: FloatArray, certificate: Certificate) -> FloatArray:
        """Derivatives of the losses, scaled where the penalty is l1 alone, or what is known."""
        t = image + self.problem.b if self._residual else image
        assert certificate.share is not None
        better = np.isfinite(certificate.share)
        return np.where(better, certificate.share * self.problem.terms.subgradients(t), self._known)

    def local_curvature(self, look: Look, slack: float, doubt: float) -> Local | None:
        """See `held_at_zero`."""
        return None if isinstance(self.coordinates, VariedTerms) else held_at_zero(self, look, doubt)

    def solution(self, image: FloatArray) -> None:
        """None: it is x itself."""
        return None


def gap_power(penalty: Penalty) -> float:
    """`Objective.gap_power` over features: gaps of scaled dual points are linear in y - y*, whose square P bounds."""
    return 1.0 if penalty.l2 > 0 else 0.5


def shrink(penalty: ElasticNet | SeparablePenalty, lowest: FloatArray, highest: FloatArray) -> FloatArray:
    """The largest factor <= 1 that takes moments in [lowest, highest] into |.| <= l1 (>= -l1 if w >= 0)."""
    if isinstance(penalty, SeparablePenalty):
        return penalty.shrink(lowest, highest)
    size = -lowest if penalty.positive else np.maximum(-lowest, highest)
    inside = penalty.l1 * (1 - 1e-13)  # so that the moments recomputed with other rounding still fit
    return np.where(size > inside, inside / np.where(size > 0, size, 1.0), 1.0)


def feasible_share(penalty: Penalty, moments: FloatArray) -> FloatArray:
    """The largest factor <= 1, per output, that takes moments (1/W) A'y into the domain of r*, without an l2 part."""
    if isinstance(penalty, GroupL1):
        return penalty.feasible_share(moments)
    return shrink(penalty, np.minimum(moments.min(0), 0), np.maximum(moments.max(0), 0))
