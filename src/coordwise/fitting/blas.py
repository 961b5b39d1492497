"""How many threads linear algebra may use while the compiled kernels have theirs.

Threads of a BLAS library wait for more work by spinning. Beside a Gram kernel with threads of its own they take the
processors away from it, and small factorisations gain nothing from them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

__all__ = ["one_blas_thread"]


def one_blas_thread() -> AbstractContextManager[Any]:
    """BLAS with one thread, if threadpoolctl is installed (it is wherever scikit-learn is); else as it is."""
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
