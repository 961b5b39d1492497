"""A loss per sample: the same as one loss where all are alike, certificates from their formula, refusals."""

import signal
import threading

import numpy as np
import pytest
from conftest import STORAGES, unequal_rows
from problem_cases import refused
from scipy.optimize import minimize as scipy_minimize

import coordwise as cw
from coordwise import reference, sampling
from coordwise.losses import LOSSES, get_loss

N, D = 120, 15
ACCELERATED = ("nu_acdm", "nu_acdm_ns", "acdm", "acdm_ns", "approx")
METHODS = (*ACCELERATED, "sdca")
PENALTIES = {
    "l2": dict(penalty="l2", lam=0.02),
    "elastic_net": dict(penalty="elastic_net", lam=0.05, l1_ratio=0.5),
    "positive": dict(penalty="l2", lam=0.02, positive=True),
}


def data(seed=0, density=None):
    rng = np.random.default_rng(seed)
    A = unequal_rows(N, D, seed=seed, density=density, spread=1.0)
    return A, A @ rng.standard_normal(D) + rng.standard_normal(N)


A, B = data()
LABELS = np.where(B > 0, 1.0, -1.0)
SMOOTH = [cw.losses.Squared(), cw.losses.Huber(1.0), "logistic", cw.losses.SmoothHinge(0.5)]
KINKED = ["absolute", cw.losses.Squared(), "hinge", cw.losses.Quantile(0.3), "l2l1"]
MIXTURES = {"smooth": SMOOTH, "kinked": KINKED}


def mixture(kind, **options):
    losses = MIXTURES[kind]
    codes = np.random.default_rng(1).integers(0, len(losses), N)
    b = B.copy()
    for code, loss in enumerate(losses):
        if get_loss(loss).classification:
            b[codes == code] = LABELS[codes == code]
    options = PENALTIES["l2"] | options
    return cw.ERM(options.pop("A", A), b, loss=losses, loss_codes=codes, **options)


def by_hand(problem, w, y):
    """P(w) and D(y) row by row from the losses alone."""
    s = np.ones(N) if problem.sample_weight is None else problem.sample_weight
    rows = np.asarray(problem.A.todense() if hasattr(problem.A, "todense") else problem.A)
    primal, dual = 0.0, 0.0
    for i in range(N):
        loss = problem.loss.losses[problem.loss.codes[i]]
        primal += loss.value(rows[i] @ w, problem.b[i, 0], s[i]) / s.sum()
        dual += loss.conjugate(y[i], problem.b[i, 0], s[i]) / s.sum()
    return primal + problem.penalty.value(w), dual + problem.penalty.conjugate(-rows.T @ y / s.sum())


