"""Comparing solvers: every library's parameters against the formula, the arena, and the command."""

import json
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn")

from bench_cases import small_data

from coordwise import cli
from coordwise.bench.peers import PEERS, by_name, reason_missing
from coordwise.bench.problems import LOSSES, PENALTIES, Data, Problem, Statement, largest_l1, signs
from coordwise.bench.rows import Row

ARENA = Path(__file__).parents[1] / "benchmarks" / "arena"
OURS = by_name("coordwise")


def small_problem(loss, penalty, intercept, storage=sp.csr_array, lam=0.05):
    statement = Statement.of(
        loss, penalty, lam, l1_ratio=0.3 if penalty == "elastic_net" else None, intercept=intercept
    )
    return Problem(statement, small_data(statement.classification, storage))


STATEMENTS = [(loss, penalty, intercept) for loss in LOSSES for penalty in PENALTIES for intercept in (False, True)]
CONVERSIONS = [
    pytest.param(
        peer,
        *statement,
        id=f"{peer.name} {'-'.join(map(str, statement))}",
        marks=[pytest.mark.slow] * (peer.library == "skglm"),
    )
    for peer in PEERS
    if not peer.ours
    for statement in STATEMENTS
    if not peer.refuses(small_problem(*statement)) and not OURS.refuses(small_problem(*statement))
]


def solved(peer, problem, tol):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries warn of is not ours
        model = peer.fit(peer.prepare(problem), problem.data.b, problem, tol, 1)
        return problem.value(*peer.solution(model)), peer.gap(model)


class TestProblems:
    @pytest.mark.parametrize(("loss", "penalty", "intercept"), STATEMENTS)
    def test_the_value_is_the_formula(self, loss, penalty, intercept):
        problem = small_problem(loss, penalty, intercept)
        s, A, b = problem.statement, problem.data.A.toarray(), problem.data.b
        rng = np.random.default_rng(0)
        w, c = rng.standard_normal(problem.d), 0.4 if intercept else 0.0
        t = A @ w + c
        phi = {
            "squared": (t - b) ** 2 / 2,
            "l2l1": (t - b) ** 2 / 2 + np.abs(t - b),
            "logistic": np.log1p(np.exp(-b * t)),
            "squared_hinge": np.maximum(1 - b * t, 0) ** 2 / 2,
            "hinge": np.maximum(1 - b * t, 0),
        }[loss]
        expected = phi.mean() + s.l1 * np.abs(w).sum() + s.l2 / 2 * (w @ w)
        assert problem.value(w, c) == pytest.approx(expected, rel=1e-12)
        assert problem.at_zero == pytest.approx(problem.value(np.zeros(problem.d)), rel=1e-12)
        assert (s.l1, s.l2) == pytest.approx({"l2": (0, 0.05), "l1": (0.05, 0), "elastic_net": (0.015, 0.035)}[penalty])

    def test_an_intercept_needs_a_problem_with_one(self):
        with pytest.raises(ValueError, match="without intercept"):
            small_problem("squared", "l2", False).value(np.zeros(15), 1.0)

    def test_solutions_that_are_not_finite_are_worth_nothing(self):
        assert small_problem("squared", "l2", False).value(np.full(15, np.nan)) == math.inf

    @pytest.mark.parametrize("loss", ["squared", "logistic"])
    def test_the_largest_l1_is_where_zero_stops_to_be_the_solution(self, loss):
        data = small_data(loss == "logistic")
        for factor, zero in ((1.0001, True), (0.99, False)):
            problem = Problem(Statement(loss, factor * largest_l1(data, loss), 0.0), data)
            w, _ = OURS.solution(OURS.fit(data.A, data.b, problem, 1e-10, 1))
            assert bool(np.all(w == 0)) is zero

    def test_rows_state_the_same_weight_in_three_ways(self):
        data = small_data(False)
        lam = 0.3 * largest_l1(data)
        ways = [("lam", lam), ("lam_n", lam * 120), ("lam_max", 0.3)]
        found = [Row("x", "squared", "l1", weight, scale).statement(data).l1 for scale, weight in ways]
        assert found == pytest.approx([lam] * 3, rel=1e-14)

    def test_few_rows_keep_both_classes(self):
        data = Data(np.eye(1000), np.where(np.arange(1000) < 990, -1.0, 1.0))
        few = data.few(100)
        assert few.shape == (100, 1000)
        assert set(few.b) == {-1.0, 1.0}

    def test_labels_become_signs(self):
        np.testing.assert_array_equal(signs(np.array([3.0, 7.0, 3.0])), [-1, 1, -1])
        with pytest.raises(ValueError, match="3 values"):
            signs(np.array([1.0, 2.0, 3.0]))

    def test_the_digest_tells_problems_apart(self):
        digests = {small_problem("squared", "l2", i, lam=lam).digest for i in (False, True) for lam in (0.1, 0.2)}
        assert len(digests) == 4
        assert small_problem("squared", "l2", True).digest == small_problem("squared", "l2", True).digest


