"""How many threads linear algebra may use while the compiled kernels have theirs.

Threads of a BLAS library wait for more work by spinning. Beside a Gram kernel with threads of its own they take the
processors away from it, and small factorisations gain nothing from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS with one thread, if threadpoolctl is installed (it is wherever scikit-learn is); else as it is.

    The number is the process's: where several threads ask, it comes back when the last of them is done.
    """
    controller = _controller()
    if controller is None:
        yield
        return
    _limit.enter(controller)
    try:
        yield
    finally:
        _limit.leave()


class _Limit:
    """How many ask for one thread, and what brings the number back."""

    def __init__(self) -> None:
        self.lock, self.count = Lock(), 0
        self.limiter: Any = None

    def enter(self, controller: Any) -> None:
        with self.lock:
            self.count += 1
            if self.count == 1:
                self.limiter = controller.limit(limits=1, user_api="blas")

    def leave(self) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0:
                self.limiter.restore_original_limits()


_limit = _Limit()


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
