"""The random stream: the documented bits, the right frequencies, the same in NumPy and in the core."""

import numpy as np
import pytest

from coordwise import kernels, sampling


def splitmix64(state):
    """The published generator, on Python integers."""
    mask = 2**64 - 1
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return z ^ (z >> 31)


def test_words_are_splitmix64():
    seed = 2**63 + 17
    expected = [splitmix64((seed + (k + 1) * 0x9E3779B97F4A7C15) % 2**64) for k in range(5, 25)]
    assert sampling.words(seed, 5, 20).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 3, 100, 4097])
def test_core_and_numpy_draw_the_same(n):
    p = np.random.default_rng(n).random(n) ** 4
    cells = sampling.alias_cells(p / p.sum())
    np.testing.assert_array_equal(kernels.draw(99, cells, n, 5000), sampling.draw_weighted(99, cells, 5000))
    np.testing.assert_array_equal(
        sampling.draw_weighted(99, cells, 1000, first=2500), sampling.draw_weighted(99, cells, 5000)[2500:3500]
    )
    few = min(3 * n + 1, 5000)
    np.testing.assert_array_equal(kernels.draw(7, None, n, few), sampling.draw_permutations(7, n, few))


def test_permutations_of_some_members_are_those_of_as_many_indices():
    members = np.array([3, 4, 7, 11, 12], np.uint32)
    drawn = kernels.draw(7, None, 20, 23, members)
    np.testing.assert_array_equal(drawn, members[sampling.draw_permutations(7, 5, 23)])
    with pytest.raises(ValueError, match="out of range"):
        kernels.draw(7, None, 10, 3, members)
    with pytest.raises(ValueError, match="no members"):
        kernels.draw(7, None, 10, 3, members[:0])


def test_draws_by_hand():
    """cell and fraction from exact integers."""
    p = np.array([0.5, 0.125, 0.3, 0.075])
    cells = sampling.alias_cells(p)
    drawn = sampling.draw_weighted(3, cells, 200)
    for k, w in enumerate(sampling.words(3, 0, 200).tolist()):
        cell, fraction = divmod(w * 4, 2**64)
        threshold, alias = cells[cell].tolist()
        assert drawn[k] == (cell if fraction >> 32 < threshold else alias)


def implied(cells):
    """The distribution a table stands for."""
    n = len(cells)
    keep = np.where(cells[:, 1] == np.arange(n), 1.0, cells[:, 0] / 2**32)
    return (keep + np.bincount(cells[:, 1], weights=1 - keep, minlength=n)) / n


@pytest.mark.parametrize("seed", range(5))
def test_alias_table_is_the_distribution(seed):
    rng = np.random.default_rng(seed)
    p = 10 ** rng.uniform(-8, 0, 500)
    p[rng.random(500) < 0.2] = 0
    p /= p.sum()
    np.testing.assert_allclose(implied(sampling.alias_cells(p)), p, atol=2.0**-31 / 500 * 20)


def test_zero_probability_is_never_drawn():
    p = np.zeros(1000)
    p[::100] = 0.1
    drawn = kernels.draw(1, sampling.alias_cells(p), 1000, 100_000)
    assert set(drawn.tolist()) == set(range(0, 1000, 100))


def test_frequencies():
    p = np.array([0.6, 0.25, 0.1, 0.04, 0.01])
    count = 400_000
    seen = np.bincount(kernels.draw(5, sampling.alias_cells(p), 5, count), minlength=5)
    assert np.all(np.abs(seen - count * p) <= 5 * np.sqrt(count * p * (1 - p)))


def test_permutations_cover_and_vary():
    n = 200
    drawn = sampling.draw_permutations(11, n, 3 * n).reshape(3, n)
    np.testing.assert_array_equal(np.sort(drawn, axis=1), np.tile(np.arange(n), (3, 1)))
    assert not np.array_equal(drawn[0], drawn[1])


def test_power_distribution():
    L = np.array([0.0, 1.0, 4.0, 1e-300, 1e300])
    p = sampling.power_distribution(L, 0.5)
    assert p[0] == 0
    assert p.sum() == pytest.approx(1)
    assert p[2] / p[1] == pytest.approx(2)
