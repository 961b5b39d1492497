"""The race: tolerances swept and refined, calls that hang or die, verdicts, and what is kept of it."""

import itertools
import json
import math
import os
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("sklearn")

from bench_cases import small_data

from coordwise.bench import worker as worker_module
from coordwise.bench.peers import Peer, by_name
from coordwise.bench.peers.peer import TOLERANCES
from coordwise.bench.problems import Problem
from coordwise.bench.race import Rules, race
from coordwise.bench.report import advice, geometric_mean, skipped_lines, solver_table, summarise, table_of
from coordwise.bench.rows import Row
from coordwise.bench.runner import Optimum
from coordwise.bench.store import Store
from coordwise.bench.worker import Crashed, Entrant, Field, Measured, Overdue, Refused, Worker
from coordwise.interrupts import Interrupted

OURS = by_name("coordwise")


class Fake(Peer):
    """Solvers that do what can go wrong."""

    library, module = "fake", "numpy"
    solvers = ("exact", "by tolerance", "hangs", "always hangs", "dies", "raises", "refuses", "stalls")

    def refuses(self, problem):
        return "does not like it" if self.solver == "refuses" else ""

    def fit(self, X, y, problem, tol, threads):
        if self.solver == "always hangs" or (self.solver == "hangs" and tol < 0.1):
            time.sleep(600)
        elif self.solver == "dies":
            os._exit(3)
        elif self.solver == "raises":
            raise RuntimeError("out of order")
        best = np.linalg.solve(
            X.T @ X / problem.n + problem.statement.l2 * np.eye(problem.d), np.asarray(X.T @ y).ravel() / problem.n
        )
        return best * {"by tolerance": 1 + math.sqrt(tol), "stalls": 0.5, "hangs": 0.5}.get(self.solver, 1.0)

    def solution(self, model):
        return model, 0.0


class Dawdling(Fake):
    """Solvers that take their time for a call, or for what they have found."""

    solvers = ("dawdles", "dawdles afterwards")

    def fit(self, X, y, problem, tol, threads):
        if self.solver == "dawdles" and tol < 0.1:
            time.sleep(0.4)
        return super().fit(X, y, problem, tol, threads)

    def solution(self, model):
        if self.solver == "dawdles afterwards":
            time.sleep(1.0)
        return super().solution(model)


class FakeGround:
    def problem(self, row):
        data = small_data(False, np.asarray)
        return Problem(row.statement(data), data)

    def peers(self):
        return [OURS, *(Fake(solver) for solver in Fake.solvers)]


class DawdlingGround(FakeGround):
    def peers(self):
        return [Dawdling(solver) for solver in Dawdling.solvers]


RIDGE = Row("small", "squared", "l2", 0.05)


@pytest.fixture(scope="module")
def result():
    with pytest.MonkeyPatch.context() as patch, Worker(FakeGround(), 1) as worker:
        patch.setattr("coordwise.bench.worker.TOUCH_SECONDS", 0.5)
        return race(worker, RIDGE, Rules(limit=2.0, threads=1))


class Scripted:
    """A worker whose solvers are off by `share * tol`, and take the longer the smaller tol is."""

    warming = 0.0

    def __init__(self, **solvers):
        self.solvers = solvers  # name -> (share, seconds)

    def enter(self, row):
        entrants = [Entrant(name, name, "1", name == "coordwise", "1", TOLERANCES, "") for name in self.solvers]
        return Field(1, 1, 1, False, 1.0, "digest", {}, "formula", tuple(entrants))

    def optimum(self, tol, timeout):
        return 2.0, 0.0

    def run(self, name, tol, timeout):
        share, seconds = self.solvers[name]
        return Measured(seconds * (1 - math.log10(tol)), 2.0 + share * tol, None)


@pytest.mark.parametrize("after", [1, 9])
def test_ctrl_c_leaves_what_was_measured(after):
    calls = []

    class Stopped(Scripted):
        def run(self, name, tol, timeout):
            calls.append(name)
            if len(calls) > after:
                raise KeyboardInterrupt
            return super().run(name, tol, timeout)

    with pytest.raises(Interrupted) as stop:
        race(Stopped(coordwise=(0.9, 1.0), near=(3.0, 1.0)), RIDGE, Rules())
    solvers = stop.value.result["solvers"]
    assert {solver["name"] for solver in solvers} == {"coordwise", "near"}
    assert 0 < sum(len(trial["seconds"]) for solver in solvers for trial in solver["trials"]) <= after
    assert solver_table(stop.value.result)