class TestConversions:
    @pytest.mark.parametrize(("peer", "loss", "penalty", "intercept"), CONVERSIONS)
    def test_a_peer_solves_the_stated_problem(self, peer, loss, penalty, intercept):
        pytest.importorskip(peer.module, exc_type=ImportError)
        for storage in (sp.csr_array, np.asarray):
            problem = small_problem(loss, penalty, intercept, storage)
            if peer.refuses(problem):
                continue
            value, gap = solved(OURS, problem, 1e-10)
            assert gap <= 1e-10 * problem.at_zero
            theirs, _ = solved(peer, problem, max(1e-10, peer.ladder[-1]))
            assert abs(theirs - value) <= 1e-6 * problem.at_zero

    def test_every_problem_of_the_arena_has_a_peer(self):
        for loss, penalty in [("squared", p) for p in PENALTIES] + [(loss, "l2") for loss in LOSSES]:
            problem = small_problem(loss, penalty, False)
            assert any(not peer.ours and not peer.refuses(problem) for peer in PEERS)

    @pytest.mark.parametrize(
        ("name", "loss", "penalty", "intercept", "reason"),
        [
            ("scikit-learn LinearSVC dual", "hinge", "l2", True, "penalises the intercept"),
            ("scikit-learn LogisticRegression liblinear", "logistic", "l2", True, "penalises the intercept"),
            ("liblinear-official -s 1", "squared_hinge", "l2", True, "penalises the intercept"),
            ("snapml dual", "logistic", "l2", True, "penalises the intercept"),
            ("celer", "squared", "l2", False, "has no penalty l2"),
            ("cyanure auto", "hinge", "l2", False, "has no loss hinge"),
            ("rehline", "l2l1", "l2", True, "fits no intercept"),
        ],
    )
    def test_a_peer_that_cannot_state_it_says_why(self, name, loss, penalty, intercept, reason):
        assert by_name(name).refuses(small_problem(loss, penalty, intercept)).startswith(reason)

    def test_dense_squares_are_refused_where_they_are_large(self):
        wide = Data(sp.csr_array((6000, 6000)), np.ones(6000))
        problem = Problem(Statement("squared", 0.0, 1.0), wide)
        assert "6,000 x 6,000" in by_name("scikit-learn Ridge cholesky").refuses(problem)

    def test_libraries_that_are_not_there_say_so(self, tmp_path, monkeypatch):
        assert reason_missing("no_such_library", "no-such") == "not installed (pip install no-such)"
        (tmp_path / "broken_library.py").write_text("raise RuntimeError('wrong compiler')\n")
        monkeypatch.syspath_prepend(tmp_path)
        assert reason_missing("broken_library", "broken") == "cannot be imported: RuntimeError: wrong compiler"

    def test_names_are_unique(self):
        assert len({peer.name for peer in PEERS}) == len(PEERS)


