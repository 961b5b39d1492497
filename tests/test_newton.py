"""Newton's method for few features: where its steps lead and end, and the Gram matrices it needs."""

import itertools

import numpy as np
import pytest
from newton_cases import model_of, rare_features

import coordwise as cw
from coordwise.fitting import newton as module
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.newton import newton
from coordwise.fitting.rough import rough_start
from coordwise.kernels import Terms
from coordwise.lines import flattest
from coordwise.losses import LOSSES, get_loss

SMOOTH = [name for name, loss in LOSSES.items() if loss().gamma > 0]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_gap_can_be_recomputed(loss, intercept):
    model = model_of(loss, lam=1e-4, intercept=intercept)
    found = fit(model, tol=1e-9, strategy="newton")
    assert found.converged
    again = model.recertified(found.candidate)
    assert np.all(again.gap <= 1e-9 * model.scale)
    np.testing.assert_allclose(again.value, found.value, rtol=1e-14)
    np.testing.assert_array_equal(again.y, found.y)  # as they are, feasible
    np.testing.assert_allclose(again.gap, found.gap, rtol=0.1, atol=1e-14)
    if not intercept:
        assert model.problem.gap(found.w[:, 0], found.y[:, 0]) <= 1e-9 * model.scale[0]


@pytest.mark.parametrize("intercept", [False, True])
def test_steps_lead_to_dual_points_that_weak_penalties_do_not_spoil(intercept):
    model = model_of(lam=1e-9, intercept=intercept)
    best = fit(model, tol=1e-12, strategy="newton").value[0]
    found = fit(model, tol=1e-3, strategy="newton")
    assert found.converged
    excess = (found.value[0] - best) / model.scale[0]
    derivatives = model.from_primal(found.w, found.c)
    assert derivatives.gap[0] > 10 * found.gap[0]
    assert found.gap[0] / model.scale[0] >= excess


@pytest.mark.parametrize("intercept", [False, True])
def test_dual_variables_that_leave_their_domain_are_led_back(intercept, monkeypatch):
    """A step's y, moved into its domain, is no longer what the step's equations say, which weak penalties blow up; a
    solution with the same Hessian brings most of the gap down.
    """
    monkeypatch.setattr("coordwise.fitting.rough.CURVED", 60)  # a start that is rough enough
    model, steps = model_of(lam=1e-8, intercept=intercept), []
    plain = module._Output.step
    monkeypatch.setattr(module._Output, "step", lambda self, at: steps.append(plain(self, at)) or steps[-1])
    monkeypatch.setattr(module, "MOST", np.inf)  # all of them keep their Hessian
    w, *_ = rough_start(model, 0)
    list(newton(model, 1e-8, w=w))
    better = 0
    for step in steps:
        y, dual, v = model.dual_at(step.y)
        if np.array_equal(y, step.y):
            np.testing.assert_allclose(v[:, 0], step.aim, atol=1e-15)
            continue
        there = model.dual_at(step.mended(model, y[:, 0], v[:, 0])[:, None])
        far, near = (np.linalg.norm(moments[:, 0] - step.aim) for moments in (v, there[2]))
        better += bool(near < far / 2 and there[1][0] < dual[0])
    assert better >= 2


