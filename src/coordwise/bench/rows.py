"""A row of a comparison: one problem, named, with its penalty's weight given in one of three ways."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from coordwise.bench.problems import Data, Statement, largest_l1
from coordwise.validation import check_choice, check_number

__all__ = ["SCALES", "Row"]

SCALES = {"lam": "λ", "lam_n": "λn", "lam_max": "λ/λmax"}


@dataclass(frozen=True)
class Row:
    """A problem on a dataset.

    Parameters
    ----------
    dataset : str
        Its name.
    loss, penalty : str
        As in `Statement.of`.
    weight : float
        Of the penalty: lam, lam n, or lam as a share of the smallest l1 weight for which w = 0 is the solution.
    scale : {"lam", "lam_n", "lam_max"}
        Which of them.
    l1_ratio : float, optional
        For the elastic net; 0.5 if None.
    intercept : bool
    """

    dataset: str
    loss: str
    penalty: str
    weight: float
    scale: str = "lam"
    l1_ratio: float | None = None
    intercept: bool = False

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, tuple(SCALES))
        object.__setattr__(self, "weight", check_number(self.scale, self.weight, low=0, strictly=True))

    @property
    def task(self) -> str:
        """Loss and penalty by their common name."""
        names = {
            ("squared", "l2"): "ridge",
            ("squared", "l1"): "lasso",
            ("squared", "elastic_net"): "elastic net",
            ("l2l1", "l2"): "l2-l1",
        }
        name = self.loss.replace("_", " ") + ("" if self.penalty == "l2" else f" {self.penalty.replace('_', ' ')}")
        return names.get((self.loss, self.penalty), name)

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.task}, {self.dataset}, {SCALES[self.scale]} = {self.weight:g}" + (
            ", intercept" if self.intercept else ""
        )

    @property
    def key(self) -> str:
        """For files."""
        words = f"{self.task} {self.dataset} {self.scale} {self.weight:g}" + (" intercept" if self.intercept else "")
        if self.l1_ratio is not None:
            words += f" {self.l1_ratio:g}"
        return "".join(c if c.isalnum() or c in ".-" else "_" for c in words)

    def statement(self, data: Data) -> Statement:
        """The problem itself."""
        lam = self.weight
        if self.scale == "lam_n":
            lam /= data.shape[0]
        elif self.scale == "lam_max":
            lam *= largest_l1(data, self.loss)
        return Statement.of(self.loss, self.penalty, lam, l1_ratio=self.l1_ratio, intercept=self.intercept)

    def spec(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)
