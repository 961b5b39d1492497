"""coordwise: accelerated coordinate descent and Newton methods with certificates."""

from benchmark_utils import PeerSolver, by_solver

from coordwise.bench.peers import ours


class Solver(PeerSolver):
    """See `coordwise.bench.peers.ours`."""

    name = "coordwise"
    peers = by_solver(ours.PEERS)
    parameters = {"solver": list(peers)}
