"""scikit-learn-intelex: oneDAL."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import sklearnex


class Solver(PeerSolver):
    """See `coordwise.bench.peers.sklearnex`."""

    name = "scikit-learn-intelex"
    requirements = ["pip::scikit-learn-intelex"]
    peers = by_solver(sklearnex.PEERS)
    parameters = {"solver": list(peers)}
