"""Random problems by their seeds: which are wrong, and how to look at one of them.

    python tests/fuzz.py fits 138 161       # says what is wrong with these problems
    python tests/fuzz.py systems 4990
    python tests/fuzz.py choices 20

Problem `seed` is the same on every machine, so that a seed that a test names can be run alone.
"""

import sys

import fuzzed_choices
import fuzzed_fits
import fuzzed_systems
import judged_fits
import judged_systems
import numpy as np
import pytest

KINDS = {
    "fits": (fuzzed_fits.case, judged_fits.judged),
    "systems": (fuzzed_systems.case, judged_systems.judged),
    "choices": (fuzzed_choices.case, fuzzed_choices.judged),
}

needs_extended_precision = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="long doubles are no more precise than doubles here"
)


def findings(kind, seeds):
    """What is wrong with some problems, one line for each thing."""
    case, judged = KINDS[kind]
    lines = []
    for seed in seeds:
        problem = case(seed)
        lines += [f"{kind} {seed}: {text}\n    {problem}" for text in judged(problem)]
    return lines


def assert_right(kind, seeds):
    """Fail with the seeds of all problems that are wrong."""
    found = findings(kind, seeds)
    assert not found, "\n".join(found)


if __name__ == "__main__":
    for line in findings(sys.argv[1], map(int, sys.argv[2:])) or ["nothing is wrong"]:
        print(line)