class TestArena:
    @pytest.fixture
    def run(self, monkeypatch):
        pytest.importorskip("benchopt")
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        monkeypatch.syspath_prepend(str(ARENA))
        names = ("run", "ground", "page", "catalogue")
        for name in names:
            monkeypatch.delitem(sys.modules, name, raising=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # benchopt's own imports
            import run
        yield run
        for name in names:
            sys.modules.pop(name, None)

    def test_its_solvers_are_all_peers(self, run):
        found = {peer.peer.name for peer in run.BenchoptGround().peers()}
        assert found == {peer.name for peer in PEERS}

    def test_its_rows_are_those_promised(self, run):
        rows = run.rows()
        plain = [row for row in rows if not row.intercept]
        assert len(plain) == 7 * 5 * 3
        assert {row.task for row in plain} == {
            "ridge",
            "lasso",
            "elastic net",
            "l2-l1",
            "logistic",
            "squared hinge",
            "hinge",
        }
        assert len({row.key for row in rows}) == len(rows)
        assert {row.dataset for row in rows} <= set(run.BenchoptGround().datasets())
        assert {row.task for row in run.rows(quick=True)} == {row.task for row in plain}

    def test_a_run_goes_on_where_it_was(self, run, tmp_path, monkeypatch, capsys):
        rows = [Row("generated 400 50", loss, "l2", 1.0, "lam_n") for loss in ("squared", "squared_hinge")]
        monkeypatch.setattr(run, "rows", lambda quick: rows)
        command = ["--out", str(tmp_path), "--threads", "1", "--solvers", "Ridge", "LinearSVC", "lightning"]
        assert run.main([*command, "--only", "ridge"]) == 0
        assert "[1/1] ridge, generated 400 50, λn = 1: " in capsys.readouterr().out
        assert run.main(command) == 0
        out = capsys.readouterr().out
        assert "1 rows are there already." in out
        assert "[1/1] squared hinge" in out
        monkeypatch.setattr(run, "race", None)  # nothing is left to measure
        assert run.main(command) == 0
        assert {path.name for path in tmp_path.iterdir()} == {
            "rows",
            "optima",
            "arena.txt",
            "arena.csv",
            "arena.json",
            "index.html",
        }
        held = json.loads((tmp_path / "arena.json").read_text())
        assert [row["task"] for row in held["rows"]] == ["ridge", "squared hinge"]
        assert len((tmp_path / "arena.csv").read_text().splitlines()) == 1 + 2 * 2
        page = (tmp_path / "index.html").read_text()
        for text in ("ridge, generated 400 50", "geometric mean", "scikit-learn Ridge sparse_cg"):
            assert text in page
        if by_name("sklearn-contrib-lightning SDCA").missing():
            assert "not installed (pip install sklearn-contrib-lightning)" in page

    def test_rows_that_are_not_decided_are_measured_once_more(self, run, monkeypatch, capsys):
        rows = [Row("some", "squared", "l2", weight, "lam_n") for weight in (1.0, 2.0, 3.0)]
        ratios = {  # of the first and of the second time
            1.0: [(None, None), (2.0, 3.0)],
            2.0: [(2.0, 3.0)],
            3.0: [(2.0, None), (None, 5.0)],
        }
        orders, kept = [], {}

        class Kept:
            optimum = keep_optimum = None

            def get(self, row):
                return kept.get(row.weight)

            def put(self, row, result):
                kept[row.weight] = result

        def race(worker, row, rules, *, order, **others):
            orders.append((row.weight, list(order), others["row_limit"]))
            now = ratios[row.weight].pop(0)
            solver = {"name": f"fast on {row.weight}", "times": [1.0, 1.0]}
            return {
                "contested": True,
                "task": row.task,
                "key": row.key,
                "row": row.spec(),
                "elapsed": 0.0,
                "solvers": [solver],
                "goals": [
                    {"goal": 0.1, "peer": "", "peer_seconds": 1.0, "ours": 1.0, "ratio": r, "bound": ""} for r in now
                ],
            }

        monkeypatch.setattr(run, "race", race)
        run._measure(rows, run.BenchoptGround(), run.Rules(), Kept(), 1.0, force=False)
        assert [weight for weight, _, _ in orders] == [1.0, 2.0, 3.0, 1.0, 3.0]
        assert orders[3][1] == ["fast on 1.0"]
        assert [share for _, _, share in orders] == pytest.approx([12, 18, 36, 30, 60], rel=0.05)  # of 36 s, and 60
        assert [[goal["ratio"] for goal in kept[row.weight]["goals"]] for row in rows] == [[2, 3], [2, 3], [2, None]]
        assert "2 rows are not decided" in capsys.readouterr().out

    def test_words_that_no_row_has(self, run, capsys):
        assert run.main(["--only", "nothing", "--list"]) == 2
        assert "No row has all of the words nothing." in capsys.readouterr().err


class TestCommand:
    @pytest.fixture
    def file(self, tmp_path):
        data = small_data(True)
        path = tmp_path / "own.svm"
        lines = []
        for i in range(data.shape[0]):
            row = data.A[[i], :].tocoo()
            pairs = sorted(zip(row.col, row.data, strict=True))
            lines.append(f"{data.b[i]:g} " + " ".join(f"{j + 1}:{value!r}" for j, value in pairs))
        path.write_text("\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n")
        return path

    def test_which_solver_should_i_use(self, file, tmp_path, capsys):
        out = tmp_path / "all.json"
        command = ["bench", str(file), "--loss", "logistic", "--lam", "0.01", "--intercept", "--limit", "5"]
        assert cli.main([*command, "--threads", "1", "--only", "lbfgs", "newton", "--json", str(out)]) == 0
        text = capsys.readouterr().out
        assert "logistic, own.svm, λ = 0.01, intercept: 120 x 15" in text
        assert "scikit-learn LogisticRegression newton-cholesky" in text
        assert text.strip().splitlines()[-1].endswith(".")
        held = json.loads(out.read_text())
        assert {solver["name"] for solver in held["solvers"]} >= {"coordwise", "scikit-learn LogisticRegression lbfgs"}
        assert all(solver["times"][-1] is not None for solver in held["solvers"])

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (["--lam", "-1"], "--lam -1.0 is out of range"),
            (["--lam", "1", "--limit", "0"], "--limit 0 is out of range"),
            (["--lam", "1", "--threads", "0"], "--threads 0 is out of range"),
            (["--lam", "1", "--threads", "1000000"], "--threads 1000000 is out of range; it must be >= 1 and at most "),
            (["--lam", "1", "--only", "zzz"], "--only zzz: no solver has this in its name. Known: coordwise, "),
            (["--lam", "1", "--only", "lbfgs", "zzz"], "--only zzz: no solver"),
            (["--lam", "1", "--goals", "2"], "--goals must lie between"),
            (["--lam", "1", "--l1-ratio", "0.5"], "--l1-ratio 0.5 has no meaning"),
            (["--lam", "1", "--penalty", "elastic_net", "--l1-ratio", "2"], "l1-ratio"),
        ],
    )
    def test_wrong_numbers(self, file, options, sentence, capsys):
        assert cli.main(["bench", str(file), "--loss", "squared", *options]) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.startswith("coordwise: ")
        assert error.endswith(".\n")

    def test_wrong_data(self, tmp_path, capsys):
        assert cli.main(["bench", str(tmp_path / "none"), "--loss", "squared", "--lam", "1"]) == 2
        assert "none" in capsys.readouterr().err
        path = tmp_path / "three.svm"
        path.write_text("1 1:1\n2 1:2\n3 2:1\n")
        assert cli.main(["bench", str(path), "--loss", "hinge", "--lam", "1"]) == 2
        assert "the labels have 3 values" in capsys.readouterr().err
        path.write_text("1 1:x\n")
        assert cli.main(["bench", str(path), "--loss", "squared", "--lam", "1"]) == 2
        assert capsys.readouterr().err.startswith("coordwise: ")

    def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(self, file, tmp_path, capsys):
        command = ["bench", str(file), "--loss", "squared", "--lam", "1", "--json"]
        assert cli.main([*command, str(tmp_path / "none" / "a.json")]) == 2
        assert "cannot be written; name a file in a folder that exists" in capsys.readouterr().err
        assert cli.main([*command, str(tmp_path)]) == 2
        assert "is a folder; name a file in it" in capsys.readouterr().err

    def test_ctrl_c_writes_what_was_measured(self, file, tmp_path, monkeypatch, capsys):
        out = tmp_path / "part.json"
        out.write_text("old")

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("coordwise.bench.race._Race.refine", interrupted)
        command = ["bench", str(file), "--loss", "squared", "--lam", "1", "--limit", "5", "--threads", "1"]
        assert cli.main([*command, "--only", "scikit-learn Ridge", "--json", str(out)]) == 130
        assert "Interrupted: the table has what was measured" in capsys.readouterr().err
        assert any(solver["trials"] for solver in json.loads(out.read_text())["solvers"])

    @pytest.mark.parametrize("options", [["--loss", "cubic", "--lam", "1"], ["--loss", "hinge"], ["--lam", "1"]])
    def test_wrong_usage(self, options):
        with pytest.raises(SystemExit) as exit_:
            cli.main(["bench", "w8a", *options])
        assert exit_.value.code == 2

    def test_without_scikit_learn(self, monkeypatch, capsys):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        assert cli.main(["bench", "w8a", "--loss", "squared", "--lam", "1"]) == 2
        assert "needs scikit-learn" in capsys.readouterr().err