@pytest.mark.parametrize(("outputs", "intercept"), [(1, False), (1, True), (3, False)])
def test_mending_saves_steps_and_claims_no_more_than_is_true(outputs, intercept, monkeypatch):
    monkeypatch.setattr("coordwise.fitting.rough.CURVED", 60)  # a start that is rough enough
    A, b = rare_features()
    others = [np.where(A @ np.random.default_rng(k).standard_normal(30) > 1, 1.0, -1.0) for k in range(1, outputs)]
    tols, saved = (1e-1, 1e-2, 1e-3, 1e-4), []
    for lam in (1e-8, 1e-7, 1e-6):
        model = LinearModel(cw.ERM(A, np.column_stack([b, *others]), loss="logistic", lam=lam), intercept)
        w, *_ = rough_start(model, 0)
        mended = [list(newton(model, tol, w=w)) for tol in tols]
        with monkeypatch.context() as patch:
            patch.setattr(module, "MENDS", 0)
            plain = [list(newton(model, tol, w=w)) for tol in tols]
        saved += [len(without) - len(found) for found, without in zip(mended, plain, strict=True)]
        for tol, found in zip(tols, mended, strict=True):
            assert np.all(found[-1].gap <= tol * model.scale)
            again = model.recertified(found[-1])
            np.testing.assert_allclose(again.gap, found[-1].gap, rtol=1e-6, atol=1e-13)
            np.testing.assert_array_equal(again.y, found[-1].y)
    assert min(saved) >= 0
    assert sum(saved) >= 2


def test_hessians_of_many_outputs_are_not_kept(monkeypatch):
    model, kept = model_of(lam=1e-6), []
    plain = module._Output.step

    def step(self, at):
        found = plain(self, at)
        kept.append(found.quadratic is not None)
        return found

    monkeypatch.setattr(module._Output, "step", step)
    list(newton(model, 1e-2))
    assert kept[-1]
    assert not kept[0]  # far from the solution
    kept.clear()
    monkeypatch.setattr(module, "ROOM", 30**2 - 1)
    list(newton(model, 1e-2))
    assert not any(kept)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH)
def test_every_candidate_has_the_gap_it_claims_and_values_fall(loss, intercept):
    model = model_of(loss, lam=1e-5, intercept=intercept)
    w, *_ = rough_start(model, 0)
    found = list(newton(model, 1e-9, w=w))
    assert found[0].value <= model.scale
    for before, after in itertools.pairwise(found):
        assert after.value[0] <= before.value[0] * (1 + 1e-12)
        assert after.gap[0] <= before.gap[0]
    for candidate in found:
        again = model.recertified(candidate)
        np.testing.assert_allclose(again.value, candidate.value, rtol=1e-9)
        np.testing.assert_allclose(again.gap, candidate.gap, rtol=1e-6, atol=1e-13)


def test_a_start_that_is_worse_than_zero_is_not_used():
    model = model_of()
    far = model.from_primal(1e3 * np.ones((30, 1)))
    assert far.value[0] > model.scale[0]
    found = fit(model, tol=1e-8, strategy="newton", start=far)
    assert found.converged
    assert found.iterations < 30


@pytest.mark.parametrize("sizes", [(5, 50, 500), (1, 10, 100), (30, 300, 3000)])
def test_samples_on_the_far_wrong_side_do_not_hold_up_the_others(monkeypatch, sizes):
    """Rare features whose samples are all far out: Newton's step for one of them alone has any length."""
    monkeypatch.setattr(module, "WORSE", np.inf)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 7))
    A[:, 4:] = 0
    b = np.where(A[:, :4] @ [1, -1, 2, 0.5] + rng.logistic(size=3000) > 0, 1.0, -1.0)
    w = np.array([[0.5, -0.5, 1.0, 0.2, 12 / sizes[0], 18 / sizes[1], 30 / sizes[2]]]).T
    for j, size in enumerate(sizes):
        few = slice(20 * j, 20 * j + 20)
        A[few, 4 + j] = size
        b[few] = np.where(np.arange(20) % 2, 1.0, -1.0)
    model = LinearModel(cw.ERM(A, b, loss="logistic", lam=1e-4), False)
    best = list(newton(model, 1e-12))[-1].value

    def steps():
        return sum(bool(found.value > best + 1e-6 * model.scale) for found in newton(model, 1e-8, w=w))

    led = steps()
    monkeypatch.setattr(module, "aimed", lambda t, y: np.zeros_like(t))
    assert led <= 4
    assert steps() > 1.5 * led


