"""The oracle's verbs against dense formulas; the same solver on samples in one block, in chunks, and interrupted."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import check_grad

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.losses import LOSSES, get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.samples import Block, Chunks, Memory
from coordwise.samples.base import summed
from coordwise.solvers import NewtonCG

SMOOTH = sorted(name for name in LOSSES if get_loss(name).gamma > 0)
CUTS = [(0, 7), (7, 100), (100, 101), (101, 240)]


def data(loss, storage="dense", outputs=2, weighted=True, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((240, 12)) * 10 ** rng.uniform(-1, 1, 12)
    A = np.where(rng.random(A.shape) < 0.5, A, 0.0)
    t = A @ rng.standard_normal((12, outputs)) + rng.standard_normal((240, outputs)) + 0.7
    b = np.where(t > 0, 1.0, -1.0) if get_loss(loss).classification else t
    s = rng.integers(0, 3, 240) * 1.0 if weighted else None
    return (
        {"dense": np.asarray, "fortran": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}[storage](A),
        b,
        s,
    )


def samples_of(A, b, s, constant, chunks):
    if not chunks:
        return Memory(Block(A, b, s, constant=constant))

    def load(begin, end):
        rows = sp.csr_array(A)[begin:end] if sp.issparse(A) else A[begin:end]
        return lambda: Block(rows, b[begin:end], None if s is None else s[begin:end], constant=constant)

    return Chunks([load(*cut) for cut in CUTS])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["dense", "fortran", "csr", "csc"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_value_gradient_and_curvature_are_those_of_the_formula(loss, storage, intercept):
    A, b, s = data(loss, storage)
    dense = A.toarray() if sp.issparse(A) else A
    dense = np.column_stack([dense, np.ones(240)]) if intercept else dense
    phi, l2, total = get_loss(loss), 0.3, s.sum()
    oracle = Oracle(Memory(Block(A, b, s, constant=intercept)), Problem(phi, l2, intercept))
    rng = np.random.default_rng(1)
    point = oracle.at(rng.standard_normal(oracle.shape))
    penalised = np.arange(oracle.shape[0]) < 12
    for k in range(2):

        def P(w, k=k):
            return (s @ phi.value(dense @ w, b[:, k])) / total + l2 / 2 * np.sum(w[penalised] ** 2)

        def gradient(w, k=k):
            return dense.T @ (s * phi.derivative(dense @ w, b[:, k])) / total + l2 * np.where(penalised, w, 0.0)

        w = point.w[:, k]
        assert point.value[k] == pytest.approx(P(w), rel=1e-13)
        np.testing.assert_allclose(point.gradient[:, k], gradient(w), atol=1e-13 * np.abs(dense).sum())
        assert check_grad(P, gradient, w) < 1e-4 * (1 + np.abs(gradient(w)).max())
        if intercept:
            assert abs(point.gradient[-1, k]) < 1e-14
        h = s * phi.second_derivative(dense @ w, b[:, k])
        H = dense.T @ (h[:, None] * dense) / total + l2 * np.diag(penalised * 1.0)
        curvature, p = oracle.curvature(point), rng.standard_normal(oracle.shape)
        Hp, square = curvature.times(p)
        np.testing.assert_allclose(curvature.diagonal[:, k], np.diag(H), rtol=1e-12)
        np.testing.assert_allclose(Hp[:, k], H @ p[:, k], rtol=1e-10, atol=1e-10 * np.abs(H).max())
        assert square[k] == pytest.approx(p[:, k] @ H @ p[:, k], rel=1e-11)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_free_certificate_is_the_gap_of_its_dual_variables(loss, intercept):
    A, b, s = data(loss)
    oracle = Oracle(Memory(Block(A, b, s, constant=intercept)), Problem(get_loss(loss), 0.1, intercept))
    best = fit(LinearModel(cw.ERM(A, b, loss, lam=0.1, sample_weight=s), intercept), tol=1e-12).value
    for seed in range(3):
        point = oracle.at(np.random.default_rng(seed).standard_normal(oracle.shape))
        found, paired = oracle.certificate(point), None
        paired = oracle.paired(point, found.y)
        np.testing.assert_allclose(found.gap, paired.gap, rtol=1e-9, atol=1e-12)
        assert np.all(found.gap >= found.value - best - 1e-12)
        problem = cw.ERM(A, b, loss, lam=0.1, sample_weight=s)
        plain = problem.dual_value(found.y[0]) + point.value
        np.testing.assert_allclose(plain, found.gap, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_chunks_give_the_same_iterates(loss, storage, intercept):
    A, b, s = data(loss, storage)
    found = []
    for chunks in (False, True):
        oracle = Oracle(samples_of(A, b, s, intercept, chunks), Problem(get_loss(loss), 1e-3, intercept))
        goal = 1e-9 * np.ones(2)
        found.append((list(NewtonCG().rounds(oracle, np.zeros(oracle.shape), goal)), oracle.work))
    (whole, work), (parts, other) = found
    assert len(whole) == len(parts)
    assert work.rounds == other.rounds
    for one, two in zip(whole, parts, strict=True):
        np.testing.assert_allclose(two.w, one.w, rtol=0, atol=1e-9 * (1 + np.abs(one.w).max()))
    assert np.all(whole[-1].gap <= 1e-9)
    assert np.all(parts[-1].gap <= 1e-9)


def test_the_same_blocks_give_the_same_bits():
    A, b, s = data("logistic", "csr")
    runs = []
    for _ in range(2):
        oracle = Oracle(samples_of(A, b, s, True, True), Problem(get_loss("logistic"), 1e-3, True))
        runs.append(list(NewtonCG().rounds(oracle, np.zeros(oracle.shape), 1e-8 * np.ones(2)))[-1])
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    np.testing.assert_array_equal(np.vstack(runs[0].y), np.vstack(runs[1].y))


@pytest.mark.parametrize("chunks", [False, True])
def test_an_interrupt_at_any_visit_ends_the_run_and_keeps_what_was_yielded(chunks):
    A, b, s = data("logistic", "csr")

    def run(last):
        visits = 0

        def poll():
            nonlocal visits
            visits += 1
            if visits > last:
                raise KeyboardInterrupt

        oracle = Oracle(samples_of(A, b, s, True, chunks), Problem(get_loss("logistic"), 1e-3, True), poll)
        found = []
        try:
            for candidate in NewtonCG().rounds(oracle, np.zeros(oracle.shape), 1e-8 * np.ones(2)):
                found.append(candidate)
        except KeyboardInterrupt:
            return found, visits, True
        return found, visits, False

    whole, visits, cut = run(10**9)
    assert not cut
    for last in range(0, visits, 7):
        found, _, cut = run(last)
        assert cut
        for one, two in zip(found, whole, strict=False):
            np.testing.assert_array_equal(one.w, two.w)
            np.testing.assert_array_equal(one.gap, two.gap)


def test_errors_in_a_chunk_reach_the_caller():
    A, b, s = data("logistic")

    def broken():
        raise OSError("chunk 1 is truncated")

    chunks = Chunks([lambda: Block(A, b, s), broken])
    with pytest.raises(OSError, match="chunk 1 is truncated"):
        chunks.visit(lambda block: (None, [np.zeros(1)]))
    with pytest.raises(ValueError, match="loads is empty"):
        Chunks([])
    with pytest.raises(ValueError, match="different numbers of features"):
        _ = Chunks([lambda: Block(A, b, s), lambda: Block(A[:, 1:], b, s)]).sizes


def test_sums_are_added_in_the_order_of_the_blocks():
    parts = [[np.array([1e16])], [np.array([1.0])], [np.array([-1e16])]]
    assert summed(parts)[0] == (1e16 + 1.0) - 1e16


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["dense", "csr", "csc"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_as_a_strategy_it_agrees_with_the_others(loss, storage, intercept, outputs):
    A, b, s = data(loss, storage, outputs)
    problem = cw.ERM(A, b, loss, lam=1e-2, sample_weight=s)
    found = fit(LinearModel(problem, intercept), tol=1e-9, strategy="newton_cg")
    other = fit(LinearModel(problem, intercept), tol=1e-10, strategy="dual")
    assert found.converged
    assert found.strategy.startswith("newton_cg")
    assert np.all(np.abs(found.value - other.value) <= 2e-9 * found.scale)
    warm = fit(LinearModel(problem, intercept), tol=1e-9, strategy="newton_cg", start=found.candidate)
    assert warm.converged
    assert warm.passes <= found.passes / 2


def test_where_it_does_not_apply():
    A, b, s = data("squared")
    with pytest.raises(ValueError, match="strategy='newton_cg' does not apply here: it is for smooth losses"):
        fit(LinearModel(cw.ERM(A, b, "absolute", lam=1.0), False), tol=1e-3, strategy="newton_cg")
    oracle = Oracle(Memory(Block(A, b, s)), Problem(get_loss("absolute"), 1.0))
    assert NewtonCG().refuses(oracle) == "it needs a smooth loss"
    assert NewtonCG().refuses(Oracle(oracle.samples, Problem(get_loss("squared"), 0.0))) == "it needs an l2 penalty"
