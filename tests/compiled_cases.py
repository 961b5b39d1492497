"""Compiled functions for the tests of `minimize`: tests/callables.c by the C compiler that is there."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import LowLevelCallable

DOUBLES = ctypes.POINTER(ctypes.c_double)
INTEGERS = ctypes.POINTER(ctypes.c_int64)
TYPES = {
    "quadratic_partial": (ctypes.c_int64, DOUBLES, ctypes.c_void_p),
    "quadratic_value": (ctypes.c_int64, DOUBLES, ctypes.c_void_p),
    "logistic_partial": (ctypes.c_int64, ctypes.c_double, DOUBLES, ctypes.c_void_p),
    "soft": (ctypes.c_int64, ctypes.c_double, ctypes.c_double),
    "clip": (ctypes.c_int64, ctypes.c_double, ctypes.c_double),
    "towards_one": (ctypes.c_int64, DOUBLES),
    "not_a_number": (ctypes.c_int64, DOUBLES),
}


def library(folder):
    """The functions by name, as function pointers of ctypes; skips the test where there is no C compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("no C compiler")
    made = folder / "callables.so"
    source = Path(__file__).with_name("callables.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(made), "-lm"], check=True)
    found = ctypes.CDLL(str(made))
    for name, types in TYPES.items():
        function = getattr(found, name)
        function.restype, function.argtypes = ctypes.c_double, types
    return found


class Struct(ctypes.Structure):
    """User data: pointers into arrays, which it keeps."""

    def user_data(self):
        return ctypes.cast(ctypes.pointer(self), ctypes.c_void_p)


class QuadraticData(Struct):
    _fields_ = (("n", ctypes.c_int64), ("H", DOUBLES), ("c", DOUBLES))

    def __init__(self, H, c):
        self.arrays = np.ascontiguousarray(H), np.ascontiguousarray(c)
        super().__init__(len(c), *(a.ctypes.data_as(DOUBLES) for a in self.arrays))


class ColumnData(Struct):
    _fields_ = (("starts", INTEGERS), ("places", INTEGERS), ("values", DOUBLES))

    def __init__(self, B):
        B = sp.csc_array(B)
        self.arrays = B.indptr.astype(np.int64), B.indices.astype(np.int64), B.data.astype(float)
        starts, places, values = self.arrays
        super().__init__(
            starts.ctypes.data_as(INTEGERS), places.ctypes.data_as(INTEGERS), values.ctypes.data_as(DOUBLES)
        )


def with_data(function, data):
    """A function that is handed the struct, which has to outlive it."""
    return LowLevelCallable(function, data.user_data())
