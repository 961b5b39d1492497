"""Ridge regression over Krylov spaces."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import interruption

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.krylov import LOOK, Run, krylov, worth_it
from coordwise.fitting.model import LinearModel
from coordwise.fitting.path import path
from coordwise.fitting.strategies import choose
from coordwise.results import Status


def model_of(l2=1e-4, n=80, d=50, *, outputs=1, intercept=False, weighted=False, sparse=False):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) * np.logspace(0, -2, d)
    b = rng.standard_normal((n, outputs)) + 1
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    A = sp.csr_array(A) if sparse else A
    return LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(l2), sample_weight=weights), intercept)


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
@pytest.mark.parametrize("d", [50, 120], ids=["tall", "wide"])
def test_each_step_minimises_p_over_its_space_and_d_over_a_line(weighted, intercept, d):
    model = model_of(1e-2, d=d, weighted=weighted, intercept=intercept)
    run = Run(model)
    s = np.ones(model.n) if model.weights is None else model.weights
    B, f = np.sqrt(s)[:, None] * model.A, np.sqrt(s) * model.b[:, 0]
    squares = (B**2).sum(0)
    if intercept:
        q = np.sqrt(s) / np.linalg.norm(np.sqrt(s))
        B, f = B - np.outer(q, q @ B), f - q * (q @ f)
    shift = model.penalty.l2 * model.total
    H, M = B.T @ B + shift * np.eye(model.d), np.diag((squares + shift) ** -0.5)
    vectors = [M @ (B.T @ f)]
    for _ in range(5):
        vectors.append(M @ (H @ vectors[-1]))
    space = np.linalg.qr(np.stack([v / np.linalg.norm(v) for v in vectors], axis=1))[0]

    def dual(x):
        return x @ x / 2 - x @ f + np.sum((B.T @ x) ** 2) / 2 / shift

    def variables():
        return run.size[0] * run.x[0]

    for k in range(1, 7):
        before, gap = variables(), run.gap[0]
        run.step()
        K = space[:, :k]
        w = K @ np.linalg.solve(K.T @ H @ K, K.T @ (B.T @ f))
        np.testing.assert_allclose(run.weights[:, 0], w, rtol=1e-6, atol=1e-8)
        x, r = variables(), f - B @ w
        np.testing.assert_allclose(run.dual_variables[:, 0], -np.sqrt(s) * x, rtol=1e-12)
        on_line = [dual(before + length * (r - before)) for length in np.linspace(-2, 3, 501)]
        assert dual(x) <= min(on_line) + 1e-12 * abs(min(on_line))
        value = np.sum(r**2) / 2 + shift / 2 * w @ w
        assert run.gap[0] == pytest.approx((value + dual(x)) / model.total, rel=1e-8)
        assert run.gap[0] <= gap


def test_smoothed_dual_variables_are_those_of_a_minimal_residual_method(monkeypatch):
    """Without a preconditioner, and with a weak penalty, they minimise |B'x - shift w| over the same space."""
    monkeypatch.setattr("coordwise.fitting.krylov.ROOT", 0.0)
    model = model_of(1e-9, n=60, d=40)
    run = Run(model)
    B, f = model.A, model.b[:, 0] / run.size[0]
    vectors = [B.T @ f]
    for _ in range(5):
        vectors.append(B.T @ (B @ vectors[-1]))
    space = np.linalg.qr(np.stack([v / np.linalg.norm(v) for v in vectors], axis=1))[0]
    for k in range(1, 6):
        run.step()
        C = B.T @ B @ space[:, :k]
        least = np.linalg.norm(B.T @ f - C @ np.linalg.lstsq(C, B.T @ f, rcond=None)[0])
        assert np.linalg.norm(run.image[0]) <= least * (1 + 1e-3)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
