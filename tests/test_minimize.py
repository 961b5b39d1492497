"""minimize: what it takes, and what it refuses by name, with advice."""

import numpy as np
import pytest
from problem_cases import refused

import coordwise as cw

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
        (dict(x0=np.zeros(3)), ValueError, r"^L has length 2 and x0 length 3; both must hold one"),
        (dict(L=np.ones(3)), ValueError, r"^L has length 3 and x0 length 2; both must hold one"),
        (dict(x0=np.zeros((2, 1))), ValueError, r"^x0 has shape \(2, 1\); it must have shape \(any,\)"),
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
        (dict(max_iterations=-1), ValueError, r"^max_iterations=-1 is out of range; it must be >= 0"),
        (dict(max_iterations=10.5), (TypeError, ValueError), r"^max_iterations"),
        (dict(max_iterations="many"), TypeError, r"^max_iterations must be .*, not str"),
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
