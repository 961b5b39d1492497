"""What work costs, in the time one thread takes to read an entry of sparse rows: (entry, flop, visit, byte).

Ratios of a machine of 2026, which ship as constants so that the same seed gives the same bits everywhere. Those of
memory and of chunks are estimates that no program measures yet.
"""

from __future__ import annotations

__all__ = ["CHUNKS", "CLUSTER", "MEMORY"]

MEMORY = (1.0, 0.05, 2e4, 0.0)  # a visit by itself: 20 microseconds
CHUNKS = (2.0, 0.05, 1e6, 0.0)  # read from the disk while the last chunk is worked on; a thread begins at every visit
CLUSTER = (1.0, 0.05, 1.5e7, 7.0)  # benchmarks/distributed.py --rounds: a round takes 15 ms, a byte 7 ns there and back
