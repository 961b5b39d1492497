"""GroupL1 against its formula, numerical suprema and minima, and what it refuses."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_cases import refused
from scipy.optimize import minimize

import coordwise as cw
from coordwise.penalties import ElasticNet, GroupL1

GROUPS = [1, 0, 0, 2, 1, 1, 0]
CASES = {
    "group": GroupL1(0.4, GROUPS),
    "weights": GroupL1(0.4, GROUPS, weights=[1.0, 0.3, 2.0]),
    "curved": GroupL1(0.4, GROUPS, l2=0.7),
    "sparse": GroupL1(0.3, GROUPS, feature_l1=0.2),
    "all": GroupL1(0.3, GROUPS, 0.5, [0.0, 1.0, 2.0], feature_l1=0.2),
    "free_norms": GroupL1(0.3, GROUPS, weights=[0.0, 1.0, 1.0], feature_l1=0.2),
    "only_l1": GroupL1(0.0, GROUPS, feature_l1=0.2),
    "only_l2": GroupL1(0.0, GROUPS, l2=0.5),
}
CURVED = {name: penalty for name, penalty in CASES.items() if penalty.l2 > 0}
FLAT = {name: penalty for name, penalty in CASES.items() if penalty.l2 == 0}


def each(cases):
    return pytest.mark.parametrize("penalty", cases.values(), ids=cases.keys())


vectors = st.lists(st.floats(-5, 5), min_size=7, max_size=7).map(np.array)


def formula(penalty, w):
    """r(w), group by group."""
    value = penalty.feature_l1 * np.abs(w).sum() + penalty.l2 / 2 * w @ w
    for g, weight in enumerate(np.asarray(penalty.weights)):
        value += penalty.l1 * weight * np.sqrt(np.sum(w[np.array(GROUPS) == g] ** 2))
    return value


def supremum(penalty, v):
    """sup over w of <v, w> - r(w) by searches without derivatives from several points."""

    def below(w):
        return formula(penalty, w) - v @ w

    best = 0.0
    for start in (v, *np.random.default_rng(0).standard_normal((4, 7))):
        near = minimize(below, start, method="Powell", options=dict(xtol=1e-9, ftol=1e-14)).x
        found = minimize(below, near, method="Nelder-Mead", options=dict(xatol=1e-10, fatol=1e-14, maxfev=8000))
        best = max(best, -found.fun)
    return best


@each(CASES)
def test_value_is_the_formula(penalty):
    w = np.random.default_rng(0).standard_normal((7, 3)) * [1, 0, 100]
    np.testing.assert_allclose(penalty.value(w), [formula(penalty, column) for column in w.T], rtol=1e-14)
    np.testing.assert_allclose(penalty.value(w[:, 0]), formula(penalty, w[:, 0]), rtol=1e-14)
    np.testing.assert_allclose(penalty.values(w).sum(0), penalty.value(w), rtol=1e-14)


@each(CURVED)
@pytest.mark.parametrize("seed", range(3))
def test_conjugate_is_the_supremum(penalty, seed):
    v = np.random.default_rng(seed).standard_normal(7) * 10 ** (0.5 * seed - 0.5)
    assert penalty.conjugate(v) == pytest.approx(supremum(penalty, v), rel=1e-6, abs=1e-9)
    w = penalty.conjugate_gradient(v)
    assert v @ w - formula(penalty, w) == pytest.approx(penalty.conjugate(v), rel=1e-12, abs=1e-14)


@each(FLAT)
def test_conjugate_without_l2_is_an_indicator(penalty):
    """0 where <v, w> <= r(w) for all w, inf where some w has more: w = S(v_g) in the group that is over."""
    rng = np.random.default_rng(1)
    for v in rng.standard_normal((30, 7)) * 10 ** rng.uniform(-1.5, 0.5, (30, 1)):
        inside = penalty.conjugate(v) == 0
        assert inside or penalty.conjugate(v) == np.inf
        w = rng.standard_normal((500, 7))
        soft = np.sign(v) * np.maximum(np.abs(v) - penalty.feature_l1, 0)
        most = max(v @ x - formula(penalty, x) for g in range(3) for x in [np.where(np.array(GROUPS) == g, soft, 0)])
        most = max(most, *(v @ x - formula(penalty, x) for x in w))
        assert (most <= 1e-12) == inside


@settings(deadline=None, max_examples=200)
@given(w=vectors, v=vectors, name=st.sampled_from(sorted(CASES)))
def test_fenchel_young(w, v, name):
    penalty = CASES[name]
    terms = penalty.fenchel_young(w, v)
    assert np.all(terms >= 0)
    whole = penalty.value(w) + penalty.conjugate(v) - v @ w
    assert whole >= -1e-12 * (1 + abs(v @ w))
    assert terms.sum() == pytest.approx(whole, rel=1e-12, abs=1e-12) or terms.sum() == whole
    if penalty.l2 > 0:
        at = penalty.conjugate_gradient(v)
        assert np.max(penalty.fenchel_young(at, v)) <= 1e-13 * (1 + abs(v @ at))


@settings(deadline=None, max_examples=200)
@given(w=vectors, step=st.floats(1e-3, 1e3), name=st.sampled_from(sorted(CASES)))
def test_prox_satisfies_its_optimality_conditions(w, step, name):
    """(w - x)/step is a subgradient of r at x."""
    penalty = CASES[name]
    x = penalty.prox(w, step)
    for g, kink in enumerate(penalty.kinks):
        at = np.array(GROUPS) == g
        norm, slope = np.linalg.norm(x[at]), (w[at] - x[at]) / step - penalty.l2 * x[at]
        size = 1 + np.abs(w).max() / step
        if norm == 0:
            rest = np.maximum(np.abs(slope) - penalty.feature_l1, 0)
            assert np.linalg.norm(rest) <= kink + 1e-12 * size
            continue
        slope -= kink * x[at] / norm
        moved = x[at] != 0
        np.testing.assert_allclose(slope[moved], penalty.feature_l1 * np.sign(x[at][moved]), rtol=0, atol=1e-9 * size)
        assert np.all(np.abs(slope[~moved]) <= penalty.feature_l1 + 1e-12 * size)


@each(CASES)
def test_prox_is_the_minimum(penalty):
    w = np.random.default_rng(2).standard_normal(7)
    x = penalty.prox(w, 0.8)

    def value(y):
        return formula(penalty, y) + np.sum((y - w) ** 2) / 1.6

    rng = np.random.default_rng(3)
    for size in (1.0, 1e-2, 1e-4):
        for y in x + size * rng.standard_normal((200, 7)):
            assert value(y) >= value(x)
    found = minimize(value, w, method="Powell", options=dict(xtol=1e-10, ftol=1e-15)).x
    assert value(found) == pytest.approx(value(x), rel=1e-7)


@each(FLAT)
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 30.0, 1e6])
def test_the_feasible_share_is_the_largest(penalty, scale):
    v = np.random.default_rng(4).standard_normal((7, 5)) * scale
    share = penalty.feasible_share(v)
    assert share.shape == (5,)
    np.testing.assert_array_equal(penalty.conjugate(share * v), np.zeros(5))
    more = np.minimum(share * (1 + 1e-11), 1.0)
    assert np.all((share == 1) | np.isinf(penalty.conjugate(more * v)))
    assert penalty.feasible_share(v[:, 0]) == share[0]
    assert penalty.feasible_share(np.zeros((7, 1))) == 1


@settings(deadline=None, max_examples=300)
@given(v=vectors, feature=st.floats(0, 3), weights=st.lists(st.floats(0.01, 3), min_size=3, max_size=3))
def test_the_feasible_share_against_bisection(v, feature, weights):
    penalty = GroupL1(1.0, GROUPS, weights=weights, feature_l1=feature)

    def fits(s):
        soft = np.maximum(np.abs(s * v) - feature, 0)
        return all(np.linalg.norm(soft[np.array(GROUPS) == g]) <= weights[g] for g in range(3))

    low, high = 0.0, 1.0
    if not fits(1.0):
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        assert penalty.feasible_share(v) == pytest.approx(low, rel=1e-12)
    else:
        assert penalty.feasible_share(v) == 1


def test_groups_of_one_are_the_elastic_net():
    rng = np.random.default_rng(5)
    w, v = rng.standard_normal((2, 7, 2))
    for l2 in (0.0, 0.6):
        one, other = GroupL1(0.3, np.arange(7), l2, feature_l1=0.1), ElasticNet(0.4, l2)
        np.testing.assert_allclose(one.value(w), other.value(w), rtol=1e-14)
        np.testing.assert_allclose(one.conjugate(v / 10), other.conjugate(v / 10), rtol=1e-13)
        if l2 > 0:
            np.testing.assert_allclose(one.conjugate_gradient(v), other.conjugate_gradient(v), rtol=1e-13)


def test_weights_are_the_roots_of_the_sizes():
    penalty = GroupL1(2.0, GROUPS)
    np.testing.assert_array_equal(penalty.weights, np.sqrt([3, 3, 1]))
    np.testing.assert_array_equal(penalty.kinks, 2 * np.sqrt([3, 3, 1]))
    with pytest.raises(ValueError, match="read-only"):
        penalty.weights[0] = 1.0


def test_repr_and_pickle():
    penalty = CASES["all"]
    assert repr(penalty) == "GroupL1(l1=0.3, 3 groups of 7 features, l2=0.5, feature_l1=0.2, weights given)"
    assert repr(CASES["group"]) == "GroupL1(l1=0.4, 3 groups of 7 features)"
    again = pickle.loads(pickle.dumps(penalty))
    w = np.arange(7.0)
    assert again.value(w) == penalty.value(w)


def test_the_caller_s_arrays_are_copied():
    groups, weights = np.array(GROUPS), np.ones(3)
    penalty = GroupL1(1.0, groups, weights=weights)
    before = penalty.value(np.ones(7))
    groups[:], weights[:] = 0, 5
    assert penalty.value(np.ones(7)) == before


WRONG = {
    "groups holds -1": (dict(groups=[0, -1]), ValueError, r"^groups holds -1; groups are numbered 0, 1, 2"),
    "halves": (dict(groups=[0.0, 0.5]), ValueError, r"^groups holds 0.5 at index 1; it must hold integers"),
    "nan": (dict(groups=[0.0, np.nan]), ValueError, r"^groups holds nan at index 1; it must hold integers"),
    "infinite": (dict(groups=[0.0, np.inf]), ValueError, r"^groups holds inf at index 1; it must hold integers"),
    "none": (dict(groups=[]), ValueError, r"^groups has shape \(0,\); it must have one integer per feature"),
    "table": (dict(groups=[[0, 1]]), ValueError, r"^groups has shape \(1, 2\)"),
    "gap": (dict(groups=[0, 2, 3]), ValueError, r"^groups leaves group 1 empty: .*return_inverse=True"),
    "one missing": (dict(groups=[1, 1]), ValueError, r"^groups leaves group 0 empty"),
    "huge": (dict(groups=[0, 10**9]), ValueError, r"^groups leaves group 1 empty"),
    "strings": (dict(groups=["a", "b"]), TypeError, r"^groups must be an array of integers"),
    "booleans": (dict(groups=[True, False]), TypeError, r"^groups must be an array of integers"),
    "ragged": (dict(groups=[[0], [1, 2]]), TypeError, r"^groups must be an array of integers"),
    "groups None": (dict(groups=None), TypeError, r"^groups must be an array of integers"),
    "weights negative": (dict(weights=[1.0, -0.5]), ValueError, r"^weights holds -0.5 at index 1; it must be >= 0"),
    "weights nan": (dict(weights=[1.0, np.nan]), ValueError, r"^weights holds NaN or infinity"),
    "weights short": (dict(weights=[1.0]), ValueError, r"^weights has shape \(1,\); it must have shape \(2,\)"),
    "weights strings": (dict(weights=["a", "b"]), TypeError, r"^weights must be an array of real numbers"),
    "weights zero": (
        dict(weights=[1.0, 0.0]),
        ValueError,
        r"^weights holds 0 at index 1, which leaves a group without",
    ),
    "l1 negative": (dict(l1=-1), ValueError, r"^l1=-1 is out of range; it must be >= 0"),
    "l1 text": (dict(l1="a"), TypeError, r"^l1 must be a real number, not str"),
    "l1 zero": (dict(l1=0), ValueError, r"^the penalty is zero"),
    "l2 negative": (dict(l2=-1), ValueError, r"^l2=-1 is out of range"),
    "feature_l1 negative": (dict(feature_l1=-1), ValueError, r"^feature_l1=-1 is out of range"),
    "feature_l1 nan": (dict(feature_l1=np.nan), ValueError, r"^feature_l1=nan is not a finite number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name):
    options, error, message = WRONG[name]
    with refused(message, error):
        GroupL1(**({"l1": 1.0, "groups": [0, 1, 1]} | options))


def test_feature_l1_goes_by_name():
    with pytest.raises(TypeError, match="positional"):
        GroupL1(1.0, GROUPS, 0.0, None, 0.5)


def test_groups_have_to_fit_the_matrix():
    A, b = np.ones((4, 3)), np.ones(4)
    with refused(r"^groups has length 7, but there are 3 columns of A; give the group of every feature"):
        cw.ERM(A, b, penalty=CASES["group"])