class TestRefining:
    def test_ours_and_the_close_ones_are_tried_between_the_last_two_tolerances(self):
        row = race(Scripted(coordwise=(0.9, 1.0), near=(3.0, 1.0), far=(3.0, 9.0)), RIDGE, Rules(patience=99.0))
        tried = {s["name"]: [t["tol"] for t in s["trials"]] for s in row["solvers"]}
        between = {name: [tol for tol in tols if tol not in TOLERANCES] for name, tols in tried.items()}
        assert between["coordwise"] == pytest.approx([10**-2.5, 10**-2.75, 10**-5.5, 10**-5.75])
        assert between["near"] == pytest.approx([10**-3.25, 10**-3.5, 10**-6.25, 10**-6.5])
        assert between["far"] == []
        assert all(tols == sorted(tols, reverse=True) for tols in tried.values())

    def test_the_looser_tolerance_counts_if_it_is_enough(self):
        row = race(Scripted(coordwise=(0.9, 1.0), near=(3.0, 1.0)), RIDGE, Rules())
        times = {s["name"]: s["times"] for s in row["solvers"]}
        assert times["coordwise"] == pytest.approx([4.0, 7.0])  # 0.9 * 10^-2.5 is too much
        assert times["near"] == pytest.approx([4.5, 7.5])  # 3 * 10^-3.5 is not

    def test_a_looser_tolerance_that_took_longer_does_not_count(self):
        worker = Scripted(coordwise=(0.9, 1.0), near=(3.0, 1.0))
        plain = worker.run
        worker.run = lambda name, tol, timeout: (
            plain(name, tol, timeout) if tol in TOLERANCES else replace(plain(name, tol, timeout), seconds=5.5)
        )
        row = race(worker, RIDGE, Rules())
        times = {s["name"]: s["times"] for s in row["solvers"]}
        assert times["near"] == pytest.approx([5.0, 5.5])

    def test_the_loosest_tolerance_is_called_again_even_if_another_was_faster_once(self):
        worker, calls = Scripted(coordwise=(0.9, 1.0), near=(0.9, 1.0)), []
        plain = worker.run

        def run(name, tol, timeout):
            found = plain(name, tol, timeout)
            calls.append((name, tol))
            lucky = name == "coordwise" and tol == 1e-4 and calls.count((name, tol)) == 1
            return replace(found, seconds=0.5 if lucky else found.seconds)

        worker.run = run
        row = race(worker, RIDGE, Rules())
        [ours] = [s for s in row["solvers"] if s["name"] == "coordwise"]
        often = [t["tol"] for t in ours["trials"] if len(t["seconds"]) == 3]
        assert often == pytest.approx([1e-3, 1e-4, 1e-6])
        assert ours["times"] == pytest.approx([4.0, 7.0])

    @pytest.mark.parametrize(
        ("share", "between"),
        [
            (0.0, [10**-0.25, 10**-0.5]),
            (2.5e-3, [10**-0.25, 10**-0.5]),
            (5e-3, [10**-0.5, 10**-0.75]),
        ],
    )
    def test_looser_ones_are_tried_if_the_first_is_enough(self, share, between):
        row = race(Scripted(coordwise=(share, 1.0), near=(share, 1.0)), RIDGE, Rules())
        for solver in row["solvers"]:
            loose = [t["tol"] for t in solver["trials"] if t["tol"] > 1e-2 and t["tol"] not in TOLERANCES]
            assert loose == pytest.approx(between)
            enough = max(t["tol"] for t in solver["trials"] if share * t["tol"] <= 1e-3)
            assert solver["times"][0] == pytest.approx(1 - math.log10(enough))

    def test_a_solver_with_one_tolerance_is_not_refined(self):
        worker = Scripted(coordwise=(0.0, 1.0), near=(0.0, 1.0))
        plain = worker.enter
        worker.enter = lambda row: replace(
            field := plain(row), entrants=(field.entrants[0], replace(field.entrants[1], ladder=(1e-4,)))
        )
        near = race(worker, RIDGE, Rules())["solvers"][1]
        assert [t["tol"] for t in near["trials"]] == [1e-4]

    def test_nobody_to_compare_with(self):
        row = race(Scripted(coordwise=(0.0, 1.0)), RIDGE, Rules())
        assert row["solvers"][0]["trials"] == []


