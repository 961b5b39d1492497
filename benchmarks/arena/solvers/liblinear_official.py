"""LIBLINEAR by its own interface."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import liblinear


class Solver(PeerSolver):
    """See `coordwise.bench.peers.liblinear`."""

    name = "liblinear-official"
    requirements = ["pip::liblinear-official"]
    peers = by_solver(liblinear.PEERS)
    parameters = {"solver": list(peers)}
