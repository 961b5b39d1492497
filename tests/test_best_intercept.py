"""The intercept that is best for given scores: targets of any size, and those that carry no weight."""

import numpy as np
import pytest

import coordwise as cw
from coordwise.fitting.model import LinearModel


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("loss", [cw.losses.Squared(), cw.losses.Huber(0.1), cw.losses.Absolute()])
def test_the_best_intercept_whatever_the_size_of_the_targets(loss, size):
    rng = np.random.default_rng(0)
    b = size * (5 + rng.standard_normal(51))
    if isinstance(loss, cw.losses.Huber):
        loss = cw.losses.Huber(0.1 * size)
    model = LinearModel(cw.ERM(rng.standard_normal((51, 2)), b, loss, cw.penalties.L2(1e-3)), True)
    found = model.best_intercept(np.zeros((51, 1)))[0]
    values = [model.value(np.zeros((2, 1)), np.full((51, 1), found + step * size))[0] for step in (-1e-3, 0, 1e-3)]
    assert values[1] <= min(values[0], values[2])
    if loss.name == "absolute":
        assert found == pytest.approx(np.median(b), rel=1e-12)


@pytest.mark.parametrize("loss", [cw.losses.Huber(1.0), cw.losses.Absolute()])
def test_targets_without_weight_do_not_make_the_intercept_coarse(loss):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((200, 3)), 2 + rng.standard_normal(200)
    s = np.ones(200)
    s[0] = 0
    model, other = (
        LinearModel(cw.ERM(A, targets, loss, cw.penalties.L2(1e-3), sample_weight=s), True)
        for targets in (b, np.where(s == 0, 1e16, b))
    )
    t = np.zeros((200, 1))
    assert other.best_intercept(t)[0] == pytest.approx(model.best_intercept(t)[0], rel=1e-12)
    assert other.best_intercept(t, rough=True)[0] == pytest.approx(model.best_intercept(t)[0], rel=0.05)


def test_the_intercept_of_targets_next_to_nothing():
    rng = np.random.default_rng(0)
    b = np.column_stack([rng.standard_normal(50), np.full(50, 1e-39)])
    model = LinearModel(cw.ERM(rng.standard_normal((50, 3)), b, cw.losses.Huber(1.0), cw.penalties.L2(1e-3)), True)
    assert abs(model.best_intercept(np.zeros((50, 2)))[1] - 1e-39) <= 1e-50
