"""Folds: what cross-validated estimators share, from splitting to threads and scores."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from inspect import signature
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import _get_threadpool_controller

from coordwise.deadlines import TimeUp, within
from coordwise.estimators.base import threads_of
from coordwise.estimators.progress import Watch
from coordwise.estimators.warn import warn
from coordwise.fitting.model import LinearModel
from coordwise.fitting.moments import Moments
from coordwise.fitting.newton import FEW
from coordwise.validation import FloatArray

__all__ = [
    "CrossValidated",
    "Fold",
    "Halt",
    "Turns",
    "best_of",
    "folds_of",
    "halves",
    "in_threads",
    "in_time",
    "prepare",
    "score_params",
    "warn_of_folds",
]

Task = TypeVar("Task")
Found = TypeVar("Found")
Halt = Callable[[Any], None]
CHOOSING = 0.75  # of a time limit: the rest is for the fit of all samples


@dataclass
class Fold:
    """Indices of the samples a fold trains on and of those it tests on, the model of the first, the second as data."""

    train: Any
    test: Any
    model: LinearModel
    X: Any
    weights: FloatArray | None


class CrossValidated:
    """Routing of metadata: sample weights to the fit and the scorer, other parameters to the splitter."""

    cv: Any

    def _scorer_for_routing(self) -> Any:
        return None

    def get_metadata_routing(self) -> MetadataRouter:
        """Who asks for which metadata, as in scikit-learn."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        scorer = self._scorer_for_routing()
        if scorer is not None:
            mapping = MethodMapping().add(caller="fit", callee="score").add(caller="score", callee="score")
            router.add(scorer=scorer, method_mapping=mapping)
        return router

    def _fit_source(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Folds are taken out of samples in memory."""
        name = type(self).__name__
        raise TypeError(
            f"{name} needs the samples in memory, as arrays X and y. For samples that are elsewhere fit "
            f"{name.removesuffix('CV')} for each parameter, and compare the scores of a second source."
        )

    def _routed(self, sample_weight: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Parameters of the splitter, and those of the scorer (None without routing: weights, if it takes them)."""
        _raise_for_params(params, self, "fit")
        if not _routing_enabled():
            return {}, None
        given = params if sample_weight is None else params | {"sample_weight": sample_weight}
        routed = process_routing(self, "fit", **given)
        scorer = routed.get("scorer")  # not `in`: where nothing is given, scikit-learn's answer has every name
        return dict(routed.splitter.split), None if scorer is None else dict(scorer.score)


def folds_of(cv: Any, X: Any, y: Any, *, classifier: bool, params: dict[str, Any]) -> list[tuple[Any, Any]]:
    """(train, test) indices."""
    return list(check_cv(cv, y, classifier=classifier).split(X, y, **params))


def in_time(watch: Watch, call: Callable[[Halt], Found]) -> Found | None:
    """call(halt), if it ends within the part of the time limit that choosing may take; else None.

    `halt` is a callback for fits which ends them when nobody waits for them any more.
    """
    left = watch.left(CHOOSING)
    try:
        return within(None if left is None else time.perf_counter() + left, lambda ask: call(ask or _never))
    except TimeUp:
        return None


def _never(progress: Any) -> None:
    """Nothing ends a fit without a time limit."""


def in_threads(
    function: Callable[[Task, Halt], Found], tasks: Iterable[Task], n_jobs: int | None, over: Halt = _never
) -> list[Found]:
    """function(task, halt) for every task, in order; `halt` is a callback for fits that ends them after an interrupt.

    BLAS gets the processors that the threads leave. The first error ends the others, and Ctrl-C does at once; so does
    `over`, by what it raises.
    """
    tasks = list(tasks)
    threads = min(threads_of(n_jobs), len(tasks))
    if threads <= 1:
        return [function(task, over) for task in tasks]
    stopped = threading.Event()

    def halt(progress: Any) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        over(progress)

    # Not futures to wait for: Ctrl-C while the caller has their locks would leave these locked, and threads waiting.
    done: SimpleQueue[tuple[int, Found] | BaseException] = SimpleQueue()

    def tell(place: int, task: Task) -> None:
        try:
            halt(None)
            done.put((place, function(task, halt)))
        except BaseException as error:
            done.put(error)

    left = max(threads_of(-1) // threads, 1)
    limits = _get_threadpool_controller().limit(limits=left) if left < threads_of(-1) else nullcontext()
    results: dict[int, Found] = {}
    with limits, ThreadPoolExecutor(threads) as pool:
        try:
            for place, task in enumerate(tasks):
                pool.submit(tell, place, task)
            while len(results) < len(tasks):
                try:  # in slices of time, so that a signal is seen whichever thread it went to
                    found = done.get(timeout=0.2)
                except Empty:
                    over(None)
                    continue
                if isinstance(found, BaseException):
                    raise found
                results[found[0]] = found[1]
        except BaseException:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [results[place] for place in range(len(tasks))]


def halves(count: int, watch: Watch) -> list[slice]:
    """The positions of a grid, from strong penalties to weak ones, in two parts: even loads when there are few folds.

    Weak penalties take longest and come first; with a time limit they come last, and may not come at all.
    """
    middle = (count + 1) // 2
    parts = [slice(0, middle), slice(middle, count)] if count >= 2 else [slice(0, count)]
    return parts if watch.time_limit is not None else parts[::-1]


class Turns:
    """How much time a task may take, so that all of them get their share of what is left for choosing."""

    def __init__(self, watch: Watch, tasks: int, n_jobs: int | None) -> None:
        self.watch, self.tasks, self.threads = watch, tasks, threads_of(n_jobs)
        self.lock = threading.Lock()

    def next(self) -> float | None:
        """Seconds for the task that begins now; None if there is no limit."""
        with self.lock:
            self.tasks, waiting = self.tasks - 1, self.tasks
        left = self.watch.left(CHOOSING)
        return None if left is None else left * min(self.threads, waiting) / waiting


def prepare(
    build: Callable[[Any, FloatArray, FloatArray | None], LinearModel],
    X: Any,
    targets: FloatArray,
    weights: FloatArray | None,
    splits: Sequence[tuple[Any, Any]],
    n_jobs: int | None,
    over: Halt = _never,
    whole: LinearModel | None = None,
) -> list[Fold]:
    """The folds with their models; with the squared loss and few features, with their Gram matrices.

    `build` makes a model of samples, targets and weights; `whole` is that of all samples, and shares the Gram matrix.
    Where every sample is tested once, the Gram matrices are those of all samples less those of the tested ones: the
    data are read once for all folds.
    """
    rows = sp.csr_array(X) if sp.issparse(X) else X
    summed = whole is not None and whole.loss.name == "squared" and whole.d <= FEW and whole.n >= whole.d
    summed = summed and partition(splits, len(targets))

    def pick(index: Any) -> FloatArray | None:
        return None if weights is None else weights[index]

    def train_model(split: tuple[Any, Any]) -> LinearModel:
        return build(rows[split[0]], targets[split[0]], pick(split[0]))

    def tested(split: tuple[Any, Any]) -> tuple[Any, Moments | None]:
        held = rows[split[1]]
        return held, Moments.of(held, targets[split[1]], pick(split[1])) if summed else None

    jobs: list[tuple[Any, Any]] = [(tested, split) for split in splits] + [(train_model, split) for split in splits]
    made: list[Any] = in_threads(lambda job, halt: job[0](job[1]), jobs, n_jobs, over)
    held, models = made[: len(splits)], made[len(splits) :]
    if whole is not None and summed:
        parts = [moments for _, moments in held]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        total.share(whole)
        for model, part in zip(models, parts, strict=True):
            rest = total.without(part)
            if rest is not None:
                rest.share(model)
    return [
        Fold(train, test, model, X_test, pick(test))
        for (train, test), model, (X_test, _) in zip(splits, models, held, strict=True)
    ]


def partition(splits: Sequence[tuple[Any, Any]], n: int) -> bool:
    """Whether every sample is tested once, and trained on in all other folds."""
    tested = np.zeros(n, np.intp)
    for train, test in splits:
        mask = np.zeros(n, bool)
        mask[train] = True
        if mask[test].any() or len(train) + len(test) != n or mask.sum() != len(train):
            return False
        tested[test] += 1
    return bool(np.all(tested == 1))


def best_of(scores: FloatArray, scored: Any) -> tuple[int, ...] | None:
    """The place of the highest of some scores that were computed; None if none were."""
    if not np.any(scored):
        return None
    comparable = np.where(scored, np.nan_to_num(scores, nan=-np.inf), -np.inf)
    place = comparable.argmax() if np.isfinite(comparable).any() else np.argmax(scored)
    return tuple(int(k) for k in np.unravel_index(place, scores.shape))


def warn_of_folds(name: str, converged: Any, tol: float) -> None:
    """One warning for all fits of folds that did not converge."""
    wrong = int(np.sum(~np.asarray(converged, bool)))
    if wrong:
        warn(
            f"{wrong} of the {np.size(converged)} fits of folds of {name} stopped before their duality gaps were at "
            f"most tol={tol:g} times the objective at zero, so scores may be off. Raise max_iter or time_limit, loosen "
            "tol, or leave out the weakest penalties; scaling the features helps too.",
            ConvergenceWarning,
        )


def score_params(
    scorer: Any, routed: dict[str, Any] | None, weights: FloatArray | None, test: Any, name: str
) -> dict[str, Any]:
    """What a scorer is called with for the tested samples: weights if it takes them, or what was routed to it."""
    if routed is not None:
        return {key: value if value is None else np.asarray(value)[test] for key, value in routed.items()}
    if weights is None:
        return {}
    takes = getattr(scorer, "_accept_sample_weight", None)
    if takes() if takes is not None else "sample_weight" in signature(scorer).parameters:
        return {"sample_weight": weights[test]}
    warn(
        f"The scoring {scorer} does not support sample_weight, so that {name} is fitted with weights and chosen "
        "without.",
        UserWarning,
    )
    return {}
