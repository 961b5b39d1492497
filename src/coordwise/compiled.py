"""Compiled functions that users pass in: their addresses and C signatures."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from scipy import LowLevelCallable

from coordwise import kernels

__all__ = ["PARTIAL", "PARTIAL_OF_IMAGE", "PROX", "VALUE", "Compiled", "Signature", "compiled"]

_Pointer: Any = ctypes.CFUNCTYPE(None).__bases__[0]  # the type of all function pointers of ctypes
_USER_DATA = "void*"
_SIXTY_FOUR_BITS = {
    "int64_t",
    "int64",
    "npy_int64",
    "npy_intp",
    "intptr_t",
    "ptrdiff_t",
    "ssize_t",
    "Py_ssize_t",
    "longlong",
} | ({"long"} if ctypes.sizeof(ctypes.c_long) == 8 else set())


@dataclass(frozen=True)
class Signature:
    """What a compiled function has to take; user data may follow. It returns a double."""

    arguments: tuple[tuple[str, str], ...]  # types and names

    def text(self, name: str) -> str:
        """As C declares it."""
        listed = ", ".join(f"{kind} {of}" for kind, of in self.arguments)
        return f"double {name}({listed}, void* user_data)"

    def takes_data(self, found: str) -> bool | None:
        """Whether a signature, such as "double (long, double *, void *)", has user data; None if it is another one."""
        result, _, rest = found.partition("(")
        wanted = [_plain(kind) for kind, _ in self.arguments]
        given = [_plain(kind) for kind in rest.rpartition(")")[0].split(",")]
        if _plain(result) != "double" or given not in (wanted, [*wanted, _USER_DATA]):
            return None
        return len(given) > len(wanted)


PARTIAL = Signature((("int64_t", "i"), ("const double*", "x")))
PARTIAL_OF_IMAGE = Signature((("int64_t", "i"), ("double", "x_i"), ("const double*", "v")))
PROX = Signature((("int64_t", "i"), ("double", "t"), ("double", "theta")))
VALUE = Signature((("int64_t", "n"), ("const double*", "x")))


@dataclass(frozen=True)
class Compiled:
    """A compiled function; `owner` is what keeps it and its data in memory."""

    function: int
    data: int
    takes_data: bool
    owner: Any

    @property
    def address(self) -> tuple[int, int, bool]:
        """As the core takes it."""
        return self.function, self.data, self.takes_data


def compiled(argument: str, given: Any, signature: Signature) -> Compiled | None:
    """A scipy.LowLevelCallable, a cfunc of numba or a function pointer of ctypes; None if `given` is none of them.

    Raises
    ------
    TypeError
        If it has another C signature; the message states the one that is accepted.
    """
    data = 0
    if isinstance(given, LowLevelCallable):
        found, function, data = kernels.capsule(tuple.__getitem__(given, 0))
    else:
        # numba's cfunc has its ctypes pointer as an attribute, so that numba itself is not needed here
        pointer = given if isinstance(given, _Pointer) else getattr(given, "ctypes", None)
        if not isinstance(pointer, _Pointer):
            return None
        found, function = _declared(pointer), int(ctypes.cast(pointer, ctypes.c_void_p).value or 0)
    takes_data = signature.takes_data(found)
    if takes_data is None or not function:
        wrong = f"has the C signature {found!r}" if function else "is a null pointer"
        raise TypeError(
            f"{argument} {wrong}; a compiled {argument} must be '{signature.text(argument)}', user_data being "
            "optional. For ctypes, set restype and argtypes; for scipy.LowLevelCallable, signature=..."
        )
    if data and not takes_data:
        raise TypeError(
            f"{argument} comes with user_data, but its C signature {found!r} takes none; it must be "
            f"'{signature.text(argument)}'."
        )
    return Compiled(function, data, takes_data, given)


def _declared(pointer: Any) -> str:
    """The signature of a function pointer of ctypes in words of C."""
    arguments = "not declared" if pointer.argtypes is None else ", ".join(map(_name, pointer.argtypes))
    return f"{_name(pointer.restype)} ({arguments})"


def _name(kind: Any) -> str:
    if kind is None:
        return "void"
    if kind is ctypes.c_void_p:
        return "void *"
    if kind is ctypes.c_int64:
        return "int64_t"
    pointed = getattr(kind, "_type_", None)
    if isinstance(pointed, type):
        return f"{_name(pointed)} *"
    return str(getattr(kind, "__name__", kind)).removeprefix("c_")


def _plain(kind: str) -> str:
    """A type without const and spaces, all integers of 64 bits under one name."""
    words = kind.replace("*", " * ").split()
    plain = "".join(word for word in words if word not in ("const", "signed", "int"))
    return "int64_t" if plain in _SIXTY_FOUR_BITS else plain
