"""Ridge regression over Krylov spaces."""

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.krylov import LOOK, _Output, krylov, worth_it
from coordwise.fitting.model import LinearModel
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
def test_each_step_minimises_both_problems_over_its_spaces(weighted, intercept, d):
    model = model_of(1e-2, d=d, weighted=weighted, intercept=intercept)
    output = _Output(model, 0)
    s = np.ones(model.n) if model.weights is None else model.weights
    B, f = np.sqrt(s)[:, None] * model.A, np.sqrt(s) * model.b[:, 0]
    squares, norms = (B**2).sum(0), (B**2).sum(1)
    inside = np.eye(model.n)
    if intercept:
        q = np.sqrt(s) / np.linalg.norm(np.sqrt(s))
        inside -= np.outer(q, q)
        B, f = inside @ B, inside @ f
    shift = model.penalty.l2 * model.total
    primal, dual = B.T @ B + shift * np.eye(model.d), np.eye(model.n) + B @ B.T / shift
    by_features, by_samples = np.diag((squares + shift) ** -0.5), np.diag((1 + (d > model.n) * norms / shift) ** -0.5)
    if intercept:  # the inverse of a diagonal matrix on the vectors orthogonal to q
        by_samples -= np.outer(by_samples @ q, by_samples @ q) / (q @ by_samples @ q)
    spaces = []
    for H, M, g in ((primal, by_features, B.T @ f), (dual, by_samples, f)):
        vectors = [M @ g]
        for _ in range(5):
            vectors.append(M @ (H @ vectors[-1]))
        spaces.append(np.linalg.qr(np.stack([v / np.linalg.norm(v) for v in vectors], axis=1))[0])
    for k in range(1, 7):
        output._step(output.features, output.samples)
        K, J = spaces[0][:, :k], spaces[1][:, :k]
        w = K @ np.linalg.solve(K.T @ primal @ K, K.T @ (B.T @ f))
        np.testing.assert_allclose(output.w, w, rtol=1e-6, atol=1e-8)
        x = J @ np.linalg.solve(J.T @ dual @ J, J.T @ f)
        np.testing.assert_allclose(output.dual, -np.sqrt(s) * x, rtol=1e-6, atol=1e-8)
        value = np.sum((B @ w - f) ** 2) / 2 + shift / 2 * w @ w
        other = x @ x / 2 - x @ f + np.sum((B.T @ x) ** 2) / 2 / shift
        assert output.gap == pytest.approx((value + other) / model.total, rel=1e-8)


def test_steps_are_taken_where_the_gap_falls():
    model = model_of(1e-7, n=200, d=300)
    output = _Output(model, 0)
    alone = set()
    for _ in range(1000):
        sides = output._worth()
        if len(sides) == 1:
            alone.add(type(sides[0]).__name__)
            other = output.samples if sides[0] is output.features else output.features
            assert other.ended or other.pace < other.slow * sides[0].pace
            before = other.x.copy()
        output._step(*sides)
        if len(sides) == 1:
            np.testing.assert_array_equal(other.x, before)
        if output.gap <= 1e-10 * model.scale[0]:
            break
    assert alone
    assert output.gap <= 1e-10 * model.scale[0]


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


@pytest.mark.parametrize("by", [1e-130, 1e-80, 1e-30, 1e30, 1e80, 1e120])
@pytest.mark.parametrize("target", [1e-100, 1.0, 1e100])
def test_data_of_any_size(by, target):
    plain = model_of(1e-3, n=60, d=90)
    problem = cw.ERM(plain.A * by, plain.b * target, penalty=cw.penalties.L2(1e-3 * by**2))
    expected = fit(plain, tol=1e-8, strategy="krylov")
    found = fit(LinearModel(problem, False), tol=1e-8, strategy="krylov")
    assert found.converged
    assert abs(found.passes - expected.passes) <= 3
    np.testing.assert_allclose(found.w * (by / target), expected.w, atol=1e-4 * np.abs(expected.w).max())


def test_one_side_may_end_before_the_other():
    rng = np.random.default_rng(3)
    A = np.zeros((40, 5))
    A[:3, :3] = np.diag([1.0, 2.0, 3.0])
    b = rng.standard_normal(40)
    b[3:] = 0  # three steps are enough over the features
    output = _Output(LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(1e-3)), False), 0)
    while not output.features.ended:
        output._step(output.features)
    assert not output.samples.ended
    assert output._worth() == [output.samples]
    assert output.advance(1e-12) < LOOK
    assert output.gap <= 1e-12


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


def test_it_is_chosen_for_weak_penalties_where_singular_values_are_close():
    rng = np.random.default_rng(2)
    A = sp.random_array((1200, 1500), density=0.02, rng=rng, format="csr")
    b = rng.standard_normal(1200)

    def chosen(A, l2):
        return choose(LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(l2)), False))[0]

    assert chosen(A, 1.0) == "dual"
    assert chosen(A, 1e-8) == "krylov"
    spread = sp.csr_array(sp.diags_array(rng.lognormal(0, 2, 1200)) @ A)  # few rows have most of the norm
    close, far = (LinearModel(cw.ERM(X, b, penalty=cw.penalties.L2(1e-4)), False) for X in (A, spread))
    assert worth_it(close, 1e-2)
    assert not worth_it(close, 1e-6)  # there S/n should be larger
    assert not worth_it(far, 1e-2)
    with pytest.raises(ValueError, match="squared loss and an l2 penalty"):
        fit(LinearModel(cw.ERM(A, np.sign(b), loss="logistic", lam=1.0), False), tol=1e-3, strategy="krylov")
