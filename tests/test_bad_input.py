"""Data and problems that are wrong are refused by name, with advice."""

import numpy as np
import pytest
import scipy.sparse as sp
from problem_cases import LABELS, A, B, D, N, erm, refused

import coordwise as cw
from coordwise.losses import LOSSES


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            dict(loss="logistc"),
            ValueError,
            r"^loss='logistc' is not known. Did you mean 'logistic'\? Known: absolute, ",
        ),
        (dict(loss="Squared"), ValueError, r"^loss='Squared' is not known. Did you mean 'squared'\?"),
        (dict(loss="squared-hinge"), ValueError, r"Did you mean 'squared_hinge'\?"),
        (dict(loss="xyz"), ValueError, r"^loss='xyz' is not known. Known: .*squared"),
        (dict(loss=None), TypeError, r"^loss must be one of absolute, .*, not NoneType"),
        (dict(loss=cw.losses.Huber), TypeError, r"^loss is the class Huber; make a loss of it: Huber\(\)"),
        (dict(penalty="elasticnet"), ValueError, r"^penalty='elasticnet' is not known. Did you mean 'elastic_net'\?"),
        (dict(penalty="l3"), ValueError, r"^penalty='l3' is not known. .*Known: elastic_net, l1, l2"),
        (dict(penalty=2), TypeError, r"^penalty must be one of elastic_net, l1, l2 .*not int"),
        (dict(lam=None), ValueError, r"needs lam, the weight of the penalty; give lam > 0"),
        (dict(lam=0), ValueError, r"^lam=0 is out of range; it must be > 0"),
        (dict(lam=-1e-9), ValueError, r"^lam=-1e-09 is out of range; it must be > 0"),
        (dict(lam=np.nan), ValueError, r"^lam=nan is not a finite number; it must be > 0"),
        (dict(lam=np.inf), ValueError, r"^lam=inf is not a finite number; it must be > 0"),
        (dict(lam="0.1"), TypeError, r"^lam must be a real number, not str"),
        (dict(lam=[0.1]), TypeError, r"^lam must be a real number, not list"),
        (dict(lam=True), TypeError, r"^lam must be a real number, not bool"),
        (dict(l1_ratio=0.5), ValueError, r"^l1_ratio has no meaning for penalty='l2'; use penalty='elastic_net'"),
        (dict(penalty="elastic_net"), ValueError, r"needs l1_ratio in \[0, 1\]"),
        (dict(penalty="elastic_net", l1_ratio=-0.1), ValueError, r"^l1_ratio=-0.1 is out of range; it must be >= 0"),
        (
            dict(penalty=cw.penalties.L2(1.0)),
            ValueError,
            r"^lam, l1_ratio and positive belong to a penalty given by name",
        ),
        (dict(positive="no"), TypeError, r"^positive must be True or False, not str"),
    ],
)
def test_erm_refuses_wrong_options(options, error, message):
    with refused(message, error):
        cw.ERM(A, B, **({"lam": 0.1} | options))


