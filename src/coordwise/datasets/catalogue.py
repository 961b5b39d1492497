"""The datasets known by name: the three of the paper's experiments, unscaled, as the LIBSVM site has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coordwise.validation import FloatArray, check_choice

COMPRESSIONS = (".xz", ".bz2", ".gz", "")


@dataclass(frozen=True)
class Entry:
    """What is known of a dataset before it is read.

    `stems` are the file names it goes by, without compression suffix; `remote` is its address below that of the LIBSVM
    site; `positive` is the class that becomes +1; `fingerprint` is that of its content (`Dataset.fingerprint`).
    """

    name: str
    n: int
    d: int
    nnz: int
    positive: float
    stems: tuple[str, ...]
    remote: str
    fingerprint: str

    @property
    def files(self) -> tuple[str, ...]:
        """The file names under which a folder may hold it, the first one found counts."""
        return tuple(stem + suffix for stem in self.stems for suffix in COMPRESSIONS)

    def find(self, folder: Path) -> Path | None:
        """Its file in a folder."""
        return next((file for name in self.files if (file := folder / name).is_file()), None)

    def labels(self, classes: FloatArray) -> FloatArray:
        """+1.0 for the positive class, -1.0 for the others."""
        return np.where(classes == self.positive, 1.0, -1.0)


CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry(
            name="news20",
            n=15_935,
            d=62_061,
            nnz=1_272_569,
            positive=1,
            stems=("news20.svm", "news20"),
            remote="multiclass/news20.bz2",
            fingerprint="6d48d60a9d324dd6b5043cf0d7579cd8abd3cb9e798ccecc1fff5149ee60098c",
        ),
        Entry(
            name="w8a",
            n=49_749,
            d=300,
            nnz=579_586,
            positive=1,
            stems=("w8a.svm", "w8a"),
            remote="binary/w8a",
            fingerprint="745bbb2749560d73b44f2f659b390db8cc05d6c180f477955629eceb9fd8b0ec",
        ),
        Entry(
            name="covtype",
            n=581_012,
            d=54,
            nnz=6_901_775,
            positive=2,
            stems=("covtype.binary.svm", "covtype.libsvm.binary"),
            remote="binary/covtype.libsvm.binary.bz2",
            fingerprint="c76cb99b3e09146526d320fb7a97fa77db2a042e310f7ac43deecd723e2cadb3",
        ),
    )
}


def get_entry(name: object) -> Entry:
    """The entry of a name."""
    return CATALOGUE[check_choice("name", name, CATALOGUE)]
