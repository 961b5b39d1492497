"""The solvers that are compared: one module per library, none of which is imported before it is asked for."""

from coordwise.bench.peers import (
    adelie,
    celer,
    cyanure,
    glum,
    liblinear,
    lightning,
    ours,
    rehline,
    skglm,
    sklearn,
    sklearnex,
    snapml,
)
from coordwise.bench.peers.peer import TOLERANCES, Peer, Solution, reason_missing

__all__ = ["PEERS", "TOLERANCES", "Peer", "Solution", "by_name", "reason_missing"]

PEERS: tuple[Peer, ...] = (
    *ours.PEERS,
    *sklearn.PEERS,
    *liblinear.PEERS,
    *cyanure.PEERS,
    *skglm.PEERS,
    *celer.PEERS,
    *snapml.PEERS,
    *rehline.PEERS,
    *lightning.PEERS,
    *glum.PEERS,
    *adelie.PEERS,
    *sklearnex.PEERS,
)


def by_name(name: str) -> Peer:
    """The peer of that name."""
    return next(peer for peer in PEERS if peer.name == name)
