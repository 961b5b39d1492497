"""The rows of the arena."""

from __future__ import annotations

from coordwise.bench.rows import Row

__all__ = ["DATASETS", "rows"]

DATASETS = ("w8a", "news20 normalised", "covtype standardised", "news20 raw", "covtype raw")
TASKS = (
    ("squared", "l2"),
    ("squared", "l1"),
    ("squared", "elastic_net"),
    ("l2l1", "l2"),
    ("logistic", "l2"),
    ("squared_hinge", "l2"),
    ("hinge", "l2"),
)
WEIGHTS = (1.0, 1e-2, 1e-4)  # lam n
SHARES = (0.1, 0.01, 0.001)  # of lam_max, for the lasso

WITH_INTERCEPT = (("squared", "l2"), ("squared", "l1"), ("logistic", "l2"), ("squared_hinge", "l2"))
INTERCEPT_DATASETS = ("w8a", "news20 normalised", "covtype standardised")

QUICK = {
    "w8a": (("squared", "l2"), ("squared", "l1"), ("logistic", "l2"), ("squared_hinge", "l2"), ("hinge", "l2")),
    "news20 normalised": (
        ("squared", "l2"),
        ("squared", "elastic_net"),
        ("l2l1", "l2"),
        ("logistic", "l2"),
        ("squared_hinge", "l2"),
    ),
}


def rows(quick: bool = False) -> list[Row]:
    """All rows, dataset by dataset, so that each is read once; or a few of every kind."""
    if quick:
        return [_row(dataset, *task, 1, intercept=False) for dataset, tasks in QUICK.items() for task in tasks]
    found = []
    for dataset in DATASETS:
        found += [_row(dataset, *task, k, intercept=False) for task in TASKS for k in range(3)]
        if dataset in INTERCEPT_DATASETS:
            found += [_row(dataset, *task, 1, intercept=True) for task in WITH_INTERCEPT]
    return found


def _row(dataset: str, loss: str, penalty: str, k: int, *, intercept: bool) -> Row:
    if penalty == "l1":
        return Row(dataset, loss, penalty, SHARES[k], "lam_max", intercept=intercept)
    return Row(dataset, loss, penalty, WEIGHTS[k], "lam_n", intercept=intercept)
