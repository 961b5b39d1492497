"""Where the rows of a data folder come from: every kind of source yields parts of about a chunk's size."""

from coordwise.datasets.sources.base import BeginAgain, Part, Source
from coordwise.datasets.sources.choose import Request, choose

__all__ = ["BeginAgain", "Part", "Request", "Source", "choose"]
