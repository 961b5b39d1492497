"""The paper's datasets by name, svmlight files, and data folders, which may be larger than memory."""

from coordwise.datasets.cache import CacheWarning, cache_folder
from coordwise.datasets.catalogue import CATALOGUE, Entry
from coordwise.datasets.conversion import convert, open
from coordwise.datasets.dataset import Dataset, Source, fingerprint
from coordwise.datasets.download import DownloadError
from coordwise.datasets.folder import Folder
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
    "Folder",
    "Source",
    "available",
    "cache_folder",
    "convert",
    "fingerprint",
    "load",
    "load_file",
    "open",
    "read_svmlight",
    "stand_in",
]
