"""glum: iteratively reweighted least squares."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import glum


class Solver(PeerSolver):
    """See `coordwise.bench.peers.glum`."""

    name = "glum"
    requirements = ["pip::glum"]
    peers = by_solver(glum.PEERS)
    parameters = {"solver": list(peers)}
