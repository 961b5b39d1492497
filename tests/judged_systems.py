"""What coordwise.linalg claims about a system, held against residuals in extended precision."""

import warnings

import numpy as np
from exact_objectives import EPS, LONG, TINY, dense
from fuzzed_systems import FUNCTIONS

STATUSES = ("converged", "inconsistent", "stalled", "diverged", "max_passes")


def judged(problem):
    """Everything that is wrong with the answer to this problem."""
    call, given = FUNCTIONS[problem.name], problem.options
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call(problem.A, problem.b, full_output=True, **given)
            x, info = call(problem.A, problem.b, **given)
        except (ValueError, TypeError) as error:
            names = ("A ", "A=", "b ", "b[", *given)
            return [] if any(name in str(error) for name in names) else [f"refused without a name: {error}"]
        except Exception as error:
            return [f"raised {type(error).__name__}: {error}"]
    wrong = [f"warned: {w.category.__name__}: {w.message} at {w.filename}:{w.lineno}" for w in caught]
    if not np.all(np.isfinite(found.w)):
        return [*wrong, "x is not finite"]
    if not np.array_equal(x, found.w):
        wrong.append("the same seed gives another x")
    if found.status not in STATUSES:
        return [*wrong, f"status {found.status}"]
    meaning = {"converged": info == 0, "inconsistent": info == -1, "stalled": info == -2, "diverged": info == -3}
    if not meaning.get(str(found.status.value), info > 0):
        wrong.append(f"info {info} beside status {found.status.value}")
    if found.passes > 2 * given["maxiter"] + 30:
        wrong.append(f"{found.passes:.0f} passes, {given['maxiter']} allowed")
    return wrong + about_gaps(problem, found)


class Gaps:
    """Residuals or, for least squares, slopes of points, with what double precision may lose of them."""

    def __init__(self, problem):
        self.A, self.b = dense(problem.A), dense(problem.b).reshape(len(problem.b), -1)
        self.slopes, self.damp = problem.name == "lstsq", LONG(problem.options.get("damp", 0.0))
        size = norms(self.A.T @ self.b) if self.slopes else norms(self.b)
        self.goal = np.maximum(LONG(problem.options["rtol"]) * size, LONG(problem.options.get("atol", 0.0)))

    def of(self, x):
        x = np.asarray(x).astype(LONG).reshape(self.A.shape[1], -1)
        r = self.b - self.A @ x
        return norms(self.A.T @ r - self.damp**2 * x if self.slopes else r)

    def lost(self, x):
        """A sum of k terms in double precision is off by eps sqrt(k) of the sum of their moduli, 10 eps for k = 100."""
        size = np.abs(np.asarray(x).astype(LONG)).reshape(self.A.shape[1], -1)
        r = np.abs(self.A) @ size + np.abs(self.b)
        return 16 * EPS * norms(np.abs(self.A.T) @ r + self.damp**2 * size if self.slopes else r) + TINY


def norms(columns):
    most = np.max(np.abs(columns), axis=0, initial=0)
    most = np.where(most > 0, most, 1)
    return most * np.sqrt(np.sum((columns / most) ** 2, axis=0))


def about_gaps(problem, found):
    wrong, gaps = [], Gaps(problem)
    gap, lost, reported = gaps.of(found.w), gaps.lost(found.w), np.atleast_1d(found.gap)
    if np.any(np.abs(gap - reported) > 1e-6 * gap + lost):
        wrong.append(f"gap {reported} is reported, {gap.astype(float)} it is")
    if found.converged and np.any(gap > gaps.goal * (1 + 1e-9) + lost):
        wrong.append(f"converged with {gap.astype(float)} > {gaps.goal.astype(float)}, lost {lost.astype(float)}")
    begin = np.zeros_like(np.asarray(found.w)) if problem.options.get("x0") is None else problem.options["x0"]
    begin = np.where(np.any(problem.b != 0, axis=0), begin, 0.0)  # b = 0 has the solution 0
    at_start = gaps.of(begin)
    if np.any(gap > np.maximum(at_start, gaps.goal) * (1 + 1e-9) + lost + gaps.lost(begin)):
        wrong.append(
            f"gap {gap.astype(float)} is worse than {at_start.astype(float)} at the start ({found.status.value})"
        )
    if found.status == "inconsistent":
        best = solution(problem, gaps)
        if best is not None and np.all(gaps.of(best) + gaps.lost(best) <= gaps.goal):
            wrong.append(
                f"inconsistent, but there is an x with {gaps.of(best).astype(float)} <= {gaps.goal.astype(float)}"
            )
    return wrong


def solution(problem, gaps):
    """The best point of dense factorisations of A with scaled rows and columns, with refinement."""
    best = None
    A = dense(problem.A)
    for rows in (False, True):
        left = 1 / np.where((size := norms(A.T)) > 0, size, 1) if rows else np.ones(len(A), LONG)
        scaled = left[:, None] * A
        right = 1 / np.where((size := norms(scaled)) > 0, size, 1)
        for rcond in (1e-15, 1e-12, 1e-8):
            x = np.zeros((A.shape[1], gaps.b.shape[1]), LONG)
            for _ in range(3):
                r = left[:, None] * (gaps.b - A @ x)
                most = np.max(np.abs(r)) or 1
                step = np.linalg.lstsq((scaled * right).astype(float), (r / most).astype(float), rcond=rcond)[0]
                x = x + right[:, None] * step * most
            with np.errstate(over="ignore"):
                x = x.astype(float)
            if np.all(np.isfinite(x)) and (best is None or np.max(gaps.of(x)) < np.max(gaps.of(best))):
                best = x
    return best
