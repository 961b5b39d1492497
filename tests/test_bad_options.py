"""Options of solve and of methods that are wrong are refused by name, with advice."""

import numpy as np
import pytest
from problem_cases import A, B, D, N, erm, refused

import coordwise as cw


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
