"""coordwise.linalg: every storage gives the same answer, every bad input a sentence."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import STORAGES, unequal_rows
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import coordwise as cw
from coordwise import linalg

FUNCTIONS = {
    "kaczmarz": linalg.kaczmarz,
    "acdm": linalg.acdm,
    "nuacdm": linalg.nuacdm,
    "solve": linalg.solve,
    "lstsq": linalg.lstsq,
    "spd_solve": linalg.spd_solve,
}
A = unequal_rows(60, 20, density=0.5)
SQUARE = A.T @ A + np.eye(20)
X = np.random.default_rng(1).standard_normal(20)


def matrix_for(name):
    return SQUARE if name == "spd_solve" else A


def read_only(M):
    M = M.copy()
    M.flags.writeable = False
    return M


def strided(M):
    wide = np.zeros((M.shape[0], 2 * M.shape[1]))
    wide[:, ::2] = M
    return wide[:, ::2]


MORE = {
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "matrix": sp.csr_matrix,
    "list": lambda M: M.tolist(),
    "read-only": read_only,
    "strided": strided,
    "big-endian": lambda M: M.astype(">f8"),
}


@pytest.mark.parametrize("storage", [*STORAGES, *MORE])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_storage_gives_the_same_answer(name, storage):
    M = matrix_for(name)
    b = M @ X
    stored = (STORAGES | MORE)[storage](M)
    x, info = FUNCTIONS[name](stored, b, rtol=1e-10, random_state=0)
    assert info == 0
    reference, _ = FUNCTIONS[name](M, b, rtol=1e-10, random_state=0)
    np.testing.assert_allclose(x, reference, atol=1e-6)
    np.testing.assert_allclose(x, X, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
def test_single_precision(name, storage):
    M = storage(matrix_for(name).astype(np.float32))
    exact = M.astype(np.float64)
    b = exact @ X
    x, info = FUNCTIONS[name](M, b.astype(np.float32), rtol=1e-5, random_state=0)
    assert info == 0
    assert x.dtype == np.float64
    x, info = FUNCTIONS[name](M, b, rtol=1e-9, random_state=0)
    assert info == 0
    np.testing.assert_allclose(x, X, atol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory_mapped(name, tmp_path):
    M = matrix_for(name)
    np.save(tmp_path / "A.npy", M)
    np.save(tmp_path / "b.npy", M @ X)
    mapped, b = (np.load(tmp_path / f"{k}.npy", mmap_mode="r") for k in "Ab")
    result = FUNCTIONS[name](mapped, b, rtol=1e-9, random_state=0, full_output=True)
    assert result.converged
    assert "used in place" in result.storage
    np.testing.assert_allclose(result.w, X, atol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_are_left_as_they_were(name):
    M, x0 = matrix_for(name).copy(), np.ones(20)
    b = M @ X
    before = M.copy(), b.copy()
    FUNCTIONS[name](M, b, x0=x0, random_state=0)
    np.testing.assert_array_equal(M, before[0])
    np.testing.assert_array_equal(b, before[1])
    np.testing.assert_array_equal(x0, np.ones(20))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_linear_operators_are_refused(name):
    M = matrix_for(name)
    for operator in (aslinearoperator(M), LinearOperator(M.shape, matvec=lambda v: M @ v)):
        with pytest.raises(TypeError, match=r"A is a .*LinearOperator.*rows of A.*lsqr"):
            FUNCTIONS[name](operator, M @ X)


BAD = {
    "b too short": ({"b": np.ones(7)}, ValueError, r"b has shape \(7,\); with \d+ rows of A it must have shape"),
    "b of three dimensions": ({"b": np.ones((60, 1, 1))}, ValueError, "b has shape"),
    "b without columns": ({"b": np.ones((60, 0))}, ValueError, "b has no columns"),
    "b with nan": ({"b": np.full(60, np.nan)}, ValueError, "b holds NaN or infinity"),
    "b of words": ({"b": ["x"] * 60}, TypeError, "b must be an array of real numbers"),
    "complex b": ({"b": np.ones(60) * 1j}, TypeError, "b must be an array of real numbers"),
    "x0 too long": ({"x0": np.ones(21)}, ValueError, r"x0 has shape \(21,\); it must have shape \(20,\)"),
    "x0 with nan": ({"x0": np.full(20, np.nan)}, ValueError, "x0 holds NaN or infinity"),
    "negative rtol": ({"rtol": -1.0}, ValueError, "rtol=-1.0 is out of range"),
    "rtol nan": ({"rtol": np.nan}, ValueError, "rtol=nan is not a finite number"),
    "rtol a word": ({"rtol": "small"}, TypeError, "rtol must be a real number, not str"),
    "negative atol": ({"atol": -1e-3}, ValueError, "atol=-0.001 is out of range"),
    "maxiter zero": ({"maxiter": 0}, ValueError, "maxiter=0 is out of range"),
    "maxiter broken": ({"maxiter": 1.5}, ValueError, "maxiter=1.5 is not a whole number"),
    "callback": ({"callback": 3}, TypeError, "callback must be callable, not int"),
    "random_state": ({"random_state": "x"}, TypeError, "random_state must be an int"),
    "negative random_state": ({"random_state": -1}, ValueError, "random_state=-1 is negative"),
    "time_limit": ({"time_limit": -1.0}, ValueError, "time_limit=-1.0 is out of range"),
    "A with nan": ({"A": np.full((60, 20), np.nan)}, ValueError, "A holds NaN or infinity"),
    "A a vector": ({"A": np.ones(60)}, ValueError, "A must be two-dimensional"),
    "A empty": ({"A": np.ones((0, 20))}, ValueError, "A is empty"),
    "A complex": ({"A": np.ones((60, 20)) * 1j}, TypeError, "A must hold real numbers"),
    "A of objects": ({"A": [["x", None]]}, TypeError, "A must be a matrix of numbers"),
    "A a number": ({"A": 3.0}, ValueError, "A must be two-dimensional"),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bad_input_is_refused_by_name(name, what):
    M = matrix_for(name)
    change, error, match = BAD[what]
    change = {k: (v[: len(M)] if k == "b" and len(v) == 60 else v) for k, v in change.items()}
    if "A" in change and name == "spd_solve" and np.shape(change["A"]) == (60, 20):
        change["A"] = change["A"][:20]
    arguments = {"A": M, "b": M @ X} | change
    with pytest.raises(error, match=match):
        FUNCTIONS[name](**arguments)


@pytest.mark.parametrize("name", ["kaczmarz", "acdm", "nuacdm"])
def test_scaling_and_sigma_are_checked(name):
    with pytest.raises(ValueError, match=r"scaling='columns' is not known.*rows"):
        FUNCTIONS[name](A, A @ X, scaling="columns")
    if name != "kaczmarz":
        with pytest.raises(ValueError, match=r"sigma=-1\.0 is out of range"):
            FUNCTIONS[name](A, A @ X, sigma=-1.0)
        with pytest.raises(ValueError, match="sigma='guess' is not known"):
            FUNCTIONS[name](A, A @ X, sigma="guess")


@pytest.mark.parametrize("name", ["solve", "lstsq", "spd_solve"])
def test_methods_are_checked(name):
    with pytest.raises(ValueError, match="method='gmres' is not known"):
        FUNCTIONS[name](matrix_for(name), matrix_for(name) @ X, method="gmres")
    if name != "spd_solve":
        with pytest.raises(ValueError, match="method='direct' factorises a dense A"):
            FUNCTIONS[name](sp.csr_array(A), A @ X, method="direct")


def test_results_are_results():
    result = linalg.nuacdm(A, A @ X, full_output=True)
    assert isinstance(result, cw.Result)
    x, info = linalg.nuacdm(A, A @ X)
    assert isinstance(info, int)
    assert isinstance(x, np.ndarray)


def test_importing_coordwise_does_not_import_linalg():
    import subprocess
    import sys

    code = "import sys, coordwise; print('coordwise.linalg' in sys.modules, 'scipy.linalg' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split()[0] == "False"
