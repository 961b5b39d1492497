"""Footnote 5: the family of problems with a gain of sqrt(n)."""

import math
from dataclasses import replace

import numpy as np
import pytest
from experiment_cases import SMALL, Watch, library_of

from coordwise.experiments import curves, sqrtn
from coordwise.experiments.charts import PUBLISHED, TIGHT
from coordwise.experiments.units import Interrupted
from coordwise.methods import ACDM, NUACDM


@pytest.mark.parametrize("n", [100, 400])
def test_the_family_is_what_it_says(n):
    objective = sqrtn.lone_long_row(n, seed=3)
    L = sqrtn.smoothness(n)
    assert np.diff(objective.problem.A.indptr).tolist() == [sqrtn.ENTRIES] * n
    A = objective.problem.A.toarray()
    np.testing.assert_allclose(1 + (A**2).sum(1), L)  # n L_i = 1 + |a_i|^2/(lambda n)
    published, tight, ours = (
        method.schedule(objective).constants for method in (PUBLISHED, ACDM(constants="tight"), NUACDM())
    )
    assert published.Theta == pytest.approx(L.sum())  # n sum_i L_i with L_i = smoothness/n
    assert published.sigma == pytest.approx(1 / n)
    assert ours.speedup == pytest.approx(sqrtn.factor(n))
    assert 0.9 < tight.Theta / published.Theta <= 1  # the proof allows hardly less: and all of it is proved
    assert published.rate_per_pass is not None
    assert not np.array_equal(A, sqrtn.lone_long_row(n, seed=4).problem.A.toarray())


def test_the_factor_grows_like_the_root_of_n():
    factors = [sqrtn.factor(n) for n in (100, 10_000, 1_000_000)]
    np.testing.assert_allclose(np.divide(factors, np.sqrt([100, 10_000, 1_000_000])), 0.5, rtol=0.02)


def test_the_measured_gain():
    """Four times n, about twice the gain; at least a quarter of sqrt(n), at most the root itself."""
    found = {n: sqrtn.SqrtnChart(n).run(library_of(), replace(SMALL, records=60), Watch()) for n in (100, 400)}
    for n, finding in found.items():
        for label in ("ACDM", TIGHT):
            gains = curves.gains(finding, label, "NU_ACDM")
            assert len(gains) == len(SMALL.seeds)
            assert math.sqrt(n) / 4 <= min(gains) <= max(gains) <= math.sqrt(n)
    ratio = np.median(curves.gains(found[400], "ACDM", "NU_ACDM")) / np.median(
        curves.gains(found[100], "ACDM", "NU_ACDM")
    )
    assert ratio == pytest.approx(2, abs=0.4)


def test_it_gives_up_when_asked():
    with pytest.raises(Interrupted):
        sqrtn.SqrtnChart(100).run(library_of(), SMALL, Watch(stopped=True))
