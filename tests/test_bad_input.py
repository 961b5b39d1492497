"""Wrong arguments are refused by name with advice; unusual but legal problems are solved, or refused, never wrong."""

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.losses import LOSSES

N, D = 12, 4


def data(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


A, B = data()
LABELS = np.where(B > 0, 1.0, -1.0)


def erm(loss="squared", **options):
    options = {"penalty": "l2", "lam": 0.1} | options
    return cw.ERM(A, LABELS if LOSSES[loss].classification else B, loss, **options)


def refused(message, error=ValueError):
    return pytest.raises(error, match=message)


# --- ERM --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            dict(loss="logistc"),
            ValueError,
            r"^loss='logistc' is not known. Did you mean 'logistic'\? Known: absolute, ",
        ),
        (dict(loss="Squared"), ValueError, r"^loss='Squared' is not known. Did you mean 'squared'\?"),
        (dict(loss="squared-hinge"), ValueError, r"Did you mean 'squared_hinge'\?"),
        (dict(loss="xyz"), ValueError, r"^loss='xyz' is not known. Known: .*squared"),
        (dict(loss=None), TypeError, r"^loss must be one of absolute, .*, not NoneType"),
        (dict(loss=cw.losses.Huber), TypeError, r"^loss must be one of .* or an object of that kind, not type"),
        (dict(penalty="elasticnet"), ValueError, r"^penalty='elasticnet' is not known. Did you mean 'elastic_net'\?"),
        (dict(penalty="l3"), ValueError, r"^penalty='l3' is not known. .*Known: elastic_net, l1, l2"),
        (dict(penalty=2), TypeError, r"^penalty must be one of elastic_net, l1, l2 .*not int"),
        (dict(lam=None), ValueError, r"needs lam, the weight of the penalty; give lam > 0"),
        (dict(lam=0), ValueError, r"^lam=0 is out of range; it must be > 0"),
        (dict(lam=-1e-9), ValueError, r"^lam=-1e-09 is out of range; it must be > 0"),
        (dict(lam=np.nan), ValueError, r"^lam=nan is not a finite number; it must be > 0"),
        (dict(lam=np.inf), ValueError, r"^lam=inf is not a finite number; it must be > 0"),
        (dict(lam="0.1"), TypeError, r"^lam must be a real number, not str"),
        (dict(lam=[0.1]), TypeError, r"^lam must be a real number, not list"),
        (dict(lam=True), TypeError, r"^lam must be a real number, not bool"),
        (dict(l1_ratio=0.5), ValueError, r"^l1_ratio has no meaning for penalty='l2'; use penalty='elastic_net'"),
        (dict(penalty="elastic_net"), ValueError, r"needs l1_ratio in \[0, 1\]"),
        (dict(penalty="elastic_net", l1_ratio=-0.1), ValueError, r"^l1_ratio=-0.1 is out of range; it must be >= 0"),
        (
            dict(penalty=cw.penalties.L2(1.0)),
            ValueError,
            r"^lam, l1_ratio and positive belong to a penalty given by name",
        ),
        (dict(positive="no"), TypeError, r"^positive must be True or False, not str"),
    ],
)
def test_erm_refuses_wrong_options(options, error, message):
    with refused(message, error):
        cw.ERM(A, B, **({"lam": 0.1} | options))


@pytest.mark.parametrize(
    ("b", "error", "message"),
    [
        (
            B[:-1],
            ValueError,
            rf"^b has shape \({N - 1},\); with {N} rows of A it must have shape \({N},\) or \({N}, K\)",
        ),
        (np.ones(N + 1), ValueError, rf"^b has shape \({N + 1},\)"),
        (np.ones((1, N)), ValueError, rf"^b has shape \(1, {N}\)"),
        (np.ones((N, 2, 2)), ValueError, rf"^b has shape \({N}, 2, 2\)"),
        (3.0, ValueError, r"^b has shape \(\)"),
        ([], ValueError, r"^b has shape \(0,\)"),
        (np.ones((N, 0)), ValueError, r"^b has no columns; give at least one output"),
        (
            np.where(np.arange(N) == 3, np.nan, B),
            ValueError,
            r"^b holds NaN or infinity \(first at index \[3\]\); remove",
        ),
        (np.where(np.arange(N) == 3, np.inf, B), ValueError, r"^b holds NaN or infinity"),
        (B + 1j, TypeError, r"^b must be an array of real numbers, not dtype complex128; convert it to float64"),
        ([str(v) for v in B], TypeError, r"^b must be an array of real numbers, not dtype <U"),
        (["yes"] * N, TypeError, r"^b must be an array of real numbers"),
        (B.astype(object), TypeError, r"^b must be an array of real numbers, not dtype object"),
        (None, TypeError, r"^b must be an array of real numbers, not NoneType"),
        ("b", TypeError, r"^b must be an array of real numbers, not str"),
        (sp.csr_array(B[:, None]), TypeError, r"^b must be an array of real numbers, not csr_array"),
        ([[1.0, 2.0], [3.0]], TypeError, r"^b must be an array of real numbers \("),
        (np.ma.masked_array(B, mask=B > 0), ValueError, r"^b has masked entries; fill or remove them"),
    ],
)
@pytest.mark.parametrize(
    "make", [lambda b: cw.ERM(A, b, lam=0.1), lambda b: cw.LinearSystem(A, b), lambda b: cw.LeastSquares(A, b)]
)
def test_wrong_targets_are_refused(make, b, error, message):
    with refused(message, error):
        make(b)


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.classification])
@pytest.mark.parametrize("labels", [(0.0, 1.0), (1.0, 2.0), (-1.0, 0.5), (-2.0, 2.0)])
def test_classification_losses_want_labels_of_unit_size(loss, labels):
    b = np.where(B > 0, *labels)
    with refused(
        rf"^b holds labels other than -1 and \+1 \(found .*loss='{loss}' needs; map your two classes to -1.0 and 1.0"
    ):
        cw.ERM(A, b, loss, lam=0.1)
    with refused(r"^b holds labels other than"):
        cw.ERM(A, np.column_stack([LABELS, b]), loss, lam=0.1)
    cw.ERM(A, LABELS.astype(int), loss, lam=0.1)  # whole numbers are fine


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (np.ones(N - 1), ValueError, rf"^sample_weight has shape \({N - 1},\); it must have shape \({N},\)"),
        (np.ones((N, 1)), ValueError, rf"^sample_weight has shape \({N}, 1\)"),
        (1.0, ValueError, r"^sample_weight has shape \(\)"),
        (
            np.where(np.arange(N) == 2, -1.0, 1.0),
            ValueError,
            r"^sample_weight must be non-negative with at least one positive",
        ),
        (np.zeros(N), ValueError, r"^sample_weight must be non-negative with at least one positive"),
        (np.where(np.arange(N) == 2, np.nan, 1.0), ValueError, r"^sample_weight holds NaN or infinity"),
        (np.full(N, np.inf), ValueError, r"^sample_weight holds NaN or infinity"),
        ("balanced", TypeError, r"^sample_weight must be an array of real numbers, not str"),
        (np.ones(N) * 1j, TypeError, r"^sample_weight must be an array of real numbers, not dtype complex128"),
        (np.full(N, "1"), TypeError, r"^sample_weight must be an array of real numbers, not dtype <U1"),
    ],
)
def test_wrong_sample_weights_are_refused(weight, error, message):
    with refused(message, error):
        cw.ERM(A, B, lam=0.1, sample_weight=weight)


