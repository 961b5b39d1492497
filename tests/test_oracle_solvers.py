"""Gram, Newton and working sets over visits alone: the same in memory and in chunks, and as accurate as other ways."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from test_oracle import CUTS, SMOOTH, data, samples_of

import coordwise as cw
from coordwise import datasets
from coordwise.coupled import OneHot, Softmax
from coordwise.drive import drive
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.multinomial import multinomial
from coordwise.fitting.sparse_multinomial import sparse_multinomial
from coordwise.interrupts import Interrupted
from coordwise.losses import get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.penalties import ElasticNet
from coordwise.samples import Block, Chunks, Memory
from coordwise.solvers import SOLVERS, Gram, Newton, NewtonCG, WorkingSet
from coordwise.visits import curvatures

PENALTIES = [(0.0, 0.1), (0.0, 1e-6), (0.05, 0.0), (1e-3, 0.0), (0.02, 0.05), (1e-4, 1e-5)]
VISITING = [solver for solver in SOLVERS if solver.name != "descent"]  # that has tests of its own
EACH = {solver.name: solver for solver in VISITING}


def oracle_of(loss, l1, l2, intercept, chunks, storage="csr", outputs=2, weighted=True, poll=None):
    A, b, s = data(loss, storage, outputs, weighted)
    return Oracle(samples_of(A, b, s, intercept, chunks), Problem(get_loss(loss), l2, intercept, l1), poll)


def solved(solver, oracle, tol=1e-9):
    return list(solver.rounds(oracle, np.zeros(oracle.shape), np.full(oracle.groups, tol)))


def agrees(found, loss, l1, l2, intercept, storage="csr", outputs=2, weighted=True, tol=1e-9):
    """That value, gap and weights are those of the strategies in memory; `found` is of samples in one block."""
    A, b, s = data(loss, storage, outputs, weighted)
    problem = cw.ERM(A, b, loss, penalty=ElasticNet(l1, l2), sample_weight=s)
    other = fit(LinearModel(problem, intercept), tol=1e-13)
    assert np.all(found.gap <= tol)
    assert np.all(found.value >= other.value - other.gap - 1e-12)
    assert np.all(found.value <= other.value + tol)
    features, (y,) = found.w[:12], found.y
    t = problem.product(features) + (found.w[-1] if intercept else 0.0)
    value = problem.terms.value(t) + problem.penalty.value(features)
    np.testing.assert_allclose(found.value, value, rtol=1e-12)
    if intercept:
        assert np.all(np.abs(y.sum(axis=0)) <= 1e-13 * np.abs(y).sum(axis=0))
    dual = problem.terms.conjugate(np.ascontiguousarray(y)) + _conjugate(problem, y, l1, l2)
    np.testing.assert_allclose(value + dual, found.gap, atol=1e-11)


def _conjugate(problem, y, l1, l2):
    v = np.abs(problem.moments(y))
    if l2 == 0:
        assert np.all(v <= l1 * (1 + 1e-11))  # up to rounding of A'y
        return 0.0
    return problem.penalty.conjugate(v)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("chunks", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["dense", "fortran", "csr", "csc"])
def test_moments_of_blocks_with_different_means(storage, intercept, chunks, offset):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((240, 12)) + offset * (np.arange(12) < 5) + np.arange(240)[:, None] / 10
    A[:, 6:] *= rng.random((240, 6)) < 0.3
    b, s = rng.standard_normal((240, 2)) + 3, rng.integers(0, 3, 240) * 1.0
    exact, total = A.astype(np.longdouble), s.sum()
    centred = exact - (s @ exact / total if intercept else 0)
    r = b - (s @ b / total if intercept else 0)
    A = {"dense": np.asarray, "fortran": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}[storage](A)
    oracle = Oracle(samples_of(A, b, s, intercept, chunks), Problem(get_loss("squared"), 0.1, intercept))
    found = oracle.moments()
    gram = np.asarray(centred.T @ (s[:, None] * centred), float)
    atol = 1e-12 * (np.diag(gram).max() if intercept or offset == 0 else np.abs(gram).max())
    np.testing.assert_allclose(found.gram, gram, atol=atol)
    np.testing.assert_allclose(found.cross, np.asarray(centred.T @ (s[:, None] * r), float), atol=atol)
    np.testing.assert_allclose(found.squares, s @ r**2, rtol=1e-12)
    np.testing.assert_allclose(found.mean, s @ exact.astype(float) / total if intercept else 0.0, rtol=1e-13)
    assert found.total == total


@pytest.mark.parametrize("kind", ["exact", "damped", "majorant"])
@pytest.mark.parametrize("storage", ["dense", "fortran", "csr", "csc"])
@pytest.mark.parametrize("loss", ["logistic", "huber", "smooth_hinge"])
def test_formed_hessians_are_those_of_the_formula(loss, storage, kind):
    A, b, s = data(loss, storage)
    dense = np.column_stack([A.toarray() if sp.issparse(A) else A, np.ones(240)])
    oracle = Oracle(samples_of(A, b, s, True, True), Problem(get_loss(loss), 0.1, True))
    point = oracle.at(np.random.default_rng(1).standard_normal(oracle.shape))
    block = Block(A, b, s, constant=True)
    h = curvatures(block, block.product(point.w), get_loss(loss), kind)
    curvature = oracle.curvature(point, kind)
    for k in range(2):
        H = dense.T @ (h[:, k, None] * dense) / s.sum()
        atol = 1e-12 * np.abs(H).max()
        np.testing.assert_allclose(curvature.formed(k), H, atol=atol)
        which = np.array([1, 4, 7])
        rows = np.append(which, 12)
        np.testing.assert_allclose(curvature.formed(k, which), H[np.ix_(rows, rows)], atol=atol)
        first = slice(*CUTS[0])
        here = dense[first].T @ (h[first, k, None] * dense[first]) / s[first].sum()
        np.testing.assert_allclose(curvature.formed_here(k), here, atol=1e-12 * np.abs(here).max())
    diagonal = np.einsum("ij,ij,ik->jk", dense, dense, h) / s.sum() + 0.1 * (np.arange(13) < 12)[:, None]
    np.testing.assert_allclose(curvature.diagonal, diagonal, rtol=1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
def test_majorants_lie_above_the_losses(loss):
    phi, rng = get_loss(loss), np.random.default_rng(0)
    b = np.where(rng.random((500, 1)) < 0.5, 1.0, -1.0)
    t = 3 * rng.standard_normal((500, 1))
    h = curvatures(Block(np.ones((500, 1)), b), t, phi, "majorant")
    for there in np.linspace(-8, 8, 33):
        parabola = phi.value(t, b) + phi.derivative(t, b) * (there - t) + h / 2 * (there - t) ** 2
        assert np.all(phi.value(there, b) <= parabola + 1e-12 * (1 + parabola))
    assert np.all(h <= phi.smoothness)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("l1", "l2"), [(0.05, 0.0), (0.05, 0.02)])
@pytest.mark.parametrize("loss", SMOOTH)
def test_certificates_with_l1_are_the_gap_of_their_dual_variables(loss, l1, l2, intercept):
    A, b, s = data(loss)
    oracle = Oracle(Memory(Block(A, b, s, constant=intercept)), Problem(get_loss(loss), l2, intercept, l1))
    problem = cw.ERM(A, b, loss, penalty=ElasticNet(l1, l2), sample_weight=s)
    best = fit(LinearModel(problem, intercept), tol=1e-12).value
    for seed in range(3):
        w = np.random.default_rng(seed).standard_normal(oracle.shape) * (np.arange(oracle.shape[0]) % 3 == 0)[:, None]
        point = oracle.at(w)
        before = oracle.work.rounds, oracle.work.entries
        found = oracle.certificate(point)
        assert oracle.work.rounds - before[0] == (l2 == 0)
        assert oracle.work.entries == before[1]
        dual = problem.terms.conjugate(found.y[0]) + _conjugate(problem, found.y[0], l1, l2)
        np.testing.assert_allclose(found.gap, found.value + dual, rtol=1e-9)
        np.testing.assert_allclose(oracle.paired(point, found.y).gap, found.gap, rtol=1e-9)
        assert np.all(found.gap >= found.value - best - 1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("l1", "l2"), PENALTIES)
@pytest.mark.parametrize("loss", SMOOTH)
def test_chunks_and_memory_have_the_same_iterates_and_agree_with_fit(loss, l1, l2, intercept):
    for solver in VISITING:
        oracles = [oracle_of(loss, l1, l2, intercept, chunks) for chunks in (False, True)]
        if solver.refuses(oracles[0]) or (solver.name == "newton_cg_part" and l2 < 0.01):  # a part of 7 samples
            continue
        whole, parts = (solved(solver, oracle) for oracle in oracles)
        if solver.name not in ("newton_cg_part", "descent"):  # whose steps depend on what the blocks are
            assert len(whole) == len(parts)
            for one, two in zip(whole, parts, strict=True):
                np.testing.assert_allclose(two.w, one.w, rtol=0, atol=1e-7 * (1 + np.abs(one.w).max()))
                np.testing.assert_allclose(two.value, one.value, rtol=1e-10)
            assert oracles[0].work.entries == oracles[1].work.entries
        assert np.all(parts[-1].gap <= 1e-9)
        agrees(whole[-1], loss, l1, l2, intercept)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("storage", ["dense", "fortran", "csr", "csc"])
@pytest.mark.parametrize(("loss", "l1"), [("squared", 0.0), ("squared", 0.01), ("logistic", 0.0), ("logistic", 0.01)])
def test_any_storage_outputs_and_weights(loss, l1, storage, outputs, weighted):
    for solver in VISITING:
        oracle = oracle_of(loss, l1, 1e-3, True, False, storage, outputs, weighted)
        if not solver.refuses(oracle):
            agrees(solved(solver, oracle)[-1], loss, l1, 1e-3, True, storage, outputs, weighted)


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_least_squares_without_a_penalty(intercept, dependent):
    A, b, s = data("squared", "dense")
    A = np.column_stack([A, A[:, 0] + A[:, 1]]) if dependent else A
    oracle = Oracle(samples_of(A, b, s, intercept, True), Problem(get_loss("squared"), 0.0, intercept))
    found = solved(Gram(), oracle)[-1]
    root = np.sqrt(s)[:, None]
    design = root * (np.column_stack([A, np.ones(240)]) if intercept else A)
    best = np.linalg.lstsq(design, root * b, rcond=None)[0]
    lowest = ((root * b - design @ best) ** 2).sum(axis=0) / (2 * s.sum())
    np.testing.assert_allclose(found.value, lowest, rtol=1e-12)
    assert np.all(found.gap <= 1e-9)
    if not dependent:
        np.testing.assert_allclose(found.w, best, rtol=1e-8, atol=1e-9)


def test_the_gap_without_a_penalty_is_the_distance_to_the_minimum():
    oracle = oracle_of("squared", 0.0, 0.0, True, True)
    best = solved(Gram(), oracle)[-1]
    moments = oracle.moments()
    point = oracle.at(best.w + np.random.default_rng(0).standard_normal(best.w.shape))
    g = point.gradient[:-1]
    gap = (g * np.linalg.solve(moments.gram / moments.total, g)).sum(axis=0) / 2
    np.testing.assert_allclose(gap, point.value - best.value, rtol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.1), (0.05, 0.0), (0.05, 0.1)])
def test_gaps_are_those_of_the_samples_however_wrong_the_moments_are(l1, l2, intercept):
    class Rough(Oracle):
        def moments(self):
            found = super().moments()
            return replace(found, gram=1.02 * found.gram, cross=0.99 * found.cross, mean=found.mean + 0.1)

    A, b, s = data("squared")
    oracle = Rough(samples_of(A, b, s, intercept, False), Problem(get_loss("squared"), l2, intercept, l1))
    first, *_, last = solved(Gram(), oracle)
    assert np.all(first.gap > 1e-6)
    agrees(last, "squared", l1, l2, intercept)


def texts(n, d, loss, seed=0):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, d), density=20 / d, rng=rng, format="csr", data_sampler=lambda size: rng.random(size) + 0.5)
    t = A @ (rng.standard_normal((d, 1)) * (rng.random((d, 1)) < 0.03) * 3) + 0.3 * rng.standard_normal((n, 1)) + 0.2
    return A, np.where(t > 0, 1.0, -1.0) if get_loss(loss).classification else t


@pytest.mark.parametrize(("n", "d"), [(300, 900), (3000, 300)])
@pytest.mark.parametrize("loss", SMOOTH)
def test_working_sets_of_few_of_the_features(loss, n, d):
    A, b = texts(n, d, loss)
    model = LinearModel(cw.ERM(A, b, loss, penalty="l1", lam=1.0), True)
    l1 = 0.1 * float(np.abs(model.certified_at_zero[1]).max())
    other = fit(LinearModel(cw.ERM(A, b, loss, penalty="l1", lam=l1), True), tol=1e-9)
    sizes = []

    class Watched(Oracle):
        def visit(self, products, function, *kept, **sent):
            if function.__name__ == "formed":
                sizes.append(d if sent["columns"] is None else len(sent["columns"]))
            return super().visit(products, function, *kept, **sent)

    oracle = Watched(Memory(Block(A, b, constant=True)), Problem(get_loss(loss), 0.0, True, l1))
    found = solved(WorkingSet(), oracle, 1e-8 * float(other.scale[0]))[-1]
    assert found.gap[0] <= 1e-8 * other.scale[0]
    assert abs(found.value[0] - other.value[0]) <= 1e-8 * other.scale[0]
    assert min(sizes) < d / 2


def classes(storage="csr"):
    A, _, s = data("logistic", storage)
    rng = np.random.default_rng(1)
    dense = A.toarray() if sp.issparse(A) else A
    codes = (dense @ rng.standard_normal((12, 4)) + 3 * rng.standard_normal((240, 4))).argmax(axis=1)
    return A, codes, OneHot((0, 1, 2, 3))(codes), s


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.1), (0.0, 1e-5), (0.05, 0.0), (0.01, 0.01)])
def test_softmax(l1, l2, storage, intercept):
    A, codes, hot, s = classes(storage)
    if l1 == 0:
        other = multinomial(A, codes, 4, l2, s, intercept=intercept, tol=1e-11, most=1000)
    else:
        other = sparse_multinomial(A, codes, 4, ElasticNet(l1, l2), s, intercept=intercept, tol=1e-9, most=5000)
    ran = 0
    for solver in VISITING:
        oracles = [
            Oracle(samples_of(A, hot, s, intercept, chunks), Problem(Softmax(), l2, intercept, l1))
            for chunks in (False, True)
        ]
        if solver.refuses(oracles[0]):
            continue
        whole, parts = (solved(solver, oracle) for oracle in oracles)
        assert len(whole) == len(parts)
        for one, two in zip(whole, parts, strict=True):
            assert one.gap.shape == one.value.shape == (1,)
            np.testing.assert_allclose(two.value, one.value, rtol=1e-9)
            if l2 > 0:  # |w|_1 alone may not change by a shift of all classes
                np.testing.assert_allclose(two.w, one.w, rtol=0, atol=1e-6 * (1 + np.abs(one.w).max()))
        found, point = whole[-1], oracles[0].at(whole[-1].w)
        assert found.gap[0] <= 1e-9
        assert abs(found.value[0] - other.value[0]) <= 2e-9
        if l2 > 0:
            np.testing.assert_allclose(found.w[:12], other.w, atol=1e-3 if l2 < 1e-3 else 1e-4)
        np.testing.assert_allclose(oracles[0].paired(point, found.y).gap, found.gap, atol=1e-12)
        ran += 1
    assert ran == (2 if l1 == 0 else 1)


def test_softmax_with_a_class_without_weight():
    A, codes, hot, s = classes()
    for h, weight in ((np.column_stack([hot, np.zeros(240)]), s), (hot, s * (codes != 2))):
        oracle = Oracle(samples_of(A, h, weight, True, True), Problem(Softmax(), 0.01, True))
        found = drive(oracle, [NewtonCG()], 1e-8)
        assert found.converged
        assert found.work.rounds < 250
        used = weight > 0
        kept = np.flatnonzero(weight @ h)
        other = multinomial(
            A[used],
            codes[used] - (codes[used] > 2) * (len(kept) < 4),
            len(kept),
            0.01,
            weight[used],
            intercept=True,
            tol=1e-11,
            most=1000,
        )
        assert found.value[0] == pytest.approx(other.value[0], rel=1e-7)


def test_softmax_hessians_are_those_of_finite_differences():
    A, _, hot, s = classes("dense")
    oracle = Oracle(Memory(Block(A, hot, s)), Problem(Softmax(), 0.3))
    rng = np.random.default_rng(0)
    point = oracle.at(0.1 * rng.standard_normal(oracle.shape))
    curvature, p = oracle.curvature(point), rng.standard_normal(oracle.shape)
    step = 1e-5
    ends = [oracle.at(point.w + sign * step * p) for sign in (1, -1)]
    Hp, square = curvature.times(p)
    np.testing.assert_allclose((ends[0].gradient - ends[1].gradient) / (2 * step), Hp, atol=1e-6 * np.abs(Hp).max())
    slope = (ends[0].value[0] - ends[1].value[0]) / (2 * step)
    assert slope == pytest.approx((point.gradient * p).sum(), rel=1e-6)
    assert square[0] == pytest.approx((p * Hp).sum(), rel=1e-12)
    H = curvature.formed() + 0.3 * np.eye(48)
    np.testing.assert_allclose(H @ p.ravel(), Hp.ravel(), rtol=1e-9, atol=1e-9 * np.abs(Hp).max())
    np.testing.assert_allclose(np.diag(H), curvature.diagonal.ravel(), rtol=1e-12)


def test_classes_that_are_not_known_are_refused():
    assert OneHot(("a", "b"))(np.array(["b", "a"])).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="y has the class 3, which is not among the classes"):
        OneHot((1, 2))(np.array([1, 3]))


@pytest.mark.parametrize(
    ("name", "loss", "l1"),
    [
        ("gram", "squared", 0.0),
        ("gram", "squared", 0.01),
        ("newton", "logistic", 0.0),
        ("newton_cg", "huber", 0.0),
        ("newton_cg_part", "logistic", 0.0),
        ("working_set", "logistic", 0.01),
        ("newton_cg", "softmax", 0.0),
    ],
)
def test_an_interrupt_at_any_visit_is_never_lost(name, loss, l1):
    A, _, hot, s = classes()
    best = None

    def run(last):
        visits = 0

        def poll():
            nonlocal visits
            visits += 1
            if visits > last:
                raise KeyboardInterrupt

        chunks = name == "gram"
        if loss == "softmax":
            oracle = Oracle(samples_of(A, hot, s, True, chunks), Problem(Softmax(), 0.01, True), poll)
        else:
            oracle = oracle_of(loss, l1, 0.01, True, chunks, poll=poll)
        try:
            return drive(oracle, [EACH[name]], 1e-8), visits, False
        except Interrupted as stop:
            return stop.result, visits, True

    whole, visits, cut = run(10**9)
    assert whole.converged
    assert not cut
    best = whole.value - whole.gap
    for last in range(visits):
        found, _, cut = run(last)
        assert cut
        assert np.all(np.isfinite(found.w))
        assert np.all(found.value - best <= found.gap + 1e-12) or np.all(np.isinf(found.value))


def few_and_many(d, loss="squared", chunks=4, n=4000):
    A, b = texts(n, d, loss)
    cuts = np.linspace(0, n, chunks + 1).astype(int)
    return Chunks([lambda i=i: Block(A[cuts[i] : cuts[i + 1]], b[cuts[i] : cuts[i + 1]]) for i in range(chunks)])


def test_the_choice_by_the_number_of_features():
    few = drive(Oracle(few_and_many(30), Problem(get_loss("squared"), 0.01)), SOLVERS, 1e-6)
    assert few.converged
    assert few.solvers == ("gram",)
    many = drive(Oracle(few_and_many(8000), Problem(get_loss("squared"), 0.01)), VISITING, 1e-6)
    assert many.converged
    assert many.solvers == ("newton_cg",)
    samples = few_and_many(8000, "logistic")
    sparse = drive(Oracle(samples, Problem(get_loss("logistic"), 0.0, False, 0.002)), VISITING, 1e-6)
    assert sparse.converged
    assert sparse.solvers == ("working_set",)


def test_a_part_for_preconditioning_takes_fewer_visits_where_features_depend_on_each_other():
    rng = np.random.default_rng(0)
    n, d = 8000, 40
    A = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 5 * rng.standard_normal((n, 1))
    b = np.where(A @ rng.standard_normal((d, 1)) / 40 + rng.standard_normal((n, 1)) > 0, 1.0, -1.0)
    cuts = range(0, n, 2000)
    samples = Chunks([lambda i=i: Block(A[i : i + 2000], b[i : i + 2000]) for i in cuts])
    work = {}
    for solver in (NewtonCG(), NewtonCG("part")):
        oracle = Oracle(samples, Problem(get_loss("logistic"), 1e-4))
        assert solved(solver, oracle, 1e-8)[-1].gap[0] <= 1e-8
        work[solver.name] = oracle.work.rounds
        assert oracle.blocks == 4
    assert work["newton_cg_part"] < work["newton_cg"] / 2
    assert NewtonCG("part").forecast(oracle, 10).rounds < NewtonCG().forecast(oracle, 10).rounds
    whole = drive(Oracle(Memory(Block(A, b)), Problem(get_loss("logistic"), 1e-4)), SOLVERS, 1e-6)
    assert whole.converged
    assert "newton_cg_part" not in whole.solvers  # of one block it is the whole Hessian


def test_a_folder_on_disk_is_as_good_as_memory(tmp_path):
    A, codes, hot, s = classes()
    folder = datasets.convert(A, tmp_path / "folder", target=codes.astype(float), weight=s, chunk_bytes=4000)
    assert len(folder) > 2
    for l1 in (0.0, 0.01):
        problem = Problem(Softmax(), 0.01, True, l1)
        found = drive(Oracle(folder.samples(OneHot((0, 1, 2, 3)), constant=True), problem), SOLVERS, 1e-8)
        other = drive(Oracle(samples_of(A, hot, s, True, False), problem), SOLVERS, 1e-8)
        assert found.converged
        assert other.converged
        np.testing.assert_allclose(found.value, other.value, rtol=2e-8)


def test_forecasts_count_what_direct_solvers_do():
    oracle = Oracle(few_and_many(300), Problem(get_loss("squared"), 0.01))
    forecast = Gram().forecast(oracle, 10)
    assert solved(Gram(), oracle, 1e-8)[-1].gap[0] <= 1e-8
    assert oracle.work.flops == pytest.approx(forecast.flops, rel=0.01)
    assert oracle.work.entries <= forecast.entries
    assert oracle.work.rounds <= forecast.rounds


def test_where_they_do_not_apply():
    def oracle(loss="squared", l1=0.0, l2=0.1, d=3):
        A = sp.csr_array((4, d))
        return Oracle(Memory(Block(A, np.ones((4, 1)))), Problem(get_loss(loss), l2, False, l1))

    assert Gram().refuses(oracle("logistic")) == "it is for the squared loss"
    assert "at most 10000 features" in Gram().refuses(oracle(d=10_001))
    assert "at most 10000 features" in Newton().refuses(oracle(d=10_001))
    assert "at most 10000 features" in NewtonCG("part").refuses(oracle(d=10_001))
    assert NewtonCG().refuses(oracle(d=10_001)) == ""
    assert Newton().refuses(oracle(l1=0.1)) == "it knows no l1 penalty"
    assert WorkingSet().refuses(oracle()) == "it needs an l1 penalty"
    assert WorkingSet().refuses(oracle("hinge", 0.1)) == "it needs a smooth loss"
    with pytest.raises(ValueError, match="no solver applies: gram: it is for the squared loss"):
        drive(oracle("hinge", 0.1), SOLVERS, 1e-3)
