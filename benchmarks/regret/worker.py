"""One process that solves tasks of the suite, with the coordwise of the Python that runs it.

It reads a line of JSON for every call, {"task": number, "solver": name, "limit": seconds or null, "quick": bool}, and
answers with one: {"seconds", "status", "passes", "ran"}, or {"refused": why}.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
import warnings

from suite import tasks

LARGEST = 6000  # features (Newton's method) or samples and features (Gram matrices) of which a dense matrix is made


def solved(task, solver: str, limit: float | None) -> dict:
    """One fit of a model that nothing is known of yet; its statement is not measured."""
    from coordwise.fitting.fit import fit

    model = task.model()
    side = {"newton": model.d, "interior": model.d, "gram": min(model.n, model.d)}.get(solver, 0)
    if side > LARGEST:
        return {"refused": f"a dense matrix with sides of {side}"}
    gc.collect()
    begun = time.perf_counter()
    try:
        found = fit(model, tol=task.tol, max_passes=1e6, strategy=solver, time_limit=limit)
    except (ValueError, TypeError) as error:
        return {"refused": " ".join(str(error).split())}
    seconds = time.perf_counter() - begun
    for thread in threading.enumerate():  # what a limit has left alone would slow down the next call
        if thread.name.startswith("coordwise"):
            thread.join()
    return {"seconds": seconds, "status": str(found.status), "passes": found.passes, "ran": found.strategy}


def main() -> None:
    suites = {quick: tasks(quick=quick) for quick in (False, True)}
    warnings.simplefilter("ignore")
    print(json.dumps({"ready": [task.key for task in suites[False]]}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(solved(suites[asked["quick"]][asked["task"]], asked["solver"], asked["limit"])), flush=True)


if __name__ == "__main__":
    main()