def test_solutions_are_those_of_a_gram_matrix(sparse, weighted, intercept):
    model = model_of(outputs=3, intercept=intercept, weighted=weighted, sparse=sparse)
    found = fit(model, tol=1e-12, strategy="krylov")
    other = fit(model, tol=1e-12, strategy="gram")
    assert found.converged
    np.testing.assert_allclose(found.w, other.w, atol=1e-4 * np.abs(other.w).max())
    np.testing.assert_allclose(found.value, other.value, rtol=1e-10)
    assert np.all(np.abs(found.y.sum(0)) < 1e-10) or not intercept


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
def test_it_goes_on_from_a_start(weighted, intercept):
    model = model_of(1e-5, n=300, d=200, outputs=2, weighted=weighted, intercept=intercept)
    whole = fit(model, tol=1e-10, strategy="krylov")
    assert whole.converged
    for far in (1e-2, 1e-6):  # better than what the first steps from zeros reach
        begun = fit(model, tol=far, strategy="krylov")
        again = fit(model, tol=1e-10, strategy="krylov", start=begun.candidate)
        assert again.converged
        assert again.strategy.startswith("krylov")
        assert not again.results  # no steps over the samples
        assert again.passes < whole.passes
        np.testing.assert_allclose(again.value, whole.value, rtol=1e-9)
    worse = model.from_primal(1e6 * np.ones_like(whole.w))
    assert fit(model, tol=1e-10, strategy="krylov", start=worse).converged


@pytest.mark.parametrize("by", [1e-38, 1e-20, 1e20, 1e38])
@pytest.mark.parametrize("target", [1e-38, 1.0, 1e38])
def test_data_of_any_size(by, target):
    plain = model_of(1e-3, n=60, d=90)
    problem = cw.ERM(plain.A * by, plain.b * target, penalty=cw.penalties.L2(1e-3 * by**2))
    expected = fit(plain, tol=1e-8, strategy="krylov")
    found = fit(LinearModel(problem, False), tol=1e-8, strategy="krylov")
    assert found.converged
    assert abs(found.passes - expected.passes) <= 3
    np.testing.assert_allclose(found.w * (by / target), expected.w, atol=1e-4 * np.abs(expected.w).max())


def test_outputs_end_one_by_one():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 40)) * np.logspace(0, -3, 40)
    b = rng.standard_normal((60, 3))
    b[:, 1] = 0
    b[:, 2] = A[:, 0]
    model = LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(1e-6)), False)
    run = Run(model)
    assert run.ended.tolist() == [False, True, False]
    run.keep(np.array([True, False, True]))
    assert run.which.tolist() == [0, 2]
    for k in (0, 2):
        alone = Run(LinearModel(cw.ERM(A, b[:, [k]], penalty=cw.penalties.L2(1e-6)), False))
        together = Run(model)
        for _ in range(5):
            alone.step()
            together.step()
        np.testing.assert_allclose(together.weights[:, k], alone.weights[:, 0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(together.dual_variables[:, k], alone.dual_variables[:, 0], rtol=1e-9, atol=1e-12)
    found = fit(model, tol=1e-10, strategy="krylov")
    assert found.converged
    assert not found.w[:, 1].any()
    np.testing.assert_allclose(found.value, fit(model, tol=1e-10, strategy="gram").value, atol=1e-9)


def test_a_few_steps_before_a_gram_matrix_tell_whether_they_are_enough():
    rng = np.random.default_rng(4)
    A, b = rng.standard_normal((300, 900)), rng.standard_normal(300)
    even = LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(1e-3)), False)

    def uneven():
        return LinearModel(cw.ERM(A * np.logspace(0, -4, 900), b, penalty=cw.penalties.L2(1e-9)), False)

    few = LinearModel(cw.ERM(A[:60], b[:60], penalty=cw.penalties.L2(1e-3)), False)
    for model, loose, tight in ((even, "krylov", "gram"), (uneven(), "gram", "gram"), (few, "gram", "gram")):
        assert choose(model)[0] == "gram"
        for tol, name in ((1e-2, loose), (1e-14, tight)):
            found = fit(model, tol=tol)
            assert found.converged
            assert found.strategy.startswith(name)
            assert found.passes <= 30
    stopped = fit(uneven(), tol=1e-12, callback=lambda p: True)
    assert stopped.status is Status.STOPPED
    assert stopped.strategy.startswith("krylov")
    assert fit(uneven(), tol=1e-12, time_limit=0.0).status is Status.TIME_LIMIT
    at_once = fit(uneven(), tol=1e-12, max_passes=2)  # which is less than the steps would take
    assert at_once.converged
    assert at_once.passes <= 2
    whole = fit(uneven(), tol=1e-12)
    assert fit(uneven(), tol=1e-11, start=whole.candidate).converged
    targets = np.stack([b, np.zeros(300), A[:, 0]], axis=1)
    several = fit(LinearModel(cw.ERM(A, targets, penalty=cw.penalties.L2(1e-3)), True), tol=1e-4)
    assert several.converged
    assert not several.w[:, 1].any()