MATRICES = {
    "vector": (lambda: B, ValueError, r"^A must be two-dimensional"),
    "cube": (lambda: np.ones((N, 2, 2)), ValueError, r"^A must be two-dimensional"),
    "nan": (lambda: np.where(A > 1, np.nan, A), ValueError, r"^A holds NaN or infinity .*remove or impute"),
    "sparse inf": (lambda: sp.csr_array(np.where(A > 1, np.inf, A)), ValueError, r"^A holds NaN or infinity"),
    "strings": (lambda: A.astype(str), TypeError, r"^A must hold real numbers, not dtype <U"),
    "objects": (lambda: A.astype(object), TypeError, r"^A must be a matrix of numbers, but "),
    "complex": (lambda: A * 1j, TypeError, r"^A must hold real numbers, not dtype complex128"),
    "ragged": (lambda: [[1.0, 2.0]] * (N - 1) + [[3.0]], TypeError, r"^A must be a numerical matrix"),
    "none": (lambda: None, TypeError, r"^A must be a matrix of numbers"),
    "string": (lambda: "A", ValueError, r"^A must be two-dimensional"),
    "no columns": (lambda: np.ones((N, 0)), ValueError, r"^A is empty: its shape is .*at least one row and one column"),
    "no entries at all": (lambda: sp.csr_array((N, 0)), ValueError, r"^A is empty"),
    "masked": (lambda: np.ma.masked_greater(A, 1), ValueError, r"^A has masked entries"),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize(
    "make",
    [
        lambda A: cw.ERM(A, B, lam=0.1).dual(),
        lambda A: cw.ERM(A, B, lam=0.1).primal(),
        lambda A: cw.LinearSystem(A, B),
        lambda A: cw.LeastSquares(A, B),
    ],
    ids=["dual", "primal", "system", "least_squares"],
)
def test_wrong_matrices_are_refused(make, name):
    matrix, error, message = MATRICES[name]
    with refused(message, error):
        make(matrix())


@pytest.mark.parametrize(
    "make",
    [
        lambda A, b: cw.ERM(A, b, lam=0.1).dual(),
        lambda A, b: cw.ERM(A, b, lam=0.1).primal(),
        lambda A, b: cw.ERM(A, b, penalty="l1", lam=0.1).dual(),
        lambda A, b: cw.ERM(A, b, penalty="l1", lam=0.1).primal(),
        lambda A, b: cw.ERM(A, b, lam=0.1).value(np.zeros(3)),
        lambda A, b: cw.ERM(A, b, lam=0.1).dual_value(np.zeros(0)),
        lambda A, b: cw.LinearSystem(A, b),
        lambda A, b: cw.LeastSquares(A, b),
    ],
)
def test_no_samples_are_refused(make):
    with refused(r"^A is empty: its shape is \(0, 3\)"):
        make(np.zeros((0, 3)), np.zeros(0))


@pytest.mark.parametrize("loss", ["hinge", "absolute", "l2l1", "quantile", "epsilon_insensitive"])
def test_primal_of_losses_with_a_kink_is_refused(loss):
    with refused(rf"^loss='{loss}' has a kink.*Use problem\.dual\(\)\.$"):
        erm(loss).primal()
    with refused(rf"^loss='{loss}' has a kink.*dual\(\) with a penalty that has an l2 part, or with smoothing="):
        erm(loss, penalty="l1").primal()


def test_dual_of_l1_is_refused_with_advice_that_works():
    problem = erm(penalty="l1")
    with refused(
        r"^penalty='l1' has a dual without smoothness\. Use problem\.primal\(\), or problem\.dual\(smoothing="
    ) as info:
        problem.dual()
    advice = float(str(info.value).split("; lam2=")[1].split()[0])
    objective = problem.dual(smoothing=advice)
    at_zero = problem.value(np.zeros(D))
    assert objective.smoothing_error <= 1.05e-3 * at_zero  # the advice is rounded to two digits
    smoothed = cw.solve(objective, tol=1e-10, max_passes=1e5)
    exact = cw.solve(problem.primal(), tol=1e-10, max_passes=1e5)
    assert smoothed.converged
    assert exact.converged
    assert problem.value(smoothed.w) - exact.primal <= 1e-3 * at_zero
    with refused(r"^penalty='l1' alone gives no w for a y; solve the primal, or smooth: dual\(smoothing="):
        problem.primal_point(np.zeros(N))


@pytest.mark.parametrize("penalty", [dict(penalty="l2"), dict(penalty="elastic_net", l1_ratio=0.5)])
def test_smoothing_is_refused_where_there_is_an_l2_part(penalty):
    with refused(r"^smoothing is for penalties without an l2 part"):
        erm(**penalty).dual(smoothing=0.1)


@pytest.mark.parametrize("smoothing", [0, -1.0, np.nan, np.inf])
def test_wrong_smoothing_is_refused(smoothing):
    with refused(r"^smoothing=.* must be > 0"):
        erm(penalty="l1").dual(smoothing=smoothing)
    with refused(r"^smoothing must be a real number, not str", TypeError):
        erm(penalty="l1").dual(smoothing="a bit")


def test_points_of_the_wrong_shape_are_refused():
    problem, several = erm(), cw.ERM(A, np.column_stack([B, B]), lam=0.1)
    for method in (problem.value, problem.predict, problem.dual_point):
        for wrong in (np.ones(D + 1), np.ones((D, 1)), 1.0):
            with refused(rf"^w has shape .*; it must have shape \({D},\)"):
                method(wrong)
        with refused(r"^w holds NaN or infinity"):
            method(np.full(D, np.nan))
    for method in (problem.dual_value, problem.primal_point):
        for wrong in (np.ones(N - 1), np.ones((N, 2))):
            with refused(rf"^y has shape .*; it must have shape \({N},\)"):
                method(wrong)
        with refused(r"^y must be an array of real numbers", TypeError):
            method(["a"] * N)
    with refused(rf"^w has shape .*; it must have shape \({D}, 2\)"):
        several.value(np.ones(D))
    with refused(rf"^y has shape .*; it must have shape \({N}, 2\)"):
        several.gap(np.ones((D, 2)), np.ones(N))


@pytest.mark.parametrize("damp", [-1.0, np.nan, np.inf])
def test_wrong_damping_is_refused(damp):
    with refused(r"^damp=.*must be >= 0"):
        cw.LeastSquares(A, B, damp=damp)
    with refused(r"^damp must be a real number, not str", TypeError):
        cw.LeastSquares(A, B, damp="1")


# --- solve ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(method="nu-acdm"), ValueError, r"^method='nu-acdm' is not known. Did you mean 'nu_acdm'\? Known: acdm, "),
        (dict(method="kaczmarcz"), ValueError, r"Did you mean 'kaczmarz'\?"),
        (dict(method="lbfgs"), ValueError, r"^method='lbfgs' is not known.* Known: .*sdca"),
        (dict(method=None), TypeError, r"^method must be one of acdm, .*not NoneType"),
        (dict(method=cw.SDCA), TypeError, r"^method is the class SDCA; make a method of it: SDCA\(\)"),
        (dict(tol=-1e-9), ValueError, r"^tol=-1e-09 is out of range; it must be >= 0"),
        (dict(tol=np.nan), ValueError, r"^tol=nan is not a finite number; it must be >= 0"),
        (dict(tol="tight"), TypeError, r"^tol must be a real number, not str"),
        (dict(tol=None), TypeError, r"^tol must be a real number, not NoneType"),
        (dict(max_passes=0), ValueError, r"^max_passes=0 is out of range; it must be > 0"),
        (dict(max_passes=-3), ValueError, r"^max_passes=-3 is out of range; it must be > 0"),
        (dict(max_passes=np.nan), ValueError, r"^max_passes=nan is not a finite number"),
        (dict(max_passes=None), TypeError, r"^max_passes must be a real number, not NoneType"),
        (dict(time_limit=-1), ValueError, r"^time_limit=-1 is out of range; it must be >= 0"),
        (dict(time_limit=np.nan), ValueError, r"^time_limit=nan is not a finite number"),
        (dict(time_limit="1s"), TypeError, r"^time_limit must be a real number, not str"),
        (dict(record_every=0), ValueError, r"^record_every=0 is out of range; it must be > 0"),
        (dict(record_every=-1), ValueError, r"^record_every=-1 is out of range; it must be > 0"),
        (dict(record_every=np.inf), ValueError, r"^record_every=inf is not a finite number"),
        (dict(record_every="often"), TypeError, r"^record_every must be a real number, not str"),
        (dict(record_growth=-0.1), ValueError, r"^record_growth=-0.1 is out of range; it must be >= 0"),
        (dict(record_growth=None), TypeError, r"^record_growth must be a real number, not NoneType"),
        (dict(random_state=-1), ValueError, r"^random_state=-1 is negative; give an integer >= 0, a Generator or None"),
        (
            dict(random_state=1.0),
            TypeError,
            r"^random_state must be an int, numpy.random.Generator, RandomState or None, not float",
        ),
        (dict(random_state="seed"), TypeError, r"^random_state must be an int, .*not str"),
        (dict(random_state=True), TypeError, r"^random_state must be an int, .*not bool"),
        (dict(n_jobs=0), ValueError, r"^n_jobs=0 is out of range; it must be >= 1"),
        (dict(n_jobs=-2), ValueError, r"^n_jobs=-2 is out of range; it must be >= 1"),
        (dict(n_jobs=np.inf), ValueError, r"^n_jobs=inf is not a finite number"),
        (dict(n_jobs="all"), TypeError, r"^n_jobs must be .*, not str"),
        (dict(n_jobs=None), TypeError, r"^n_jobs must be .*, not NoneType"),
        (dict(n_jobs=1.5), (TypeError, ValueError), r"^n_jobs"),
        (dict(callback=3), TypeError, r"^callback must be callable, not int"),
        (dict(callback="print"), TypeError, r"^callback must be callable, not str"),
        (dict(x0=np.zeros(N + 1)), ValueError, rf"^x0 has shape \({N + 1},\); it must have shape \({N},\)"),
        (dict(x0=np.zeros(D)), ValueError, rf"^x0 has shape \({D},\); it must have shape \({N},\)"),
        (dict(x0=np.zeros((N, 1))), ValueError, rf"^x0 has shape \({N}, 1\); it must have shape \({N},\)"),
        (dict(x0=0.0), ValueError, r"^x0 has shape \(\)"),
        (dict(x0=np.full(N, np.nan)), ValueError, r"^x0 holds NaN or infinity"),
        (dict(x0="zeros"), TypeError, r"^x0 must be an array of real numbers, not str"),
        (dict(x0=np.zeros(N, complex)), TypeError, r"^x0 must be an array of real numbers, not dtype complex128"),
    ],
)
def test_solve_refuses_wrong_options(options, error, message):
    with refused(message, error):
        cw.solve(erm().dual(), **options)


