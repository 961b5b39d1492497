"""Run what is missing, several units at a time, and keep what is finished."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from coordwise import datasets
from coordwise.blas import one_blas_thread
from coordwise.datasets import Dataset
from coordwise.experiments import paper
from coordwise.experiments.catalogue import EXPERIMENTS, Experiment
from coordwise.experiments.claims import check_claims
from coordwise.experiments.settings import Settings
from coordwise.experiments.store import Store
from coordwise.experiments.units import Finding, Interrupted, Unit
from coordwise.experiments.verdicts import Claim
from coordwise.validation import check_choice, check_count, check_number

__all__ = ["Outcome", "Reporter", "experiments_named", "reproduce"]


class Reporter(Protocol):
    """Who is told how a reproduction goes on; always called from the thread that called `reproduce`."""

    def loading(self, name: str) -> None:
        """A dataset is about to be found and read."""

    def loaded(self, data: Dataset) -> None:
        """It was."""

    def begin(self, settings: Settings, folder: Path, work: float, units: int, stored: int) -> None:
        """So much work lies ahead, in so many units; others are stored in the folder from an earlier run."""

    def advance(self, work: float, running: Sequence[str]) -> None:
        """So much of it is done, and these units are being computed."""

    def finished(self, unit: Unit, seconds: float) -> None:
        """A unit is done and stored."""

    def writing(self) -> None:
        """All is computed; figures and the page are drawn."""


class Silent:
    """A reporter that says nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


@dataclass(frozen=True)
class Outcome:
    """What a reproduction found and wrote."""

    findings: Mapping[str, Finding]
    claims: list[Claim]
    data: Mapping[str, Dataset]
    settings: Settings
    page: Path
    seconds: float


def experiments_named(names: Iterable[str]) -> list[Experiment]:
    """Experiments by name, in the paper's order; "all" is every one."""
    asked = [check_choice("names", name, [*EXPERIMENTS, "all"]) for name in names]
    if not asked:
        raise ValueError(f"names is empty; give some of {', '.join(EXPERIMENTS)}, or all.")
    return [e for name, e in EXPERIMENTS.items() if "all" in asked or name in asked]


def reproduce(
    names: str | Iterable[str] = "all",
    *,
    out: str | os.PathLike[str] = "reproduction",
    data: str | os.PathLike[str] | None = None,
    stand_ins: float | None = None,
    quick: bool | None = None,
    seed: int = 0,
    seeds: int | None = None,
    n_jobs: int | None = None,
    force: bool = False,
    report: Reporter | None = None,
) -> Outcome:
    """Compute tables and figures of the paper and write them, with their numbers and a page, into a folder.

    Finished units are stored in ``data`` there as they come; a later call with the same data and settings takes them
    from there. A full run writes into `out` itself and a quick look into ``out/quick``, so that neither sees or
    replaces the other. Every number depends on the data, the settings and the seeds alone.

    Parameters
    ----------
    names : str or iterable of str, default "all"
        table1 to table3, fig1 to fig7, remark11, sqrtn, or all.
    out : path, default "reproduction"
        Created if need be.
    data : path, optional
        Folder with the datasets; see `coordwise.datasets.load` for where else they are looked for.
    stand_ins : float, optional
        Use generated data in place of the real ones, with this share of their rows.
    quick : bool, optional
        Fewer seeds and shorter runs, in ``out/quick``; by default if datasets are needed and none of them was found.
    seed : int, default 0
        The first seed; the others follow it.
    seeds : int, optional
        How many; 5 by default, 2 if `quick`.
    n_jobs : int, optional
        Threads; one per processor by default.
    force : bool, default False
        Replace what a folder holds of other seeds or data.
    report : Reporter, optional
        Told how it goes on.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        For a name that is not known, a folder without data, or one that holds results of other seeds or data.
    KeyboardInterrupt
        On Ctrl-C, after the threads have stopped; what was finished is stored.
    """
    begun = time.perf_counter()
    chosen = experiments_named([names] if isinstance(names, str) else names)
    seed = check_count("seed", seed)
    jobs = (os.cpu_count() or 1) if n_jobs is None else check_count("n_jobs", n_jobs, low=1)
    count = None if seeds is None else check_count("seeds", seeds, low=1)
    if stand_ins is not None:
        check_number("stand_ins", stand_ins, low=0, high=1, strictly=True)
    if data is not None and not Path(data).is_dir():
        raise FileNotFoundError(f"data={str(data)!r} is not a folder; give the one with the svmlight files.")
    if Path(out).exists() and not Path(out).is_dir():
        raise FileExistsError(f"out={str(out)!r} is a file; give a folder, or a name that is free.")
    missing = [name for name in ("jinja2", "matplotlib", "rich") if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f'reproduce needs {" and ".join(missing)}: pip install ".[cli]".')
    told: Any = Silent() if report is None else report
    loaded: dict[str, Dataset] = {}
    for name in paper.DATASETS:
        if any(name in unit.datasets for experiment in chosen for unit in experiment.units):
            told.loading(name)
            loaded[name] = _load(name, data, stand_ins)
            told.loaded(loaded[name])
    if quick is None:
        quick = bool(loaded) and not any(found.real for found in loaded.values())
    settings = Settings.quick_look(seed, count or 2) if quick else Settings.full(seed, count or 5)
    folder = Path(out, "quick") if quick else Path(out)

    prints = {name: found.fingerprint for name, found in loaded.items()}
    store = Store(folder / "data", loaded.__getitem__, settings, prints, stand_ins)
    store.claim(force=force)
    units = {unit.key: unit for experiment in chosen for unit in experiment.units}
    findings = {key: found for key, unit in units.items() if (found := store.get(unit)) is not None}
    todo = [unit for key, unit in units.items() if key not in findings]
    _compute(todo, len(findings), store, findings, settings, jobs, told)

    told.writing()
    for key, unit in _others(units):  # of earlier calls, so that the page shows all there is
        if (store.folder / f"{key}.json").exists():
            loaded |= {name: _load(name, data, store.stand_ins) for name in unit.datasets if name not in loaded}
            if (found := store.get(unit)) is not None:
                findings[key] = found
    findings = {key: findings[key] for e in EXPERIMENTS.values() for key in (u.key for u in e.units) if key in findings}
    claims = check_claims(findings, all(found.real for found in loaded.values()))
    from coordwise.experiments.page import write_report

    seconds = time.perf_counter() - begun
    page = write_report(folder, findings, claims, loaded, settings, seconds)
    return Outcome(findings, claims, loaded, settings, page, time.perf_counter() - begun)


