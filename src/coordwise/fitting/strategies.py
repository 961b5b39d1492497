"""Which formulation suits a model, and which ones apply to it."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from coordwise.fitting.interior import made_of_pieces
from coordwise.fitting.krylov import worth_it, worth_trying
from coordwise.fitting.model import LinearModel
from coordwise.fitting.newton import FEW
from coordwise.fitting.semismooth import has_straight_parts, weak_enough
from coordwise.fitting.working import many_used, outside

__all__ = [
    "STRATEGIES",
    "check_applies",
    "choose",
    "forecast_of_dual",
    "forecast_of_newton",
    "may_be_interior",
    "may_be_krylov",
    "may_be_newton",
    "may_be_smooth",
    "passes_of_a_step",
    "passes_of_newton",
    "steps_of_newton",
]

STRATEGIES = (
    "auto",
    "dual",
    "primal",
    "working_set",
    "gram",
    "newton",
    "newton_cg",
    "interior",
    "krylov",
    "semismooth",
)
EASY = 1.0  # mean curvature of the dual's smooth part, relative to the terms: exact steps over samples are fast
KINKS = 3.0  # the same, for losses with kinks
HARD = 1e5  # the same, for hinges and logistic losses: most samples are held in corners, or nearly so
SAMPLE, LOGISTIC = 50.0, 100.0  # what a step over a sample costs, in entries of sparse rows; and more for such a loss
PRODUCT, FACTOR = 0.4, 0.1  # the same of a product in a Gram matrix of sparse rows, and in a factorisation
ENTRY, BLOCKED = 0.4, 0.02  # the same of an entry of a dense row, and of a product in a Gram matrix of these
STEPS, MORE = 2.0, 0.5  # that Newton's method takes; and for every digit of the tolerance
PASSES = 3  # over the entries in each of them
SHARE = 0.45  # of the passes that Theorem 5.1 asks for: what steps over the samples were seen to take
CLEARLY = 2.0  # how much less these have to cost to be chosen
TRIAL = 12  # passes that are tried in any case if they cost no more than a Newton step, or half one with an intercept
MOST = 10_000  # features (or samples) whose dense Gram matrix fits into memory, where the data are no smaller


def choose(model: LinearModel, tol: float = 1e-4) -> tuple[str, str]:
    """(strategy, why) for a model and a tolerance: see `fit`."""
    n, d, loss, penalty = model.n, model.d, model.loss, model.penalty
    plain = penalty.l1 == 0 and not penalty.positive
    if penalty.l1 == 0 and penalty.l2 == 0:
        if penalty.positive:
            return "gram", "least squares over w >= 0: one Gram matrix"
        return "newton", "no penalty: Newton's method in the space of the features"
    if loss.name == "squared" and not plain and d <= FEW:
        return "gram", f"squared loss with {d} <= {FEW} features: one Gram matrix"
    if loss.name == "squared" and plain and min(n, d) <= (most := FEW if sp.issparse(model.A) else MOST):
        what = f"{d} <= {most} features" if n >= d else f"{n} <= {most} samples"
        return "gram", f"squared loss with {what}: one Gram matrix"
    if loss.name == "squared" and plain and worth_it(model):
        return "krylov", "squared loss and an l2 penalty: Krylov spaces, for samples and features at once"
    if loss.gamma > 0 and plain and _few_features(model):
        if may_be_newton(model) and _over_samples_first(model, tol):
            return "dual", "coordinates are samples: passes cost less than Gram matrices"
        return "newton", f"smooth loss with {d} <= {FEW} features: Newton's method with one Gram matrix per step"
    if plain and has_straight_parts(model) and weak_enough(model):
        return "semismooth", "a weak penalty and losses with straight parts: Newton steps for the samples on bent ones"
    if loss.gamma > 0 and not plain and (penalty.l2 == 0 or model.intercept):
        return _over_features(model, tol)
    if loss.name == "squared" and penalty.l1 > 0 and n >= d:
        return _over_features(model, tol)
    if loss.gamma > 0 and not plain and d > n and _kappa(model) / loss.gamma > (HARD if loss.shape.logistic else EASY):
        return _over_features(model, tol)
    if may_be_interior(model) and _kappa(model) > (HARD if loss.shape.mirrored else KINKS):
        return "interior", f"a loss with kinks and {d} <= {FEW} features: one Gram matrix per step"
    return "dual", "coordinates are samples"


def _few_features(model: LinearModel) -> bool:
    """Whether dense matrices of the features are cheap."""
    return model.d <= FEW and (model.n >= model.d or model.d <= FEW // 4)


def may_be_interior(model: LinearModel) -> bool:
    """Whether interior-point steps apply, and are cheap."""
    return _few_features(model) and not _why_not(model, "interior")


def may_be_krylov(model: LinearModel) -> bool:
    """Whether steps over Krylov spaces apply, and a few are worth trying before a Gram matrix."""
    return not _why_not(model, "krylov") and worth_trying(model)


def may_be_smooth(model: LinearModel, tol: float) -> bool:
    """Whether all features of an elastic net are needed at once, and steps for the smooth part are a good beginning."""
    if model.loss.name != "squared" or min(model.penalty.l1, model.penalty.l2) == 0 or model.penalty.positive:
        return False
    return many_used(model, outside(model, model.certified_at_zero[1]), tol) and worth_it(model)


def _kappa(model: LinearModel) -> float:
    """Mean curvature of the dual's smooth part."""
    return float(model.problem.rows("rows").norms2().mean() / (model.penalty.l2 * model.total))


