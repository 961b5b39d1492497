"""Cyanure: Catalyst and QNing."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import cyanure


class Solver(PeerSolver):
    """See `coordwise.bench.peers.cyanure`."""

    name = "cyanure"
    requirements = ["pip::cyanure"]
    peers = by_solver(cyanure.PEERS)
    parameters = {"solver": list(peers)}
