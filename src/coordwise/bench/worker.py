"""A process of its own in which all measured calls are made, so that one that hangs can be ended."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from coordwise.bench.peers import Peer
from coordwise.bench.problems import Problem, Statement
from coordwise.bench.rows import Row

__all__ = ["Crashed", "Entrant", "Field", "Ground", "Measured", "Overdue", "Refused", "Worker"]

WARM_UP_ROWS = 300
WARM_UP_SECONDS = 120.0  # for a first call that compiles
TOUCH_SECONDS = 5.0  # for one that does not
PREPARE_SECONDS = 60.0  # for the data in a solver's own layout
QUIET, LONGEST = 0.01, 0.2  # seconds in which nothing happens; that are waited for them
BESIDE = 0.25 + LONGEST  # seconds that a request may take longer than it was given, before a call in it begins
AFTER = 60.0  # and after that has ended: what was found has to be looked at
PAUSE = 0.002  # seconds between saying that a call begins and its begin: whoever hears it needs a processor
AGAIN = 0.4  # of that, for a solver that had no answer before
BEGUN, ENDED = "begun", "ended"  # what the copy says of a measured call
FORKS = sys.platform == "linux"  # elsewhere, linear algebra may not survive it
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Ground(Protocol):
    """Where rows get their data and their solvers from; sent to the worker by pickle."""

    def problem(self, row: Row) -> Problem:
        """The problem of a row."""

    def peers(self) -> Sequence[Peer]:
        """Everyone who may take part."""


@dataclass(frozen=True)
class Entrant:
    """A solver and, if it does not take part, why."""

    name: str
    library: str
    version: str
    ours: bool
    threads: str
    ladder: tuple[float, ...]
    reason: str


@dataclass(frozen=True)
class Field:
    """A row's numbers, and its entrants."""

    n: int
    d: int
    nnz: int
    sparse: bool
    at_zero: float
    digest: str
    statement: dict[str, Any]
    formula: str
    entrants: tuple[Entrant, ...]


@dataclass(frozen=True)
class Measured:
    """One call: its wall time, P at its solution, and the gap it certifies if it does."""

    seconds: float
    value: float
    gap: float | None


class Overdue(Exception):
    """A call took longer than it may; its process was ended."""


class Crashed(Exception):
    """The process ended by itself."""


class Refused(Exception):
    """A call raised an exception, whose text this is."""