def may_be_newton(model: LinearModel) -> bool:
    """Whether Newton's method applies, is cheap, and may take over from steps over the samples."""
    return _few_features(model) and model.outputs == 1 and not _why_not(model, "newton")


def forecast_of_newton(model: LinearModel, tol: float) -> float:
    """What Newton's method with Gram matrices is expected to cost, in entries of sparse rows."""
    return steps_of_newton(tol) * passes_of_a_step(model) * _entries_of_a_pass(model) * model.outputs


def forecast_of_dual(model: LinearModel, tol: float) -> float:
    """The same for steps over the samples, which an intercept takes several runs of."""
    runs = 2 if model.intercept else 1
    passes = SHARE * _digits(tol) * math.log(10) * model.passes_over_samples()
    return runs * max(passes, 1.0) * _entries_of_a_pass(model) * model.outputs


def steps_of_newton(tol: float) -> float:
    """Steps that Newton's method is expected to take: two, and one more for every second digit."""
    return STEPS + MORE * _digits(tol)


def _entries_of_a_pass(model: LinearModel) -> float:
    """What a pass over the samples costs, in entries of sparse rows."""
    entries = float(model.problem.rows("rows").nnz)
    entry = 1.0 if sp.issparse(model.A) else ENTRY
    return entry * entries + (SAMPLE + (LOGISTIC if model.loss.shape.logistic else 0.0)) * model.n


def passes_of_newton(model: LinearModel, tol: float) -> float:
    """What Newton's method is expected to cost, in passes over the samples, by what either has to multiply.

    It takes two steps and one more for every second digit. Rows with many entries make Gram matrices costly. With an
    intercept, which takes several runs over the samples, half of it counts.
    """
    return steps_of_newton(tol) * passes_of_a_step(model) / (2 if model.intercept else 1)


def passes_of_a_step(model: LinearModel) -> float:
    """What a Newton step costs, in passes over the samples."""
    lengths = model.problem.rows("rows").lengths.astype(np.float64)
    entries = lengths.sum()
    entry, pairs = (1.0, PRODUCT * (lengths @ lengths) / 2) if sp.issparse(model.A) else (ENTRY, np.inf)
    pairs = min(pairs, BLOCKED * model.n * model.d**2 / 2)  # they may be made dense
    step = pairs + FACTOR * model.d**3 / 6 + PASSES * entry * entries
    return float(step / _entries_of_a_pass(model))


