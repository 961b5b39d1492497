"""lightning: dual coordinate descent."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import lightning


class Solver(PeerSolver):
    """See `coordwise.bench.peers.lightning`."""

    name = "sklearn-contrib-lightning"
    requirements = ["pip::sklearn-contrib-lightning"]
    peers = by_solver(lightning.PEERS)
    parameters = {"solver": list(peers)}
