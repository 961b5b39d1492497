"""minimize on compiled functions: the same iterates as with Python's, refusals, limits and Ctrl-C."""

import ctypes
import os
import re
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from compiled_cases import DOUBLES, TYPES, ColumnData, QuadraticData, library, with_data
from conftest import STORAGES, unequal_rows
from minimize_cases import METHODS, NEED_SIGMA, PROBLEMS, N, Quadratic, run
from scipy import LowLevelCallable

import coordwise as cw


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    return library(tmp_path_factory.mktemp("compiled"))


def compiled_options(lib, problem, kind):
    data = QuadraticData(problem.H, problem.c)
    prox = {"free": None, "l1": lib.soft, "box": lib.clip}[kind]
    return data, dict(partial=with_data(lib.quadratic_partial, data), prox=prox)


def options_of(problem, method):
    return dict(method=METHODS[method], sigma=problem.sigma(METHODS[method]) if method in NEED_SIGMA else None)


def iterates(call, **options):
    seen = []
    found = call(tol=0, callback=lambda x: seen.append(x.copy()), **options)
    return np.array(seen), found


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("method", METHODS)
def test_same_iterates_step_by_step(lib, kind, method):
    problem = PROBLEMS[kind]
    data, functions = compiled_options(lib, problem, kind)
    options = dict(max_iterations=2 * N, check_every=1, random_state=3, **options_of(problem, method))
    fast, found = iterates(lambda **o: run(problem, **functions, **o), **options)
    slow, expected = iterates(lambda **o: run(problem, **o), **options)
    assert fast.shape == slow.shape == (2 * N, N)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.history, expected.history, rtol=1e-9, atol=1e-12)
    assert found.iterations == 2 * N
    assert np.linalg.norm(fast[0] - fast[-1]) > 1e-3
    del data


