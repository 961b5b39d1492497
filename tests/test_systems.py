"""The linear systems of section 8 and their charts."""

import math

import numpy as np
import pytest
from experiment_cases import SMALL, Watch, column, library_of, two_norms

import coordwise as cw
from coordwise.experiments import systems


@pytest.mark.parametrize("long", [0, 25, 300])
def test_random_system(long):
    A, b, x = systems.random_system(0.5, seed=3, long_rows=long)
    assert A.shape == (300, 100)
    norms = np.linalg.norm(A, axis=1)
    assert np.sum(np.abs(norms / 10 - 1) < 1e-13) == long
    assert np.sum(np.abs(norms - 1) < 1e-13) == 300 - long
    assert A.min() >= 0
    np.testing.assert_allclose(b, A @ x, rtol=1e-12)
    again = systems.random_system(0.5, seed=3, long_rows=long)
    assert all(np.array_equal(one, two) for one, two in zip((A, b, x), again, strict=True))
    assert not np.array_equal(A, systems.random_system(0.5, seed=4, long_rows=long)[0])


def test_random_system_with_each_row_long_by_chance():
    counts = [np.sum(np.linalg.norm(systems.random_system(0.2, seed)[0], axis=1) > 5) for seed in range(40)]
    assert len(set(counts)) > 3
    assert np.mean(counts) == pytest.approx(60, abs=4 * math.sqrt(300 * 0.2 * 0.8 / 40))
    assert np.sum(np.linalg.norm(systems.random_system(1.0, 0)[0], axis=1) > 5) == 300


def test_the_distance_of_a_system_is_that_of_its_solution():
    A, b, x = systems.random_system(0.4, seed=0, long_rows=115)
    run = cw.solve(
        cw.LinearSystem(A, b), cw.NUACDM(sigma=np.linalg.svd(A, compute_uv=False)[-1] ** 2), tol=0, max_passes=5
    )
    assert float(run.value) + x @ x / 2 == pytest.approx(np.sum((run.w - x) ** 2) / 2, rel=1e-6)


def test_system_chart():
    unit = systems.SystemChart(0.2)
    found = unit.run(library_of(), SMALL, Watch())
    assert list(found.facts["lines"]) == ["Kaczmarz", "ACDM", systems.TIGHT, "NU_ACDM"]
    for k, seed in enumerate(SMALL.seeds):
        A, _, x = systems.random_system(0.2, seed, 61)
        assert found.facts["systems"][k]["sigma"] == pytest.approx(np.linalg.eigvalsh(A.T @ A)[0], rel=1e-8)
        for label in found.facts["lines"]:
            distance = column(found, "dual_distance", method=label, seed=seed)
            assert distance[0] == pytest.approx(x @ x / 2)
            assert distance.min() >= -1e-12 * distance[0]
            assert distance[-1] < distance[0]
    assert found.facts["lines"]["NU_ACDM"]["speedup"] == pytest.approx(two_norms(61))
