"""scikit-learn: Ridge, LogisticRegression, LinearSVC, ElasticNet, by all their solvers."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import sklearn


class Solver(PeerSolver):
    """See `coordwise.bench.peers.sklearn`."""

    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    peers = by_solver(sklearn.PEERS)
    parameters = {"solver": list(peers)}
