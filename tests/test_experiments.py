"""The experiments by name, their settings, and the day on their page."""

import pytest

from coordwise.experiments import EXPERIMENTS, Settings, page
from coordwise.experiments.run import experiments_named, reproduce


def test_settings():
    full, quick = Settings.full(seed=3), Settings.quick_look()
    assert full.seeds == (3, 4, 5, 6, 7)
    assert quick.seeds == (0, 1)
    assert Settings.quick_look(5, 3).seeds == (5, 6, 7)
    assert (full.quick, quick.quick) == (False, True)
    assert full.sigmas == 14
    assert quick.seeds_for(2_000_000) == (0, 1)
    assert quick.seeds_for(2_000_001) == (0,)
    assert full.seeds_for(10**9) == full.seeds
    assert full.limit(1000, 10) == 200
    assert full.limit(7, 10) == 7
    assert full.limit(1000, int(1.5e8)) == pytest.approx(10)
    assert full.limit(1000, 10**12) == 5
    assert Settings(**full.spec()) == full


def test_experiments_come_in_the_papers_order():
    assert [e.name for e in experiments_named(["fig6", "table3", "fig2", "fig6"])] == ["table3", "fig2", "fig6"]
    assert [e.name for e in experiments_named(["fig2", "all"])] == list(EXPERIMENTS)
    assert list(EXPERIMENTS) == ["table1", "table2", "table3", *(f"fig{k}" for k in range(1, 8)), "remark11", "sqrtn"]


def test_unknown_experiments_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"fig8.*all, fig1.*fig7, remark11, sqrtn, table1, table2, table3"):
        experiments_named(["fig2", "fig8"])
    with pytest.raises(ValueError, match="fig8"):
        reproduce("fig8", out=tmp_path / "out")
    with pytest.raises(ValueError, match=r"names is empty; give some of table1, .*fig7, remark11, sqrtn, or all"):
        reproduce([], out=tmp_path / "out")
    with pytest.raises(ValueError, match="seed"):
        reproduce("table3", seed=-1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("seconds", "day"), [("0", "1970-01-01"), ("1700000000", "2023-11-14")])
def test_the_day_of_a_reproducible_build(seconds, day, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    assert page._today() == day
