"""skglm: working sets and Anderson extrapolation."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import skglm


class Solver(PeerSolver):
    """See `coordwise.bench.peers.skglm`."""

    name = "skglm"
    requirements = ["pip::skglm"]
    peers = by_solver(skglm.PEERS)
    parameters = {"solver": list(peers)}
