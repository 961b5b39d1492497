"""Tables of losses: of any shape, along lines, with weights of 0, and at scores that are no numbers."""

import numpy as np
import pytest

from coordwise.kernels import Terms
from coordwise.losses import LOSSES, Hinge, SquaredHinge, get_loss

PIECEWISE = sorted(name for name in LOSSES if not get_loss(name).shape.logistic)


def drawn(loss, rows, columns):
    rng = np.random.default_rng(rows + columns)
    b = rng.standard_normal((rows, columns))
    b = np.where(b < 0, -1.0, 1.0) if loss.classification else b
    s = rng.integers(0, 3, rows) * rng.random(rows)
    t = rng.standard_normal((rows, columns)) * 10 ** rng.uniform(-9, 2, (rows, columns))
    t[rng.random((rows, columns)) < 0.1] = 0.0
    return t, b, s


@pytest.mark.parametrize("columns", [1, 3, 300])
@pytest.mark.parametrize("rows", [1, 255, 256, 257, 1000])
@pytest.mark.parametrize("name", PIECEWISE)
def test_tables_are_the_formulas_entry_by_entry(name, rows, columns):
    loss = get_loss(name)
    t, b, s = drawn(loss, rows, columns)
    terms, weight = Terms(loss.shape, 0.5, b, s), s[:, None]
    np.testing.assert_allclose(terms.value(t), 0.5 * loss.value(t, b, weight).sum(0), rtol=1e-13)
    np.testing.assert_allclose(terms.derivative(t), 0.5 * loss.derivative(t, b, weight), rtol=1e-14)
    np.testing.assert_allclose(terms.second_derivative(t), 0.5 * loss.second_derivative(t, b, weight), rtol=1e-14)
    y = loss.derivative(t, b, weight)
    exact = 0.5 * loss.conjugate(y, b, weight)
    np.testing.assert_allclose(terms.conjugate(y), exact.sum(0), rtol=1e-12, atol=1e-13 * np.abs(exact).sum())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [1, 256, 700, 9000])
@pytest.mark.parametrize("name", LOSSES)
def test_slope_and_curvature_along_a_line(name, rows, threads):
    loss = get_loss(name)
    t, b, s = drawn(loss, rows, 1)
    way = np.random.default_rng(1).standard_normal((rows, 1))
    terms = Terms(loss.shape, 0.5, b, s, threads)
    for length in (-0.7, 0.0, 2.0):
        at = t + length * way
        slope, curvature = terms.slope_and_curvature(t, way, length)
        assert terms.slope(t, way, length) == slope
        first, second = terms.derivative(at) * way, terms.second_derivative(at) * way**2
        assert slope == pytest.approx(float(first.sum()), rel=1e-12, abs=1e-13 * np.abs(first).sum())
        assert curvature == pytest.approx(float(second.sum()), rel=1e-12)


def test_a_line_has_one_column_of_the_same_length():
    terms = Terms(Hinge().shape, 1.0, np.ones((3, 1)), None)
    for way in (np.ones((2, 1)), np.ones((3, 2))):
        with pytest.raises(ValueError, match="a line has one column"):
            terms.slope(np.ones((3, 1)), way, 1.0)


@pytest.mark.parametrize("name", PIECEWISE)
def test_one_dual_variable_outside_makes_its_column_infinite(name):
    loss = get_loss(name)
    t, b, s = drawn(loss, 300, 2)
    s[-1] = 0.0  # only 0 is inside
    y = loss.derivative(t, b, s[:, None])
    y[-1, 0] = 1e-3
    found = Terms(loss.shape, 1.0, b, s).conjugate(y)
    assert np.isinf(found[0])
    assert np.isfinite(found[1])


@pytest.mark.parametrize("name", PIECEWISE)
def test_corners_are_where_derivatives_stay(name):
    loss = get_loss(name)
    t, b, s = drawn(loss, 400, 2)
    terms = Terms(loss.shape, 1.0, b, s)
    y = terms.subgradients(t)
    inside = ~terms.in_corner(y)
    moved = [terms.subgradients(t + by) for by in (-1e-7, 1e-7)]
    assert np.all((moved[0] < y)[inside] | (moved[1] > y)[inside])
    assert terms.in_corner(y)[s == 0].all()
    if loss.shape.corners:
        assert terms.in_corner(y).any()


def test_scores_that_are_no_numbers():
    t = np.array([[np.nan], [np.inf], [-np.inf]])
    for loss, slope in ((SquaredHinge(), -np.inf), (Hinge(), -1.0)):
        terms = Terms(loss.shape, 1.0, np.ones((3, 1)), None)
        np.testing.assert_array_equal(terms.derivative(t)[:, 0], [np.nan, 0.0, slope])
        assert terms.second_derivative(t)[2, 0] == 0.0
        assert np.isinf(terms.value(t)[0])  # not taken for small by any comparison
        assert Terms(loss.shape, 1.0, np.ones((1, 1)), None).value(t[1:2])[0] == 0.0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rows", "columns"), [(9000, 1), (4100, 3), (1, 1)])
@pytest.mark.parametrize("name", PIECEWISE)
def test_corners_of_many_scores(name, rows, columns, threads):
    """By their definition: the score may move by so much, and not by more, before the subgradient leaves a corner."""
    loss = get_loss(name)
    t, b, s = drawn(loss, rows, columns)
    terms = Terms(loss.shape, 0.5, b, s, threads)
    x = np.random.default_rng(2).standard_normal((rows, columns))
    room, away, there = terms.held(x, t)
    np.testing.assert_array_equal(there, terms.subgradients(t))
    np.testing.assert_array_equal(away, np.abs(x - there))
    inside = (room > 0) & (s[:, None] > 0)
    clear = (t != 0) & (s[:, None] > 0)  # at 0 some scores are just at the end of a corner
    np.testing.assert_array_equal(inside[clear], terms.in_corner(there)[clear])
    for way in (-1, 1):
        moved = terms.subgradients(t + way * room * (1 - 1e-9))
        np.testing.assert_allclose(moved[inside], there[inside], rtol=1e-14)  # rounding may lead just beyond
    left = [terms.subgradients(t + way * (room * (1 + 1e-9) + 1e-12)) != there for way in (-1, 1)]
    assert np.all((left[0] | left[1])[inside])


def test_a_logistic_loss_has_no_corners():
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match="no corners"):
        Terms(get_loss("logistic").shape, 1.0, one, None).held(one, one)