@pytest.mark.parametrize("weighted", [False, True])
def test_curvatures_that_lead_across_lead_each_sample_by_itself_to_the_other_side(weighted):
    """The minimum of phi(t) + phi'(t) (x - t) + h/2 (x - t)^2 is at a score of 1 on the right side."""
    rng = np.random.default_rng(1)
    t, b = 4 * rng.standard_normal(200), rng.choice([-1.0, 1.0], 200)
    s = rng.integers(1, 4, 200).astype(float) if weighted else None
    terms = Terms(get_loss("logistic").shape, 1.0, b[:, None], s)
    y = terms.derivative(t[:, None])[:, 0]
    h = module.aimed(t, y)
    wrong = b * t < 0
    assert np.all(h[~wrong] == 0)
    np.testing.assert_allclose((t - y / np.where(wrong, h, 1.0))[wrong], b[wrong])


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("weighted", [False, True])
def test_dual_variables_of_a_step_lead_to_the_point_it_leads_to(monkeypatch, loss, weighted):
    """y_i = s_i phi' - h_i move_i solves (1/W) A'y + l2 (w - u) = 0, whatever the curvatures h are."""
    weights = np.random.default_rng(2).integers(0, 3, 4000).astype(float) if weighted else None
    model = model_of(lam=1e-3, loss=loss, weights=weights)
    w = np.random.default_rng(3).standard_normal((model.d, 1))
    c = np.zeros(1)
    t = model.scores(w, c)
    full = []
    times = module._Step.times

    def watched(self, length):
        full.append(self)
        return times(self, length)

    monkeypatch.setattr(module._Step, "times", watched)
    taken = module._Output(model, 0, 1e-6, model.problem.rows("rows").norms2(), rough=True).step(
        module._here(model, w, c, t, model.value(w, t))
    )
    residual = model.problem.moments(taken.y) + model.penalty.l2 * (w - full[-1].u[:, None])
    assert np.abs(residual).max() <= 1e-12 * max(1.0, np.abs(w).max())


@pytest.mark.parametrize(("tol", "size", "again"), [(1e-3, 1.0, 0), (1e-12, 1.0, 1), (1e-3, 1e9, 1)])
def test_certificates_are_computed_again_where_rounding_errors_may_matter(monkeypatch, tol, size, again):
    model = model_of(lam=1e-3)
    monkeypatch.setattr(module, "WORSE", np.inf)
    calls = []
    recertified = LinearModel.recertified
    monkeypatch.setattr(LinearModel, "recertified", lambda *a: (calls.append(1), recertified(*a))[1])
    found = list(newton(model, tol, w=size * np.ones((30, 1))))[-1]
    assert len(calls) == again
    exact = recertified(model, found)
    assert exact.gap <= tol * model.scale
    np.testing.assert_allclose(exact.value, found.value, rtol=0, atol=1e-5 * tol * model.scale[0] + 1e-15)


def test_rounding_errors_of_features_that_cancel_are_counted():
    rng = np.random.default_rng(2183)
    size = 10 ** rng.uniform(-8, -3)
    rng.uniform(-12, -5)
    l2 = 10 ** rng.uniform(-18, -8)
    rng.choice(3)
    x, z = rng.standard_normal((200, 2)), rng.standard_normal((200, 2))
    b = np.sign(z @ [1, -1] + x @ [1, 1] + rng.standard_normal(200))
    model = LinearModel(cw.ERM(np.hstack([x, x + size * z]), b, loss="logistic", lam=l2), True)
    found = fit(model, tol=2.966e-9, strategy="newton")
    claimed = np.maximum(found.gap, 2.966e-9 * model.scale)
    assert model.recertified(found.candidate).gap <= (1 + 1e-6) * claimed


