"""news20, class 1 against the rest: wide and sparse."""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset

from coordwise import datasets


class Dataset(BaseDataset):
    """As it is, or with rows of norm 1."""

    name = "news20"
    parameters = {"rows": ["raw", "normalised"]}

    def get_data(self):
        """See `BaseDataset.get_data`."""
        data = datasets.load("news20", stand_in=False, mmap=False)
        A = data.A
        if self.rows == "normalised":
            norms = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).reshape(-1))
            A = sp.csr_array(sp.diags_array(1 / np.where(norms > 0, norms, 1)) @ A)
            A.sort_indices()  # as vectorisers leave them; products do not
        return {"X": A, "y": data.b}
