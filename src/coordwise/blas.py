"""How many threads linear algebra may use while the compiled kernels have theirs.

Threads of a BLAS library wait for more work by spinning. Beside kernels with threads of their own they take the
processors away from these, and small factorisations gain nothing from them. numpy and scipy from PyPI have a BLAS each,
whose threads are in each other's way in turn: products by one and factorisations by the other, one after the other,
take two to three times as long as with one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

__all__ = ["one_blas_thread", "one_scipy_thread"]

LARGE = 2000  # unknowns of a linear system whose factorisation gains from threads


@contextmanager
def one_blas_thread(unknowns: int = 0) -> Iterator[None]:
    """BLAS with one thread, if threadpoolctl is installed (it is wherever scikit-learn is); else as it is.

    As it is, too, for linear systems of many unknowns. The number is the process's: where several threads ask, it comes
    back when the last of them is done.
    """
    with _limit.held(_libraries() if unknowns <= LARGE else []):
        yield


@contextmanager
def one_scipy_thread(unknowns: int = 0) -> Iterator[None]:
    """The same for scipy's own BLAS, where it has one: large products are numpy's, and may have threads."""
    own = [library for library in _libraries() if _of_scipy(library.filepath)]
    with _limit.held(own if unknowns <= LARGE else []):
        yield


class _Limit:
    """How many ask for one thread of a library, and the number that comes back."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.asked: dict[str, int] = {}
        self.before: dict[str, int] = {}

    @contextmanager
    def held(self, libraries: list[Any]) -> Iterator[None]:
        taken: list[Any] = []
        try:
            with self.lock:
                for library in libraries:
                    taken.append(library)
                    name = library.filepath
                    self.asked[name] = self.asked.get(name, 0) + 1
                    if self.asked[name] == 1:
                        self.before[name] = library.get_num_threads()
                        library.set_num_threads(1)
            yield
        finally:
            with self.lock:
                for library in taken:
                    name = library.filepath
                    self.asked[name] -= 1
                    if not self.asked[name]:
                        library.set_num_threads(self.before[name])


_limit = _Limit()


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries of the process, scipy's being one of them from its first use on."""
    import scipy.linalg  # noqa: F401

    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return []
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def _of_scipy(path: str) -> bool:
    """Whether it is a library that came with scipy: site-packages/scipy.libs, or scipy/.dylibs on macOS."""
    folder = Path(path).parent
    return folder.name == "scipy.libs" or (folder.name == ".dylibs" and folder.parent.name == "scipy")