def test_solve_refuses_what_is_not_an_objective():
    with refused(
        r"^objective must be a coordwise objective, not ERM; call \.dual\(\) or \.primal\(\) on it first", TypeError
    ):
        cw.solve(erm())
    with refused(r"^objective must be a coordwise objective, not method; call it, as in problem\.dual\(\)", TypeError):
        cw.solve(erm().dual)
    for wrong in (None, A, "ridge"):
        with refused(rf"^objective must be a coordwise objective, not {type(wrong).__name__}\.", TypeError):
            cw.solve(wrong)


def test_x0_with_several_outputs():
    objective = cw.ERM(A, np.column_stack([B, B]), lam=0.1).dual()
    for wrong in (np.zeros(N), np.zeros((N, 3)), np.zeros((2, N))):
        with refused(rf"^x0 has shape .*; it must have shape \({N}, 2\)"):
            cw.solve(objective, x0=wrong)


@pytest.mark.parametrize("make", [lambda: erm().dual(), lambda: erm().primal(), lambda: cw.LeastSquares(A, B)])
def test_kaczmarz_solves_linear_systems_only(make):
    objective = make()
    with refused(
        rf"^kaczmarz solves linear systems only, not {type(objective).__name__}; use LinearSystem\(A, b\), or 'rcdm'"
    ):
        cw.solve(objective, "kaczmarz")