def _over_samples_first(model: LinearModel, tol: float) -> bool:
    """Whether some passes cost no more than a Newton step, or all that are expected clearly less than all of those.

    Not the latter with an intercept, whose runs nobody counts before.
    """
    step = passes_of_a_step(model)
    if model.intercept:
        return step >= 2 * TRIAL
    allowed = passes_of_newton(model, tol) / (CLEARLY * SHARE * _digits(tol) * math.log(10))
    return step >= TRIAL or (allowed > 1 and model.passes_over_samples() < allowed)  # an e-fold takes 1 at least


def _digits(tol: float) -> float:
    return max(-math.log10(max(tol, 1e-300)), 0.5)


def _over_features(model: LinearModel, tol: float) -> tuple[str, str]:
    """For a smooth loss and a penalty with corners."""
    plain = model.loss.name == "squared" and not model.intercept
    if plain and many_used(model, count := outside(model, model.certified_at_zero[1]), tol):
        return "primal", f"{count} features are outside of the l1 penalty at w = 0: coordinates are all features"
    return "working_set", "smooth loss and an l1 penalty or w >= 0: coordinates are features, some at a time"


def _why_not(model: LinearModel, name: str) -> str:
    """Why a strategy does not apply; empty if it does."""
    loss, penalty = model.loss, model.penalty
    plain = penalty.l1 == 0 and not penalty.positive
    none = penalty.l1 == 0 and penalty.l2 == 0
    if none and name in ("primal", "working_set"):
        return "there is no penalty"
    if none and plain and name == "gram":
        return "there is no penalty"
    if none and name == "gram" and model.d > MOST:
        return f"w >= 0 without a penalty needs a Gram matrix of all {model.d} features, at most {MOST}"
    if name == "gram" and loss.name != "squared":
        return "it is for the squared loss"
    if name == "newton" and not (loss.gamma > 0 and plain):
        return "it is for smooth losses with an l2 penalty or none"
    if name == "newton_cg" and not (loss.gamma > 0 and plain and penalty.l2 > 0):
        return "it is for smooth losses with an l2 penalty"
    if name == "krylov" and not (loss.name == "squared" and plain and penalty.l2 > 0):
        return "it is for the squared loss and an l2 penalty"
    if name == "semismooth" and not (has_straight_parts(model) and plain and penalty.l2 > 0):
        return "it is for smooth losses with straight parts and an l2 penalty"
    if name == "interior" and not (made_of_pieces(loss.shape) and plain and penalty.l2 > 0):
        return "it is for losses with kinks and an l2 penalty"
    if name in ("primal", "working_set") and loss.gamma == 0:
        return f"the loss {loss.name!r} has a kink"
    if name == "dual" and penalty.l2 == 0:
        return "the penalty has no l2 part"
    if name == "dual" and model.intercept and not plain:
        return "an intercept beside an l1 penalty or w >= 0 needs the features"
    return ""


def check_applies(model: LinearModel, name: str) -> None:
    """ValueError with what would apply, if this strategy does not."""
    wrong = _why_not(model, name)
    if not wrong:
        return
    others = [other for other in STRATEGIES[1:] if not _why_not(model, other)]
    if others:
        raise ValueError(
            f"strategy={name!r} does not apply here: {wrong}. Use strategy='auto', or one of {', '.join(others)}."
        )
    if model.loss.gamma > 0:
        what = _why_not(model, "gram") if model.loss.name == "squared" else "w >= 0 alone is for the squared loss"
        raise ValueError(f"no strategy applies here: {what}. Give a penalty.")
    cure = "a penalty with an l2 part" if model.penalty.l2 == 0 else "no intercept"
    if model.penalty.l2 == 0 and model.intercept:
        cure += " and no intercept"
    raise ValueError(
        f"no strategy applies here: the loss {model.loss.name!r} has a kink, and {_why_not(model, 'dual')}. Use a "
        f"smooth loss, or {cure}."
    )
