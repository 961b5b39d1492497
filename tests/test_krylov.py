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
def test_each_step_minimises_both_problems_over_its_spaces(weighted, intercept):
    model = model_of(1e-2, weighted=weighted, intercept=intercept)
    output = _Output(model, 0)
    s = np.ones(model.n) if model.weights is None else model.weights
    B, f = np.sqrt(s)[:, None] * model.A, np.sqrt(s) * model.b[:, 0]
    if intercept:
        q = np.sqrt(s) / np.linalg.norm(np.sqrt(s))
        B, f = B - np.outer(q, q @ B), f - q * (q @ f)
    shift = model.penalty.l2 * model.total
    V, U = [output.v], [output.u]
    for _ in range(6):
        output._step()
        K = np.stack(V, axis=1)  # the w of k steps, and the y of k + 1
        H = K.T @ (B.T @ (B @ K)) + shift * K.T @ K
        w = K @ np.linalg.solve(H, K.T @ (B.T @ f))
        np.testing.assert_allclose(output.w, w, rtol=1e-8, atol=1e-10)
        U.append(output.u)
        J = np.stack(U, axis=1)
        y = J @ np.linalg.solve(J.T @ J + J.T @ (B @ (B.T @ J)) / shift, -J.T @ f)
        np.testing.assert_allclose(output.y, y, rtol=1e-8, atol=1e-10)
        primal = np.sum((B @ w - f) ** 2) / 2 + shift / 2 * w @ w
        dual = y @ y / 2 + y @ f + np.sum((B.T @ y) ** 2) / 2 / shift
        assert output.gap == pytest.approx((primal + dual) / model.total, rel=1e-8)
        V.append(output.v)


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
    for _ in krylov(model, 1e-3, steps=steps):
        pass
    assert sum(steps) % LOOK > 0  # a look comes as soon as the gap is small
    assert fit(model, tol=1e-3, strategy="krylov").passes == sum(steps)
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
    spread = sp.csr_array(sp.diags_array(np.where(np.arange(1200) < 9, 1e2, 1.0)) @ A)  # few rows have all of the norm
    assert worth_it(LinearModel(cw.ERM(A, b, penalty=cw.penalties.L2(1e-6)), False))
    assert not worth_it(LinearModel(cw.ERM(spread, b, penalty=cw.penalties.L2(1e-6)), False))
    with pytest.raises(ValueError, match="squared loss and an l2 penalty"):
        fit(LinearModel(cw.ERM(A, np.sign(b), loss="logistic", lam=1.0), False), tol=1e-3, strategy="krylov")
