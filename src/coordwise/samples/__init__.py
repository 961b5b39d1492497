"""Samples, wherever they are: blocks of rows that know one verb, `visit`."""

from coordwise.samples.base import InOrder, Kept, Samples
from coordwise.samples.block import Block
from coordwise.samples.chunks import Chunks
from coordwise.samples.memory import Memory
from coordwise.samples.source import Source, is_source

__all__ = ["Block", "Chunks", "InOrder", "Kept", "Memory", "Samples", "Source", "is_source"]
