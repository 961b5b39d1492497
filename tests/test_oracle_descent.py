"""Coordinate steps on samples in blocks: agreement with fits in memory, certificates, interrupts, order of blocks."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.drive import Limits, drive
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.interrupts import Interrupted
from coordwise.losses import LOSSES, get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.results import Status
from coordwise.samples import Block, Chunks, InOrder, Memory
from coordwise.solvers import Descent, NewtonCG
from coordwise.solvers.local import Statement, balanced, descended, passed, sizes_of, swept

KINKS = sorted(name for name in LOSSES if get_loss(name).gamma == 0)
BOTH = (NewtonCG(), Descent())
n, d = 120, 9
CUTS = {
    1: (0, n),
    2: (0, 1, n),  # a block of one sample
    4: (0, 30, 31, 90, n),
    7: (0, 10, 11, 50, 51, 52, 100, n),
}


class Apart:
    """Samples that know nothing but `visit`, as those on a cluster do."""

    def __init__(self, samples):
        self.samples, self.sizes, self.price = samples, samples.sizes, samples.price

    def visit(self, *arguments, **named):
        return self.samples.visit(*arguments, **named)


def data(loss, outputs=1, weighted=False, storage="csr", seed=0):
    """Samples of which the last 20 belong to one class."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * 10 ** rng.uniform(-0.5, 0.5, d)
    A = np.where(rng.random(A.shape) < 0.6, A, 0.0)
    A[3] = 0.0
    t = A @ rng.standard_normal((d, outputs)) + rng.standard_normal((n, outputs)) + 0.5
    b = np.where(t > 0, 1.0, -1.0) if get_loss(loss).classification else t
    if get_loss(loss).classification:
        b[-20:] = 1.0
    s = rng.integers(0, 3, n) * 1.0 if weighted else None
    return (
        {"dense": np.asarray, "fortran": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}[storage](A),
        b,
        s,
    )


def samples_of(A, b, s, constant, blocks, apart=False):
    if blocks == 0:
        return Memory(Block(A, b, s, constant=constant))

    def load(begin, end):
        rows = A[begin:end] if isinstance(A, np.ndarray) else sp.csr_array(A)[begin:end].asformat(A.format)
        return lambda: Block(rows, b[begin:end], None if s is None else s[begin:end], constant=constant)

    found = Chunks([load(*cut) for cut in pairwise(CUTS[blocks])])
    return Apart(found) if apart else found


def together(parts):
    return np.vstack(parts)