@pytest.mark.parametrize("loss", ["hinge", "absolute", "quantile", "epsilon_insensitive"])
def test_apcg_needs_strong_convexity(loss):
    with refused(r"^apcg needs strong convexity, .*pass APCG\(sigma=...\).* or use 'approx' or 'auto'"):
        cw.solve(erm(loss).dual(), "apcg")


METHODS_WITH_BETA = [cw.NUACDM, cw.NUACDMns, cw.ACDM, cw.ACDMns, cw.RCDM]


@pytest.mark.parametrize("method", METHODS_WITH_BETA)
def test_wrong_beta_is_refused(method):
    for beta in (2, -0.1, np.nan, np.inf):
        with refused(r"^beta=.* must be >= 0 and <= 1"):
            method(beta=beta)
    for beta in ("half", None, [0.5]):
        with refused(r"^beta must be a real number", TypeError):
            method(beta=beta)


@pytest.mark.parametrize("method", [cw.NUACDM, cw.ACDM, cw.APCG])
def test_wrong_sigma_is_refused(method):
    with refused(r"^sigma='foo' is not known; give a positive number, None"):
        method(sigma="foo")
    for sigma in (0, -1.0, np.nan, np.inf):
        with refused(r"^sigma=.* must be > 0"):
            method(sigma=sigma)
    with refused(r"^sigma must be a real number, not list", TypeError):
        method(sigma=[1.0])


def test_apcg_has_no_adaptive_form():
    with refused(r"^sigma='adaptive' is not known; give a positive number, None\.$"):
        cw.APCG(sigma="adaptive")


