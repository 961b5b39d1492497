"""Parallel-beam tomography: the matrix of rays through an image, and a head phantom to look at.

A ray's row holds the lengths of its intersections with the pixels, so Ax = b says: the integral of the image x along
every ray is b. Rows are sparse (at most 2 size - 1 entries) and of very different norms, from rays through the middle
to rays that only cut a corner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.validation import FloatArray, check_count

__all__ = ["parallel_beams", "phantom"]


def parallel_beams(size: int, angles: int, rays: int | None = None) -> sp.csr_array:
    """Intersection lengths of parallel rays with the pixels of a size x size image.

    Parameters
    ----------
    size : int
        Pixels along one side; a pixel has side 1.
    angles : int
        Directions, spread evenly over half a turn.
    rays : int, optional
        Rays per direction, spread evenly over the diagonal of the image; by default one per pixel width.

    Returns
    -------
    csr_array of shape (angles * rays, size**2)
        Rows by direction, then from one side to the other; pixels in C order. Rays that miss the image are zero rows.
    """
    size, angles = check_count("size", size, low=1), check_count("angles", angles, low=1)
    diagonal = size * np.sqrt(2.0)
    rays = int(np.ceil(diagonal)) if rays is None else check_count("rays", rays, low=1)
    offsets = (np.arange(rays) + 0.5) / rays * diagonal - diagonal / 2
    parts: list[Any] = []
    for k in range(angles):
        # An angle half a step off avoids rays along the grid, where a length belongs to two pixels.
        ray, pixel, length = _crossings(size, (k + 0.5) * np.pi / angles, offsets)
        parts.append(sp.csr_array((length, (ray, pixel)), shape=(rays, size * size)))
    return sp.csr_array(sp.vstack(parts, format="csr"))


def _crossings(size: int, angle: float, offsets: FloatArray) -> tuple[Any, Any, FloatArray]:
    """Ray numbers, pixel numbers and lengths: a ray is cut at every line of the grid; the pieces are its entries."""
    along = np.array([-np.sin(angle), np.cos(angle)])
    origin = np.outer(offsets, [np.cos(angle), np.sin(angle)])
    lines = np.arange(size + 1) - size / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        cuts = [np.clip(np.nan_to_num((lines - origin[:, [d]]) / along[d]), -2 * size, 2 * size) for d in (0, 1)]
    at = np.sort(np.concatenate(cuts, axis=1), axis=1)
    length = np.diff(at, axis=1)
    middle = (at[:, :-1] + at[:, 1:]) / 2
    column, row = (np.floor(origin[:, [d]] + middle * along[d] + size / 2).astype(np.intp) for d in (0, 1))
    inside = (length > 1e-12) & (column >= 0) & (column < size) & (row >= 0) & (row < size)
    ray = np.broadcast_to(np.arange(len(offsets))[:, None], length.shape)[inside]
    return ray, (row * size + column)[inside], length[inside]


# Density, half axes, centre, turn in degrees: the head of Shepp and Logan with the contrast Toft gave it.
_ELLIPSES = (
    (1.0, 0.69, 0.92, 0.0, 0.0, 0.0),
    (-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0),
    (-0.2, 0.11, 0.31, 0.22, 0.0, -18.0),
    (-0.2, 0.16, 0.41, -0.22, 0.0, 18.0),
    (0.1, 0.21, 0.25, 0.0, 0.35, 0.0),
    (0.1, 0.046, 0.046, 0.0, 0.1, 0.0),
    (0.1, 0.046, 0.046, 0.0, -0.1, 0.0),
    (0.1, 0.046, 0.023, -0.08, -0.605, 0.0),
    (0.1, 0.023, 0.023, 0.0, -0.606, 0.0),
    (0.1, 0.023, 0.046, 0.06, -0.605, 0.0),
)


def phantom(size: int) -> FloatArray:
    """The head phantom of Shepp and Logan as a size x size image with values from 0 to 1, top row first."""
    size = check_count("size", size, low=1)
    at = (np.arange(size) + 0.5) / size * 2 - 1
    x, y = np.meshgrid(at, -at)
    image = np.zeros((size, size))
    for density, a, b, x0, y0, degrees in _ELLIPSES:
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        u, v = (x - x0) * c + (y - y0) * s, -(x - x0) * s + (y - y0) * c
        image[(u / a) ** 2 + (v / b) ** 2 <= 1] += density
    return np.clip(image, 0.0, 1.0)
