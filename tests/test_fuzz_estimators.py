"""Random problems for the estimators, whose claims are recomputed in extended precision from definitions alone.

What is checked is in `judged_fits` and `fuzzed_choices`; ``python tests/fuzz.py fits SEED`` looks at one problem.
"""

import pytest
from fuzz import assert_right, needs_extended_precision

pytestmark = needs_extended_precision
FITS, CHOICES = 20_000, 1_000


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_a_few_fits(first):
    assert_right("fits", range(first, first + 50))


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_a_few_choices(first):
    assert_right("choices", range(first, first + 20))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, FITS, 200))
def test_fits(first):
    assert_right("fits", range(first, first + 200))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CHOICES, 50))
def test_choices(first):
    assert_right("choices", range(first, first + 50))
