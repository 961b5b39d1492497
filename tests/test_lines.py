"""Line searches."""

import numpy as np
import pytest

from coordwise.lines import flattest, lowest


@pytest.mark.parametrize(
    ("fall", "first", "jump"),
    [
        (lambda x: 1 - x / 1.5, 1.0, None),
        (lambda x: 1 - 3 * x, 1.0, None),
        (lambda x: 2 - 1e3 * x, 2.0, None),
        (lambda x: np.exp(-x) - 1e-3, 1 - 1e-3, None),
        (lambda x: 1 - np.exp(30 * x - 5), 1 - np.exp(-5), None),  # rises steeply
        (lambda x: np.float64(1.0) if x < 0.2 else -1e300 * x, 1.0, 0.2),  # and at once
        (lambda x: 1 - 5 * x if x < 0.5 else np.nan, 1.0, None),
    ],
)
def test_a_line_is_followed_to_where_it_is_flat(fall, first, jump):
    looked = []

    def watched(x):
        looked.append(x)
        return fall(x)

    length = flattest(watched, first)
    assert len(looked) <= 13
    assert abs(fall(length)) <= 0.1 * first if jump is None else length == pytest.approx(jump, rel=0.5)


def test_a_full_step_is_taken_if_it_will_do_and_a_line_without_end_is_left():
    assert flattest(lambda x: 1 - x, 1.0) == 1  # a parabola
    assert flattest(lambda x: 1 - 0.95 * x, 1.0) == 1
    assert flattest(lambda x: np.exp(-x), 1.0) == 4  # e^-4 is less than a tenth
    assert flattest(lambda x: 1.0, 1.0) == 64  # a straight line has no minimum
    assert flattest(lambda x: -1e-20, -1e-20) == 1  # and what does not fall has no length


def test_other_first_lengths_and_fewer_of_them():
    assert flattest(lambda x: 3 - x, 3.0, first=0.25) == pytest.approx(3, abs=0.3)
    assert flattest(lambda x: 1.0, 1.0, first=0.25) == 16
    assert flattest(lambda x: 1.0, 1.0, first=0.25, most=3) == 2


@pytest.mark.parametrize(
    ("along", "length"),
    [
        (lambda s: (2 * (s - 0.3), 2.0), 0.3),
        (lambda s: (2 * (s - 70.0), 2.0), 70.0),
        (lambda s: (np.maximum(s - 3.0, 0) - 0.5, float(s > 3)), 3.5),  # straight, then a parabola
        (lambda s: (np.tanh(s - 9.0), 1 / np.cosh(s - 9.0) ** 2), 9.0),
        (lambda s: (s / 1e-9 - 1 if s < 2e-9 else 1.0, 1e9 if s < 2e-9 else 0.0), 1e-9),
    ],
)
def test_the_lowest_point_of_a_line(along, length):
    assert lowest(along) == pytest.approx(length, rel=0.02)
