"""Storage of findings: they come back bit by bit, or not at all."""

import json
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
from experiment_cases import SMALL, Watch, chart_of, library_of
from hypothesis import given, settings
from hypothesis import strategies as st

import coordwise as cw
from coordwise.experiments import Settings, store, tables
from coordwise.experiments.store import Store, write_whole
from coordwise.experiments.units import Finding, Unit


class Something(Unit):
    key, title, datasets = "something", "Something", ("w8a",)

    def __init__(self, spec=None):
        self._spec = {"a": 1} if spec is None else spec

    @property
    def spec(self):
        return self._spec

    def run(self, library, settings, watch):
        raise AssertionError


def library_with(fingerprint):
    return lambda name: SimpleNamespace(fingerprint=f"{name} {fingerprint}")


@pytest.fixture
def stored(tmp_path):
    """A store with one finding in it."""
    folder = Store(tmp_path, library_with(1), SMALL)
    folder.put(Something(), FINDING, 0.1)
    return folder


FINDING = Finding(
    {
        "x": [0.1, 1 / 3, 1e-310, 5e-324, 1.7976931348623157e308, -0.0, math.inf, -math.inf, math.nan, 2.0],
        "k": [0, -1, 2**70, 3, 4, 5, 6, 7, 8, 9],
        "on": [True, False] * 5,
        "text": ["β = 0.2", "APCG*", "a,b", 'a "quoted" one', "", "line\nbreak", "NU_ACDM", "x", "y", "λ"],
    },
    {"n": 3, "minimum": {"dual": 0.1 + 0.2}, "none": None, "of": [1, 2.5, "β"]},
)


def bits(values):
    return [np.float64(value).tobytes() for value in values]


def test_findings_come_back_bit_by_bit(stored):
    found = stored.get(Something())
    assert bits(found.columns["x"]) == bits(FINDING.columns["x"])
    assert {type(value) for value in found.columns["x"]} == {float}
    for name in ("k", "on", "text"):
        assert found.columns[name] == FINDING.columns[name]
        assert [type(value) for value in found.columns[name]] == [type(value) for value in FINDING.columns[name]]
    assert found.facts == FINDING.facts


@settings(deadline=None)
@given(st.lists(st.floats(), max_size=30))
def test_any_floats_come_back(values):
    text = "x\n" + "".join(f"{value}\n" for value in values)
    back = store._parse(text)["x"]
    same = [a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(back, values, strict=True)]
    assert all(same)


def test_every_table_comes_back(tmp_path, small_data):
    library = library_of(w8a=small_data)
    folder = Store(tmp_path, library, SMALL)
    for unit in (tables.Table2("w8a"), tables.Norms("w8a"), chart_of("l2l1")):
        found = unit.run(library, SMALL, Watch())
        folder.put(unit, found, 0.0)
        assert folder.get(unit) == found


def test_a_finding_of_other_inputs_is_none(stored, tmp_path):
    def asked(unit=None, fingerprint=1, **changes):
        settings = Settings(**(SMALL.spec() | changes))
        return Store(tmp_path, library_with(fingerprint), settings).get(unit or Something())

    assert asked() is not None
    assert asked(fingerprint=2) is None
    assert asked(Something({"a": 2})) is None
    assert asked(seeds=(1, 2)) is None
    assert asked(accuracy=1e-4) is None
    assert asked(quick=False) is None


def test_a_finding_of_other_code_is_none(stored, monkeypatch):
    monkeypatch.setattr(store, "code_digest", lambda: "other")
    assert stored.get(Something()) is None
    monkeypatch.undo()
    assert stored.get(Something()) is not None


