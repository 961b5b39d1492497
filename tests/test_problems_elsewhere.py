"""`cw.ERM`, `cw.solve` and `linalg.lstsq` on samples that are elsewhere, against the same problems in memory."""

import numpy as np
import pytest
from folder_cases import SMALL, problem

import coordwise as cw
from coordwise import datasets, linalg
from coordwise.interrupts import Failed, Interrupted


@pytest.fixture
def made(tmp_path):
    A, y, s = problem()
    return datasets.convert(A, tmp_path / "to", target=y, weight=s, chunk_bytes=SMALL), A, y, s


@pytest.mark.parametrize(
    "penalty", [{"lam": 0.1}, {"penalty": "l1", "lam": 0.02}, {"penalty": "elastic_net", "lam": 0.05, "l1_ratio": 0.4}]
)
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_solve_gives_the_solution_in_memory(made, loss, penalty):
    folder, A, y, s = made
    elsewhere, here = cw.ERM(folder, loss=loss, **penalty), cw.ERM(A, y, loss=loss, **penalty, sample_weight=s)
    seen = []
    result = cw.solve(elsewhere.primal(), tol=1e-9, callback=seen.append)
    known = cw.solve(here.primal(), tol=1e-12)
    assert result.converged
    np.testing.assert_allclose(result.x, known.x, rtol=0, atol=3e-4)
    assert result.value == pytest.approx(here.value(result.x), rel=1e-12)
    assert elsewhere.value(result.x) == pytest.approx(result.value, rel=1e-12)
    assert result.value - known.value <= result.gap + 1e-12
    assert result.gap <= 1e-9 * result.scale
    assert len(result.history) == len(seen)
    assert result.history.passes[-1] == result.passes


def test_targets_weights_and_starts_beside_the_source(made):
    folder, A, y, s = made
    table = np.column_stack([y, 2 * y + 1])
    problem = cw.ERM(folder, table, lam=0.1, sample_weight=s + 1)
    result = cw.solve(problem, tol=1e-10)
    known = cw.solve(cw.ERM(A, table, lam=0.1, sample_weight=s + 1).dual(), tol=1e-12)
    assert result.x.shape == (30, 2)
    np.testing.assert_allclose(result.x, known.w, rtol=0, atol=1e-4)
    again = cw.solve(problem, "newton_cg", tol=1e-6, x0=result.x)
    assert again.converged
    assert again.method == "newton_cg"


def test_what_needs_memory(made, tmp_path):
    folder, A, y, _ = made
    one = cw.ERM(folder, loss="logistic", lam=0.1)
    for error, message, call in (
        (TypeError, r"call coordwise.solve\(problem\)", one.dual),
        (TypeError, "method='auto'", lambda: cw.solve(one, cw.NUACDM())),
        (ValueError, "needs the samples in memory", lambda: cw.solve(one, "nu_acdm")),
        (TypeError, "give one loss", lambda: cw.ERM(folder, loss=["squared"], lam=0.1)),
        (TypeError, "needs the samples in memory", lambda: cw.ERM(folder, lam=0.1, positive=True)),
        (ValueError, "b is missing", lambda: cw.ERM(datasets.convert(A, tmp_path / "bare"), lam=0.1)),
        (ValueError, "labels other than -1 and", lambda: cw.solve(cw.ERM(folder, 2 * y, loss="logistic", lam=0.1))),
        (TypeError, "'auto' or 'cgls'", lambda: linalg.lstsq(folder, method="direct")),
    ):
        with pytest.raises(error, match=message):
            call()


def test_interrupts_and_lost_files_carry_a_result(made):
    folder, *_ = made
    one = cw.ERM(folder, loss="logistic", lam=1e-4)

    def impatient(progress):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stop:
        cw.solve(one, callback=impatient)
    assert isinstance(stop.value.result, cw.Result)
    assert stop.value.result.status == "interrupted"

    def spoil(progress):
        (folder.path / "000001.values.npy").unlink(missing_ok=True)

    with pytest.raises(Failed, match=r"000001\.values\.npy is missing") as lost:
        cw.solve(one, tol=1e-12, callback=spoil)
    assert lost.value.result.x.shape == (30,)


@pytest.mark.parametrize("damp", [0.0, 2.0])
def test_least_squares(made, damp):
    folder, A, y, _ = made
    x, info = linalg.lstsq(folder, damp=damp, rtol=1e-10)
    assert info == 0
    assert np.linalg.norm(A.T @ (y - A @ x) - damp**2 * x) <= 1e-10 * np.linalg.norm(A.T @ y) * (1 + 1e-6)
    B = np.column_stack([y, np.arange(400.0)])
    found = linalg.lstsq(folder, B, damp, rtol=1e-9, full_output=True)
    np.testing.assert_allclose(found.x, linalg.lstsq(A, B, damp, rtol=1e-12)[0], rtol=1e-6, atol=1e-6)
    assert np.all(found.gap <= 1e-9 * np.linalg.norm(A.T @ B, axis=0) * (1 + 1e-6))
    start = linalg.lstsq(folder, damp=damp, rtol=1e-8, x0=x, full_output=True)
    assert start.iterations == 0