def test_steps_that_do_not_descend_end_where_the_line_is_flat(monkeypatch):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((300, 5))
    b = A @ rng.standard_normal(5) + rng.standard_t(2, 300)
    model = LinearModel(cw.ERM(A, b, cw.losses.Huber(1e-3), cw.penalties.L2(1e-7)), True)
    looked = []

    def watched(fall, rate):
        looked.append(flattest(fall, rate))
        return looked[-1]

    monkeypatch.setattr(module, "flattest", watched)
    found = list(newton(model, 1e-6))
    assert np.all(np.diff([candidate.value[0] for candidate in found]) <= 1e-15)
    assert found[-1].gap <= 1e-6 * model.scale
    assert min(looked) < 1


def test_what_rounding_has_ruined_is_not_kept(monkeypatch):
    model = model_of(lam=1e-9)
    monkeypatch.setattr(module._Rounding, "matters", lambda self, here, tol: True)
    monkeypatch.setattr(model, "scores", lambda w, c: np.full((model.n, 1), 1e9))  # nothing like what steps added up to
    steps = list(itertools.islice(newton(model, 0.2), 1, 12))
    assert any(not found.w.any() for found in steps)
    assert all(found.gap <= model.scale for found in steps)


@pytest.mark.parametrize("lam", [1e-2, 1e-9])
def test_values_fall_from_far_away(monkeypatch, lam):
    model = model_of(lam=lam)
    monkeypatch.setattr(module, "WORSE", np.inf)
    far = model.from_primal(np.random.default_rng(0).standard_normal((30, 1)) * 50)
    values = [found.value[0] for found in newton(model, 1e-9, start=far)]
    assert np.all(np.diff(values) <= 1e-12)
    assert len(values) < 30


def test_steps_along_exponential_tails_are_stretched(monkeypatch):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((3000, 10))
    b = np.sign(A @ rng.standard_normal(10))  # separable: with l2 -> 0 all losses become exponentials
    model = LinearModel(cw.ERM(A, b, loss="logistic", lam=1e-9), False)
    stretching = len(list(newton(model, 1e-8)))
    monkeypatch.setattr(module, "flattest", lambda fall, rate, steep: 1.0)
    assert stretching < 0.7 * len(list(newton(model, 1e-8)))


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_curvatures_are_those_of_the_loss(loss, weighted):
    rng = np.random.default_rng(0)
    phi = get_loss(loss)
    t = 3 * rng.standard_normal((500, 2))
    b = rng.choice([-1.0, 1.0], (500, 2)) if phi.classification else rng.standard_normal((500, 2))
    s = rng.integers(0, 3, 500).astype(float) if weighted else None
    terms = Terms(phi.shape, 0.25, b, s)
    expected = 0.25 * phi.second_derivative(t, b, 1.0 if s is None else s[:, None])
    np.testing.assert_allclose(terms.second_derivative(t), expected, rtol=1e-9)


def test_singular_hessians_have_a_direction():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((5, 9))
    H = B.T @ B
    g = H @ rng.standard_normal(9)
    found = module.direction(H, g)
    np.testing.assert_allclose(H @ found, g, atol=1e-9)