@pytest.mark.parametrize("method", METHODS)
def test_same_iterates_after_the_scale_was_folded(lib, method):
    problem, many = PROBLEMS["free"], 300 * N  # (1 - tau)^(2 k) is far below 1e-60 then, where sigma is known
    data, functions = compiled_options(lib, problem, "free")
    options = dict(tol=0, max_iterations=many, check_every=many // 3, **options_of(problem, method))
    fast, slow = run(problem, **functions, **options), run(problem, **options)
    np.testing.assert_allclose(fast.x, slow.x, rtol=0, atol=1e-10)
    del data


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("method", ["nu_acdm", "apcg", "rcdm"])
def test_compiled_functions_find_the_solution(lib, kind, method):
    problem = PROBLEMS[kind]
    data, functions = compiled_options(lib, problem, kind)
    found = run(problem, tol=1e-10, **functions, **options_of(problem, method))
    assert found.converged
    assert found.error <= 1e-10 * problem.error(np.zeros(N))
    assert found.iterations % 1000 == 0  # the default of check_every, n being smaller
    np.testing.assert_allclose(found.error, problem.error(found.x), rtol=1e-3)
    np.testing.assert_allclose(found.x, problem.solution, atol=1e-7)
    del data


def test_only_what_is_read_needs_to_be_declared(lib):
    rng = np.random.default_rng(0)
    H = np.diag(rng.uniform(2, 30, N)) - np.eye(N, k=1) - np.eye(N, k=-1)
    x = rng.standard_normal(N)
    problem = Quadratic(H, H @ x, x)
    data = QuadraticData(H, problem.c)
    partial = with_data(lib.quadratic_partial, data)  # skips the zeros of H
    for method in METHODS:
        options = dict(max_iterations=4 * N, check_every=1, **options_of(problem, method))
        whole, _ = iterates(lambda **o: run(problem, partial=partial, **o), **options)
        for reads in (sp.csr_array(H), sp.coo_matrix(H)):
            part, _ = iterates(lambda reads=reads, **o: run(problem, partial=partial, reads=reads, **o), **options)
            np.testing.assert_allclose(part, whole, rtol=0, atol=1e-13)
    python = run(problem, reads=sp.csr_array(H), tol=0, max_iterations=4 * N)  # given all of x anyway
    np.testing.assert_array_equal(python.x, run(problem, tol=0, max_iterations=4 * N).x)


def logistic(density):
    """f(x) = sum_j log(1 + exp(<B_j, x>)) + |x|^2/2."""
    B = unequal_rows(80, N, seed=1, density=density)
    L = np.square(B).sum(0) / 4 + 1

    def value(x):
        return np.logaddexp(0, B @ x).sum() + x @ x / 2

    def of_point(i, x):
        return B[:, i] @ (1 / (1 + np.exp(-(B @ x)))) + x[i]

    def of_image(i, x_i, v):
        return B[:, i] @ (1 / (1 + np.exp(-v))) + x_i

    return SimpleNamespace(B=B, L=L, value=value, of_point=of_point, of_image=of_image)


def sigma_of(problem, method):
    beta = 1.0 if isinstance(METHODS[method], cw.APCG) else getattr(METHODS[method], "beta", 0.0)
    return float(np.min(problem.L**-beta)) if method in NEED_SIGMA else None


@pytest.mark.parametrize("method", METHODS)
def test_functions_of_the_image(lib, method):
    problem = logistic(0.2)
    data = ColumnData(problem.B)
    compiled = with_data(lib.logistic_partial, data)

    def call(partial, B, **options):
        return cw.minimize(problem.value, partial, problem.L, np.full(N, 0.1), B=B, method=METHODS[method], **options)

    options = dict(max_iterations=2 * N, check_every=1, sigma=sigma_of(problem, method))
    expected, _ = iterates(lambda **o: call(problem.of_point, None, **o), **options)
    slow, _ = iterates(lambda **o: call(problem.of_image, problem.B, **o), **options)
    fast, found = iterates(lambda **o: call(compiled, sp.csr_array(problem.B), **o), **options)
    np.testing.assert_allclose(slow, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(fast, expected, rtol=0, atol=1e-11)
    g = [problem.of_point(i, found.x) for i in range(N)]
    np.testing.assert_allclose(found.error, np.sqrt(np.sum(np.square(g) / problem.L)), rtol=1e-9)
    many = dict(tol=0, max_iterations=300 * N, check_every=100 * N, sigma=sigma_of(problem, method))  # images made anew
    np.testing.assert_allclose(
        call(compiled, problem.B, **many).x, call(problem.of_image, problem.B, **many).x, atol=1e-10
    )


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("density", [0.2, None])
def test_any_storage_of_the_image(lib, storage, density):
    problem = logistic(density)
    data = ColumnData(problem.B)
    partial = with_data(lib.logistic_partial, data)
    options = dict(method="nu_acdm", sigma=1.0, tol=1e-10)
    found = cw.minimize(problem.value, partial, problem.L, np.zeros(N), B=STORAGES[storage](problem.B), **options)
    slow = cw.minimize(problem.value, problem.of_point, problem.L, np.zeros(N), **options)
    assert found.converged
    assert slow.converged
    # sigma = 1 in the Euclidean norm: |x - x*|^2 <= 2 (f(x) - min f)
    apart = np.linalg.norm(found.x - slow.x)
    assert apart <= np.sqrt(2 * found.bound) + np.sqrt(2 * slow.bound) < 1e-4


def test_value_may_be_compiled_with_either(lib):
    problem = PROBLEMS["free"]
    data = QuadraticData(problem.H, problem.c)
    value, partial = with_data(lib.quadratic_value, data), with_data(lib.quadratic_partial, data)
    for used in (partial, problem.partial):
        found = cw.minimize(value, used, problem.L, np.zeros(N), max_iterations=20 * N, tol=0)
        np.testing.assert_allclose(found.value, problem.value(found.x), rtol=1e-12)


def test_pointers_of_ctypes_and_numba_are_taken(lib):
    pointer = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, DOUBLES)
    slow = pointer(lambda i, x: x[i] - 1)  # a Python function behind a pointer
    like_numba = SimpleNamespace(ctypes=slow, address=1)
    capsule = LowLevelCallable(LowLevelCallable(lib.towards_one), signature="double (long long, const double*)")
    for partial in (lib.towards_one, slow, like_numba, LowLevelCallable(lib.towards_one), capsule):
        found = cw.minimize(lambda x: float(np.square(x - 1).sum() / 2), partial, np.ones(N), np.zeros(N), tol=1e-10)
        assert found.converged
        np.testing.assert_allclose(found.x, 1.0)


def test_functions_that_numba_compiled():
    numba = pytest.importorskip("numba")

    @numba.cfunc("float64(int64, CPointer(float64))")
    def partial(i, x):
        return x[i] - 1.0

    @numba.cfunc("float64(int64, float64, CPointer(float64), voidptr)")
    def of_image(i, x_i, v, data):
        return v[i] - 1.0

    @numba.cfunc("float64(int64, float64, float64)")
    def prox(i, t, theta):
        return max(t - 0.5 * theta, 0.0)

    def value(x):
        return float(np.square(x - 1).sum() / 2)

    found = cw.minimize(value, partial, np.ones(N), np.zeros(N), prox=prox, tol=1e-10, method="rcdm")
    np.testing.assert_allclose(found.x, 0.5)
    found = cw.minimize(value, of_image, np.ones(N), np.zeros(N), B=sp.eye_array(N, format="csc"), tol=1e-10)
    np.testing.assert_allclose(found.x, 1.0)

    @numba.cfunc("float64(int32, CPointer(float64))")
    def narrow(i, x):
        return x[i] - 1.0

    with pytest.raises(TypeError, match=r"^partial has the C signature 'double \(int, double \*\)'"):
        cw.minimize(value, narrow, np.ones(N), np.zeros(N))


X = "double partial(int64_t i, const double* x, void* user_data)"
V = "double partial(int64_t i, double x_i, const double* v, void* user_data)"
LONG = ctypes.c_int64


def unusable(i, x):
    raise AssertionError("this function must not be called")


@pytest.mark.parametrize(
    ("types", "found"),
    [
        ((ctypes.c_double, ctypes.c_int32, DOUBLES), "double (int, double *)"),
        ((ctypes.c_float, LONG, DOUBLES), "float (int64_t, double *)"),
        ((None, LONG, DOUBLES), "void (int64_t, double *)"),
        ((ctypes.c_double, LONG, ctypes.POINTER(ctypes.c_float)), "double (int64_t, float *)"),
        ((ctypes.c_double, LONG, ctypes.c_void_p), "double (int64_t, void *)"),
        ((ctypes.c_double, LONG), "double (int64_t)"),
        ((ctypes.c_double, DOUBLES, LONG), "double (double *, int64_t)"),
        ((ctypes.c_double, LONG, DOUBLES, LONG), "double (int64_t, double *, int64_t)"),
        ((ctypes.c_double, LONG, ctypes.c_double, DOUBLES), "double (int64_t, double, double *)"),
    ],
)
def test_other_signatures_are_refused(types, found):
    wrong = ctypes.CFUNCTYPE(*types)(unusable)
    expected = "^" + re.escape(f"partial has the C signature '{found}'; a compiled partial must be '{X}'")
    for partial in (wrong, SimpleNamespace(ctypes=wrong, address=1)):
        with pytest.raises(TypeError, match=expected):
            cw.minimize(np.sum, partial, np.ones(N), np.zeros(N))
    if None not in types:
        with pytest.raises(TypeError, match=re.escape(f"must be '{X}'")):
            cw.minimize(np.sum, LowLevelCallable(wrong), np.ones(N), np.zeros(N))


def test_signatures_that_fit_something_else_are_refused(lib):
    def call(partial=lib.towards_one, **options):
        return cw.minimize(options.pop("value", np.sum), partial, np.ones(N), np.zeros(N), **options)

    with pytest.raises(TypeError, match=re.escape(f"must be '{V}'")):
        call(B=np.eye(N))
    with pytest.raises(TypeError, match=re.escape(f"must be '{X}'")):
        call(lib.logistic_partial)
    with pytest.raises(TypeError, match=re.escape("'double prox(int64_t i, double t, double theta, void* user_data)'")):
        call(prox=lib.towards_one)
    with pytest.raises(TypeError, match=re.escape("'double value(int64_t n, const double* x, void* user_data)'")):
        call(value=lib.soft)
    with pytest.raises(TypeError, match=r"^partial is a compiled function and prox is not; give both compiled"):
        call(prox=lambda i, t, theta: t)
    with pytest.raises(TypeError, match=r"^prox is a compiled function and partial is not; give both compiled"):
        call(lambda i, x: x[i], prox=lib.soft)
    data = QuadraticData(np.eye(N), np.zeros(N))
    with pytest.raises(TypeError, match=r"^partial comes with user_data, but its C signature .* takes none"):
        call(LowLevelCallable(lib.towards_one, data.user_data()))
    undeclared = ctypes.CDLL(lib._name).soft
    with pytest.raises(
        TypeError, match=r"^partial has the C signature 'int \(not declared\)'.*set restype and argtypes"
    ):
        call(undeclared)
    with pytest.raises(TypeError, match=r"^partial is a null pointer"):
        call(ctypes.CFUNCTYPE(ctypes.c_double, *TYPES["towards_one"])(0))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(B=np.eye(3)), ValueError, "^B has 3 columns; it must have one per variable, 60"),
        (dict(B=np.full((2, N), np.nan)), ValueError, "^B holds NaN or infinity"),
        (dict(B="B"), (TypeError, ValueError), "^B must be"),
        (dict(B=np.eye(N), reads=sp.eye_array(N)), ValueError, "^reads is for functions of x; with B"),
        (dict(reads=np.eye(N)), TypeError, "^reads must be a scipy sparse array"),
        (dict(reads=sp.eye_array(3)), ValueError, r"^reads has shape \(3, 3\); it must have shape \(60, 60\)"),
        (dict(check_every=0), ValueError, "^check_every=0 is out of range; it must be >= 1"),
        (dict(method=cw.NUACDM(weights=np.full(N, np.inf)), sigma=1.0), ValueError, "^weights must be finite"),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        cw.minimize(np.sum, lambda i, x, v=None: 0.0, np.ones(N), np.zeros(N), **options)


