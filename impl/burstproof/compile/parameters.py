"""Declared parameters of a kernel: which arguments they accept, and how their values lie in memory for a launch."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from burstproof.errors import InputError

_FORMATS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "complex64": "ff",
    "complex128": "dd",
}
"""Types by name and their ``struct`` codes; bfloat16 exists as an array only."""

VALUE_TYPES = tuple(_FORMATS)
"""Names of the types that a value may have."""

_POINTER = "Q"
_SLOT_BYTES = 16
_NUMBA_HEAD = "QQqqQ"
"""Owner, parent, number of elements, bytes of one, address; shape and strides follow."""


@dataclass(frozen=True)
class Parameter:
    """One declared parameter.

    Attributes
    ----------
    dtype : str
        NumPy's name of the element type, or ``bfloat16``.
    array : bool
        A pointer to a contiguous array on the device, else a value.
    optional : bool
        Whether ``None`` (a null pointer) is accepted.
    numba_dimensions : int or None
        For an array of a numba kernel its dimensions: numba passes it as several values.
    """

    dtype: str
    array: bool
    optional: bool = False
    numba_dimensions: int | None = None

    @property
    def formats(self) -> tuple[str, ...]:
        """Codes of the ``struct`` module, one for each value that the machine code takes."""
        if not self.array:
            return (_FORMATS[self.dtype],)
        if self.numba_dimensions is None:
            return (_POINTER,)
        return (*_NUMBA_HEAD, *"q" * 2 * self.numba_dimensions)

    @cached_property
    def accepted(self) -> tuple[np.dtype[np.generic], ...]:
        """NumPy dtypes that an array may have; bfloat16 also comes as uint16 of the same bits."""
        if self.dtype != "bfloat16":
            return (np.dtype(self.dtype),)
        try:
            import ml_dtypes
        except ImportError:
            return (np.dtype(np.uint16),)
        return (np.dtype(ml_dtypes.bfloat16), np.dtype(np.uint16))

    def __str__(self) -> str:
        if self.numba_dimensions is not None:
            return f"{self.dtype}[{', '.join(':' * self.numba_dimensions)}]"
        return f"{self.dtype}{'[]' if self.array else ''}{'?' if self.optional else ''}"


def parse_parameters(declared: str) -> tuple[Parameter, ...]:
    """Parameters from their declaration.

    Parameters
    ----------
    declared : str
        Types in the kernel's order, separated by blanks: ``float32`` a value, ``float32[]`` an array,
        ``float32[]?`` an array or ``None``.

    Raises
    ------
    InputError
        An unknown type.
    """
    return tuple(_parse(word) for word in declared.split())


def _parse(word: str) -> Parameter:
    name = word.removesuffix("?").removesuffix("[]")
    array = word.removesuffix("?").endswith("[]")
    known = name in _FORMATS or (name == "bfloat16" and array)
    if not known or (word.endswith("?") and not array):
        raise InputError(
            "not a type of a kernel's parameter",
            where="parameters",
            got=word,
            allowed=f"{', '.join(_FORMATS)}, each with [] for an array (bfloat16[] too), []? where None is accepted",
        )
    return Parameter(name, array, word.endswith("?"))


def size_of(format_code: str) -> int:
    """Bytes of a value as the kernel sees it."""
    return struct.calcsize("=" + format_code)


MISFITS = (struct.error, OverflowError, TypeError, ValueError)
"""What writing a value that does not fit raises."""


class ArgumentBlock:
    """Memory of one kernel's arguments in the form that the driver takes: slots, and their addresses.

    Attributes
    ----------
    addresses : int
        Address of the array of slot addresses.
    fill : callable
        Writes the values it is given, complex ones as two numbers each; raises one of ``MISFITS`` for a value that its
        type cannot hold.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        formats = [code for parameter in parameters for code in parameter.formats]
        count = max(1, len(formats))
        self._slots: npt.NDArray[np.uint8] = np.zeros(count * _SLOT_BYTES, np.uint8)
        starts = self._slots.ctypes.data + np.arange(count, dtype=np.uint64) * np.uint64(_SLOT_BYTES)
        self._starts: npt.NDArray[np.uint64] = starts
        self.addresses: int = starts.ctypes.data
        padded = (f"{code}{_SLOT_BYTES - size_of(code)}x" for code in formats)
        layout = struct.Struct("=" + "".join(padded))
        self.fill: Callable[..., None] = partial(layout.pack_into, self._slots.data, 0)