def separable(n=600, d=200):
    """A model whose samples bend and unbend from Newton step to Newton step."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    for j in range(1, d):
        A[:, j] = 0.7 * A[:, j - 1] + np.sqrt(0.51) * A[:, j]
    b = np.sign(A[:, ::10] @ rng.standard_normal(len(A[0, ::10])))
    return LinearModel(cw.ERM(A, b, loss="squared_hinge", lam=1e-5), False)


def test_steps_that_lead_nowhere_are_left_for_the_samples(monkeypatch):
    model = separable()
    found = fit(model, tol=1e-6, strategy="newton", max_passes=1e4)
    assert found.converged
    assert found.strategy.startswith("dual: ")
    assert found.gap[0] <= 1e-6 * found.scale[0]
    monkeypatch.setattr("coordwise.fitting.trial.FIRST", 1000)
    alone = fit(model, tol=1e-6, strategy="newton", max_passes=1e4)
    assert alone.strategy == "newton: as asked"
    steps = int(found.strategy.split()[1])
    assert steps < 0.5 * alone.iterations
    if alone.converged:
        np.testing.assert_allclose(found.value, alone.value, atol=1e-6 * model.scale[0])


@pytest.mark.parametrize("allowed", [5, 12, 20, 60])
def test_few_passes_are_kept_where_steps_lead_nowhere(allowed):
    found = fit(separable(), tol=1e-9, strategy="newton", max_passes=allowed)
    assert found.passes <= allowed + 2
    assert np.isfinite(found.gap[0])


def test_newtons_method_goes_on_where_the_samples_are_no_better(monkeypatch):
    monkeypatch.setattr("coordwise.fitting.runners.passes_of_a_step", lambda model: 0.01)
    found = fit(separable(), tol=1e-6, strategy="newton", max_passes=1e4)
    assert found.strategy == "newton: as asked"
    assert found.iterations > 20


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_what_moving_dual_variables_costs_is_known_without_a_product_where_samples_have_nothing_in_common(
    loss, weighted
):
    rng = np.random.default_rng(0)
    n = 50
    b = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    s = rng.integers(1, 4, n).astype(float) if weighted else None
    model = LinearModel(cw.ERM(np.diag(1 + rng.random(n)), b, loss=loss, lam=1e-2, sample_weight=s), True)
    output = module._Output(model, 0, 1e-3, model.problem.rows("rows").norms2(), rough=False)
    y = 3 * rng.standard_normal((n, 1))
    moved = np.clip(y, *model.loss.domain(model.b, model.s)) - y
    assert np.count_nonzero(moved) > n / 4
    expected = np.sum(model.problem.moments(moved) ** 2) / 2 / model.penalty.l2
    assert output.spoilt(y) == pytest.approx(expected, rel=1e-12)
    assert output.spoilt(y + moved) == 0


@pytest.mark.parametrize(("loss", "intercept"), [("logistic", False), ("logistic", True), ("squared_hinge", True)])
def test_dual_variables_that_are_spoilt_are_not_asked(loss, intercept, monkeypatch):
    """Which saves products, and no step is lost by it."""
    asked = []
    mended = module._mended

    def counted(*args):
        asked[-1] += 1
        return mended(*args)

    monkeypatch.setattr(module, "_mended", counted)
    model, found = model_of(loss, lam=1e-9, intercept=intercept), []
    for spoilt in (module._Output.spoilt, lambda self, y: 0.0):
        monkeypatch.setattr(module._Output, "spoilt", spoilt)
        asked.append(0)
        found.append(fit(model, tol=1e-2, strategy="newton"))
        assert found[-1].converged
    assert asked[0] < asked[1]
    assert found[0].iterations == found[1].iterations


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_tiny_weights_divide_nothing_by_zero(loss):
    A, b = rare_features(n=300)
    problem = cw.ERM(A, b, loss=loss, penalty=cw.penalties.L2(1e-50), sample_weight=np.full(300, 1e-140))
    assert np.isfinite(fit(LinearModel(problem, True), tol=1e-2, strategy="newton", max_passes=5).value[0])


def test_dual_variables_of_which_many_were_moved_are_not_mended_in_vain(monkeypatch):
    """What mending leaves of a gap is about the share that had to be moved."""
    model = model_of(lam=1e-7)
    w, *_ = rough_start(model, 0)
    counted, mended = [], module._Taken.mended

    def watched(self, *args):
        counted[-1] += 1
        return mended(self, *args)

    monkeypatch.setattr(module._Taken, "mended", watched)
    steps = []
    for moved in (module.MOVED, 0.0):
        monkeypatch.setattr(module, "MOVED", moved)
        counted.append(0)
        steps.append([len(list(newton(model, tol, w=w))) for tol in (0.3, 0.1, 0.03, 1e-2, 1e-3)])
    assert counted[0] < counted[1]
    assert steps[0] == steps[1]