def test_fits_of_a_path_share_a_gram_matrix_instead():
    rng = np.random.default_rng(4)
    A, b = rng.standard_normal((300, 900)), rng.standard_normal(300)
    model = LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(1e-3)), False)
    alone, *_ = path(model, [cw.penalties.L2(1e-3)], tol=1e-2)
    assert alone.strategy.startswith("krylov")
    several = list(path(model, [cw.penalties.L2(1e-2), cw.penalties.L2(1e-3)], tol=1e-2))
    assert all(found.converged and found.strategy.startswith("gram") for found in several)


@pytest.mark.parametrize("shape", [(600, 400), (400, 600)], ids=["tall", "wide"])
def test_dense_data_with_many_features_and_samples(monkeypatch, shape):
    """Sparse data of that size never get a Gram matrix; dense ones if steps would cost more, and keep it."""
    for module in ("strategies", "fit"):
        monkeypatch.setattr(f"coordwise.fitting.{module}.FEW", 100)
    rng = np.random.default_rng(4)
    A, b = rng.standard_normal(shape) * np.logspace(0, -1, shape[1]), rng.standard_normal(shape[0])
    model = LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(1e-4)), True)
    assert choose(model)[0] == "gram"
    assert choose(LinearModel(cw.ERM(sp.csr_array(A), b, penalty=cw.penalties.L2(1e-4)), True))[0] == "krylov"
    loose, tight, again = path(model, [cw.penalties.L2(l2) for l2 in (1.0, 1e-8, 1.0)], tol=1e-6)
    assert loose.strategy.startswith("krylov")
    assert tight.strategy.startswith("gram")
    assert again.strategy.startswith("gram")
    assert all(found.converged for found in (loose, tight, again))
    np.testing.assert_allclose(loose.value, again.value, atol=1e-6 * float(model.scale[0]))


def wide(outputs=1, l2=1e-9):
    rng = np.random.default_rng(4)
    A, b = rng.standard_normal((300, 400)) * np.logspace(0, -2, 400), rng.standard_normal((300, outputs))
    return LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(l2)), True)


def test_what_interrupts_a_gram_matrix_leaves_the_steps_before(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("coordwise.fitting.runners.gram_solution", interrupted)
    found = interruption(fit, wide(), tol=1e-10)
    assert found.status is Status.INTERRUPTED
    assert found.passes >= 3
    assert np.all(found.gap < wide().scale)


def test_a_gram_matrix_that_does_not_fit_into_memory_is_not_needed(monkeypatch):
    def too_large(*_, **__):
        raise MemoryError

    monkeypatch.setattr("coordwise.fitting.runners.gram_solution", too_large)
    assert fit(wide(l2=1e-4), tol=1e-8, strategy="gram").converged


def test_no_gram_matrix_where_no_time_is_left_for_it():
    """It costs as much as ten steps, of which three take 0.2 s here."""
    seen = []

    def slow(progress):
        time.sleep(0.2)
        seen.append(progress.passes)

    assert fit(wide(), tol=1e-10, callback=slow).strategy.startswith("gram")
    seen.clear()
    assert fit(wide(), tol=1e-10, time_limit=0.5, callback=slow).strategy.startswith("krylov")
    assert len(seen) >= 2
    assert seen == sorted(seen)


def test_several_outputs_make_steps_dear():
    one, many = (fit(wide(outputs, 0.05), tol=1e-3).strategy for outputs in (1, 40))
    assert one.startswith("krylov")
    assert many.startswith("gram")


def test_callbacks_see_a_gram_matrix_after_the_steps():
    seen = []
    found = fit(wide(), tol=1e-10, callback=lambda p: seen.append(p.passes))
    assert found.strategy.startswith("gram")
    assert seen == sorted(seen)
    assert len(seen) >= 2


@pytest.mark.parametrize("most", [1, 3.5, 5])
def test_refinement_keeps_to_the_passes_allowed(most):
    found = fit(model_of(1e-6), tol=0.0, strategy="gram", max_passes=most)
    assert found.passes <= most + 1


def test_looks_become_rarer():
    steps = []
    for _ in krylov(model_of(1e-9, n=300, d=200), 1e-12, steps=steps, first=3, most=90):
        pass
    assert steps == [3, 6, 12, 24, LOOK, 90 - 70]


def test_krylov_spaces_take_over_where_a_gram_matrix_has_no_factor(monkeypatch):
    def fails(*_):
        raise np.linalg.LinAlgError

    rng = np.random.default_rng(4)
    A, b = rng.standard_normal((40, 200)), rng.standard_normal(40)
    monkeypatch.setattr("coordwise.fitting.gram._factor", fails)
    assert fit(LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(1e-3)), True), tol=1e-8, strategy="gram").converged


