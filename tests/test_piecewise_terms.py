"""Tables of piecewise losses: of any shape, with weights of 0, and at scores that are no numbers."""

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


def test_scores_that_are_no_numbers():
    t = np.array([[np.nan], [np.inf], [-np.inf]])
    for loss, slope in ((SquaredHinge(), -np.inf), (Hinge(), -1.0)):
        terms = Terms(loss.shape, 1.0, np.ones((3, 1)), None)
        np.testing.assert_array_equal(terms.derivative(t)[:, 0], [np.nan, 0.0, slope])
        assert terms.second_derivative(t)[2, 0] == 0.0
        assert np.isinf(terms.value(t)[0])  # not taken for small by any comparison
        assert Terms(loss.shape, 1.0, np.ones((1, 1)), None).value(t[1:2])[0] == 0.0
