"""covtype, class 2 against class 1: half a million rows, 54 features of very different sizes."""

import numpy as np
from benchopt import BaseDataset

from coordwise import datasets


class Dataset(BaseDataset):
    """As it is (sparse), or with columns of mean 0 and variance 1 (dense)."""

    name = "covtype"
    parameters = {"columns": ["raw", "standardised"]}

    def get_data(self):
        """See `BaseDataset.get_data`."""
        data = datasets.load("covtype", stand_in=False, mmap=False)
        A = data.A
        if self.columns == "standardised":
            A = A.toarray()
            A -= A.mean(axis=0)
            spread = A.std(axis=0)
            A /= np.where(spread > 0, spread, 1)
        return {"X": A, "y": data.b}
