"""What tests of the experiments share: settings for short runs, a library of datasets, and reading findings."""

import math

import numpy as np

from coordwise.experiments import Settings, charts


class Watch:
    """Lets everything go on, and counts."""

    def __init__(self, stopped=False):
        self.stopped, self.entries = stopped, 0.0

    def add(self, entries):
        self.entries += entries


def column(finding, name, **where):
    """One column of a finding, restricted to the rows where other columns have given values."""
    rows = zip(finding.columns[name], *(finding.columns[other] for other in where), strict=True)
    return np.array([value for value, *others in rows if others == list(where.values())])


SMALL = Settings(
    seeds=(0, 1),
    accuracy=1e-3,
    most_passes=12,
    most_entries=1e8,
    passes=8,
    sigmas=4,
    reference=1e-9,
    records=12,
    quick=True,
)


def library_of(**found):
    return found.__getitem__


def two_norms(k, m=300):
    """sqrt(m sum L)/sum sqrt(L) for k rows with L = 100 among m with L = 1."""
    return math.sqrt(m * (100 * k + m - k)) / (10 * k + m - k)


def chart_of(family, lam=0.01):
    return charts.ErmChart(charts.FAMILIES[family], "w8a", lam)
