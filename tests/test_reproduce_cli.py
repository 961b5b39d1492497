"""The command `coordwise reproduce`, as a process of its own."""

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from coordwise import cli
from coordwise.experiments import EXPERIMENTS, paper
from coordwise.experiments.charts import COLUMNS, FAMILIES, TIGHT
from coordwise.experiments.claims import CHECKS

image = pytest.importorskip("matplotlib.image")

UNITS = {unit.key: unit for experiment in EXPERIMENTS.values() for unit in experiment.units}
SYSTEMS = [key for key in UNITS if key.startswith("system")]


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def state(folder):
    """Content and time of the files that units are stored in."""
    files = [folder / "data" / f"{key}.{kind}" for key in UNITS for kind in ("csv", "json")]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files if path.exists()}


def tables_of(folder):
    return {path.name: path.read_bytes() for path in (folder / "data").glob("*.csv")}


def temporary(folder):
    return [path for path in folder.rglob("*") if path.name.startswith(".") or path.suffix == ".tmp"]


def sections(folder):
    """The names of the tables and figures on the page."""
    page = (folder / "index.html").read_text("utf-8")
    return [name for name in EXPERIMENTS if f'id="{name}"' in page]


# All tables and figures


def test_it_ends_well_and_says_where_the_page_is(reproduction):
    done, folder = reproduction.done, reproduction.folder
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"{folder / 'index.html'} (")
    assert "stand-ins took the place of news20, w8a, covtype" in done.stdout
    assert f"51 charts and tables to compute, a quick look, 2 seeds, in {folder}\n" in done.stderr
    for key in UNITS:
        assert f" {key} in " in done.stderr
    assert temporary(folder) == []


VIEWS = {
    "fig1": [""],
    "fig3": ["", "-iterations", "-primal", "-primal-iterations"],
    "fig4": ["", "-iterations", "-primal", "-primal-iterations"],
    "sqrtn": [""],
}


def views_of(name):
    return [f"{name}{suffix}" for suffix in VIEWS.get(name, ["", "-iterations"])]


@pytest.mark.parametrize("name", [e.name for e in EXPERIMENTS.values() if e.is_figure])
def test_every_figure_is_there(name, reproduction):
    for view in views_of(name):
        tree = ET.parse(reproduction.folder / "figures" / f"{view}.svg")
        assert tree.getroot().tag == "{http://www.w3.org/2000/svg}svg"
        text = " ".join(tree.getroot().itertext())
        for unit in EXPERIMENTS[name].units:
            assert (unit.title.removeprefix("n = ") if name == "sqrtn" else unit.title) in text
        pixels = image.imread(reproduction.folder / "figures" / f"{view}.png")
        height, width = pixels.shape[:2]
        assert width > height / 2 > 100
        panels = np.array_split(pixels[..., :3].mean(2), EXPERIMENTS[name].columns, axis=1)
        assert all(np.mean(panel < 0.9) > 0.005 for panel in panels)  # something is drawn in every column


def test_there_are_no_other_figures(reproduction):
    views = [view for e in EXPERIMENTS.values() if e.is_figure for view in views_of(e.name)]
    found = {path.name for path in (reproduction.folder / "figures").iterdir()}
    assert found == {f"{view}.{kind}" for view in views for kind in ("svg", "png")}


def test_every_unit_is_stored(reproduction):
    found = {path.name for path in (reproduction.folder / "data").iterdir()}
    units = {f"{key}.{kind}" for key in UNITS for kind in ("csv", "json")}
    assert found == units | {"claims.csv", "speedups.csv", "settings.json"}


