"""ReHLine: piecewise linear-quadratic losses."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import rehline


class Solver(PeerSolver):
    """See `coordwise.bench.peers.rehline`."""

    name = "rehline"
    requirements = ["pip::rehline"]
    peers = by_solver(rehline.PEERS)
    parameters = {"solver": list(peers)}