class TestRace:
    def test_everyone_ends_as_it_should(self, result):
        ended = {solver["name"]: solver["ended"] for solver in result["solvers"]}
        assert ended["coordwise"] == ended["fake exact"] == ended["fake by tolerance"] == ""
        assert ended["fake hangs"].startswith("ended after 0.3 s in a call with tol=0.01")
        assert ended["fake always hangs"].startswith("failed: no answer on 300 rows in")
        assert ended["fake dies"] == "failed: the process ended with status 3"
        assert ended["fake raises"] == "failed: RuntimeError: out of order"
        assert ended["fake stalls"].startswith("not reached, and no better below")
        assert result["skipped"] == [{"name": "fake refuses", "library": "fake", "reason": "does not like it"}]

    def test_the_fastest_call_that_reaches_a_goal_counts(self, result):
        [solver] = [s for s in result["solvers"] if s["name"] == "fake by tolerance"]
        for goal, seconds in zip(result["rules"]["goals"], solver["times"], strict=True):
            there = [t["seconds"] for t in solver["trials"] if t["error"] <= goal]
            most = max(len(calls) for calls in there)
            assert seconds == pytest.approx(min(np.median(calls) for calls in there if len(calls) == most))
        tols = [t["tol"] for t in solver["trials"]]
        assert tols == sorted(tols, reverse=True)

    def test_winners_of_short_calls_are_medians_of_nine(self, result):
        for k, verdict in enumerate(result["goals"]):
            assert verdict["peer"] in ("fake exact", "fake by tolerance")
            assert verdict["ratio"] == pytest.approx(verdict["peer_seconds"] / verdict["ours"])
            for name in (verdict["peer"], "coordwise"):
                [solver] = [s for s in result["solvers"] if s["name"] == name]
                [trial] = [t for t in solver["trials"] if np.median(t["seconds"]) == solver["times"][k]]
                assert len(trial["seconds"]) == 9

    def test_the_optimum_is_certified(self, result):
        problem = FakeGround().problem(RIDGE)
        best = problem.value(Fake("exact").fit(problem.data.A, problem.data.b, problem, 1.0, 1))
        optimum = result["optimum"]
        assert optimum["lower"] <= best * (1 + 1e-12)
        assert optimum["best"] - optimum["lower"] <= 1e-7 * result["at_zero"]
        assert result["certified"] == [True, True]

    def test_results_are_plain_values(self, result):
        again = json.loads(json.dumps(result))
        assert again["goals"] == result["goals"]
        assert again["row"] == RIDGE.spec()

    def test_words(self, result):
        assert skipped_lines(result) == ["fake refuses: does not like it"]
        winner = "coordwise" if result["goals"][-1]["ratio"] > 1 else result["goals"][-1]["peer"]
        assert winner in advice(result)
        head, body = table_of([result])
        assert len(head) == len(body[0]) == 9
        assert body[0][0] == "ridge, small, λ = 0.05"

    def test_a_worker_outlives_its_calls(self, monkeypatch):
        with Worker(FakeGround(), 1) as worker:
            field = worker.enter(RIDGE)
            assert [entrant.name for entrant in field.entrants if entrant.ours] == ["coordwise"]
            with pytest.raises(Overdue):
                worker.run("fake hangs", 0.01, 0.3)
            with pytest.raises(Crashed, match="status 3"):
                worker.run("fake dies", 0.1, 5.0)
            monkeypatch.setattr("coordwise.bench.worker.TOUCH_SECONDS", 0.2)
            with pytest.raises(Refused, match="no answer on 300 rows"):
                worker.run("fake always hangs", 0.1, 5.0)
            with pytest.raises(Refused, match="out of order"):
                worker.run("fake raises", 0.1, 5.0)
            assert worker.run("fake exact", 0.1, 5.0).value < field.at_zero

    def test_the_time_of_a_call_is_its_own(self):
        with Worker(DawdlingGround(), 1) as worker:
            worker.enter(RIDGE)
            if worker_module.FORKS:
                with pytest.raises(Overdue):
                    worker.run("fake dawdles", 0.01, 0.1)
            assert worker.run("fake dawdles", 0.01, 5.0).seconds >= 0.4
            assert worker.run("fake dawdles afterwards", 0.1, 0.5 if worker_module.FORKS else 5.0).seconds < 0.5

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons warn of forks beside threads
    @pytest.mark.skipif(not worker_module.FORKS, reason="calls are made in a copy of the process")
    def test_what_takes_too_long_after_a_call_is_no_slow_call(self, monkeypatch):
        bench = worker_module._Bench(DawdlingGround(), 1)
        bench.enter(RIDGE, False)
        bench.prepare("fake dawdles afterwards")
        monkeypatch.setattr(worker_module, "AFTER", 0.3)
        copy = worker_module._Copy(bench)
        assert copy.ask(5.0, ("run", "fake dawdles afterwards", 0.1)) == (
            "crashed",
            "no answer in 0.3 s after the call",
        )
        assert copy.pid is None

    @pytest.mark.parametrize(("seconds", "calls"), [(0.01, 5), (0.06, 5), (0.1, 4), (0.2, 3), (0.5, 2), (3.0, 1)])
    def test_first_calls_are_made_again_for_a_quarter_of_a_second(self, seconds, calls):
        worker = Scripted(coordwise=(0.9, 1.0), peer=(0.9, seconds / 2))  # twice that with the first tolerance
        plain, made = worker.run, []
        worker.run = lambda name, tol, timeout: (made.append((name, tol)), plain(name, tol, timeout))[1]
        race(worker, RIDGE, Rules(repeats=1))
        assert made.count(("peer", TOLERANCES[0])) == calls

    @pytest.mark.parametrize(
        ("penalty", "weight", "l2"),
        [("l2", 1e-9, 1 / 300), ("elastic_net", 1e-9, 1 / 300), ("l2", 2.0, 2.0), ("l1", 1e-9, 0)],
    )
    def test_first_calls_on_few_rows_are_not_of_weak_penalties(self, monkeypatch, penalty, weight, l2):
        bench = worker_module._Bench(FakeGround(), 1)
        bench.enter(Row("small", "squared", penalty, weight), False)
        seen = []
        monkeypatch.setattr(Fake, "fit", lambda self, X, y, problem, tol, threads: seen.append(problem.statement))
        bench.touch("fake exact")
        assert [statement.l2 for statement in seen] == [l2]
        assert [statement.l1 for statement in seen] == [bench.problem.statement.l1]

    def test_solvers_that_hung_are_waited_for_less_the_next_time(self, monkeypatch):
        worker, given = Worker(FakeGround(), 1), []

        def call(request, timeout, *, copied=True):
            if request[0] == "touch":
                given.append(timeout)
                raise Overdue

        monkeypatch.setattr(worker, "_call", call)
        for name in ("one", "other", "one"):
            with pytest.raises(Refused, match="no answer"):
                worker.run(name, 0.1, 5.0)
        assert given == pytest.approx([5.0, 5.0, 2.0])

    @pytest.mark.parametrize("others", [{}, {"late": (0.0, 1e-3)}])
    def test_peers_that_had_no_turn_leave_a_row_undecided(self, others):
        worker = Scripted(coordwise=(0.0, 1e-3), slow=(9.0, 1.0), **others)
        plain = worker.run

        def run(name, tol, timeout):
            if name == "slow":
                time.sleep(0.3)
                raise Overdue
            return plain(name, tol, timeout)

        worker.run = run
        row = race(worker, RIDGE, Rules(), row_limit=0.2)
        assert [verdict["ours"] is None for verdict in row["goals"]] == [False, False]
        assert [verdict["ratio"] is None for verdict in row["goals"]] == [bool(others)] * 2

    @pytest.mark.parametrize(("seconds", "given"), [(1e-3, 0.5), (0.1, 0.8), (0.4, 2.0), (10.0, 20.0)])
    def test_first_calls_are_given_a_few_times_ours(self, seconds, given):
        worker = Scripted(coordwise=(0.0, seconds), other=(0.0, seconds))
        plain, timeouts = worker.run, []

        def run(name, tol, timeout):
            if name == "other":
                timeouts.append(timeout)
            return plain(name, tol, timeout)

        worker.run = run
        race(worker, RIDGE, Rules())
        assert timeouts[0] == pytest.approx(given)  # ours takes 2 * seconds with the first tolerance

    def test_everyone_has_a_turn_before_anyone_is_swept(self):
        worker, calls = Scripted(coordwise=(0.9, 1e-3), one=(9.0, 1e-3), two=(9.0, 1e-3), three=(9.0, 1e-3)), []
        plain = worker.run
        worker.run = lambda name, tol, timeout: (calls.append((name, tol)), plain(name, tol, timeout))[1]
        race(worker, RIDGE, Rules(), order=["three", "two"])
        firsts = {name: calls.index((name, 0.1)) for name in ("three", "two", "one")}
        assert firsts["three"] < firsts["two"] < firsts["one"] < calls.index(("three", 0.01))

    def test_an_unknown_optimum_is_the_best_value_found(self):
        optimum = Optimum(math.inf, -math.inf)
        optimum.learn(2.0, None)
        optimum.learn(1.5, None)
        optimum.learn(math.inf, None)
        assert not optimum.sure(1e-3, 1.0)
        assert optimum.error(1.75, 1e-3, 1.0) == pytest.approx(0.25)
        optimum.learn(1.6, 0.1002)
        assert optimum.sure(1e-3, 1.0)
        assert not optimum.sure(1e-4, 1.0)
        assert optimum.error(1.5, 1e-3, 1.0) == pytest.approx(2e-4)