@pytest.mark.parametrize("number", [float, np.float64, np.float32, int, np.int64])
@pytest.mark.parametrize("method", [cw.NUACDM, cw.ACDM, cw.APCG])
def test_a_sigma_that_the_terms_do_not_have_is_refused_whatever_its_type(method, number):
    with refused(r"^sigma=1000 is more than the coordinate terms are known to have .*give a smaller sigma, sigma=None"):
        cw.solve(erm("huber").dual(), method(sigma=number(1000)))


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (np.ones(N - 1), ValueError, rf"^weights has shape \({N - 1},\); it must have shape \({N},\)"),
        (np.ones((N, 1)), ValueError, r"^weights has shape"),
        (np.zeros(N), ValueError, r"^weights must be positive, one per coordinate"),
        (np.where(np.arange(N) == 1, -1.0, 1.0), ValueError, r"^weights must be positive, one per coordinate"),
        (np.full(N, np.nan), ValueError, r"^weights holds NaN \(first at index 0\)"),
        (["a"] * N, TypeError, r"^weights must be an array of real numbers"),
    ],
)
@pytest.mark.parametrize("sigma", [None, 1e-3, "adaptive"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_wrong_norm_weights_are_refused(loss, sigma, weights, error, message):
    with refused(message, error):
        cw.solve(erm(loss).dual(), cw.NUACDM(weights=weights, sigma=sigma))


def test_wrong_order_is_refused():
    with refused(r"^order='permuted' is not known. Did you mean 'permutation'\? Known: norms, permutation, uniform"):
        cw.SDCA(order="permuted")
    with refused(r"^order must be one of norms, permutation, uniform", TypeError):
        cw.SDCA(order=None)


# --- minimize ---------------------------------------------------------------------------------------------------------

H = np.diag([2.0, 30.0]) + 0.5


def minimize(**options):
    options = (
        dict(value=lambda x: x @ H @ x / 2 - x.sum(), partial=lambda i, x: H[i] @ x - 1, L=np.diag(H), x0=np.zeros(2))
        | options
    )
    return cw.minimize(**options)


def test_minimize_as_such():
    np.testing.assert_allclose(minimize(tol=1e-10).x, np.linalg.solve(H, np.ones(2)), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(value=3), TypeError, r"^value must be callable, not int"),
        (dict(partial=None), TypeError, r"^partial must be callable, not NoneType"),
        (dict(prox=3), TypeError, r"^prox must be callable"),
        (dict(callback=3), TypeError, r"^callback must be callable"),
        (dict(L=np.ones((2, 2))), ValueError, r"^L has shape \(2, 2\); it must have shape \(any,\)"),
        (dict(L=1.0), ValueError, r"^L has shape \(\)"),
        (dict(L=[]), ValueError, r"^L must hold one positive smoothness constant per coordinate"),
        (dict(L=[1.0, 0.0]), ValueError, r"^L must hold one positive smoothness constant per coordinate"),
        (dict(L=[1.0, -2.0]), ValueError, r"^L must hold one positive smoothness constant per coordinate"),
        (dict(L=[1.0, np.nan]), ValueError, r"^L holds NaN or infinity"),
        (dict(L="ones"), TypeError, r"^L must be an array of real numbers"),
        (dict(x0=np.zeros(3)), ValueError, r"^x0 has shape \(3,\); it must have shape \(2,\)"),
        (dict(x0=[np.inf, 0]), ValueError, r"^x0 holds NaN or infinity"),
        (dict(x0=None), TypeError, r"^x0 must be an array of real numbers, not NoneType"),
        (dict(sigma=0), ValueError, r"^sigma=0 is out of range; it must be > 0"),
        (dict(sigma="adaptive"), TypeError, r"^sigma must be a real number, not str"),
        (dict(method="nu_acdm"), ValueError, r"^method='nu_acdm' needs sigma.*without one use 'nu_acdm_ns'"),
        (dict(method="acdm"), ValueError, r"^method='acdm' needs sigma"),
        (dict(method="apcg"), ValueError, r"^method='apcg' needs sigma"),
        (dict(method="sdca"), ValueError, r"^method='sdca' cannot be run on callables; use nu_acdm, nu_acdm_ns, acdm"),
        (dict(method="kaczmarz"), ValueError, r"^method='kaczmarz' cannot be run on callables"),
        (dict(method="newton"), ValueError, r"^method='newton' is not known"),
        (dict(tol=-1), ValueError, r"^tol=-1 is out of range; it must be >= 0"),
        (dict(max_iter=-1), ValueError, r"^max_iter=-1 is out of range; it must be >= 0"),
        (dict(max_iter=10.5), (TypeError, ValueError), r"^max_iter"),
        (dict(max_iter="many"), TypeError, r"^max_iter must be .*, not str"),
        (dict(time_limit=-1), ValueError, r"^time_limit=-1 is out of range"),
        (dict(random_state="x"), TypeError, r"^random_state must be an int"),
        (dict(method=cw.NUACDM(weights=np.ones(3)), sigma=1.0), ValueError, r"^weights has shape \(3,\)"),
        (dict(method=cw.NUACDM(weights=[1.0, 0.0]), sigma=1.0), ValueError, r"^weights must be positive"),
        (dict(method=cw.NUACDM(weights=[1.0, -1.0]), sigma=1.0), ValueError, r"^weights must be positive"),
    ],
)
def test_minimize_refuses_wrong_options(options, error, message):
    with refused(message, error):
        minimize(**options)


def test_minimize_takes_sigma_of_any_real_type_from_the_method():
    for sigma in (2.0, np.float32(2.0), np.int64(2)):
        assert minimize(method=cw.NUACDM(sigma=sigma)).bound < 1e-10


# --- theory -----------------------------------------------------------------------------------------------------------

THEORY = {
    "S": lambda L=(1.0, 4.0), **k: cw.theory.S(L, **({"alpha": 0.5} | k)),
    "speedup": lambda L=(1.0, 4.0), **k: cw.theory.speedup(L, **k),
    "iterations": lambda L=(1.0, 4.0), **k: cw.theory.iterations(L, **({"epsilon": 1e-3, "sigma": 0.1} | k)),
    "strongly_convex_bound": lambda L=(1.0, 4.0), **k: cw.theory.strongly_convex_bound(
        L, **({"sigma": 0.1, "beta": 0.0, "T": 10, "gap0": 1.0, "distance": 1.0} | k)
    ),
    "ns_bound": lambda L=(1.0, 4.0), **k: cw.theory.ns_bound(L, **({"beta": 0.0, "T": 10, "distance": 1.0} | k)),
}


