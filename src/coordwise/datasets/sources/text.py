"""Rows from svmlight text, plain or compressed: whole lines are parsed while the next ones are decompressed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import scipy.sparse as sp

from coordwise.datasets.sources.base import BeginAgain, Part, State, file_identity, gathered
from coordwise.datasets.svmlight import LARGEST, text_blocks
from coordwise.kernels import SvmlightParser

__all__ = ["SvmlightSource"]


class Piece(NamedTuple):
    """Whole lines; bytes of text and lines before and in them, and the bytes of the file that were read for them."""

    text: bytes
    begin: int
    line: int
    lines: int
    done: int


class SvmlightSource:
    """Rows of an svmlight file.

    Whether the first column is written 0 or 1 is known for certain at the end only. It is taken to be 1 unless the
    first chunk has an index 0; if one turns up later, the conversion begins again.
    """

    feature_names: tuple[str, ...] | None = None

    def __init__(self, path: Path, base: int | None = None) -> None:
        self.path, self.base = path, base
        self.identity: dict[str, Any] | None = file_identity(path)
        self.total: int | None = path.stat().st_size
        self.columns: int | None = None
        self.levels: dict[str, list[str]] = {}
        self._smallest = LARGEST  # index that has been read so far

    def parts(self, after: State | None, size: int) -> Iterator[Part]:
        """See `Source.parts`."""
        base = int(after["base"]) if after else self.base
        text, line = (int(after["text"]), int(after["line"])) if after else (0, 0)
        for part in gathered(self._parsed(text, line), size):
            if base is None:
                base = int(self._smallest > 0)
            if base and self._smallest == 0:
                raise BeginAgain(SvmlightSource(self.path, 0))
            X = part.X
            indices = X.indices - base if base else X.indices
            columns = max(1, X.shape[1] - base)
            yield Part(
                sp.csr_array((X.data, indices, X.indptr), shape=(X.shape[0], columns)),
                part.y,
                None,
                {**part.state, "base": base} if part.state else {},
                part.done,
            )

    def _parsed(self, text: int, line: int) -> Iterator[Part]:
        """A part per piece of text, parsed by a thread while the next piece is read; indices as they are written."""
        waiting: Future[tuple[Part, int]] | None = None
        with ThreadPoolExecutor(1, "coordwise parses") as pool:
            for piece in chain(self._pieces(text, line), [None]):
                begun = None if piece is None else pool.submit(self._parse, piece)
                if waiting is not None:
                    part, smallest = waiting.result()
                    self._smallest = min(self._smallest, smallest)
                    if part.X.shape[0]:
                        yield part
                waiting = begun

    def _parse(self, piece: Piece) -> tuple[Part, int]:
        """The rows of some lines, and the smallest index in them."""
        parser = SvmlightParser(lowest=0, highest=LARGEST)
        try:
            parser.feed(piece.text)
            values, indices, indptr, labels, smallest, largest = parser.finish()
        except ValueError as error:
            raise self._refused(error, piece.line) from None
        X = sp.csr_array((values, indices, indptr.astype(indices.dtype)), shape=(len(labels), max(largest + 1, 1)))
        X.has_sorted_indices = X.has_canonical_format = True
        state = {"text": piece.begin + len(piece.text), "line": piece.line + piece.lines}
        return Part(X, labels, None, state, piece.done), int(smallest)

    def _pieces(self, text: int, line: int) -> Iterator[Piece]:
        """Whole lines from a position in the text on."""
        held: list[bytes] = []
        done = [0]
        skip, at = text, text
        try:
            with open(self.path, "rb") as file:
                for block in text_blocks(file, lambda count: done.__setitem__(0, count)):
                    if skip >= len(block):
                        skip -= len(block)
                        continue
                    held.append(block[skip:] if skip else block)
                    skip = 0
                    cut = held[-1].rfind(b"\n") + 1
                    if not cut:
                        continue
                    piece = _piece(b"".join([*held[:-1], held[-1][:cut]]), at, line, done[0])
                    held = [held[-1][cut:]]
                    yield piece
                    at, line = at + len(piece.text), line + piece.lines
        except ValueError as error:
            raise self._refused(error, 0) from None
        rest = b"".join(held)
        if rest:
            yield _piece(rest, at, line, done[0])

    def _refused(self, error: ValueError, before: int) -> ValueError:
        """The error with the number of the line in the file, and the name of the file."""
        said = re.sub(r"\bline (\d+)", lambda m: f"line {int(m[1]) + before}", str(error), count=1)
        return ValueError(f"{self.path.name} cannot be read as svmlight text: {said}.")


def _piece(text: bytes, begin: int, line: int, done: int) -> Piece:
    return Piece(text, begin, line, text.count(b"\n"), done)