class TestSummary:
    @staticmethod
    def row(ratio, bound="", contested=True):
        return {
            "title": f"row {ratio}",
            "contested": contested,
            "goals": [{"goal": 1e-3, "ratio": ratio, "bound": bound}],
        }

    def test_rows_count_once(self):
        rows = [self.row(4.0), self.row(0.25), self.row(8.0, ">"), self.row(None), self.row(None, contested=False)]
        found = summarise(rows, 0)
        assert (found.rows, found.wins, found.bounds, found.undecided, found.alone) == (3, 2, 1, 1, 1)
        assert found.losses == ("row 0.25",)
        assert found.mean == pytest.approx(2.0)

    def test_nothing_has_no_mean(self):
        assert math.isnan(geometric_mean([]))


class TestStore:
    def test_rows_and_optima_come_back(self, tmp_path, result):
        store = Store(tmp_path, Rules(), ["scikit-learn"])
        assert store.get(RIDGE) is None
        store.put(RIDGE, result)
        assert store.get(RIDGE)["goals"] == result["goals"]
        assert Store(tmp_path, Rules(limit=1.0), ["scikit-learn"]).get(RIDGE) is not None
        with Worker(FakeGround(), 1) as worker:
            field = worker.enter(RIDGE)
        assert store.optimum(field) is None
        store.keep_optimum(field, Optimum(0.5, -math.inf))
        assert store.optimum(field) == Optimum(0.5, -math.inf)

    @pytest.mark.parametrize("rules", [Rules(threads=1), Rules(goals=(1e-3, 1e-5))])
    def test_other_rules_are_other_results(self, tmp_path, result, rules):
        Store(tmp_path, Rules(), []).put(RIDGE, result)
        assert Store(tmp_path, rules, []).get(RIDGE) is None
        assert Store(tmp_path, rules, []).get(RIDGE, any_digest=True) is not None

    def test_a_damaged_file_is_no_result(self, tmp_path, result):
        store = Store(tmp_path, Rules(), [])
        store.put(RIDGE, result)
        path = tmp_path / "rows" / f"{RIDGE.key}.json"
        path.write_text(path.read_text()[:100])
        assert store.get(RIDGE) is None


def test_threads_that_go_on_after_their_work_are_waited_for(monkeypatch):
    used, slept = iter([0.0, 0.009, 0.009, 0.019, 0.019, 0.0192]), []
    monkeypatch.setattr(worker_module.time, "process_time", lambda: next(used))
    monkeypatch.setattr(worker_module.time, "sleep", slept.append)
    worker_module._wait_for_quiet()
    assert slept == [worker_module.QUIET] * 3


def test_threads_that_never_rest_are_not_waited_for_for_long(monkeypatch):
    clock, slept = itertools.count(), []
    monkeypatch.setattr(worker_module.time, "process_time", lambda: float(next(clock)))
    monkeypatch.setattr(worker_module.time, "sleep", slept.append)
    worker_module._wait_for_quiet()
    assert sum(slept) == pytest.approx(worker_module.LONGEST)
