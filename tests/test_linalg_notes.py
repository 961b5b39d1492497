"""What a result says about its system: parallel rows, contradictions between them, the rank; and how often it looks."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import STORAGES

from coordwise import linalg
from coordwise.linalg.parallel import ROWS

SOLVERS = {"kaczmarz": linalg.kaczmarz, "nuacdm": linalg.nuacdm, "solve": linalg.solve}
RNG = np.random.default_rng(0)
X = RNG.standard_normal(15)
DIFFERENT = RNG.standard_normal((40, 15)) * (RNG.random((40, 15)) < 0.6)
REPEATED = np.vstack([DIFFERENT, DIFFERENT[:3], -3 * DIFFERENT[5:7] / 7])  # rows 43 and 44 are multiples of 5 and 6


def solved(solver, A, b, **options):
    return SOLVERS[solver](A, b, random_state=0, full_output=True, **options)


@pytest.mark.parametrize("storage", [name for name in STORAGES if "32" not in name])
@pytest.mark.parametrize("solver", SOLVERS)
def test_parallel_rows_are_counted(solver, storage):
    result = solved(solver, STORAGES[storage](REPEATED), REPEATED @ X)
    assert result.converged
    assert "5 rows are multiples of others" in result.notes
    assert not any("contradict" in note for note in result.notes)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_that_differ_are_not(solver, storage):
    nearly = DIFFERENT.copy()
    nearly[1] = nearly[0]
    nearly[1, np.flatnonzero(nearly[0])[0]] *= 1 + 1e-12
    assert not any("multiple" in note for note in solved(solver, storage(nearly), nearly @ X).notes)


@pytest.mark.parametrize("solver", SOLVERS)
def test_contradictions_are_named_with_a_bound_on_every_residual(solver):
    b = REPEATED @ X
    b[44] += 1.0
    result = solved(solver, REPEATED, b)
    assert result.status == "inconsistent"
    (said,) = [note for note in result.notes if note.startswith("rows 6 and 44 contradict each other")]
    bound = float(said.split(">= ")[1].split()[0])
    assert bound == pytest.approx(1 / np.hypot(1, 3 / 7), rel=1e-2)
    best = np.linalg.lstsq(REPEATED, b, rcond=None)[0]
    assert 0.99 * bound <= np.linalg.norm(b - REPEATED @ best) <= result.gap * (1 + 1e-12)
    b[44] -= 1.0 - 1e-9  # within the tolerance it is none
    assert not any("contradict" in note for note in solved(solver, REPEATED, b).notes)


def test_many_rows_are_not_searched():
    A = np.ones((ROWS + 1, 2))
    assert not any("multiple" in note for note in solved("kaczmarz", A, A @ [1.0, 2.0]).notes)


@pytest.mark.parametrize("solver", ["nuacdm", "solve"])
def test_a_rank_that_is_known_is_reported(solver):
    A = RNG.standard_normal((60, 5)) @ RNG.standard_normal((5, 20))
    assert "rank 5 of at most 20" in solved(solver, A, A @ np.ones(20)).notes
    full = RNG.standard_normal((60, 20))
    assert not any("rank" in note for note in solved(solver, full, full @ np.ones(20)).notes)


@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
def test_row_action_looks_rarely_and_stops_soon_after_the_goal(rtol):
    """Looks at most double the work, and the last comes where the rate foretells it: not far below the goal."""
    A = RNG.standard_normal((400, 200))
    result = solved("kaczmarz", A, A @ np.ones(200), rtol=rtol)
    passes, gap = result.history.passes, result.history.gap
    assert result.converged
    assert len(passes) <= np.log2(passes[-1]) + 6
    assert np.all(passes[2:] <= 2.01 * passes[1:-1] + 1)
    assert gap[-1] == pytest.approx(np.linalg.norm(A @ np.ones(200) - A @ result.w), rel=1e-6)
    assert result.gap >= 0.3 * result.scale