def endless(lib, **options):
    """A run that only a limit or a signal ends, within one block of steps."""
    problem = PROBLEMS["free"]
    data = QuadraticData(problem.H, problem.c)
    partial = with_data(lib.quadratic_partial, data)
    return run(problem, partial=partial, tol=0, max_iterations=10**15, check_every=10**14, **options)


def test_time_limit_holds_within_a_block(lib):
    found = endless(lib, time_limit=0.05)
    assert found.status == "time_limit"
    assert 0 < found.iterations < 10**14
    assert found.error < 1.0


def test_ctrl_c_is_heard_within_a_block_because_the_gil_is_free(lib):
    # The thread that sends the signal needs the GIL; the limit ends the test where it never gets it.
    sender = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    sender.start()
    with pytest.raises(cw.Interrupted) as stop:
        endless(lib, time_limit=60.0)
    sender.join()
    found = stop.value.result
    assert found.status == "interrupted"
    assert 0 < found.iterations < 10**14
    np.testing.assert_array_equal(found.x, 0)  # no check came before


def test_nan_ends_a_run_at_the_best_point(lib):
    found = cw.minimize(lambda x: 0.0, lib.not_a_number, np.ones(1), np.zeros(1), max_iterations=10**6)
    assert found.status == "diverged"
    np.testing.assert_array_equal(found.x, 0)


def test_callback_and_limits_as_in_python(lib):
    problem = PROBLEMS["free"]
    data, functions = compiled_options(lib, problem, "free")
    seen = []
    found = run(problem, callback=lambda x: len(seen) == 2 or seen.append(x), **functions)
    assert found.status == "stopped"
    assert found.iterations == 3000
    assert not np.shares_memory(seen[0], seen[1])
    found = run(problem, tol=0, max_iterations=2500, **functions)
    assert found.status == "max_iterations"
    assert found.history[:, 0].tolist() == [0, 1000, 2000, 2500]
    del data