@pytest.mark.parametrize("name", THEORY)
def test_theory_checks_the_smoothness_parameters(name):
    function = THEORY[name]
    assert function() > 0
    for wrong in (np.ones((2, 2)), 1.0):
        with refused(r"^L has shape .*; it must have shape \(any,\)"):
            function(wrong)
    for wrong in ([], [0.0, 0.0], [1.0, -1.0]):
        with refused(r"^L must be non-negative with at least one positive entry"):
            function(wrong)
    with refused(r"^L holds NaN or infinity"):
        function([1.0, np.nan])
    for wrong in ("L", None, ["a"], [1j]):
        with refused(r"^L must be an array of real numbers", TypeError):
            function(wrong)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("S", dict(alpha=np.nan), ValueError, r"^alpha=nan is not a finite number; it must be finite"),
        ("S", dict(alpha="half"), TypeError, r"^alpha must be a real number, not str"),
        ("speedup", dict(beta=2), ValueError, r"^beta=2 is out of range; it must be >= 0 and <= 1"),
        ("speedup", dict(weights=[1.0]), ValueError, r"^weights has shape \(1,\); it must have shape \(2,\)"),
        ("speedup", dict(weights=[1.0, 0.0]), ValueError, r"^weights must be positive"),
        ("iterations", dict(method="apgc"), ValueError, r"^method='apgc' is not known. Did you mean 'apcg'\?"),
        ("iterations", dict(method="apcg"), ValueError, r"^apcg has a bound for beta=1 only; pass beta=1"),
        ("iterations", dict(beta=-1), ValueError, r"^beta=-1 is out of range"),
        ("iterations", dict(epsilon=0), ValueError, r"^epsilon=0 is out of range; it must be > 0"),
        ("iterations", dict(sigma=0), ValueError, r"^sigma=0 is out of range; it must be > 0"),
        ("iterations", dict(distance=1.0), ValueError, r"^give either sigma .* or distance"),
        ("iterations", dict(sigma=None), ValueError, r"^give either sigma .* or distance"),
        ("iterations", dict(sigma=None, distance=-1.0), ValueError, r"^distance=-1.0 is out of range; it must be >= 0"),
        ("strongly_convex_bound", dict(sigma=0.0), ValueError, r"^sigma=0.0 is out of range; it must be > 0"),
        ("strongly_convex_bound", dict(sigma=-1.0), ValueError, r"^sigma=-1.0 is out of range; it must be > 0"),
        ("strongly_convex_bound", dict(beta=2.0), ValueError, r"^beta=2.0 is out of range; it must be >= 0 and <= 1"),
        ("strongly_convex_bound", dict(T=-1), ValueError, r"^T=-1 is out of range; it must be >= 0"),
        ("strongly_convex_bound", dict(gap0="a"), TypeError, r"^gap0 must be a real number, not str"),
        ("strongly_convex_bound", dict(gap0=-1.0), ValueError, r"^gap0=-1.0 is out of range; it must be >= 0"),
        ("strongly_convex_bound", dict(distance=np.nan), ValueError, r"^distance=nan is not a finite number"),
        ("ns_bound", dict(beta=2.0), ValueError, r"^beta=2.0 is out of range; it must be >= 0 and <= 1"),
        ("ns_bound", dict(T=-1), ValueError, r"^T=-1 is out of range; it must be >= 0"),
        ("ns_bound", dict(T="ten"), TypeError, r"^T must be .*, not str"),
        ("ns_bound", dict(distance=-1.0), ValueError, r"^distance=-1.0 is out of range; it must be >= 0"),
    ],
)
def test_theory_refuses_wrong_options(name, options, error, message):
    with refused(message, error):
        THEORY[name](**options)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1.0, 0.0), ValueError, r"^sigma=0.0 is out of range; it must be > 0"),
        ((1.0, -1.0), ValueError, r"^sigma=-1.0 is out of range; it must be > 0"),
        ((1.0, np.nan), ValueError, r"^sigma=nan is not a finite number"),
        ((-1.0, 1.0), ValueError, r"^Theta=-1.0 is out of range"),
        (("a", 1.0), TypeError, r"^Theta must be a real number, not str"),
    ],
)
def test_coupling_refuses_wrong_arguments(arguments, error, message):
    with refused(message, error):
        cw.theory.coupling(*arguments)


# --- unusual but legal: solved or refused, never wrong ----------------------------------------------------------------

SIDES = [(loss, "dual") for loss in LOSSES]
SIDES += [(loss, "primal") for loss in LOSSES if LOSSES[loss]().gamma > 0]  # the primal needs a smooth loss


def check_certified(problem, objective, tol=1e-9, **options):
    """Solve, and check the claim from the returned point alone."""
    result = cw.solve(objective, tol=tol, max_passes=1e5, **options)
    assert result.converged, result.message
    at_zero = problem.value(np.zeros_like(result.w))
    y = result.x if isinstance(objective, type(erm().dual())) else problem.dual_point(result.w)
    gap = np.asarray(problem.gap(result.w, y))
    assert np.all(gap >= -1e-12 * np.asarray(at_zero))
    assert np.all(gap <= tol * np.asarray(at_zero) + 1e-13)
    return result


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
@pytest.mark.parametrize(("loss", "side"), SIDES)
def test_one_sample_or_one_feature(loss, shape, side):
    X, b = data(*shape, seed=3)
    b = np.where(b > 0, 1.0, -1.0) if LOSSES[loss].classification else 3 * b
    for make in (np.asarray, sp.csr_array):
        problem = cw.ERM(make(X), b, loss, lam=0.2)
        check_certified(problem, getattr(problem, side)())


def test_one_sample_by_hand():
    # minimise (a w - b)^2/2 + lam/2 w^2
    result = cw.solve(cw.ERM([[2.0]], [3.0], lam=0.5).dual(), tol=1e-14)
    assert result.w[0] == pytest.approx(6 / 4.5, rel=1e-6)
    assert cw.solve(cw.LinearSystem([[2.0]], [3.0])).w[0] == pytest.approx(1.5)
    assert cw.solve(cw.LeastSquares([[2.0], [1.0]], [3.0, 0.0])).w[0] == pytest.approx(1.2)


@pytest.mark.parametrize(("loss", "side"), SIDES)
def test_constant_labels(loss, side):
    for constant in (1.0, -1.0):
        problem = cw.ERM(A, np.full(N, constant), loss, lam=0.2)
        check_certified(problem, getattr(problem, side)())


def test_zero_targets_have_the_zero_solution():
    for loss in LOSSES:
        if not LOSSES[loss].classification:
            problem = cw.ERM(A, np.zeros(N), loss, lam=0.2)
            result = cw.solve(problem.dual())
            assert result.converged
            np.testing.assert_array_equal(result.w, 0)
    for objective in (cw.LinearSystem(A, np.zeros(N)), cw.LeastSquares(A, np.zeros(N))):
        result = cw.solve(objective)
        assert result.converged
        np.testing.assert_array_equal(result.w, 0)