@pytest.mark.parametrize("kind", MIXTURES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("method", ["auto", "sdca", "nu_acdm"])
def test_certificates_are_the_formula(kind, penalty, method):
    problem = mixture(kind, **PENALTIES[penalty])
    objectives = [problem.dual()] + ([problem.primal()] if kind == "smooth" else [])
    for objective in objectives:
        found = cw.solve(objective, method, tol=1e-7, max_passes=20000)
        assert found.converged
        primal, dual = by_hand(problem, found.w, found.y)
        np.testing.assert_allclose(found.primal, primal, rtol=1e-12)
        np.testing.assert_allclose(found.gap, primal + dual, rtol=1e-4, atol=1e-12 * abs(primal))
        np.testing.assert_allclose(problem.gap(found.w, found.y), primal + dual, rtol=1e-4, atol=1e-12 * abs(primal))
        assert 0 <= found.gap <= 1e-7 * found.scale
        np.testing.assert_allclose(found.scale, by_hand(problem, np.zeros(D), np.zeros(N))[0], rtol=1e-12)


@pytest.mark.parametrize("penalty", ["l2", "elastic_net"])
def test_primal_and_dual_agree_with_scipy(penalty):
    problem = mixture("smooth", **PENALTIES[penalty])
    primal, dual = (cw.solve(objective, tol=1e-10) for objective in (problem.primal(), problem.dual()))
    np.testing.assert_allclose(primal.w, dual.w, atol=1e-4)
    split = np.concatenate([np.maximum(primal.w, 0), np.maximum(-primal.w, 0)]) + 0.01
    bounds = [(0, None)] * (2 * D)  # w = p - q makes |w|_1 smooth
    best = scipy_minimize(
        lambda pq: float(problem.value(pq[:D] - pq[D:])),
        split,
        bounds=bounds,
        method="L-BFGS-B",
        options=dict(maxiter=2000),
    )
    assert primal.primal <= best.fun + 1e-9
    assert best.fun <= primal.primal + 1e-5


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", METHODS)
def test_mixtures_of_one_loss_take_the_steps_of_the_kernel(loss, method):
    b = LABELS if LOSSES[loss].classification else B
    mixed = dict(loss=["squared" if loss != "squared" else "huber", loss], loss_codes=np.ones(N, int))
    for penalty in ("l2", "elastic_net"):
        one = cw.ERM(A, b, loss=loss, **PENALTIES[penalty])
        other = cw.ERM(A, b, **mixed, **PENALTIES[penalty])
        pairs = [(one.dual(), other.dual())]
        if LOSSES[loss]().gamma > 0:
            pairs.append((one.primal(), other.primal()))
        for plain, varied in pairs:
            options = dict(tol=0, max_passes=6, random_state=5, record_growth=0)
            expected, found = cw.solve(plain, method, **options), cw.solve(varied, method, **options)
            assert found.iterations == expected.iterations
            np.testing.assert_allclose(found.x, expected.x, rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(found.history.gap, expected.history.gap, rtol=1e-6, atol=1e-12)
            np.testing.assert_allclose(found.constants.Theta or 0, expected.constants.Theta or 0, rtol=1e-12)


@pytest.mark.parametrize("kind", MIXTURES)
def test_steps_are_those_of_the_reference(kind):
    problem = mixture(kind)
    objective, steps = problem.dual(), 5 * N
    gram = A @ A.T / (problem.penalty.l2 * N**2)
    L = np.diag(gram).copy()
    p = np.maximum(np.sqrt(L), 0.0) / np.sqrt(L).sum()
    indices = sampling.draw_weighted(3, sampling.alias_cells(p), steps)

    def prox(i, t, theta):
        loss = problem.loss.losses[problem.loss.codes[i]]
        return float(loss.prox_conjugate(t, theta / N, problem.b[i, 0]))

    partial = lambda i, y: gram[i] @ y  # noqa: E731
    run = reference.linear_coupling(partial, L, np.zeros(N), indices, p=p, weights=np.ones(N), sigma=None, prox=prox)
    expected = list(run)
    seen = []
    cw.solve(
        objective,
        "nu_acdm_ns",
        tol=0,
        max_passes=5,
        random_state=3,
        record_growth=0,
        callback=lambda progress: seen.append((progress.iterations, progress.solution())),
    )
    assert seen[-1][0] == steps
    for iteration, w in seen[1:]:
        np.testing.assert_allclose(w, -A.T @ expected[iteration - 1] / (problem.penalty.l2 * N), rtol=0, atol=1e-9)


@pytest.mark.parametrize("storage", STORAGES)
def test_any_storage(storage):
    sparse = data(density=0.4)[0]
    for kind in MIXTURES:
        problem = mixture(kind, A=STORAGES[storage](sparse))
        found = cw.solve(problem.dual(), tol=1e-7, max_passes=20000)
        expected = cw.solve(mixture(kind, A=sparse).dual(), "sdca", tol=1e-8, max_passes=20000)
        assert found.converged
        assert abs(found.primal - expected.primal) <= found.gap + expected.gap


def test_sample_weights_repeat_and_leave_out_rows():
    weights = np.random.default_rng(2).integers(0, 3, N).astype(float)
    for kind in MIXTURES:
        weighted = mixture(kind, sample_weight=weights)
        repeated = np.repeat(np.arange(N), weights.astype(int))
        plain = cw.ERM(
            A[repeated],
            weighted.b[repeated, 0],
            loss=MIXTURES[kind],
            loss_codes=weighted.loss.codes[repeated].astype(int),
            **PENALTIES["l2"],
        )
        one, other = (cw.solve(problem.dual(), tol=1e-8, max_passes=20000) for problem in (weighted, plain))
        assert one.converged
        assert other.converged
        assert abs(one.primal - other.primal) <= one.gap + other.gap
        assert np.all(one.y[weights == 0] == 0)


def test_several_outputs():
    problem = mixture("kinked")
    both = cw.ERM(
        A,
        np.column_stack([problem.b[:, 0], np.where(np.abs(problem.b[:, 0]) == 1, -1, 2) * problem.b[:, 0]]),
        loss=KINKED,
        loss_codes=problem.loss.codes.astype(int),
        **PENALTIES["l2"],
    )
    found = cw.solve(both.dual(), tol=1e-7, max_passes=20000)
    assert found.converged
    alone = cw.solve(problem.dual(), tol=1e-7, max_passes=20000)
    assert abs(found.primal[0] - alone.primal) <= found.gap[0] + alone.gap


def test_l1_with_an_offset_and_with_smoothing():
    problem = mixture("smooth", penalty="l1", lam=0.05)
    found = cw.solve(problem.primal(), tol=1e-8)
    assert found.converged
    smoothed = cw.solve(problem.dual(smoothing=1e-4), tol=1e-8, max_passes=20000)
    assert smoothed.converged
    best = found.primal - found.gap
    assert best <= problem.value(smoothed.w) <= found.primal + smoothed.gap + problem.dual(1e-4).smoothing_error
    shifted = cw.solve(problem.primal(offset=0.7), tol=1e-8)
    t = A @ shifted.w + 0.7
    by_formula = problem.loss.value(t, problem.b[:, 0]).mean() + problem.penalty.value(shifted.w)
    np.testing.assert_allclose(shifted.primal, by_formula, rtol=1e-12)


def test_pointwise_functions_follow_the_codes():
    loss = mixture("smooth").loss
    b, t = mixture("smooth").b[:, 0], np.linspace(-3, 3, N)
    for i in (0, 7, 50):
        one = loss.losses[loss.codes[i]]
        assert loss.value(t, b)[i] == one.value(t[i], b[i])
        assert loss.derivative(t, b, 2.0)[i] == one.derivative(t[i], b[i], 2.0)
        assert loss.second_derivative(t, b)[i] == one.second_derivative(t[i], b[i])
        y = loss.derivative(t, b)
        np.testing.assert_allclose(loss.value(t, b) + loss.conjugate(y, b), t * y, atol=1e-12)
        assert tuple(bound[i] for bound in loss.domain(b)) == tuple(map(float, one.domain(b[i])))
        np.testing.assert_allclose(loss.prox_conjugate(t, 0.5, b)[i], one.prox_conjugate(t[i], 0.5, b[i]))
    assert loss.gamma == min(get_loss(part).gamma for part in SMOOTH)


def test_time_limits_and_ctrl_c_end_runs():
    problem = mixture("kinked", lam=1e-9)
    found = cw.solve(problem.dual(), "nu_acdm_ns", tol=0, max_passes=10**9, time_limit=0.1)
    assert found.status == "time_limit"
    threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(cw.Interrupted) as stop:
        cw.solve(problem.dual(), "nu_acdm_ns", tol=0, max_passes=10**9, time_limit=60.0)
    assert stop.value.result.status == "interrupted"


def test_labels_are_asked_for_on_rows_of_classification_losses_only():
    codes = np.arange(N) % 2
    b = np.where(codes == 1, LABELS, B)
    cw.ERM(A, b, loss=["squared", "hinge"], loss_codes=codes, lam=0.1)
    b[1] = 0.5
    with refused(r"^b holds labels other than -1 and \+1 \(found .*0\.5.*loss='hinge' needs"):
        cw.ERM(A, b, loss=["squared", "hinge"], loss_codes=codes, lam=0.1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(loss=["squared", "huber"]), ValueError, "^loss is a list, so loss_codes must say which"),
        (dict(loss="huber", loss_codes=np.zeros(N, int)), ValueError, "^loss_codes is for a list of losses"),
        (
            dict(loss=["squared"], loss_codes=np.zeros(3, int)),
            ValueError,
            r"^loss_codes has shape \(3,\); it must have",
        ),
        (dict(loss=["squared"], loss_codes=np.ones(N, int)), ValueError, "^loss_codes holds 1 to 1; with 1 losses"),
        (dict(loss=["squared"], loss_codes=-np.ones(N, int)), ValueError, "^loss_codes holds -1 to -1"),
        (dict(loss=["squared"], loss_codes=np.zeros(N)), TypeError, "^loss_codes must be an array of integers"),
        (dict(loss=[], loss_codes=np.zeros(N, int)), ValueError, "^loss is a list of 0 losses"),
        (dict(loss=["squred"], loss_codes=np.zeros(N, int)), ValueError, "^loss='squred' is not known"),
        (dict(loss=[3], loss_codes=np.zeros(N, int)), TypeError, "^loss must be one of"),
    ],
)
def test_refusals(options, error, message):
    with refused(message, error):
        cw.ERM(A, B, lam=0.1, **options)


def test_a_kink_on_any_row_refuses_the_primal():
    with refused("^loss='mixture' has a kink, so its primal"):
        mixture("kinked").primal()
    codes = np.zeros(N, int)  # a loss that no row has does not matter
    cw.solve(cw.ERM(A, B, loss=["squared", "hinge"], loss_codes=codes, lam=0.1).primal(), tol=1e-6)
