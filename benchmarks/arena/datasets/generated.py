"""A small problem with rows of very different norms, for tests."""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Sparse Gaussian rows; labels by a random hyperplane, with noise."""

    name = "generated"
    parameters = {"n, d": [(400, 50)]}

    def get_data(self):
        """See `BaseDataset.get_data`."""
        rng = np.random.default_rng(0)
        A = rng.standard_normal((self.n, self.d)) * 10 ** rng.uniform(-0.5, 0.5, (self.n, 1))
        A *= rng.random(A.shape) < 0.3
        y = np.where(A @ rng.standard_normal(self.d) + 0.5 * rng.standard_normal(self.n) > 0, 1.0, -1.0)
        return {"X": sp.csr_array(A), "y": y}