@pytest.mark.parametrize("method", ["auto", "nu_acdm_ns", "acdm", "approx", "rcdm", "sdca"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_all_zero_matrix(loss, make, method):
    weight = np.linspace(0.1, 1.3, N)
    for options in (dict(), dict(sample_weight=weight)):
        b = LABELS if LOSSES[loss].classification else 5 * B
        problem = cw.ERM(make(np.zeros((N, D))), b, loss, lam=0.2, **options)
        result = check_certified(problem, problem.dual(), method=method)
        np.testing.assert_array_equal(result.w, 0)
        if problem.loss.gamma > 0:
            result = check_certified(problem, problem.primal(), method=method)
            np.testing.assert_allclose(result.w, 0, atol=1e-12)


def test_all_zero_matrix_in_a_linear_system():
    zero = np.zeros((N, D))
    for matrix in (zero, sp.csr_array(zero)):
        assert cw.solve(cw.LinearSystem(matrix, np.zeros(N))).converged
        impossible = cw.solve(cw.LinearSystem(matrix, B))
        assert impossible.status == "inconsistent"
        assert "LeastSquares" in impossible.status.help
        result = cw.solve(cw.LeastSquares(matrix, B))
        assert result.converged  # every x is a least-squares solution
        np.testing.assert_array_equal(result.w, 0)


@pytest.mark.parametrize("method", ["auto", "acdm", "rcdm", "sdca"])
@pytest.mark.parametrize("loss", LOSSES)
def test_zero_rows_and_columns(loss, method):
    """Zero rows add a constant to P, zero columns get w_j = 0; both must not hinder the rest."""
    weight = np.linspace(0.1, 1.3, N)
    X = A.copy()
    X[[2, 5, 6]] = 0
    X[:, 1] = 0
    b = LABELS if LOSSES[loss].classification else 5 * B
    for make in (np.asarray, sp.csr_array, sp.csc_array):
        problem = cw.ERM(make(X), b, loss, lam=0.2, sample_weight=weight)
        result = check_certified(problem, problem.dual(), method=method, tol=1e-7)
        assert result.w[1] == 0
        if problem.loss.gamma > 0:
            result = check_certified(problem, problem.primal(), method=method, tol=1e-7)
            assert abs(result.w[1]) <= 1e-7


@pytest.mark.parametrize("method", ["auto", "approx", "rcdm", "sdca"])
@pytest.mark.parametrize("penalty", [dict(penalty="l1"), dict(penalty="l2"), dict(penalty="elastic_net", l1_ratio=0.5)])
def test_a_start_that_is_wrong_in_a_zero_column_is_corrected(penalty, method):
    X = A.copy()
    X[:, 1] = 0
    problem = cw.ERM(X, B, lam=0.05, **penalty)
    result = cw.solve(problem.primal(), method, x0=np.ones(D), max_passes=1e5)
    assert result.converged, result.message
    assert abs(result.w[1]) <= 2e-3  # what gap <= 1e-8 P(0) guarantees


@pytest.mark.parametrize("n", [13, 33, 65, 66])
def test_saturated_samples_stay_in_the_domain(n):
    """n * (delta/n) may round to more than delta; the dual point must still have a finite value."""
    rng = np.random.default_rng(n)
    X, b = rng.standard_normal((n, 3)), 10 * rng.standard_normal(n)
    for delta in (0.3, 1.35):
        problem = cw.ERM(X, b, cw.losses.Huber(delta), lam=0.1)
        y = problem.dual_point(np.zeros(3))
        np.testing.assert_allclose(y, problem.loss.derivative(0.0, b), rtol=1e-14)
        assert np.isfinite(problem.dual_value(y))
        # so much l1 that w = 0 is optimal: the certificate at the start must say so
        problem = cw.ERM(X, b, cw.losses.Huber(delta), penalty="l1", lam=50.0)
        result = cw.solve(problem.primal())
        assert result.converged, result.message
        np.testing.assert_array_equal(result.w, 0)


OBJECTIVES = {
    "ridge dual": lambda X, b: cw.ERM(X, b, lam=0.1).dual(),
    "ridge primal": lambda X, b: cw.ERM(X, b, lam=0.1).primal(),
    "lasso": lambda X, b: cw.ERM(X, b, penalty="l1", lam=0.01).primal(),
    "huber dual": lambda X, b: cw.ERM(X, b, "huber", lam=0.1).dual(),
    "logistic dual": lambda X, b: cw.ERM(X, np.sign(b), "logistic", lam=0.1).dual(),
    "logistic primal": lambda X, b: cw.ERM(X, np.sign(b), "logistic", lam=0.1).primal(),
    "hinge": lambda X, b: cw.ERM(X, np.sign(b), "hinge", lam=0.1).dual(),
    "elastic net dual": lambda X, b: cw.ERM(X, b, penalty="elastic_net", l1_ratio=0.5, lam=0.1).dual(),
    "linear system": lambda X, b: cw.LinearSystem(X, b),
    "least squares": lambda X, b: cw.LeastSquares(X, b),
    "damped": lambda X, b: cw.LeastSquares(X, b, damp=0.1),
}


def exact_error(name, X, b, w):
    """Relative error of w in exact arithmetic's stead: everything rescaled to size one first."""
    sx, sb = np.abs(X).max(), np.abs(b).max()
    X, b, w = X / sx, b / sb, w * (sx / sb) if sx / sb < 1e300 else (w * sx) / sb
    residual = X @ w - b
    if name == "linear system":
        return np.linalg.norm(residual) / np.linalg.norm(b)
    return np.linalg.norm(X.T @ residual) / np.linalg.norm(X.T @ b)


def solve_or_refuse(make, *arguments):
    """The result, or None if the problem was refused with advice to rescale."""
    try:
        return cw.solve(make(*arguments), max_passes=300)
    except ValueError as error:
        if "rescale" not in str(error):
            raise
        return None


@pytest.mark.parametrize(
    "scale", [1e-200, 1e-170, 1e-160, 1e-150, 1e-100, 1e-30, 1e30, 1e100, 1e150, 1e160, 1e200, 1e300]
)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_huge_and_tiny_matrices(name, scale):
    """Solved with finite numbers and a true certificate, or refused; never a false claim about the problem."""
    X, w = A[:D], np.array([1.0, -2.0, 0.5, 1.5])
    b = X @ w
    if name == "linear system":
        b = b * min(scale, 1e300)  # A x = b with the same x
    result = solve_or_refuse(OBJECTIVES[name], X * scale, b)
    if result is None:
        return
    assert np.all(np.isfinite(result.w))
    assert result.status != "inconsistent"
    if result.converged:
        assert np.all(np.isfinite(result.gap))
        if name in ("linear system", "least squares"):
            assert exact_error(name, X * scale, b, result.w) <= 1e-6
        elif name != "damped":
            assert 0 <= result.gap <= 1e-8 * result.scale


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-170, 1e-150, 1e-100, 1e100, 1e150, 1e160, 1e200, 1e300])
@pytest.mark.parametrize("name", ["ridge dual", "ridge primal", "huber dual", "linear system", "least squares"])
def test_huge_and_tiny_targets(name, scale):
    X = A[:D]
    b = X @ np.array([1.0, -2.0, 0.5, 1.5])
    result = solve_or_refuse(OBJECTIVES[name], X, b * scale)
    if result is None:
        return
    assert np.all(np.isfinite(result.w))
    if result.converged:
        assert np.isfinite(result.gap)
        assert np.isfinite(result.scale)
        if name in ("linear system", "least squares"):
            assert exact_error(name, X, b * scale, result.w) <= 1e-6
        elif name.startswith("ridge"):
            exact = np.linalg.solve(X.T @ X / D + 0.1 * np.eye(D), X.T @ b / D)
            # gap <= 1e-8 P(0) bounds the error of w by sqrt(2 gap/lam)
            np.testing.assert_allclose(result.w / scale, exact, atol=1e-2)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-160, 1e-6, 1e6, 1e160, 1e200, 1e307])