def checked(loss, A, b, s, intercept, found, tol, l2):
    """The outcome's gap, recomputed on the whole data from its weights and dual variables; the fit in memory."""
    model = LinearModel(cw.ERM(A, b, loss, lam=l2, sample_weight=s), intercept)
    w, c = (found.w[:-1], found.w[-1]) if intercept else (found.w, np.zeros(b.shape[1]))
    y = np.column_stack([together(kept)[:, k] if kept is not None else np.zeros(len(b)) for kept, k in found.duals])
    again = model.paired(w, c, model.scores(w, c), y)
    np.testing.assert_allclose(again.gap, found.gap, rtol=1e-6, atol=1e-12 * found.scale.max())
    if intercept:
        assert np.all(np.abs(y.sum(axis=0)) <= 1e-13 * np.abs(y).sum(axis=0))
    other = fit(model, tol=tol / 10)
    assert other.converged
    assert np.all(found.value <= other.value + tol * found.scale + other.gap)
    assert np.all(found.value >= other.value - other.gap - 1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("blocks", [0, 1, 2, 4, 7])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_in_order_it_agrees_with_a_fit_in_memory(loss, blocks, intercept):
    A, b, s = data(loss, outputs=2, weighted=True)
    l2 = 0.1
    oracle = Oracle(samples_of(A, b, s, intercept, blocks), Problem(get_loss(loss), l2, intercept))
    assert isinstance(oracle.samples, InOrder)
    found = drive(oracle, [Descent()], 1e-6)
    assert found.converged
    assert np.all(found.gap <= 1e-6 * found.scale)
    checked(loss, A, b, s, intercept, found, 1e-6, l2)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("blocks", [1, 2, 4, 7])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_at_once_it_agrees_with_a_fit_in_memory(loss, blocks, intercept):
    A, b, s = data(loss, outputs=2, weighted=True)
    l2 = 1.0
    oracle = Oracle(samples_of(A, b, s, intercept, blocks, apart=True), Problem(get_loss(loss), l2, intercept))
    assert not isinstance(oracle.samples, InOrder)
    found = drive(oracle, [Descent()], 1e-4)
    assert found.converged
    checked(loss, A, b, s, intercept, found, 1e-4, l2)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("storage", ["dense", "fortran", "csr", "csc"])
@pytest.mark.parametrize("loss", KINKS)
def test_any_storage_and_no_weights(loss, storage, apart):
    A, b, s = data(loss, storage=storage)
    oracle = Oracle(samples_of(A, b, s, True, 4, apart), Problem(get_loss(loss), 1.0, True))
    found = drive(oracle, [Descent()], 1e-4)
    assert found.converged
    checked(loss, A, b, s, True, found, 1e-4, 1.0)


def dual_value(loss, A, b, s, y, l2):
    return cw.ERM(A, b, loss, lam=l2, sample_weight=s).dual_value(y)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_steps_on_a_block_lower_the_dual_and_keep_the_image(loss):
    A, b, s = data(loss, outputs=2, weighted=True, storage="dense")
    l2, total = 0.05, s.sum()
    y = cw.ERM(A, b, loss, lam=l2, sample_weight=s).dual_point(np.random.default_rng(1).standard_normal((d, 2)))
    statement = Statement(get_loss(loss), l2, total, 0.0)
    for begin, end in pairwise(CUTS[4]):
        block = Block(A[begin:end], b[begin:end], s[begin:end])
        own, image = passed(block, y[begin:end], A.T @ y, statement, 1.0, 3)
        new = y.copy()
        new[begin:end] = own
        np.testing.assert_allclose(image, A.T @ new, atol=1e-10 * np.abs(A).sum())
        before, after = (dual_value(loss, A, b, s, at, l2) for at in (y, new))
        assert np.all(after <= before + 1e-12 * np.abs(before))
        y = new


@pytest.mark.parametrize("theta", [1.0, 0.4])
@pytest.mark.parametrize("loss", KINKS)
def test_blocks_that_move_at_once_keep_what_their_models_promise(loss, theta):
    """D at the new y <= (1 - theta) D(y) + theta (the conjugates at z + <grad, dz> + theta K/2 |dz|^2): a majorant."""
    A, b, s = data(loss, outputs=2, weighted=True, storage="dense")
    l2, total, cuts = 0.05, s.sum(), CUTS[4]
    problem = cw.ERM(A, b, loss, lam=l2, sample_weight=s)
    rng = np.random.default_rng(2)
    y, z = (problem.dual_point(rng.standard_normal((d, 2))) for _ in range(2))
    x = (1 - theta) * y + theta * z
    image, K = A.T @ x, 4
    found, sums = [], []
    for k, (begin, end) in enumerate(pairwise(cuts)):
        block = Block(A[begin:end], b[begin:end], s[begin:end])
        kept, small = descended(
            block,
            np.hstack([y, z])[begin:end],
            w=np.zeros((d, 2)),
            factors=np.ones((2, 1)),
            image=image,
            theta=theta,
            sigma=float(K),
            restart=False,
            seed=k,
            statement=Statement(get_loss(loss), l2, total, 0.0),
        )
        found.append(kept)
        sums.append(small)
    new_y, new_z = np.split(np.vstack(found), 2, axis=1)
    np.testing.assert_allclose(new_y, (1 - theta) * y + theta * new_z, atol=1e-12)
    losses, conjugates, adjoint, change, after, sizes = (sum(column) for column in zip(*sums, strict=True))
    np.testing.assert_allclose(losses / total, problem.value(np.zeros((d, 2))), rtol=1e-12)
    np.testing.assert_allclose(conjugates, total * problem.terms.conjugate(y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(adjoint, A.T @ y, atol=1e-9)
    np.testing.assert_allclose(change, A.T @ (new_z - z), atol=1e-9)
    np.testing.assert_allclose(after, total * problem.terms.conjugate(new_y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sizes, sizes_of(new_y))
    conj = problem.terms.conjugate
    each = sum((small[3] ** 2).sum(axis=0) for small in sums)
    smooth = 1 / (l2 * total**2)
    linear = smooth * (image * (A.T @ (new_z - z))).sum(axis=0)
    model = (1 - theta) * conj(y) + theta * (conj(new_z) + linear + theta * K / 2 * smooth * each)
    model = model + smooth / 2 * (image**2).sum(axis=0)
    assert np.all(problem.dual_value(new_y) <= model + 1e-9 * np.abs(model))
    stay = conj(z) * theta + (1 - theta) * conj(y) + smooth / 2 * (image**2).sum(axis=0)
    assert np.all(model <= stay + 1e-9 * np.abs(stay))


@pytest.mark.parametrize("loss", ["hinge", "quantile"])
def test_what_a_sweep_gathers_is_what_may_move(loss):
    A, b, _ = data(loss)
    l2 = 0.1
    problem = cw.ERM(A, b, loss, lam=l2)
    exact = cw.solve(problem.dual(), tol=1e-12)
    statement = Statement(get_loss(loss), l2, float(n), 0.0)
    dense = A.toarray()

    def gathered(far, most):
        state = {"image": dense.T @ exact.y}
        return swept(
            Block(A, b),
            exact.y,
            exact.y,
            state=state,
            w=exact.x,
            statement=statement,
            far=far,
            most=most,
            seed=0,
        )[1]["found"][0][4]

    ends = statement.loss.domain(b)
    free = np.flatnonzero(((exact.y > ends[0]) & (exact.y < ends[1]))[:, 0])
    few = gathered(1e-9, 1.0)
    assert set(free) <= set(few) <= set(gathered(0.3, 1.0)) <= set(gathered(np.inf, 1.0))
    t, norms = dense @ exact.x, np.linalg.norm(dense, axis=1)
    sure = [i for i in range(n) if norms[i] > 0 and i not in gathered(0.3, 1.0)]
    assert sure
    for i in sure:  # no w as near as that makes another subgradient of the loss at sample i
        for sign in (-1, 1):
            moved = statement.loss.derivative(t[i] + sign * 0.299 * norms[i], b[i])
            np.testing.assert_allclose(moved, exact.y[i], atol=1e-6)
    assert 0 < len(gathered(np.inf, 0.3)) < 0.6 * n


@pytest.mark.parametrize("apart", [False, True])
def test_the_same_blocks_and_seed_give_the_same_bits(apart):
    A, b, s = data("hinge", outputs=3, weighted=True)
    runs = [
        drive(
            Oracle(samples_of(A, b, s, True, 4, apart), Problem(get_loss("hinge"), 1.0, True)), [Descent(seed=5)], 1e-4
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    for (one, k), (two, other) in zip(runs[0].duals, runs[1].duals, strict=True):
        assert k == other
        np.testing.assert_array_equal(together(one), together(two))


@pytest.mark.parametrize("apart", [False, True])
def test_an_interrupt_at_any_visit_leaves_a_valid_outcome(apart):
    A, b, s = data("hinge")

    def run(last):
        calls = 0

        def poll():
            nonlocal calls
            calls += 1
            if calls > last:
                raise KeyboardInterrupt

        samples = samples_of(A, b, s, True, 4, apart)
        try:
            found = drive(Oracle(samples, Problem(get_loss("hinge"), 0.3, True), poll), [Descent()], 1e-3)
        except Interrupted as stop:
            return stop.result, calls
        return found, calls

    whole, calls = run(10**9)
    assert whole.converged
    begun = 400  # polls until w = 0 has its intercept, before which there is nothing but zeros
    for last in [*range(0, begun, 40), *range(begun, calls, max((calls - begun) // 20, 1))]:
        found, _ = run(last)
        if last < calls:
            assert found.status is Status.INTERRUPTED
        if np.isfinite(found.scale).all():
            y = np.column_stack([together(kept)[:, k] if kept is not None else np.zeros(n) for kept, k in found.duals])
            model = LinearModel(cw.ERM(A, b, "hinge", lam=0.3), True)
            again = model.paired(found.w[:-1], found.w[-1], model.scores(found.w[:-1], found.w[-1]), y)
            np.testing.assert_allclose(again.gap, found.gap, rtol=1e-9, atol=1e-12)


def test_few_samples_at_a_time_and_a_start_get_there_too():
    A, b, s = data("hinge")
    problem = Problem(get_loss("hinge"), 0.1, True)
    whole = drive(Oracle(samples_of(A, b, s, True, 4), problem), [Descent()], 1e-5)
    little = drive(Oracle(samples_of(A, b, s, True, 4), problem), [Descent(most=0.3 * A.nnz)], 1e-5)
    assert whole.converged
    assert little.converged
    assert little.work.rounds >= whole.work.rounds
    for apart in (False, True):
        oracle = Oracle(samples_of(A, b, s, True, 4, apart), problem)
        warm = drive(oracle, [Descent()], 1e-3, start=whole.w, limits=Limits(passes=5000))
        assert warm.converged
        checked("hinge", A, b, s, True, warm, 1e-3, 0.1)


@pytest.mark.parametrize("apart", [False, True])
def test_the_choice_among_solvers_takes_it_for_losses_with_kinks(apart):
    for loss in ("hinge", "quantile"):
        A, b, s = data(loss)
        found = drive(Oracle(samples_of(A, b, s, True, 4, apart), Problem(get_loss(loss), 1.0, True)), BOTH, 1e-4)
        assert found.converged
        assert found.solvers == ("descent",)
    A, b, s = data("logistic")
    found = drive(Oracle(samples_of(A, b, s, True, 4, apart), Problem(get_loss("logistic"), 1e-3, True)), BOTH, 1e-8)
    assert found.converged
    assert "newton_cg" in found.solvers
    checked("logistic", A, b, s, True, found, 1e-8, 1e-3)


def test_balanced_dual_variables_add_up_to_zero_inside_of_their_domain():
    y = np.array([[1.0, -2.0], [3.0, 0.0], [-1.0, -1.0]])
    sizes = sizes_of(y)
    np.testing.assert_array_equal(sizes, [[4.0, 0.0], [1.0, 3.0]])
    factors = np.where(sizes > 0, sizes.min(axis=0) / np.where(sizes > 0, sizes, 1.0), 0.0)
    np.testing.assert_allclose(balanced(y, factors), [[0.25, 0.0], [0.75, 0.0], [-1.0, 0.0]])


def test_a_sweep_passes_its_state_from_block_to_block():
    A, b, s = data("absolute")

    def follow(block, kept, *, state, more):
        return kept + state, state + more * block.m

    for blocks in (0, 1, 4):
        samples = samples_of(A, b, s, False, blocks)
        y, _ = samples.visit(lambda block: (np.zeros((block.m, 1)), []))
        polls = []
        found, state = samples.sweep(follow, y, state=1.0, poll=lambda polls=polls: polls.append(1), more=2.0)
        assert state == 1 + 2 * n
        assert len(polls) == len(found) == max(blocks, 1)
        cuts = CUTS[max(blocks, 1)]
        assert [part[0, 0] for part in found] == [1 + 2.0 * begin for begin in cuts[:-1]]


def test_where_it_does_not_apply_and_what_it_forecasts():
    A, b, _ = data("hinge")
    oracle = Oracle(Memory(Block(A, b)), Problem(get_loss("hinge"), 0.1))
    assert Descent().refuses(oracle) == ""
    assert "l2" in Descent().refuses(Oracle(oracle.samples, Problem(get_loss("hinge"), 0.0)))
    assert "l1" in Descent().refuses(Oracle(oracle.samples, Problem(get_loss("hinge"), 0.1, False, 0.1)))
    assert not Descent().sure
    here, there = (
        Descent().forecast(oracle, 5.0),
        Descent().forecast(Oracle(Apart(oracle.samples), oracle.problem), 5.0),
    )
    assert 0 < here.rounds < there.rounds
    assert 0 < here.entries < there.entries
    assert here.bytes == 0 < there.bytes
    weaker = Descent().forecast(Oracle(Apart(oracle.samples), Problem(get_loss("hinge"), 0.01)), 5.0)
    assert weaker.rounds > there.rounds


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("loss", KINKS)
def test_the_best_intercept_of_a_loss_with_kinks_takes_few_visits(loss, apart):
    A, b, s = data(loss, outputs=2, weighted=True)
    b = b if get_loss(loss).classification else b * [1e-6, 1e6] + [0.0, 1e7]
    oracle = Oracle(samples_of(A, b, s, True, 4, apart), Problem(get_loss(loss), 1.0, True))
    model = LinearModel(cw.ERM(A, b, loss, lam=1.0, sample_weight=s), True)
    for w in (np.zeros((d + 1, 2)), np.random.default_rng(3).standard_normal((d + 1, 2))):
        before = oracle.work.rounds
        found = oracle.at(w)
        assert oracle.work.rounds - before <= 25
        t = model.scores(w[:-1], w[-1])
        best = model.value(w[:-1], t + model.best_intercept(t))
        np.testing.assert_allclose(found.value, best, rtol=1e-12)
        np.testing.assert_array_equal(found.w[:-1], w[:-1])
    ones = np.ones((n, 1))
    if get_loss(loss).classification:  # no label of the other class holds it back
        alone = Oracle(Memory(Block(A, ones, constant=True)), oracle.problem).at(np.zeros((d + 1, 1)))
        assert alone.value == 0
