"""Losses and penalties of one's own: the same as those of the library, with a gap, and formulas that contradict."""

import signal

import numpy as np
import pytest
from conftest import STORAGES, unequal_rows
from custom_cases import Hinge, Huber, Net
from problem_cases import refused

import coordwise as cw
from coordwise.losses import LOSSES, check

N, D = 80, 12
A = unequal_rows(N, D, spread=1.0)
B = A @ np.random.default_rng(1).standard_normal(D)
LABELS = np.where(B > 0, 1.0, -1.0)
LOSS_PAIRS = {"huber": (Huber(), cw.losses.Huber(1.0), B), "hinge": (Hinge(), cw.losses.Hinge(), LABELS)}
L2, NET, L1 = cw.penalties.L2(0.05), cw.penalties.ElasticNet(0.02, 0.05), cw.penalties.L1(0.02)
PENALTY_PAIRS = {"net": (Net(0.02, 0.05), NET), "l2": (Net(0.0, 0.05), L2), "l1": (Net(0.02, 0.0), L1)}
STEPS = dict(tol=0, max_passes=6, random_state=4, record_growth=0)


def same_runs(one, other, method, **options):
    expected, found = cw.solve(one, method, **STEPS, **options), cw.solve(other, method, **STEPS, **options)
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.history.gap, expected.history.gap, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(found.history.primal, expected.history.primal, rtol=1e-8)
    assert np.linalg.norm(found.x) > 1e-3


@pytest.mark.parametrize("loss", LOSS_PAIRS)
@pytest.mark.parametrize("penalty", [L2, NET], ids=["l2", "net"])
@pytest.mark.parametrize("method", ["nu_acdm", "nu_acdm_ns", "approx", "sdca"])
def test_duals_of_losses_take_the_steps_of_the_library(loss, penalty, method):
    mine, theirs, b = LOSS_PAIRS[loss]
    weights = np.random.default_rng(2).integers(0, 3, N).astype(float)
    for s in (None, weights):
        one, other = (cw.ERM(A, b, loss=each, penalty=penalty, sample_weight=s) for each in (theirs, mine))
        same_runs(one.dual(), other.dual(), method)


@pytest.mark.parametrize("penalty", [L2, NET, L1], ids=["l2", "net", "l1"])
@pytest.mark.parametrize("method", ["nu_acdm", "nu_acdm_ns", "apcg", "sdca"])
def test_primals_of_losses_take_the_steps_of_the_library(penalty, method):
    if method == "apcg" and penalty is L1:
        return  # it needs strong convexity
    one, other = (cw.ERM(A, B, loss=each, penalty=penalty) for each in LOSS_PAIRS["huber"][1::-1])
    same_runs(one.primal(), other.primal(), method)


@pytest.mark.parametrize("penalty", PENALTY_PAIRS)
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "hinge"])
def test_penalties_take_the_steps_of_the_library(penalty, loss):
    mine, theirs = PENALTY_PAIRS[penalty]
    b = LABELS if LOSSES[loss].classification else B
    one, other = (cw.ERM(A, b, loss=loss, penalty=each) for each in (theirs, mine))
    if penalty != "l1":
        same_runs(one.dual(), other.dual(), "nu_acdm_ns")
    if LOSSES[loss]().gamma > 0 and penalty != "l2":  # which enters the library's gradient steps instead
        same_runs(one.primal(), other.primal(), "nu_acdm_ns")