@pytest.mark.parametrize(
    ("b", "error", "message"),
    [
        (
            B[:-1],
            ValueError,
            rf"^b has shape \({N - 1},\); with {N} rows of A it must have shape \({N},\) or \({N}, K\)",
        ),
        (np.ones(N + 1), ValueError, rf"^b has shape \({N + 1},\)"),
        (np.ones((1, N)), ValueError, rf"^b has shape \(1, {N}\)"),
        (np.ones((N, 2, 2)), ValueError, rf"^b has shape \({N}, 2, 2\)"),
        (3.0, ValueError, r"^b has shape \(\)"),
        ([], ValueError, r"^b has shape \(0,\)"),
        (np.ones((N, 0)), ValueError, r"^b has no columns; give at least one output"),
        (
            np.where(np.arange(N) == 3, np.nan, B),
            ValueError,
            r"^b holds NaN or infinity \(first at index \[3\]\); remove",
        ),
        (np.where(np.arange(N) == 3, np.inf, B), ValueError, r"^b holds NaN or infinity"),
        (
            B + 1j,
            TypeError,
            r"^b must be an array of real numbers, not dtype complex128; pass the real and the imaginary parts",
        ),
        ([str(v) for v in B], TypeError, r"^b must be an array of real numbers, not dtype <U"),
        (["yes"] * N, TypeError, r"^b must be an array of real numbers"),
        (B.astype(object), TypeError, r"^b must be an array of real numbers, not dtype object"),
        (None, TypeError, r"^b must be an array of real numbers, not NoneType"),
        ("b", TypeError, r"^b must be an array of real numbers, not str"),
        (sp.csr_array(B[:, None]), TypeError, r"^b must be an array of real numbers, not csr_array"),
        ([[1.0, 2.0], [3.0]], TypeError, r"^b must be an array of real numbers \("),
        (np.ma.masked_array(B, mask=B > 0), ValueError, r"^b has masked entries; fill or remove them"),
    ],
)
@pytest.mark.parametrize(
    "make", [lambda b: cw.ERM(A, b, lam=0.1), lambda b: cw.LinearSystem(A, b), lambda b: cw.LeastSquares(A, b)]
)
def test_wrong_targets_are_refused(make, b, error, message):
    with refused(message, error):
        make(b)


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.classification])
@pytest.mark.parametrize("labels", [(0.0, 1.0), (1.0, 2.0), (-1.0, 0.5), (-2.0, 2.0)])
def test_classification_losses_want_labels_of_unit_size(loss, labels):
    b = np.where(B > 0, *labels)
    with refused(
        rf"^b holds labels other than -1 and \+1 \(found .*loss='{loss}' needs; map your two classes to -1.0 and 1.0"
    ):
        cw.ERM(A, b, loss, lam=0.1)
    with refused(r"^b holds labels other than"):
        cw.ERM(A, np.column_stack([LABELS, b]), loss, lam=0.1)
    cw.ERM(A, LABELS.astype(int), loss, lam=0.1)  # whole numbers are fine


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (np.ones(N - 1), ValueError, rf"^sample_weight has shape \({N - 1},\); it must have shape \({N},\)"),
        (np.ones((N, 1)), ValueError, rf"^sample_weight has shape \({N}, 1\)"),
        (1.0, ValueError, r"^sample_weight has shape \(\)"),
        (
            np.where(np.arange(N) == 2, -1.0, 1.0),
            ValueError,
            r"^sample_weight must be non-negative with at least one positive",
        ),
        (np.zeros(N), ValueError, r"^sample_weight must be non-negative with at least one positive"),
        (np.where(np.arange(N) == 2, np.nan, 1.0), ValueError, r"^sample_weight holds NaN or infinity"),
        (np.full(N, np.inf), ValueError, r"^sample_weight holds NaN or infinity"),
        ("balanced", TypeError, r"^sample_weight must be an array of real numbers, not str"),
        (
            np.ones(N) * 1j,
            TypeError,
            r"^sample_weight must be an array of real numbers, not dtype complex128; pass the real and",
        ),
        (np.full(N, "1"), TypeError, r"^sample_weight must be an array of real numbers, not dtype <U1"),
    ],
)
def test_wrong_sample_weights_are_refused(weight, error, message):
    with refused(message, error):
        cw.ERM(A, B, lam=0.1, sample_weight=weight)