def test_the_code_digest_changes_with_the_code(tmp_path, monkeypatch):
    """With any source or compiled file, its name and the version, but not with what gives no numbers."""
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/one.py", "_core.so", "page.html"):
        (package / name).write_bytes(name.encode())
    monkeypatch.setattr(cw, "__file__", str(package / "__init__.py"))
    seen = []

    def digest():
        store.code_digest.cache_clear()
        seen.append(store.code_digest())
        return seen[-1]

    try:
        first = digest()
        (package / "page.html").write_bytes(b"other")
        assert digest() == first == store.code_digest()
        for name in ("inner/one.py", "_core.so", "inner/two.py"):
            (package / name).write_bytes(b"other")
            digest()
        (package / "inner" / "two.py").rename(package / "inner" / "three.py")
        digest()
        monkeypatch.setattr(cw, "__version__", "0.0.0")
        digest()
        assert len(seen) == 7
        assert len(set(seen)) == 6
    finally:
        store.code_digest.cache_clear()


def claimed(folder, data, **changes):
    """A store in the folder, which now holds its results."""
    held = Store(folder, library_with(1), Settings(**(SMALL.spec() | changes)), data)
    held.claim(force=False)
    return held


def test_a_folder_is_claimed_by_its_settings_and_data(tmp_path):
    folder = tmp_path / "out" / "data"
    claimed(folder, {"w8a": "1"})
    claimed(folder, {"news20": "2"})  # data it has not seen
    claimed(folder, {})
    before = (folder / "settings.json").read_bytes()
    assert json.loads(before)["data"] == {"w8a": "1", "news20": "2"}
    for data, changes, said in (
        ({"w8a": "3"}, {}, r"a quick look on other data \(w8a\)"),
        ({"w8a": "1"}, {"seeds": (3, 4, 5)}, "a quick look with seeds 0 to 1"),
    ):
        with pytest.raises(
            ValueError, match=rf"out' holds {said}, which .* another folder with out=DIR, or force=True"
        ):
            claimed(folder, data, **changes)
        assert (folder / "settings.json").read_bytes() == before
    claimed(folder, {"w8a": "3"}, quick=False)  # a full run, which a quick look does not hinder
    claimed(folder, {"w8a": "3"}, quick=False)
    with pytest.raises(ValueError, match="holds a full run"):
        claimed(folder, {"w8a": "3"})


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"settings": {}, "data": {}}', b'{"data": {}}', b"\xff"])
def test_a_damaged_mark_is_none(content, tmp_path):
    (tmp_path / "settings.json").write_bytes(content)
    claimed(tmp_path, {"w8a": "1"})
    assert json.loads((tmp_path / "settings.json").read_bytes())["data"] == {"w8a": "1"}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_missing_file_is_no_finding(kind, stored):
    (stored.folder / f"something.{kind}").unlink()
    assert stored.get(Something()) is None


def test_a_changed_table_is_no_finding(stored):
    path = stored.folder / "something.csv"
    path.write_bytes(path.read_bytes().replace(b"0.1,", b"0.2,", 1))
    assert stored.get(Something()) is None


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_half_a_json_file_is_no_finding(keep, stored):
    path = stored.folder / "something.json"
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    assert stored.get(Something()) is None


@pytest.mark.parametrize("content", [b"[]", b"3", b"null", b'{"digest": 1}', b"\xff\xfe"])
def test_another_json_file_is_no_finding(content, stored):
    (stored.folder / "something.json").write_bytes(content)
    assert stored.get(Something()) is None


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "file"
    write_whole(path, b"old")

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert [p.name for p in path.parent.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_half_a_finding_is_none(stored, monkeypatch):
    def refuse(path, content):
        if path.suffix == ".json":
            raise OSError("No space left on device")
        write_whole(path, content)

    monkeypatch.setattr(store, "write_whole", refuse)
    with pytest.raises(OSError, match="No space"):
        stored.put(Something(), Finding({"x": [2.0]}), 0.1)
    assert stored.get(Something()) is None
    monkeypatch.undo()
    stored.put(Something(), Finding({"x": [2.0]}), 0.1)
    assert stored.get(Something()) == Finding({"x": [2.0]}, {})
