"""celer: working sets and dual extrapolation."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import celer


class Solver(PeerSolver):
    """See `coordwise.bench.peers.celer`."""

    name = "celer"
    requirements = ["pip::celer"]
    peers = by_solver(celer.PEERS)
    parameters = {"solver": list(peers)}