class Worker:
    """Runs one request at a time in another process, which is started at the first request.

    That process imports the libraries and reads the data, and makes the measured calls in a copy of itself (by fork),
    so that ending a call that takes too long costs nothing but the call. Where there is no fork, it makes them itself,
    and begins anew after an end.

    Parameters
    ----------
    ground : Ground
    threads : int
        For solvers and linear algebra that use more than one.
    """

    def __init__(self, ground: Ground, threads: int) -> None:
        self.ground, self.threads = ground, threads
        self._process: Any = None
        self._pipe: Any = None
        self._row: Row | None = None
        self.warming = 0.0  # seconds of first calls
        self._hung: set[str] = set()  # solvers whose first calls had no answer

    def enter(self, row: Row, timeout: float = 600.0) -> Field:
        """Make a row the current one."""
        self._row = None
        field: Field = self._ask(("enter", row, True), timeout)
        self._row = row
        return field

    def run(self, name: str, tol: float, timeout: float) -> Measured:
        """One measured call of a solver, after one on few rows if it is its first for this kind of problem.

        Code that is compiled at the first call is compiled before the copy is made, and so is not lost with it. All
        others make their first call in the copy: threads of theirs would not be in it.
        """
        begun = time.monotonic()
        try:
            self._call(("warm_up", name), WARM_UP_SECONDS, copied=False)
            self._call(("touch", name), TOUCH_SECONDS * (AGAIN if name in self._hung else 1.0))
            self._call(("prepare", name), PREPARE_SECONDS)
        except Overdue:
            self._hung.add(name)
            raise Refused(f"no answer on {WARM_UP_ROWS} rows in {time.monotonic() - begun:.2g} s") from None
        finally:
            self.warming += time.monotonic() - begun
        return self._call(("run", name, tol), timeout)

    def optimum(self, tol: float, limit: float) -> tuple[float, float] | None:
        """(P, duality gap) of our solution at a tight tolerance; None if our solvers do not know the problem."""
        return self._call(("optimum", tol, limit), 3 * limit + 30)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()  # it ends its copy, too
            self._process.join(5)
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, request: tuple[Any, ...], timeout: float, *, copied: bool = True) -> Any:
        """A request about the current row, which a new process has to be told first."""
        if self._process is None and self._row is not None:
            self._ask(("enter", self._row, False), 600.0)
        if not (FORKS and copied):
            return self._ask(request, timeout + BESIDE)
        return self._ask(("within", timeout, request), 2 * (timeout + BESIDE + AFTER))

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.ground, self.threads), daemon=True)
        with _environment({name: str(self.threads) for name in THREADS}):
            self._process.start()
        theirs.close()

    def _ask(self, request: tuple[Any, ...], timeout: float) -> Any:
        if self._process is None:
            self._start()
        try:
            self._pipe.send(request)
            if not self._pipe.poll(timeout):
                self.close()
                raise Overdue
            kind, answer = self._pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join(5)
            code = self._process.exitcode
            self.close()
            raise Crashed(f"the process ended with status {code}") from None
        except BaseException:
            self.close()
            raise
        if kind == "done":
            return answer
        raise {"overdue": Overdue, "crashed": Crashed, "refused": Refused, "wrong": ValueError}[kind](answer)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(pipe: Any, ground: Ground, threads: int) -> None:
    """The process's own loop; libraries may print what they like, to nobody."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    quiet = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    warnings.simplefilter("ignore")
    bench = _Bench(ground, threads)
    copy = _Copy(bench)
    if FORKS:
        signal.signal(signal.SIGTERM, lambda *_: copy.leave())
    while True:
        try:
            name, *arguments = pipe.recv()
        except EOFError:
            copy.leave()
        if name == "within":
            pipe.send(copy.ask(*arguments))
            continue
        if name == "enter" or (name == "warm_up" and not bench.warmed(*arguments)):
            copy.end()  # what it is a copy of changes
        pipe.send(_answer(bench, name, arguments))


def _answer(bench: _Bench, name: str, arguments: Sequence[Any]) -> tuple[str, Any]:
    try:
        return "done", getattr(bench, name)(*arguments)
    except Exception as error:  # whatever a library raises ends its own call alone
        return "wrong" if name == "enter" else "refused", _text(error)


def _wait_for_quiet() -> None:
    """Wait until no thread of the process is at work, or for as long as that is worth.

    Those of linear algebra go on for up to a tenth of a second after their work, in case there is more: whoever is
    called next would have to share the processors with them.
    """
    for _ in range(round(LONGEST / QUIET)):
        begun = time.process_time()
        time.sleep(QUIET)
        if time.process_time() - begun < QUIET / 5:
            return


class _Copy:
    """A copy of the process, made when it is needed, that answers one request at a time."""

    def __init__(self, bench: _Bench) -> None:
        self.bench = bench
        self.pid: int | None = None
        self.pipe: Any = None

    def ask(self, timeout: float, request: tuple[Any, ...]) -> tuple[str, Any]:
        """The answer, or that it came too late or never; the copy is ended then.

        The time is that of the measured call if the request has one, which the copy says when it begins and ends.
        """
        if self.pid is None:
            self._fork()
        left, ended = timeout + (BESIDE if request[0] == "run" else 0.0), False
        try:
            self.pipe.send(request)
            while self.pipe.poll(left):
                kind, answer = self.pipe.recv()
                if kind not in (BEGUN, ENDED):
                    return kind, answer
                ended = kind == ENDED
                left = AFTER if ended else timeout + PAUSE
            self.end()
            return "crashed" if ended else "overdue", f"no answer in {left:.2g} s" + " after the call" * ended
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return "crashed", f"the process ended with status {self.end()}"

    def end(self) -> int:
        """End the copy; its exit status."""
        if self.pid is None:
            return 0
        pid, self.pid = self.pid, None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        self.pipe.close()
        return os.waitstatus_to_exitcode(status)

    def leave(self) -> None:
        """End both."""
        self.end()
        os._exit(0)

    def _fork(self) -> None:
        self.pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        gc.collect()
        gc.freeze()  # the copy's collector leaves alone what it shares
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.pipe.close()
            with contextlib.suppress(EOFError):
                self.bench.tell = lambda word: theirs.send((word, None))
                while True:
                    name, *arguments = theirs.recv()
                    theirs.send(_answer(self.bench, name, arguments))
            os._exit(0)
        theirs.close()


def _easier(statement: Statement) -> Statement:
    """The same kind of problem with an l2 penalty that is not weak for few rows, on which some would never end."""
    return replace(statement, l2=max(statement.l2, 1 / WARM_UP_ROWS)) if statement.l2 > 0 else statement


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


class _Bench:
    """What the worker does when it is asked."""

    def __init__(self, ground: Ground, threads: int) -> None:
        self.ground, self.threads = ground, threads
        self.peers = {peer.name: peer for peer in ground.peers()}
        self.problem: Problem | None = None
        self.prepared: dict[str, Any] = {}
        self.warm: set[tuple[Any, ...]] = set()
        self.tell: Callable[[str], None] = lambda word: None  # whoever waits

    def enter(self, row: Row, all_about: bool) -> Field | None:
        """Make a row the current one; all about it needs every library, which takes seconds to import."""
        problem = self.ground.problem(row)
        self.problem, self.prepared = problem, {}
        if not all_about:
            return None
        entrants = tuple(
            Entrant(
                peer.name,
                peer.library,
                "" if missing else peer.version(),
                peer.ours,
                peer.threads(self.threads),
                tuple(peer.ladder),
                missing or peer.refuses(problem),
            )
            for peer in self.peers.values()
            for missing in [peer.missing()]
        )
        data, statement = problem.data, problem.statement
        return Field(
            problem.n,
            problem.d,
            data.nnz,
            data.sparse,
            problem.at_zero,
            problem.digest,
            statement.spec(),
            statement.formula,
            entrants,
        )

    def warmed(self, name: str) -> bool:
        """Whether a solver has been called before on a problem of this kind, or need not be."""
        return self._kind(name) in self.warm or not self.peers[name].compiles

    def warm_up(self, name: str) -> None:
        """The first call of code that is compiled at the first call, on few rows."""
        if not self.warmed(name):
            self.touch(name)

    def touch(self, name: str) -> None:
        """The first call on a problem of this kind, on few rows."""
        if self._kind(name) in self.warm:
            return
        assert self.problem is not None
        small = Problem(_easier(self.problem.statement), self.problem.data.few(WARM_UP_ROWS))
        self.warm.add(self._kind(name))
        peer = self.peers[name]
        with contextlib.suppress(Exception):  # few rows may be too few: the measured call will tell
            peer.fit(peer.prepare(small), small.data.b, small, peer.ladder[0], self.threads)

    def _kind(self, name: str) -> tuple[Any, ...]:
        assert self.problem is not None
        s = self.problem.statement
        return name, s.loss, s.penalty, s.intercept, self.problem.data.sparse

    def prepare(self, name: str) -> None:
        """The data in a solver's own layout, which is not measured."""
        assert self.problem is not None
        if name not in self.prepared:
            self.prepared[name] = self.peers[name].prepare(self.problem)

    def run(self, name: str, tol: float) -> Measured:
        """One call; see `Worker.run`."""
        assert self.problem is not None
        peer = self.peers[name]
        X, y = self.prepared[name], self.problem.data.b
        gc.collect()
        _wait_for_quiet()
        self.tell(BEGUN)
        time.sleep(PAUSE)
        begun = time.perf_counter()
        model = peer.fit(X, y, self.problem, tol, self.threads)
        seconds = time.perf_counter() - begun
        self.tell(ENDED)
        w, c = peer.solution(model)
        value = self.problem.value(w, c)
        gap = peer.gap(model)
        return Measured(seconds, value, gap if gap is not None and np.isfinite(gap) else None)

    def optimum(self, tol: float, limit: float) -> tuple[float, float] | None:
        from coordwise.bench.peers.ours import Coordwise

        assert self.problem is not None
        peer = Coordwise("coordwise")
        if peer.refuses(self.problem):
            return None
        model = peer.estimator(self.problem, tol, self.threads, time_limit=limit)
        model.fit(self.problem.data.A, self.problem.data.b)
        w, c = peer.solution(model)
        return self.problem.value(w, c), peer.gap(model)