MATRICES = {
    "vector": (lambda: B, ValueError, r"^A must be two-dimensional"),
    "cube": (lambda: np.ones((N, 2, 2)), ValueError, r"^A must be two-dimensional"),
    "nan": (lambda: np.where(A > 1, np.nan, A), ValueError, r"^A holds NaN or infinity .*remove or impute"),
    "sparse inf": (lambda: sp.csr_array(np.where(A > 1, np.inf, A)), ValueError, r"^A holds NaN or infinity"),
    "strings": (lambda: A.astype(str), TypeError, r"^A must hold real numbers, not dtype <U"),
    "objects": (lambda: A.astype(object), TypeError, r"^A must be a matrix of numbers, but "),
    "complex": (lambda: A * 1j, TypeError, r"^A must hold real numbers, not dtype complex128; pass the real and"),
    "ragged": (lambda: [[1.0, 2.0]] * (N - 1) + [[3.0]], TypeError, r"^A must be a numerical matrix"),
    "none": (lambda: None, TypeError, r"^A must be a matrix of numbers"),
    "string": (lambda: "A", ValueError, r"^A must be two-dimensional"),
    "no columns": (lambda: np.ones((N, 0)), ValueError, r"^A is empty: its shape is .*at least one row and one column"),
    "no entries at all": (lambda: sp.csr_array((N, 0)), ValueError, r"^A is empty"),
    "masked": (lambda: np.ma.masked_greater(A, 1), ValueError, r"^A has masked entries"),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize(
    "make",
    [
        lambda A: cw.ERM(A, B, lam=0.1).dual(),
        lambda A: cw.ERM(A, B, lam=0.1).primal(),
        lambda A: cw.LinearSystem(A, B),
        lambda A: cw.LeastSquares(A, B),
    ],
    ids=["dual", "primal", "system", "least_squares"],
)
def test_wrong_matrices_are_refused(make, name):
    matrix, error, message = MATRICES[name]
    with refused(message, error):
        make(matrix())


@pytest.mark.parametrize(
    "make",
    [
        lambda A, b: cw.ERM(A, b, lam=0.1).dual(),
        lambda A, b: cw.ERM(A, b, lam=0.1).primal(),
        lambda A, b: cw.ERM(A, b, penalty="l1", lam=0.1).dual(),
        lambda A, b: cw.ERM(A, b, penalty="l1", lam=0.1).primal(),
        lambda A, b: cw.ERM(A, b, lam=0.1).value(np.zeros(3)),
        lambda A, b: cw.ERM(A, b, lam=0.1).dual_value(np.zeros(0)),
        lambda A, b: cw.LinearSystem(A, b),
        lambda A, b: cw.LeastSquares(A, b),
    ],
)
def test_no_samples_are_refused(make):
    with refused(r"^A is empty: its shape is \(0, 3\)"):
        make(np.zeros((0, 3)), np.zeros(0))


@pytest.mark.parametrize("loss", ["hinge", "absolute", "l2l1", "quantile", "epsilon_insensitive"])
def test_primal_of_losses_with_a_kink_is_refused(loss):
    with refused(rf"^loss='{loss}' has a kink.*Use problem\.dual\(\)\.$"):
        erm(loss).primal()
    with refused(rf"^loss='{loss}' has a kink.*dual\(\) with a penalty that has an l2 part, or with smoothing="):
        erm(loss, penalty="l1").primal()


def test_dual_of_l1_is_refused_with_advice_that_works():
    problem = erm(penalty="l1")
    with refused(
        r"^penalty='l1' has a dual without smoothness\. Use problem\.primal\(\), or problem\.dual\(smoothing="
    ) as info:
        problem.dual()
    advice = float(str(info.value).split("; lam2=")[1].split()[0])
    objective = problem.dual(smoothing=advice)
    at_zero = problem.value(np.zeros(D))
    assert objective.smoothing_error <= 1.05e-3 * at_zero  # the advice is rounded to two digits
    smoothed = cw.solve(objective, tol=1e-10, max_passes=1e5)
    exact = cw.solve(problem.primal(), tol=1e-10, max_passes=1e5)
    assert smoothed.converged
    assert exact.converged
    assert problem.value(smoothed.w) - exact.primal <= 1e-3 * at_zero
    with refused(r"^penalty='l1' alone gives no w for a y; solve the primal, or smooth: dual\(smoothing="):
        problem.primal_point(np.zeros(N))


@pytest.mark.parametrize("penalty", [dict(penalty="l2"), dict(penalty="elastic_net", l1_ratio=0.5)])
def test_smoothing_is_refused_where_there_is_an_l2_part(penalty):
    with refused(r"^smoothing is for penalties without an l2 part"):
        erm(**penalty).dual(smoothing=0.1)


@pytest.mark.parametrize("smoothing", [0, -1.0, np.nan, np.inf])
def test_wrong_smoothing_is_refused(smoothing):
    with refused(r"^smoothing=.* must be > 0"):
        erm(penalty="l1").dual(smoothing=smoothing)
    with refused(r"^smoothing must be a real number, not str", TypeError):
        erm(penalty="l1").dual(smoothing="a bit")


def test_points_of_the_wrong_shape_are_refused():
    problem, several = erm(), cw.ERM(A, np.column_stack([B, B]), lam=0.1)
    for method in (problem.value, problem.predict, problem.dual_point):
        for wrong in (np.ones(D + 1), np.ones((D, 1)), 1.0):
            with refused(rf"^w has shape .*; it must have shape \({D},\)"):
                method(wrong)
        with refused(r"^w holds NaN or infinity"):
            method(np.full(D, np.nan))
    for method in (problem.dual_value, problem.primal_point):
        for wrong in (np.ones(N - 1), np.ones((N, 2))):
            with refused(rf"^y has shape .*; it must have shape \({N},\)"):
                method(wrong)
        with refused(r"^y must be an array of real numbers", TypeError):
            method(["a"] * N)
    with refused(rf"^w has shape .*; it must have shape \({D}, 2\)"):
        several.value(np.ones(D))
    with refused(rf"^y has shape .*; it must have shape \({N}, 2\)"):
        several.gap(np.ones((D, 2)), np.ones(N))


@pytest.mark.parametrize("damp", [-1.0, np.nan, np.inf])
def test_wrong_damping_is_refused(damp):
    with refused(r"^damp=.*must be >= 0"):
        cw.LeastSquares(A, B, damp=damp)
    with refused(r"^damp must be a real number, not str", TypeError):
        cw.LeastSquares(A, B, damp="1")
