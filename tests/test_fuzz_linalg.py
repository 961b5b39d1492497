"""Random linear systems, whose residuals are recomputed in extended precision.

What is checked is in `judged_systems`; ``python tests/fuzz.py systems SEED`` looks at one problem.
"""

import pytest
from fuzz import assert_right, needs_extended_precision

pytestmark = needs_extended_precision
SYSTEMS = 10_000


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_a_few_systems(first):
    assert_right("systems", range(first, first + 100))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SYSTEMS, 500))
def test_systems(first):
    assert_right("systems", range(first, first + 500))