def _load(name: str, folder: Any, stand_ins: float | None) -> Dataset:
    if stand_ins is None:
        return datasets.load(name, folder=folder, mmap=False)
    return datasets.stand_in(name, scale=stand_ins)


def _others(units: Mapping[str, Unit]) -> list[tuple[str, Unit]]:
    return [(u.key, u) for e in EXPERIMENTS.values() for u in e.units if u.key not in units]


class _Watch:
    """Counts the work of all threads, and stops them."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.done = 0.0
        self.running: set[str] = set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        self._stop.set()

    def add(self, entries: float) -> None:
        with self._lock:
            self.done += entries


def _compute(
    missing: list[Unit],
    stored: int,
    store: Store,
    findings: dict[str, Finding],
    settings: Settings,
    jobs: int,
    told: Any,
) -> None:
    """Compute units, the longest first; each is stored as soon as it is finished."""
    expected = {unit.key: unit.work(store.library, settings) for unit in missing}
    told.begin(settings, store.folder.parent, sum(expected.values()), len(missing), stored)
    watch = _Watch()
    # Not futures to wait for: Ctrl-C while the caller has their locks would leave these locked, and threads waiting.
    done: SimpleQueue[tuple[Unit, Finding, float] | BaseException] = SimpleQueue()

    def work(unit: Unit) -> tuple[Unit, Finding, float]:
        if watch.stopped:
            raise Interrupted
        begun = time.perf_counter()
        watch.running.add(unit.key)
        try:
            finding = unit.run(store.library, settings, watch)
        finally:
            watch.running.discard(unit.key)
        seconds = time.perf_counter() - begun
        store.put(unit, finding, seconds)
        return unit, finding, seconds

    def tell(unit: Unit) -> None:
        try:
            done.put(work(unit))
        except BaseException as error:
            done.put(error)

    # units run side by side: products of small matrices in them should not fight for the processors
    with one_blas_thread(), ThreadPoolExecutor(jobs) as pool:
        try:
            for unit in sorted(missing, key=lambda unit: -expected[unit.key]):
                pool.submit(tell, unit)
            waiting = len(missing)
            while waiting:
                try:
                    found = done.get(timeout=0.2)
                except Empty:
                    found = None
                if isinstance(found, BaseException):
                    raise found
                if found is not None:
                    unit, finding, seconds = found
                    findings[unit.key] = finding
                    waiting -= 1
                    told.finished(unit, seconds)
                told.advance(watch.done, sorted(watch.running))
        except BaseException:
            watch.stop()  # those that have not begun end at once
            raise
