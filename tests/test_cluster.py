"""Samples on a cluster, on a transport in this process: sums, their bits, losses, waiting, and sources in parts."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from fake_transport import Fake

from coordwise import visits
from coordwise.drive import Limits, drive
from coordwise.interrupts import Failed, Interrupted
from coordwise.losses import get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.results import Status
from coordwise.samples import Block, Chunks, Memory
from coordwise.samples import cluster as house
from coordwise.samples.base import RowsLost
from coordwise.samples.cluster import Cluster
from coordwise.samples.here import Here
from coordwise.samples.parted import Parted
from coordwise.samples.source import is_source
from coordwise.samples.transport import Call
from coordwise.solvers import NewtonCG

LOGISTIC = get_loss("logistic")


def rows(storage="csr", n=240, seed=0):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((n, 12)) < 0.5, rng.standard_normal((n, 12)) * 10 ** rng.uniform(-1, 1, 12), 0.0)
    y = np.where(A @ rng.standard_normal(12) + rng.standard_normal(n) > 0, 1.0, -1.0)
    s = rng.integers(0, 3, n) * 1.0
    return (sp.csr_array(A) if storage == "csr" else A), y, s


def held(value):
    return value


def partitions(transport, count, constant=True, storage="csr", empty=()):
    """The rows in `count` partitions, and empty ones at these places."""
    A, y, s = rows(storage)
    cuts = np.linspace(0, len(y), count + 1).astype(int)
    found = [Memory(Block(A[i:j], y[i:j, None], s[i:j], constant=constant)) for i, j in pairwise(cuts)]
    for place in empty:
        found.insert(place, None)
    return transport.submit([Call(held, (one,)) for one in found])


def clustered(count=7, seed=0, losing=lambda k: None, **options):
    transport = Fake(seed, losing)
    return Cluster(transport, partitions(transport, count, **options), patience=0.2)


def solved(samples, tol=1e-8, **options):
    return drive(Oracle(samples, Problem(LOGISTIC, 1e-3, True)), [NewtonCG()], tol, **options)


def in_memory():
    A, y, s = rows()
    return Memory(Block(A, y[:, None], s, constant=True))


@pytest.mark.parametrize("count", [1, 2, 7, 23])
def test_answers_are_those_of_one_block(count):
    here, there = solved(in_memory()), solved(clustered(count))
    assert there.converged
    np.testing.assert_allclose(there.w, here.w, atol=1e-7)
    assert there.gap[0] <= 1e-8 * there.scale[0]
    assert abs(there.value[0] - here.value[0]) <= 1e-8 * here.scale[0]


def test_the_order_of_completion_changes_no_bit():
    runs = [solved(clustered(11, seed)) for seed in range(4)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.w, runs[0].w)
        assert [look.value.tolist() for look in run.history] == [look.value.tolist() for look in runs[0].history]


def test_small_arrays_of_any_size_give_the_same_bits(monkeypatch):
    """Two, or more, partial sums at a time, arrays sent along or by copies in a tree: the sum is the same tree."""
    usual = solved(clustered(23))
    monkeypatch.setattr(house, "LARGE", 1)
    others = [solved(clustered(23))]
    monkeypatch.setattr(house, "FAN", 2)
    others.append(solved(clustered(23)))
    for other in others:
        np.testing.assert_array_equal(other.w, usual.w)


def test_copies_are_made_by_many_workers(monkeypatch):
    monkeypatch.setattr(house, "LARGE", 1)
    calls = []
    places = list(range(1000))
    copies = house._spread(calls, places, house._Sent(None, {}), 8)
    assert len(copies) == 1000
    sent = np.bincount([one.position for call in calls for one in call.inputs if hasattr(one, "position")])
    assert sent.max() <= house.FAN
    assert np.bincount([copy.position for copy in copies]).max() <= house.FAN


def test_the_tree_is_that_of_neighbours():
    def text(parts):
        return f"({parts[0]}{parts[1]})"

    for fan in (2, 8):
        calls = [Call(held, (letter,)) for letter in "abcdefghijk"]
        house._fold(calls, [house.Earlier(k) for k in range(11)], house._Sum(text), fan)
        values = []
        for call in calls:
            inputs = [values[one.position] if isinstance(one, house.Earlier) else one for one in call.inputs]
            values.append(call.function(*inputs))
        assert values[-1].value == "((((ab)(cd))((ef)(gh)))((ij)k))"


def test_empty_partitions_count_for_nothing():
    usual, other = solved(clustered(4)), solved(clustered(4, empty=(0, 3, 6)))
    np.testing.assert_allclose(other.w, usual.w, atol=1e-9)
    assert other.converged
    with pytest.raises(ValueError, match="all partitions are empty"):
        _ = Cluster(Fake(), Fake().submit([Call(held, (None,))] * 2)).sizes
    with pytest.raises(ValueError, match="partitions is empty"):
        Cluster(Fake(), [])


@pytest.mark.parametrize("what", ["task", "values"])
def test_what_is_lost_in_any_round_is_made_again_with_the_same_bits(what):
    usual = clustered(4)
    found = solved(usual)
    for k in range(1, usual.transport.rounds, 11):
        other = solved(clustered(4, losing=lambda at, k=k: what if at == k else None))
        np.testing.assert_array_equal(other.w, found.w)
        np.testing.assert_array_equal(other.gap, found.gap)


def test_a_round_is_tried_a_stated_number_of_times():
    samples = clustered(4)
    _ = samples.sizes
    begun = samples.transport.rounds
    samples.transport.losing = lambda k: "task"
    with pytest.raises(RowsLost, match=r"Worker A was killed\. The round was tried 4 times\."):
        samples.visit(visits.one)
    assert samples.transport.rounds == begun + 4
    samples.transport.losing = lambda k: "task" if k < begun + 4 + 3 else None
    samples.visit(visits.one)


def test_what_has_no_recipe_ends_the_run_with_the_best_point():
    with pytest.raises(Failed, match=r"gone for good\. The best point so far") as caught:
        solved(clustered(4, losing=lambda k: "all" if k == 20 else None))
    result = caught.value.result
    assert result.gap[0] < np.inf
    best = solved(in_memory(), 1e-12)
    assert result.value[0] - best.value[0] <= result.gap[0] + 1e-12


def test_silence_ends_the_run_and_names_the_worker():
    with pytest.raises(
        Failed, match=r"Nothing has happened on the cluster for .* worker A was last heard of"
    ) as caught:
        solved(clustered(4, losing=lambda k: "silent" if k == 20 else None))
    assert caught.value.result.gap[0] < np.inf


def test_signs_of_life_are_waited_for(monkeypatch):
    samples = clustered(2)
    clock = iter(range(10_000))
    monkeypatch.setattr(house.time, "monotonic", lambda: float(next(clock)))
    samples.patience = 10.0
    seen = []

    def signs(handles):
        seen.append(len(seen))
        if len(seen) == 40:
            samples.transport.broken = None
        return seen[-1], "nobody"

    samples.transport.signs = signs
    samples.transport.losing = lambda k: "silent"
    samples.visit(visits.one)
    assert len(seen) == 40  # more than four times the patience


def broken(block, **sent):
    raise ZeroDivisionError("a block function failed")


def test_an_exception_of_a_block_function_is_never_repeated():
    samples = clustered(4)
    _ = samples.sizes
    begun = samples.transport.rounds
    with pytest.raises(ZeroDivisionError, match="a block function failed"):
        samples.visit(broken)
    assert samples.transport.rounds == begun + 1
    assert samples.transport.cancelled > 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_poll_raises_cancels_the_round(error):
    samples = clustered(4)
    _ = samples.sizes
    samples.transport.losing = lambda k: "silent"
    polls = iter(range(100))

    def poll():
        if next(polls) == 5:
            raise error

    with pytest.raises(error):
        samples.visit(visits.one, poll=poll)
    assert all(handle.cancelled for handle in samples.transport.everything[-9:])
    samples.transport.losing = lambda k: None
    samples.visit(visits.one)  # the partitions are as they were


def test_interrupts_and_limits_end_a_run_with_its_best_point():
    best = solved(in_memory(), 1e-12)
    for stop in (10, 30, 60):
        asked = iter(range(10_000))

        def poll(stop=stop, asked=asked):
            if next(asked) == stop:
                raise KeyboardInterrupt

        oracle = Oracle(clustered(3), Problem(LOGISTIC, 1e-3, True), poll)
        with pytest.raises(Interrupted) as caught:
            drive(oracle, [NewtonCG()], 1e-10)
        result = caught.value.result
        assert result.value[0] - best.value[0] <= result.gap[0] + 1e-12
    assert solved(clustered(3), limits=Limits(seconds=0.0)).status is Status.TIME_LIMIT


def test_what_is_kept_stays_apart_from_what_is_summed():
    """Partial sums of a function that keeps arrays are taken out before they move."""
    samples = clustered(4)
    kept, _ = samples.visit(visits.product, w=np.ones((13, 1)))
    before = len(samples.transport.everything)
    samples.visit(visits.value, kept, loss=LOGISTIC)  # seen for the first time: it might keep something
    first = len(samples.transport.everything) - before
    samples.visit(visits.value, kept, loss=LOGISTIC)
    assert len(samples.transport.everything) - before - first == first - 4


def parted(count=5, weighted=True, storage="csr", empty=False):
    A, y, s = rows(storage)
    cuts = np.linspace(0, 240, count + 1).astype(int)
    parts = [Here(A[i:j], y[i:j], s[i:j] if weighted else None) for i, j in pairwise(cuts)]
    if empty:
        parts.insert(1, Here(A[:0], y[:0], s[:0] if weighted else None))
    transport = Fake()
    return Parted(transport, transport.submit([Call(held, (part,)) for part in parts])), A, y, s


def positive(y):
    return np.where(y > 0, 1.0, -1.0)


def threefold(y, s):
    return np.where(y > 0, 3.0, 1.0) * (1.0 if s is None else s)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", ["csr", "dense"])
def test_a_source_in_parts_is_the_source_of_all_rows(storage, weighted):
    source, A, y, s = parted(weighted=weighted, storage=storage, empty=True)
    whole = Here(A, y, s if weighted else None)
    assert is_source(source)
    for name in ("shape", "dtype", "weighted", "target_shape", "feature_names"):
        assert getattr(source, name) == getattr(whole, name)
    for one, other in zip(source.labels(), whole.labels(), strict=True):
        np.testing.assert_array_equal(one, other)
    shift = np.linspace(0, 1, 12)
    for options in ({}, {"constant": True}, {"weights": threefold, "constant": 2.0}, {"shift": shift}):
        some, one = (each.samples(positive, **options) for each in (source, whole))
        np.testing.assert_allclose(some.sizes, one.sizes, rtol=1e-12)
        w = np.linspace(-1, 1, some.sizes.d)[:, None]
        kept = [each.visit(visits.product, w=w)[0] for each in (some, one)]
        found = [
            each.visit(visits.at_scores, own, loss=LOGISTIC)[1] for each, own in zip((some, one), kept, strict=True)
        ]
        for mine, other in zip(*found, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-11)
    X, first, _ = source.head()
    assert X.shape == (48, 12)
    np.testing.assert_array_equal(first, y[:48])


def test_parts_that_do_not_fit_together():
    A, y, s = rows("dense")
    transport = Fake()

    def source(*parts):
        return Parted(transport, transport.submit([Call(held, (part,)) for part in parts]))

    with pytest.raises(ValueError, match=r"different numbers of features: 12 and 11"):
        source(Here(A, y), Here(A[:, 1:], y))
    with pytest.raises(ValueError, match=r"different shapes of y: \(\) and \(1,\)"):
        source(Here(A, y), Here(A, y[:, None]))
    with pytest.raises(ValueError, match="some partitions have sample weights"):
        source(Here(A, y), Here(A, y, s))
    with pytest.raises(ValueError, match="all partitions of X are empty"):
        source(Here(A[:0], y[:0]))
    with pytest.raises(ValueError, match="no partitions"):
        source()
    with pytest.raises(ValueError, match="chunks of the same lengths"):
        Here(A, y[1:])
    with pytest.raises(ValueError, match="sample_weight has negative entries"):
        Here(A, y, s - 1)
    with pytest.raises(TypeError, match="X has dtype object; it must hold real numbers"):
        Here(A.astype(object), y)


def test_partitions_may_hold_several_blocks():
    """Such as the chunks of a folder: then what is kept of a partition is several arrays, or none for None."""
    A, y, s = rows()
    whole = in_memory()

    def block(i, j):
        return Block(A[i:j], y[i:j, None], s[i:j], constant=True)

    transport = Fake()
    pieces = [Chunks([Held(block(i, j)) for i, j in pairs]) for pairs in (((0, 50), (50, 60)), ((60, 240),))]
    samples = Cluster(transport, transport.submit([Call(held, (one,)) for one in pieces]), patience=0.2)
    np.testing.assert_allclose(samples.sizes, whole.sizes)
    np.testing.assert_allclose(solved(samples).w, solved(whole).w, atol=1e-7)
    oracle = Oracle(samples, Problem(LOGISTIC, 1e-3, True))
    point = oracle.at(np.linspace(-1, 1, 13)[:, None])
    D = np.column_stack([A.toarray(), np.ones(240)])[:60]
    h = s[:60] * LOGISTIC.second_derivative((D @ point.w)[:, 0], y[:60])
    expected = D.T @ (h[:, None] * D) / s[:60].sum()
    np.testing.assert_allclose(oracle.curvature(point).formed_here(0), expected, rtol=1e-10, atol=1e-12)


class Held:
    """Loads a block that is there."""

    def __init__(self, block):
        self.block = block

    def __call__(self):
        return self.block


def test_nobody_waits_for_visits_that_return_nothing():
    samples = clustered(4)
    _ = samples.sizes
    made = samples.transport.made
    kept, sums = samples.visit(visits.product, w=np.ones((13, 1)))
    assert sums == []
    assert samples.transport.made == made
    samples.visit(visits.value, kept, loss=LOGISTIC)
    assert samples.transport.made > made
    for function in visits.SILENT:
        arguments = {visits.zeros: (), visits.product: (), visits.shifted: (np.zeros((240, 1)),)}[function]
        sent = {visits.product: {"w": np.ones((13, 1))}, visits.shifted: {"by": np.ones(1)}}.get(function, {})
        assert function(in_memory().block, *arguments, **sent)[1] == []
