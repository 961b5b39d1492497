"""The paper's datasets by name, and svmlight files, read fast and kept as memory-mapped arrays."""

from coordwise.datasets.cache import CacheWarning, cache_folder
from coordwise.datasets.catalogue import CATALOGUE, Entry
from coordwise.datasets.dataset import Dataset, Source, fingerprint
from coordwise.datasets.download import DownloadError
from coordwise.datasets.search import Availability, available, load, load_file
from coordwise.datasets.standins import stand_in
from coordwise.datasets.svmlight import read_svmlight

__all__ = [
    "CATALOGUE",
    "Availability",
    "CacheWarning",
    "Dataset",
    "DownloadError",
    "Entry",
    "Source",
    "available",
    "cache_folder",
    "fingerprint",
    "load",
    "load_file",
    "read_svmlight",
    "stand_in",
]
