"""What the solvers of this benchmark share: benchopt's interface to the libraries of `coordwise.bench.peers`."""

from benchopt import BaseSolver


class PeerSolver(BaseSolver):
    """A solver whose problem statement and public call are those of a peer in `coordwise.bench.peers`.

    Subclasses have a name, `peers` (by the value of the parameter `solver`) and that parameter.
    """

    sampling_strategy = "tolerance"
    threads = 2
    peers = {}

    @property
    def peer(self):
        """The peer behind this solver."""
        return self.peers[self.solver]

    def skip(self, problem, **_):
        """Left out, with the reason: the library is missing, or cannot state the problem."""
        reason = self.peer.missing() or self.peer.refuses(problem)
        return bool(reason), reason or None

    def set_objective(self, problem, **_):
        """See `BaseSolver.set_objective`; not measured."""
        self.problem, self.model = problem, None
        self.X = self.peer.prepare(problem)

    def warm_up(self):
        """The first call is not measured."""
        self.run_once(stop_val=1e-1)

    def run(self, tolerance):
        """The library's public call."""
        tolerance = min(max(tolerance, self.peer.ladder[-1]), self.peer.ladder[0])
        self.model = self.peer.fit(self.X, self.problem.data.b, self.problem, tolerance, self.threads)

    def get_result(self):
        """w, c, and a duality gap where the solver certifies."""
        w, c = self.peer.solution(self.model)
        return {"w": w, "c": c, "gap": self.peer.gap(self.model)}


def by_solver(peers):
    """Peers by what distinguishes them within their library."""
    library = peers[0].library
    return {peer.name.removeprefix(library).strip() or "default": peer for peer in peers}
