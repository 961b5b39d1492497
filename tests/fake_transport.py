"""A transport in this process: calls end in an order given by a seed, and values are lost when a test says so."""

import pickle

import numpy as np

from coordwise.samples.base import RowsLost
from coordwise.samples.transport import Earlier, Lost, NotYet


class Future:
    """A recipe, and its value once it has been made."""

    def __init__(self, call, inputs):
        self.call, self.inputs = call, inputs
        self.made = self.cancelled = False
        self.value = None


class Fake:
    """`Transport` without processes; everything is pickled, as if it were sent.

    `losing(k)`, for the k-th list of calls from 0 on, is what happens to it: None; "task", it is lost before it ends;
    "values", everything that was made before is lost, but can be made again; "all", for good; "silent", nothing ends.
    """

    def __init__(self, seed=0, losing=lambda k: None):
        self.rng = np.random.default_rng(seed)
        self.losing, self.rounds, self.cancelled, self.made, self.broken = losing, 0, 0, 0, None
        self.everything = []
        self.width = 4

    def submit(self, calls):
        self.broken = self.losing(self.rounds)
        self.rounds += 1
        if self.broken in ("values", "all"):
            for future in self.everything:
                future.made, future.value = False, None
                if self.broken == "all":
                    future.cancelled = True
        futures = []
        for call in calls:
            function = pickle.loads(pickle.dumps(call.function))
            inputs = [
                futures[one.position]
                if isinstance(one, Earlier)
                else one
                if isinstance(one, Future)
                else pickle.loads(pickle.dumps(one))
                for one in call.inputs
            ]
            futures.append(Future(call._replace(function=function), inputs))
        self.everything += futures
        return futures

    def result(self, handle, seconds):
        if self.broken == "silent" or self.rng.random() < 0.2:
            raise NotYet
        if self.broken == "task":
            self.broken = None
            raise Lost("Worker A was killed.")
        pending = [future for future in self.everything if not future.made and not future.cancelled]
        for k in self.rng.permutation(len(pending)):
            self._make(pending[k])
        if not handle.made:
            raise Lost("What the task needs is gone.")
        return pickle.loads(pickle.dumps(handle.value))

    def _make(self, future):
        inputs = [one for one in future.inputs if isinstance(one, Future)]
        if future.made or future.cancelled or any(one.cancelled for one in inputs):
            return
        for one in inputs:
            self._make(one)
        if all(one.made for one in inputs):
            future.value = future.call.function(
                *(one.value if isinstance(one, Future) else one for one in future.inputs)
            )
            future.made = True
            self.made += 1

    def cancel(self, handles):
        self.cancelled += len(handles)
        for handle in handles:
            handle.cancelled, handle.made, handle.value = True, False, None

    def restore(self, handles):
        if any(handle.cancelled for handle in handles):
            raise RowsLost("partitions are gone for good.")

    def signs(self, handles):
        return sum(handle.made for handle in handles), "worker A was last heard of 99 seconds ago"