@pytest.mark.parametrize("loss", LOSS_PAIRS)
@pytest.mark.parametrize("penalty", PENALTY_PAIRS)
def test_both_together_converge_with_the_gap_of_the_formula(loss, penalty):
    mine, theirs, b = LOSS_PAIRS[loss]
    net = PENALTY_PAIRS[penalty][0]
    problem = cw.ERM(A, b, loss=mine, penalty=net)
    objectives = [problem.dual()] if penalty != "l1" else []
    objectives += [problem.primal()] if loss == "huber" else []
    best = cw.ERM(A, b, loss=theirs, penalty=PENALTY_PAIRS[penalty][1])
    for objective in objectives:
        found = cw.solve(objective, tol=1e-6, max_passes=20000)
        assert found.converged
        primal = mine.value(A @ found.w, b).mean() + net.value(found.w).sum()
        dual = mine.conjugate(found.y, b).mean() + net.conjugate(-A.T @ found.y / N).sum()
        np.testing.assert_allclose(found.primal, primal, rtol=1e-12)
        np.testing.assert_allclose(found.gap, primal + dual, rtol=1e-3, atol=1e-12)
        np.testing.assert_allclose(problem.gap(found.w, found.y), primal + dual, rtol=1e-9, atol=1e-14)
        assert 0 <= found.gap <= 1e-6 * mine.value(np.zeros(N), b).mean()
        np.testing.assert_allclose(best.value(found.w), primal, rtol=1e-12)
        np.testing.assert_allclose(best.gap(found.w, found.y), primal + dual, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
def test_any_storage_and_several_outputs(storage):
    sparse = unequal_rows(N, D, seed=3, density=0.4, spread=1.0)
    b = np.column_stack([B, B[::-1]])
    for by in ("dual", "primal"):
        problem = cw.ERM(STORAGES[storage](sparse), b, loss=Huber(), penalty=Net(0.02, 0.05))
        found = cw.solve(getattr(problem, by)(), tol=1e-6, max_passes=20000)
        expected = cw.solve(cw.ERM(sparse, b, loss=cw.losses.Huber(1.0), penalty=NET).dual(), tol=1e-8)
        assert found.converged
        assert np.all(np.abs(found.primal - expected.primal) <= found.gap + expected.gap)


class NoConjugate(Net):
    derivative_of_conjugate = cw.penalties.CustomPenalty.derivative_of_conjugate


class Lower(Huber):
    """Shifted down, so that D(0) is positive."""

    def value(self, t, b):
        return super().value(t, b) - 2

    def conjugate(self, y, b):
        return super().conjugate(y, b) + 2


class Lifted(Net):
    """Shifted up."""

    def value(self, w):
        return super().value(w) + 3

    def conjugate(self, v):
        return super().conjugate(v) - 3


@pytest.mark.parametrize("net", [Net(0.02, 0.05), Net(0.02, 0.0), Lifted(0.02, 0.05), Lifted(0.02, 0.0)])
@pytest.mark.parametrize("loss", [Huber(), Lower()])
def test_gaps_are_right_where_the_dual_is_not_0_at_0(net, loss):
    problem = cw.ERM(A, B, loss=loss, penalty=net)
    seen = []
    options = dict(tol=0, max_passes=8, record_every=0.5, record_growth=0)
    cw.solve(problem.primal(), "sdca", callback=lambda p: seen.append((p.value, p.gap)), **options)
    plain = cw.ERM(A, B, loss=cw.losses.Huber(1.0), penalty=cw.penalties.ElasticNet(0.02, net.strong_convexity))
    best = cw.solve(plain.primal(), tol=1e-12).primal - 2 * isinstance(loss, Lower) + 3 * D * isinstance(net, Lifted)
    assert len(seen) > 5
    for value, gap in seen:
        assert value - best <= gap + 1e-10
    assert seen[-1][1] < seen[0][1]


def test_what_is_missing_is_said():
    with refused(r"^loss='my hinge' has a kink, so its primal has no coordinate gradients"):
        cw.ERM(A, LABELS, loss=Hinge(), lam=0.1).primal()
    with refused(r"^b holds labels other than -1 and \+1.*loss='my hinge' needs"):
        cw.ERM(A, B, loss=Hinge(), lam=0.1)
    with refused(
        r"^penalty=Net\(\) is not known to be strongly convex.*Use problem.primal\(\), or set strong_convexity"
    ):
        cw.ERM(A, B, penalty=Net(0.1, 0.0)).dual()
    with refused(r"^NoConjugate has no derivative_of_conjugate, which ERM.dual needs", NotImplementedError):
        cw.solve(cw.ERM(A, B, penalty=NoConjugate(0.1, 0.1)).dual())
    with refused(r"^smoothing is for penalty='l1'"):
        cw.ERM(A, B, penalty=Net(0.1, 0.1)).dual(smoothing=0.1)
    with refused(r"^lam, l1_ratio and positive belong to a penalty given by name"):
        cw.ERM(A, B, penalty=Net(0.1, 0.1), lam=0.1)
    with refused(r"^loss holds Huber; several losses must be losses of coordwise.losses", TypeError):
        cw.ERM(A, B, loss=[Huber()], loss_codes=np.zeros(N, int), lam=0.1)


def changed(of, **functions):
    """A loss or penalty with other formulas."""
    return type(of.__name__, (of,), functions)


@pytest.mark.parametrize(
    ("loss", "wrong"),
    [
        (changed(Huber, derivative=lambda s, t, b: np.clip(t - b, -1, 1.1))(), "derivative"),
        (changed(Huber, derivative=lambda s, t, b: np.clip(b - t, -1, 1))(), "derivative"),
        (changed(Huber, conjugate=lambda s, y, b: np.where(np.abs(y) <= 1, y**2 / 2 - b * y, np.inf))(), "conjugate"),
        (changed(Huber, conjugate=lambda s, y, b: np.where(np.abs(y) <= 1, y**2 + b * y, np.inf))(), "conjugate"),
        (changed(Huber, conjugate=lambda s, y, b: y**2 / 2 + b * y)(), "domain"),
        (changed(Huber, domain=lambda s, b: (-np.inf, np.inf))(), "domain"),
        (changed(Huber, domain=lambda s, b: (-2.0, 2.0))(), "domain"),
        (changed(Huber, domain=lambda s, b: (-1.0, 0.5))(), "domain"),
        (changed(Huber, prox=lambda s, t, step, b: b + (t - b) / (1 + step))(), "prox"),
        (changed(Huber, prox=lambda s, t, step, b: t)(), "prox"),
        (changed(Huber, smoothness=0.5)(), "smoothness"),
        (changed(Hinge, smoothness=1.0)(), "smoothness"),
        (changed(Hinge, prox=lambda s, t, step, b: b * np.maximum(b * t, 1.0))(), "prox"),
        (changed(Hinge, conjugate=lambda s, y, b: np.where(np.abs(y) <= 1, b * y, np.inf))(), "domain"),
        (changed(Huber, value=lambda s, t, b: np.minimum(np.abs(t - b), 1.0))(), "value"),
        (changed(Net, prox=lambda s, t, step: t / (1 + step))(0.1, 1.0), "prox"),
        (changed(Net, conjugate=lambda s, v: v**2 / 2)(0.1, 1.0), "conjugate"),
        (changed(Net, derivative_of_conjugate=lambda s, v: v)(0.1, 1.0), "derivative_of_conjugate"),
        (changed(Net, domain_of_conjugate=lambda s: (-1.0, 1.0))(0.1, 0.0), "domain_of_conjugate"),
        (changed(Net, value=lambda s, w: -np.abs(w))(0.1, 0.0), "value"),
    ],
)
def test_check_says_which_formula_is_wrong(loss, wrong):
    with refused(rf"^{loss!r}: ".replace("(", r"\(").replace(")", r"\)") + rf"{wrong} is ") as found:
        check(loss)
    others = {"derivative", "conjugate", "domain", "prox", "smoothness", "value", "domain_of_conjugate"} - {wrong}
    assert not any(f" {other} is wrong" in str(found.value) for other in others)


def test_check_finds_negative_losses():
    with refused(r"^Lower\(\): value is negative, -2 at t=-1\.3 \(b=-1\.3\)\.$"):
        check(Lower())


def test_check_finds_too_much_strong_convexity():
    class Hopeful(Net):
        def __init__(self):
            super().__init__(0.1, 1.0)

        def value(self, w):
            return 0.1 * np.abs(w) + w**2 / 4

    with refused(r"Hopeful\(\): .*strong_convexity is 1, but value - .* is not convex"):
        check(Hopeful())


@pytest.mark.parametrize("loss", [Huber(), Hinge(), Net(0.3, 0.0), Net(0.3, 0.7), Net(0.0, 2.0)], ids=repr)
def test_check_finds_nothing_in_right_formulas(loss):
    check(loss)
    if isinstance(loss, Huber):
        check(loss, targets=[-100.0, 0.3])


@pytest.mark.parametrize("loss", LOSSES)
def test_check_finds_nothing_in_the_losses_of_the_library(loss):
    check(LOSSES[loss]())


def test_formulas_that_contradict_each_other_end_a_run_with_an_error():
    wrong = changed(Huber, conjugate=lambda s, y, b: np.where(np.abs(y) <= 1, y**2 / 4 + b * y, np.inf))()
    for by in ("dual", "primal"):
        with refused(r"^The formulas of Huber\(\) contradict each other.*coordwise.losses.check says which"):
            cw.solve(getattr(cw.ERM(A, B, loss=wrong, lam=0.1), by)(), tol=1e-6)
    with refused(r"^value of Huber\(\) returned shape \(\) for arrays of shape"):
        cw.ERM(A, B, loss=changed(Huber, value=lambda s, t, b: np.sum(t))(), lam=0.1).value(np.zeros(D))


def test_a_start_outside_of_the_domain_is_moved_into_it():
    class Positive(cw.penalties.CustomPenalty):
        strong_convexity = 0.2

        def value(self, w):
            return np.where(w >= 0, 0.1 * w**2, np.inf)

        def conjugate(self, v):
            return 2.5 * np.maximum(v, 0.0) ** 2

        def derivative_of_conjugate(self, v):
            return 5 * np.maximum(v, 0.0)

        def prox(self, t, step):
            return np.maximum(t, 0.0) / (1 + 0.2 * step)

    check(Positive())
    problem = cw.ERM(A, B, penalty=Positive())
    found = cw.solve(problem.primal(), tol=1e-9, x0=-np.ones(D))
    plain = cw.solve(cw.ERM(A, B, lam=0.2, positive=True).primal(), tol=1e-9)
    assert found.converged
    np.testing.assert_allclose(found.x, plain.x, atol=1e-4)


@pytest.mark.parametrize("number", ["a", None, -1.0])
def test_constants_that_are_no_numbers(number):
    penalty = Net(0.1, 0.1)
    penalty.strong_convexity = number
    with pytest.raises((TypeError, ValueError), match=r"^strong_convexity"):
        cw.ERM(A, B, penalty=penalty)
    with pytest.raises((TypeError, ValueError), match=r"^smoothness"):
        cw.solve(cw.ERM(A, B, loss=changed(Huber, smoothness=number)(), lam=0.1).dual())
    with pytest.raises(TypeError, match=r"^loss must be a loss or a CustomPenalty, not "):
        check(3)
    with pytest.raises(TypeError, match=r"^loss is the class Huber; make a loss of it"):
        cw.ERM(A, B, loss=Huber, lam=0.1)
    for offset in ("a", [1.0, 2.0], np.nan):
        with pytest.raises((TypeError, ValueError), match=r"^offset"):
            cw.ERM(A, B, lam=0.1).primal(offset=offset)


def test_errors_and_ctrl_c_in_formulas_end_a_run():
    calls = []

    def prox(self, t, step, b):
        calls.append(t)
        if len(calls) > 500:
            raise KeyError("of the formula")
        return Huber.prox(self, t, step, b)

    with pytest.raises(KeyError, match="of the formula"):
        cw.solve(cw.ERM(A, B, loss=changed(Huber, prox=prox)(), lam=0.1).dual(), "nu_acdm", tol=0)
    assert len(calls) == 501

    def interrupted(self, t, step, b):
        calls.append(t)
        if len(calls) == 1500:
            signal.raise_signal(signal.SIGINT)
        return Huber.prox(self, t, step, b)

    problem = cw.ERM(A, B, loss=changed(Huber, prox=interrupted)(), lam=1e-6)
    with pytest.raises(cw.Interrupted) as stop:
        cw.solve(problem.dual(), "nu_acdm", tol=0)
    result = stop.value.result
    assert result.status == "interrupted"
    np.testing.assert_allclose(result.gap, problem.gap(result.w, result.y), rtol=1e-6)