@pytest.mark.parametrize("key", [key for key in UNITS if key.split("-")[0] in (*FAMILIES, "system")])
def test_the_numbers_of_a_chart(key, reproduction):
    rows = read_csv(reproduction.folder / "data" / f"{key}.csv")
    family = key.split("-")[0]
    methods = ["Kaczmarz", "ACDM", TIGHT, "NU_ACDM"] if family == "system" else list(FAMILIES[family].methods)
    assert list(rows[0]) == list(COLUMNS)
    assert list(dict.fromkeys(row["method"] for row in rows if row["seed"] == "0")) == methods
    assert {(row["method"], row["seed"]) for row in rows} == {(method, seed) for method in methods for seed in "01"}
    for name in COLUMNS[2:]:
        values = np.array([float(row[name]) for row in rows])
        assert np.all(np.isfinite(values)) or (family == "system" and name.startswith("primal"))


def test_the_json_files_are_json(reproduction):
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    wrong = []
    for path in sorted((reproduction.folder / "data").glob("*.json")):
        try:
            json.loads(path.read_text("utf-8"), parse_constant=refuse)
        except ValueError as error:
            wrong.append(f"{path.name}: {error}")
    assert wrong == []


def test_the_numbers_of_the_tables(reproduction):
    data = reproduction.folder / "data"
    cells = {(row["method"], row["beta"], row["strongly_convex"]) for row in read_csv(data / "table1.csv")}
    assert len(cells) == 20
    assert sum(method == "apcg" for method, _, _ in cells) == 2
    for name in paper.DATASETS:
        rows = read_csv(data / f"table2-{name}.csv")
        assert [(row["dataset"], float(row["lambda"])) for row in rows] == [(name, lam) for lam in paper.LAMBDAS[name]]
    assert [row["printed"] for row in read_csv(data / "table3.csv")] == list(paper.TABLE_3.values())


def test_the_claims_are_complete(reproduction):
    rows = read_csv(reproduction.folder / "data" / "claims.csv")
    assert list(rows[0]) == ["source", "text", "test", "measured", "verdict"]
    assert len(rows) == len(CHECKS)
    assert {row["verdict"] for row in rows} <= {"holds", "holds in part", "does not hold", "undecided"}
    assert all(row["measured"] for row in rows)
    for row in rows:
        assert row["source"] in reproduction.done.stdout


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("Table 3", "six"),
        ("Theorem 5.1", "linearly"),
        ("Theorem 6.1", "NU_ACDM^ns"),
        ("Footnote 5", "sqrt(n)"),
        ("Section 8", "Kaczmarz"),
        ("Section 8", "comparable"),
    ],
)
def test_what_must_hold_on_any_data_holds(source, part, reproduction):
    rows = read_csv(reproduction.folder / "data" / "claims.csv")
    (row,) = [row for row in rows if row["source"] == source and part in row["text"]]
    assert row["verdict"] == "holds", row["measured"]


def test_no_bound_of_table_1_is_missed(reproduction):
    """A quick look may be too short to reach any of them."""
    (row,) = [r for r in read_csv(reproduction.folder / "data" / "claims.csv") if r["source"] == "Table 1"]
    assert row["verdict"] in ("holds", "undecided"), row["measured"]
    for cell in read_csv(reproduction.folder / "data" / "table1.csv"):
        assert min(float(cell["measured"]), float(cell["tried"])) <= 2 * float(cell["bound"])


def test_the_speedups_cover_every_chart_with_both_methods(reproduction):
    rows = read_csv(reproduction.folder / "data" / "speedups.csv")
    assert [row["chart"] for row in rows] == [
        key for key in UNITS if key.split("-")[0] in ("ridge", "lasso", "l2l1", "system", "sqrtn")
    ]
    assert len(rows) == 37
    for row in rows:
        assert float(row["theory"]) >= 1
        assert float(row["passes"]) > 0 or float(row["depth"]) > 1, row  # ACDM may diverge on stand-ins
        if row["chart"].startswith("system"):
            assert math.isnan(float(row["primal_passes"]))  # there is no primal
        else:
            assert not float(row["primal_passes"]) <= 0  # nan where P never fell below P(0)


def test_the_page_shows_everything(reproduction):
    assert sections(reproduction.folder) == list(EXPERIMENTS)


# Resuming

SUBSET = ("fig6", "table3", "table2", "--stand-ins", "0.03", "--quick", "--seeds", "2")