def test_rounding_errors_end_it():
    model = model_of(1e-2)
    rounds = list(krylov(model, 1e-40))
    gaps = [found.gap[0] for found in rounds]
    assert np.all(np.diff(gaps) <= 0)
    assert gaps[-1] <= 1e-14 * model.scale[0]
    found = fit(model, tol=1e-40, strategy="krylov", max_passes=2000)
    assert np.all(found.gap <= 1e-14 * found.scale)


@pytest.mark.parametrize("case", ["zero targets", "zero matrix", "one feature", "constant targets"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
def test_awkward_data(case, intercept):
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((30, 4)), rng.standard_normal(30)
    if case == "zero targets":
        b[:] = 0
    elif case == "zero matrix":
        A[:] = 0
    elif case == "one feature":
        A = A[:, :1]
    else:
        b[:] = 3
    model = LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(1e-3)), intercept)
    found = fit(model, tol=1e-10, strategy="krylov")
    assert found.converged
    np.testing.assert_allclose(found.value, fit(model, tol=1e-10, strategy="gram").value, atol=1e-9)


def test_ends():
    model = model_of(1e-6, n=300, d=200)
    few = fit(model, tol=1e-12, strategy="krylov", max_passes=25)
    assert few.status is Status.MAX_PASSES
    assert few.passes == 25
    steps = []
    for _ in krylov(model, 1e-2, steps=steps):
        pass
    assert sum(steps) % LOOK > 0  # a look comes as soon as the gap is small
    assert fit(model, tol=1e-2, strategy="krylov").passes == sum(steps)
    assert np.all(few.value <= model.scale)
    assert fit(model, tol=1e-12, strategy="krylov", time_limit=0.0).status is Status.TIME_LIMIT
    assert fit(model, tol=1e-12, strategy="krylov", callback=lambda p: True).status is Status.STOPPED
    whole = fit(model, tol=1e-9, strategy="krylov")
    assert whole.converged
    again = fit(model, tol=1e-8, strategy="krylov", start=whole.candidate)
    assert again.converged
    assert again.passes == 0


def test_it_is_chosen_unless_few_samples_have_most_of_the_norm():
    rng = np.random.default_rng(2)
    A = sp.random_array((1200, 1500), density=0.02, rng=rng, format="csr")
    b = rng.standard_normal(1200)

    def chosen(A, l2):
        return choose(LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(l2)), False))[0]

    assert chosen(A, 1.0) == "dual"  # passes over the samples are as good as steps there
    assert chosen(A, 1e-4) == "krylov"
    assert chosen(A, 1e-8) == "krylov"
    spread = sp.csr_array(sp.diags_array(rng.lognormal(0, 2, 1200)) @ A)  # few rows have most of the norm
    assert chosen(spread, 1e-1) == "dual"
    assert chosen(spread, 1e-8) == "krylov"
    tall = sp.random_array((1500, 1200), density=0.02, rng=rng, format="csr")
    assert worth_it(LinearModel(cw.ERM(tall, rng.standard_normal(1500), penalty=cw.penalties.L2(1.0)), False))
    with pytest.raises(ValueError, match="squared loss and an l2 penalty"):
        fit(LinearModel(cw.ERM(A, np.sign(b), loss="logistic", lam=1.0), False), tol=1e-3, strategy="krylov")
