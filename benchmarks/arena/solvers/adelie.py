"""adelie: coordinate descent for group elastic nets."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import adelie


class Solver(PeerSolver):
    """See `coordwise.bench.peers.adelie`."""

    name = "adelie"
    requirements = ["pip::adelie"]
    peers = by_solver(adelie.PEERS)
    parameters = {"solver": list(peers)}