@pytest.fixture(scope="module")
def subset(reproduce_command, tmp_path_factory):
    """What a quick look wrote."""
    folder = tmp_path_factory.mktemp("subset")
    done = reproduce_command(*SUBSET, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder / "quick"


def test_the_same_command_gives_the_same_bytes_elsewhere(subset, reproduction):
    ours, theirs = tables_of(subset), tables_of(reproduction.folder)
    units = set(ours) - {"claims.csv", "speedups.csv"}
    assert units == {f"{key}.csv" for key in (*SYSTEMS, "table3", *(f"table2-{name}" for name in paper.DATASETS))}
    for name in units:
        assert ours[name] == theirs[name], name
    for name in ("fig6.svg", "fig6-iterations.svg"):
        assert (subset / "figures" / name).read_bytes() == (reproduction.folder / "figures" / name).read_bytes()


def test_again_computes_nothing(subset, reproduce_command):
    before, tables = state(subset), tables_of(subset)
    done = reproduce_command(*SUBSET, "--out", subset.parent)
    assert done.returncode == 0
    assert "0 charts and tables to compute" in done.stderr
    assert "10 kept from an earlier run" in done.stderr
    assert " in 0." not in done.stderr
    assert state(subset) == before
    assert tables_of(subset) == tables


def test_a_changed_file_is_computed_again(subset, reproduce_command):
    before = state(subset)
    path = subset / "data" / "table3.csv"
    path.write_bytes(path.read_bytes().replace(b"1.0992", b"2.0992"))
    done = reproduce_command(*SUBSET, "--out", subset.parent)
    assert "1 chart or table to compute" in done.stderr
    assert "9 kept" in done.stderr
    after = state(subset)
    assert {name for name in after if after[name][1] != before[name][1]} == {"table3.csv", "table3.json"}
    assert after["table3.csv"][0] == before["table3.csv"][0]


@pytest.fixture(scope="module")
def growing(reproduce_command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("growing")
    done = reproduce_command("fig6", "--quick", "--seed", "7", "--seeds", "1", "--out", folder)
    assert done.returncode == 0, done.stderr
    assert "stand-in" not in done.stdout  # systems need no data
    return folder / "quick"


def test_another_seed_gives_other_numbers(subset, growing):
    for key in SYSTEMS:
        rows = read_csv(growing / "data" / f"{key}.csv")
        assert {row["seed"] for row in rows} == {"7"}
        ours = {row["dual"] for row in rows if float(row["passes"]) > 0}
        assert ours.isdisjoint({row["dual"] for row in read_csv(subset / "data" / f"{key}.csv")})


def test_a_page_grows(growing, reproduce_command):
    assert sections(growing) == ["fig6"]
    before = state(growing)
    done = reproduce_command("table3", "--quick", "--seed", "7", "--seeds", "1", "--out", growing.parent)
    assert done.returncode == 0
    assert sections(growing) == ["table3", "fig6"]
    after = state(growing)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"table3.csv", "table3.json"}
    claims = {row["source"] for row in read_csv(growing / "data" / "claims.csv")}
    assert claims == {"Table 3", "Section 8", "Figure 6"}


def test_a_page_does_not_shrink(subset, reproduce_command):
    """What an earlier call computed from data stays on the page when a later call needs none of them."""
    assert sections(subset) == ["table2", "table3", "fig6"]
    done = reproduce_command("table3", *SUBSET[3:], "--out", subset.parent)
    assert done.returncode == 0
    assert sections(subset) == ["table2", "table3", "fig6"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
def test_an_interrupted_run_goes_on(reproduce_command, tmp_path):
    command = ("fig6", "table3", "--full", "--seeds", "8", "--jobs", "1", "--out", tmp_path)
    with reproduce_command.start(*command) as process:
        seen = []
        for line in process.stderr:
            seen.append(line)
            if line.startswith("[2/7]"):
                process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    assert process.returncode == 130, seen
    assert "Traceback" not in "".join(seen)
    finished = sum(line.startswith("[") for line in seen)
    said = (
        f"Interrupted. {finished} of 7 charts and tables are stored in {tmp_path}. The same command goes on from there."
    )
    assert seen[-1] == f"{said}\n"
    assert temporary(tmp_path) == []
    assert not (tmp_path / "index.html").exists()
    before = state(tmp_path)
    kept = len(before) // 2
    assert finished <= kept < 7
    again = reproduce_command(*command)
    assert again.returncode == 0
    said = f"{7 - kept} charts and tables to compute, in full, 8 seeds; {kept} kept from an earlier run, in {tmp_path}"
    assert said in again.stderr
    after = state(tmp_path)
    assert {name: after[name] for name in before} == before
    assert len(after) == 14
    assert sections(tmp_path) == ["table3", "fig6"]


# Folders that hold other results


def everything(folder):
    """Content and time of all files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


HELD = ("table2", "table3", "--stand-ins", "0.002", "--quick", "--seeds", "2")


@pytest.fixture
def held(reproduce_command, tmp_path):
    """A folder with a quick look at stand-ins."""
    folder = tmp_path / "held"
    done = reproduce_command(*HELD, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    ("args", "holds"),
    [
        (("table2", "table3", "--stand-ins", "0.002", "--seed", "3"), "a quick look with seeds 0 to 1"),
        (("table3", "--quick", "--seeds", "1"), "a quick look with seeds 0 to 1"),
        (("table2", "--stand-ins", "0.01"), "a quick look on other data (news20, w8a, covtype)"),
    ],
    ids=["seed", "seeds", "data"],
)
def test_other_results_are_replaced_only_by_force(args, holds, held, reproduce_command):
    before = everything(held)
    done = reproduce_command(*args, "--out", held)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        f"coordwise: '{held / 'quick'}' holds {holds}, which this one would replace; give another folder with "
        "--out DIR, or --force."
    )
    assert "Traceback" not in done.stderr
    assert everything(held) == before
    forced = reproduce_command(*args, "--out", held, "--force")
    assert forced.returncode == 0, forced.stderr
    assert "kept from an earlier run" not in forced.stderr
    assert temporary(held) == []
    after = everything(held)
    for key in [key for key in UNITS if key.split("-")[0] in args]:
        path = Path("quick", "data", f"{key}.json")
        assert json.loads(after[path][0])["digest"] != json.loads(before[path][0])["digest"]
    again = reproduce_command(*HELD, "--out", held)  # it holds the new ones now
    assert again.returncode == 1
    assert "or --force" in again.stderr


# The full run and quick looks


@pytest.mark.parametrize("plain", [("table3",), ("table2", "table3", "--stand-ins", "0.002", "--full")])
def test_a_quick_look_never_stands_in_the_way(plain, held, reproduce_command):
    """Neither what it wrote nor how it was made has a part in the full run, whichever comes first."""
    quick = everything(held)
    assert {path.parts[0] for path in quick} == {"quick"}
    done = reproduce_command(*plain, "--out", held)
    assert done.returncode == 0, done.stderr
    named = [key for key in UNITS if key.split("-")[0] in plain]
    count = "1 chart or table" if len(named) == 1 else f"{len(named)} charts and tables"
    assert f"{count} to compute, in full, 5 seeds, in {held}\n" in done.stderr
    assert "a quick look" not in done.stdout
    both = everything(held)
    assert {path: both[path] for path in quick} == quick
    assert sections(held) == [name for name in EXPERIMENTS if name in plain]
    again = reproduce_command(*HELD, "--out", held)
    said = f"0 charts and tables to compute, a quick look, 2 seeds; 4 kept from an earlier run, in {held / 'quick'}"
    assert said in again.stderr
    after = everything(held)
    full = {path: both[path] for path in both if path not in quick}
    assert {path: after[path] for path in full} == full


def test_a_quick_look_without_data_says_what_the_full_run_is(reproduce_command, tmp_path):
    """The plain command is one where there are only stand-ins; the full run is as far away as the data."""
    for args, quick in (((), True), (("--full",), False), (("--quick",), True)):
        done = reproduce_command("table2", "--stand-ins", "0.002", *args, "--out", tmp_path)
        assert done.returncode == 0, done.stderr
        assert str(tmp_path / ("quick" if quick else "") / "index.html") in done.stdout.splitlines()[-1]
        assert ("This was a quick look, apart from the full run" in done.stdout) is quick


# Wrong input


def refused(done, folder):
    """The sentence of a refusal, which left nothing behind."""
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not folder.exists()
    last = done.stderr.splitlines()[-1]
    assert last.startswith(("coordwise: ", "coordwise reproduce: error: "))
    return last


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["fig8"], 1, r"fig8.*fig7"),
        (["fig6", "table9"], 1, r"table9.*table3"),
        (["table3", "--seed", "-1"], 1, "--seed -1"),
        (["table3", "--seeds", "0"], 1, "--seeds 0"),
        (["table3", "--seeds", "x"], 2, "--seeds"),
        (["table3", "--jobs", "0"], 1, "--jobs 0"),
        (["table3", "--quick", "--full"], 2, "not allowed with"),
        (["table2", "--data", "/no/such/folder"], 1, "--data '/no/such/folder' is not a folder"),
        (["table2", "--stand-ins", "0"], 1, "--stand-ins 0"),
        (["table2", "--stand-ins", "2"], 1, "--stand-ins 2"),
        (["table2", "--stand-ins", "nan"], 1, "--stand-ins nan"),
        (["table2", "--stand-ins"], 2, "--stand-ins: expected one argument"),
        (["table3", "--other"], 2, "--other"),
    ],
)
def test_wrong_input(args, code, said, reproduce_command, tmp_path):
    done = reproduce_command(*args, "--out", tmp_path / "out")
    assert done.returncode == code
    sentence = refused(done, tmp_path / "out")
    assert re.search(said, sentence)
    assert code == 2 or done.stderr.count("\n") == 1
    assert not re.search(
        r"(n_jobs|stand_ins|seeds?|data|folder|out)=", sentence
    )  # options have other names than arguments


def test_a_file_in_place_of_the_folder(reproduce_command, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    done = reproduce_command("table3", "--out", path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"coordwise: --out '{path}' is a file")
    assert path.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "args",
    [
        ["fig1", "--stand-ins", "0.01", "--seeds", "0"],
        ["table3", "--stand-ins", "2"],
        ["table3", "--data", "/no/such/folder"],
        ["table3", "--out", __file__],
    ],
    ids=lambda args: " ".join(args[:-1]),
)
def test_wrong_input_is_told_before_any_work(args, reproduce_command, tmp_path):
    done = reproduce_command("--out", tmp_path / "out", *args)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("module", "name"), [("jinja2", "table3"), ("rich", "table3"), ("matplotlib", "fig6")])
def test_a_missing_extra_is_named_before_any_work(module, name, reproduce_command, tmp_path):
    """numpy and scipy are all that an installation must have."""
    code = f"import sys; sys.modules[{module!r}] = None; from coordwise import cli; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "reproduce", name, "--quick", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, env=reproduce_command.environment, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert re.search(r"pip install .*\[(cli|all)\]|extra", done.stderr.splitlines()[-1])
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_progress_in_a_terminal(reproduce_command, tmp_path):
    pytest.importorskip("rich")
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "coordwise", "reproduce", "table3", "--out", str(tmp_path)]
    environment = reproduce_command.environment | {"TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other end was closed
                break
        out = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert out.splitlines()[-1].startswith(f"{tmp_path / 'index.html'} (")
    text = shown.decode()
    assert "1 chart or table to compute" in text
    assert "drawing figures and the page" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") > 0  # the cursor is back


@pytest.mark.parametrize("unit", ["table3", "sqrtn"])
def test_a_unit_alone_has_a_page(unit, tmp_path):
    """Notes that compare methods are left out where one of them is not there."""
    assert cli.main(["reproduce", "--quick", unit, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "quick" / "index.html").stat().st_size > 1000
