"""w8a: tall, sparse, 300 features."""

from benchopt import BaseDataset

from coordwise import datasets


class Dataset(BaseDataset):
    """As it is."""

    name = "w8a"

    def get_data(self):
        """See `BaseDataset.get_data`."""
        data = datasets.load("w8a", stand_in=False, mmap=False)
        return {"X": data.A, "y": data.b}
