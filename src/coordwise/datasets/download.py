"""Fetching a dataset from the LIBSVM site, or a mirror of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
TIMEOUT = (5.0, 30.0)  # seconds to connect, and without a byte

Progress = Callable[[str, int, int | None], object]  # what is being done, bytes so far, bytes in all if known

_unreachable: dict[str, str] = {}  # servers that did not answer in this process, and why: asked once


class DownloadError(OSError):
    """A file could not be fetched; the message says why."""


def address(remote: str) -> str:
    """The address of a file of the LIBSVM site; COORDWISE_MIRROR names a folder with the same files elsewhere."""
    return f"{(os.environ.get('COORDWISE_MIRROR') or SITE).rstrip('/')}/{remote}"


def shown(url: str) -> str:
    """An address as it may be printed: without a password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def fetch_file(url: str, folder: Path, progress: Progress | None = None) -> Path:
    """Download a file into a folder.

    Raises
    ------
    DownloadError
        If pooch is missing, the server cannot be reached (it is then not asked again in this process) or does not have
        the file, or the transfer breaks off.
    """
    try:
        import pooch
        import requests
    except ImportError:
        raise DownloadError('downloads need the package pooch: pip install ".[data]"') from None
    host = urlsplit(url).hostname or shown(url)
    server = urlsplit(url).netloc
    if server in _unreachable:
        raise DownloadError(_unreachable[server])
    logger: Any = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)  # it would advise to note the checksum, and we check the content
    bar = _Bar(progress)
    try:
        downloader = pooch.HTTPDownloader(timeout=TIMEOUT, progressbar=bar, chunk_size=1 << 16)
        return Path(pooch.retrieve(url, None, fname=url.rsplit("/", 1)[1], path=folder, downloader=downloader))
    except requests.HTTPError as error:
        raise DownloadError(
            f"{host} answered {getattr(error.response, 'status_code', 'an error')} for {shown(url)}"
        ) from None
    except requests.RequestException as error:
        if isinstance(error, requests.exceptions.ChunkedEncodingError) or bar.done:
            raise DownloadError(f"the download of {shown(url)} broke off") from None
        if not isinstance(error, (requests.ConnectionError, requests.Timeout)):
            raise DownloadError(f"{shown(url)} could not be fetched ({type(error).__name__})") from None
        distrusted = isinstance(error, requests.exceptions.SSLError)
        _unreachable[server] = f"{host} {'has no valid certificate' if distrusted else 'could not be reached'}"
        raise DownloadError(_unreachable[server]) from None
    finally:
        logger.setLevel(level)


class _Bar:
    """What pooch takes for a progress bar."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.done = self.total = 0

    def update(self, count: int) -> None:
        """`count` more bytes have come."""
        self.done += count  # pooch counts whole chunks, also for the last one
        if self._progress is not None:
            self._progress("downloading", min(self.done, self.total or self.done), self.total or None)

    def reset(self) -> None:
        """The file is complete; pooch then updates once more, by its size."""
        self.done = 0

    def close(self) -> None:
        """Nothing to do."""