@pytest.mark.parametrize("side", ["dual", "primal"])
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_sample_weights_count_only_relative_to_each_other(loss, side, scale):
    weight = np.linspace(0.5, 2.0, N)
    b = LABELS if loss == "logistic" else B

    def make(weight):
        return getattr(cw.ERM(A, b, loss, lam=0.1, sample_weight=weight), side)()

    wanted = cw.solve(make(weight), tol=1e-12, max_passes=1e4)
    assert wanted.converged
    result = solve_or_refuse(make, weight * scale)
    if result is not None:
        assert result.converged, result.message
        np.testing.assert_allclose(result.w, wanted.w, atol=1e-3)


WEIGHTED = ["squared", "logistic", "squared_hinge", "huber"]


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("side", ["dual", "primal"])
@pytest.mark.parametrize("loss", WEIGHTED)
def test_weights_of_zero_remove_rows_and_whole_weights_repeat_them(loss, side, make, outputs):
    n, d = 30, 5
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, d))
    b = rng.standard_normal(n if outputs is None else (n, outputs))
    b = np.where(b > 0, 1.0, -1.0) if LOSSES[loss].classification else 2 * b
    weight = rng.integers(0, 4, n)
    assert set(weight) == {0, 1, 2, 3}

    def solution(X, b, weight=None):
        problem = cw.ERM(make(X), b, loss, lam=0.3, sample_weight=weight)
        result = cw.solve(getattr(problem, side)(), tol=1e-13, max_passes=1e5)
        assert result.converged, result.message
        return problem, result

    weighted, found = solution(X, b, weight)
    repeated, wanted = solution(np.repeat(X, weight, axis=0), np.repeat(b, weight, axis=0))
    np.testing.assert_allclose(found.w, wanted.w, atol=1e-6)
    np.testing.assert_allclose(weighted.value(wanted.w), repeated.value(wanted.w), rtol=1e-13)
    np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-13)

    some = weight > 0
    _, found = solution(X, b, some.astype(float))
    _, wanted = solution(X[some], b[some])
    np.testing.assert_allclose(found.w, wanted.w, atol=1e-6)
    if side == "dual":
        np.testing.assert_array_equal(found.x[~some], 0)


def test_weighted_ridge_by_hand():
    weight = np.arange(N) % 4.0
    exact = np.linalg.solve(
        A.T @ (weight[:, None] * A) / weight.sum() + 0.1 * np.eye(D), A.T @ (weight * B) / weight.sum()
    )
    problem = cw.ERM(A, B, lam=0.1, sample_weight=weight)
    for objective in (problem.dual(), problem.primal()):
        np.testing.assert_allclose(cw.solve(objective, tol=1e-14).w, exact, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_dual_variables_of_samples_without_weight_must_be_zero(loss):
    """(0 phi)^* is infinite away from 0; a finite value would make the gap no bound."""
    weight = np.ones(N)
    weight[3] = 0
    problem = erm(loss, sample_weight=weight)
    y = np.zeros(N)
    assert np.isfinite(problem.dual_value(y))
    y[3] = -0.25 * problem.b[3, 0]
    assert problem.dual_value(y) == np.inf
    y[3] = 50.0
    result = cw.solve(problem.dual(), x0=y, tol=1e-7, max_passes=1e4)
    assert result.converged, result.message
    assert result.x[3] == 0


def test_starts_outside_the_domain_are_moved_into_it():
    for loss in LOSSES:
        for x0 in (np.full(N, 100.0), np.full(N, -100.0)):
            result = cw.solve(erm(loss).dual(), x0=x0, tol=1e-6, max_passes=1e4)
            assert result.converged, (loss, result.message)


def test_seeds_of_every_kind():
    objective = erm().dual()
    for seed in (
        0,
        2**31,
        2**64 - 1,
        10**30,
        np.int64(5),
        np.uint8(3),
        None,
        np.random.default_rng(0),
        np.random.RandomState(0),
    ):
        assert cw.solve(objective, random_state=seed).converged
    same = [cw.solve(objective, random_state=np.random.default_rng(7)).x for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_a_callback_stops_the_run():
    for answer in (True, np.True_):
        result = cw.solve(erm().dual(), tol=0, max_passes=50, callback=lambda progress, answer=answer: answer)
        assert result.status == "stopped"
    result = cw.solve(erm().dual(), tol=0, max_passes=5, callback=lambda progress: None)
    assert result.status == "max_passes"


def test_arguments_are_not_written_to():
    X, b, weight = A.copy(), B.copy(), np.linspace(0, 2, N)
    x0 = np.full(N, 5.0)
    for array in (X, b, weight, x0):
        array.setflags(write=False)
    problem = cw.ERM(X, b, "huber", lam=0.1, sample_weight=weight)
    assert cw.solve(problem.dual(), x0=x0).converged
    assert cw.solve(problem.primal(), x0=np.ones(D)).converged
    assert cw.solve(cw.LeastSquares(X, b)).converged
    np.testing.assert_array_equal(X, A)
    np.testing.assert_array_equal(x0, 5.0)
