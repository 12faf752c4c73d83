"""Checks of arrays before a kernel sees their memory.

C++ reads what lies at a pointer, whatever it is: numbers of another type, of another byte order or
with gaps between them would be read as nonsense. Each check returns cffi's pointer, which keeps the
array alive for as long as it lives itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cffi
import numpy as np
from numpy.typing import NDArray

NO_MEMORY = -(2**63)  # what a kernel returns where it could not get memory

_ffi = cffi.FFI()
_from_buffer = _ffi.from_buffer


def _check_of(type_: type[np.generic], name_in_c: str) -> Callable[..., Any]:
    kind = np.dtype(type_)
    pointer = _ffi.typeof(f"{name_in_c}[]")

    def check(array: Any, size: int, name: str, writable: bool = False) -> Any:
        if type(array) is np.ndarray and array.dtype == kind and array.size == size:
            try:
                return _from_buffer(pointer, array, writable)
            except (ValueError, BufferError):
                pass
        raise _refused(array, kind, size, name, writable)

    return check


def _refused(array: Any, kind: np.dtype[Any], size: int, name: str, writable: bool) -> TypeError:
    """Return the error that says what an array is, and what it has to be."""
    given = f"is {type(array).__name__}"
    if isinstance(array, np.ndarray):
        order = "in order" if array.flags.c_contiguous else "not contiguous"
        access = "writable" if array.flags.writeable else "read-only"
        given += f", {array.size} numbers {array.dtype.str}, {order}, {access}"
    wanted = f"a plain array of {size} numbers {kind.str} in order{', writable' * writable}"
    return TypeError(f"{name} {given}; a kernel takes {wanted}")


doubles = _check_of(np.float64, "double")
integers = _check_of(np.int64, "int64_t")
small_integers = _check_of(np.int32, "int32_t")
tiny_integers = _check_of(np.int8, "int8_t")
octets = _check_of(np.uint8, "uint8_t")
marks = _check_of(np.bool_, "bool")


def below(array: NDArray[Any], size: int, name: str) -> None:
    """Raise IndexError if an entry of an array of indices is negative, or ``size`` or more."""
    # Read as unsigned, negative numbers are the largest: one pass finds both.
    if array.size and int(array.view(f"u{array.itemsize}").max()) >= size:
        wrong = array[(array < 0) | (array >= size)].ravel()[0]
        raise IndexError(f"{name} holds {wrong}; indices there are 0 to {size - 1}")
