"""The ray matrix from its definition, and the phantom."""

import numpy as np
import pytest

from coordwise.datasets.tomography import parallel_beams, phantom


@pytest.mark.parametrize(("size", "angles", "rays"), [(7, 5, None), (10, 4, 31), (1, 3, 2)])
def test_rows_are_lengths_of_chords(size, angles, rays):
    """The sum of a row is the length of its ray inside the square, which geometry knows."""
    A = parallel_beams(size, angles, rays)
    count = A.shape[0] // angles
    diagonal = size * np.sqrt(2)
    offsets = (np.arange(count) + 0.5) / count * diagonal - diagonal / 2
    expected = []
    for k in range(angles):
        angle = (k + 0.5) * np.pi / angles
        along, origin = np.array([-np.sin(angle), np.cos(angle)]), np.array([np.cos(angle), np.sin(angle)])
        for t in offsets:
            ends = [sorted((s * size / 2 - t * origin[d]) / along[d] for s in (-1, 1)) for d in (0, 1)]
            expected.append(max(min(e[1] for e in ends) - max(e[0] for e in ends), 0.0))
    np.testing.assert_allclose(A.sum(axis=1), expected, atol=1e-10)
    assert A.shape == (angles * count, size**2)
    assert np.all(A.data > 0)
    assert np.all(np.diff(A.indptr) <= 2 * size - 1)


def test_entries_against_sampled_rays():
    """Points along a ray fall into pixels in proportion to its entries."""
    size, angles = 6, 5
    A = parallel_beams(size, angles).toarray()
    rays = len(A) // angles
    offsets = (np.arange(rays) + 0.5) / rays * size * np.sqrt(2) - size * np.sqrt(2) / 2
    at = (np.arange(200_000) + 0.5) / 200_000 * 4 * size - 2 * size
    for row in (3, 11, 27, 40):
        angle, t = (row // rays + 0.5) * np.pi / angles, offsets[row % rays]
        column = np.floor(t * np.cos(angle) - at * np.sin(angle) + size / 2).astype(int)
        line = np.floor(t * np.sin(angle) + at * np.cos(angle) + size / 2).astype(int)
        inside = (column >= 0) & (column < size) & (line >= 0) & (line < size)
        counts = np.bincount(line[inside] * size + column[inside], minlength=size**2)
        np.testing.assert_allclose(A[row], counts * 4 * size / 200_000, atol=1e-3)


def test_phantom():
    image = phantom(64)
    assert image.shape == (64, 64)
    assert image.min() == 0.0
    assert image.max() == pytest.approx(1.0)
    assert image[0, 0] == 0.0
    assert image[32, 32] == pytest.approx(0.2)
    assert image[4, 32] == 1.0  # the skull


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="size=0 is out of range"):
        parallel_beams(0, 3)
    with pytest.raises(ValueError, match="rays=0 is out of range"):
        parallel_beams(3, 3, 0)
    with pytest.raises(TypeError, match="size must be a real number"):
        phantom("large")
