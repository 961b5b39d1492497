"""Snap ML: parallel coordinate descent in single precision."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import snapml


class Solver(PeerSolver):
    """See `coordwise.bench.peers.snapml`."""

    name = "snapml"
    requirements = ["pip::snapml"]
    peers = by_solver(snapml.PEERS)
    parameters = {"solver": list(peers)}
