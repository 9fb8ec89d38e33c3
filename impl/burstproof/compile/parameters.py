"""Declared parameters of a kernel: which arguments they accept, and how their values lie in memory for a launch."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

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

_STRUCT = re.compile(r"(?P<name>\w+)\((?P<dtype>\w+):(?P<fields>\w+(?:,\w+)*)\)")
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
    struct : str
        Name in the source of the struct that the kernel takes by value; empty for a single value and an array.
    fields : tuple of str
        Its fields in order, each a value of ``dtype``.
    """

    dtype: str
    array: bool
    optional: bool = False
    numba_dimensions: int | None = None
    struct: str = ""
    fields: tuple[str, ...] = ()

    @property
    def formats(self) -> tuple[str, ...]:
        """Codes of the ``struct`` module, one for each value that the machine code takes."""
        if not self.array:
            return (_FORMATS[self.dtype] * max(1, len(self.fields)),)
        if self.numba_dimensions is None:
            return (_POINTER,)
        return (*_NUMBA_HEAD, *"q" * 2 * self.numba_dimensions)

    @cached_property
    def accepted(self) -> tuple[np.dtype[np.generic], ...]:
        """NumPy dtypes that an array may have; bfloat16 is uint16 of the same bits, or ``ml_dtypes``'."""
        if self.dtype != "bfloat16":
            return (np.dtype(self.dtype),)
        try:
            import ml_dtypes
        except ImportError:
            return (np.dtype(np.uint16),)
        return (np.dtype(np.uint16), np.dtype(ml_dtypes.bfloat16))

    def __str__(self) -> str:
        if self.numba_dimensions is not None:
            return f"{self.dtype}[{', '.join(':' * self.numba_dimensions)}]"
        if self.struct:
            return f"{self.struct}({self.dtype}:{','.join(self.fields)})"
        return f"{self.dtype}{'[]' if self.array else ''}{'?' if self.optional else ''}"


def parse_parameters(declared: str) -> tuple[Parameter, ...]:
    """Parameters from their declaration.

    Parameters
    ----------
    declared : str
        Types in the kernel's order, separated by blanks: ``float32`` a value, ``float32[]`` an array,
        ``float32[]?`` an array or ``None``, ``Rates(float32:step,decay)`` a struct with these fields.

    Raises
    ------
    InputError
        An unknown type.
    """
    return tuple(_parse(word) for word in declared.split())


def struct_of(fields: type[tuple[Any, ...]], dtype: str) -> str:
    """The declaration of a struct with name and fields of a named tuple, in which it is given to a launch."""
    return str(Parameter(dtype, False, struct=fields.__name__, fields=_fields_of(fields)))


def _fields_of(value: object) -> tuple[str, ...]:
    """Names of the fields of a named tuple; none for anything else."""
    return getattr(value, "_fields", ())


def _parse(word: str) -> Parameter:
    by_value = _STRUCT.fullmatch(word)
    if by_value and by_value["dtype"] in _FORMATS:
        fields = tuple(by_value["fields"].split(","))
        return Parameter(by_value["dtype"], False, struct=by_value["name"], fields=fields)
    name = word.removesuffix("?").removesuffix("[]")
    array = word.removesuffix("?").endswith("[]")
    known = name in _FORMATS or (name == "bfloat16" and array)
    if not known or (word.endswith("?") and not array):
        raise InputError(
            "not a type of a kernel's parameter",
            where="parameters",
            got=word,
            allowed=f"{', '.join(_FORMATS)}, each with [] for an array (bfloat16[] too), []? where None is accepted; "
            "Name(float32:a,b) for a struct",
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
        sizes = [-(-size_of(code) // _SLOT_BYTES) * _SLOT_BYTES for code in formats]
        self._slots: npt.NDArray[np.uint8] = np.zeros(sum(sizes) or _SLOT_BYTES, np.uint8)
        starts = (self._slots.ctypes.data + np.cumsum([0, *sizes])).astype(np.uint64)
        self._starts: npt.NDArray[np.uint64] = starts
        self.addresses: int = starts.ctypes.data
        padded = (f"{code}{size - size_of(code)}x" for code, size in zip(formats, sizes, strict=True))
        layout = struct.Struct("=" + "".join(padded))
        self.fill: Callable[..., None] = partial(layout.pack_into, self._slots.data, 0)


DeviceOf = Callable[[int], int]
"""Device that owns an address; -1 for memory that no device owns."""

_PLAIN_NUMBERS = frozenset((int, float, bool))


def _direct_dtype(parameter: Parameter) -> np.dtype[Any] | None:
    """The dtype of an array whose address alone is passed."""
    return parameter.accepted[0] if parameter.array and parameter.numba_dimensions is None else None


def _is_one_number(parameter: Parameter) -> bool:
    """Whether it takes a number as it is given."""
    return not parameter.array and not parameter.struct and len(parameter.formats[0]) == 1


class ArgumentChecker:
    """Turns arguments into the values of an argument block, or says which one is wrong and why.

    Parameters
    ----------
    kernel : str
        Name in errors.
    parameters : sequence of Parameter
    device_id : int
        Device of the launch.
    array_type : type
        Array type whose fields are read directly (CuPy's); others go through ``__cuda_array_interface__``.
    device_of : callable
        Looks up the device of an address.
    """

    def __init__(
        self, kernel: str, parameters: Sequence[Parameter], device_id: int, array_type: type, device_of: DeviceOf
    ) -> None:
        self._kernel = kernel
        self._parameters = tuple(parameters)
        self._device_id = device_id
        self._array_type = array_type
        self._device_of = device_of
        self._plan = tuple((_direct_dtype(p), _is_one_number(p), p) for p in parameters)

    def values(self, arguments: Sequence[Any]) -> list[Any]:
        """Addresses and numbers in the order of the slots.

        Raises
        ------
        InputError
            Number of arguments, or an argument of a wrong kind, dtype, device or layout.
        """
        if len(arguments) != len(self._plan):
            raise InputError(
                "wrong number of arguments",
                where=f"kernel {self._kernel}",
                got=len(arguments),
                allowed=f"{len(self._plan)} ({' '.join(map(str, self._parameters))})",
            )
        found: list[Any] = []
        own, device = self._array_type, self._device_id
        # No calls where all is as declared; CuPy's flags would make an object for each array, 0.2 us.
        for position, (dtype, plain, parameter) in enumerate(self._plan):
            argument = arguments[position]
            kind = type(argument)
            if kind is own:
                memory = argument.data
                if argument.dtype is dtype and argument._c_contiguous and memory.device_id == device:
                    found.append(memory.ptr)
                    continue
            elif plain and kind in _PLAIN_NUMBERS:
                found.append(argument)
                continue
            found.extend(self._checked(parameter, argument, position))
        return found

    def misfit(self, error: Exception, values: Sequence[Any]) -> InputError:
        """What an argument block said about ``values``, as the package's own error."""
        return InputError(
            f"a value does not fit its parameter: {error}",
            where=f"kernel {self._kernel}",
            got=tuple(values),
            allowed=" ".join(map(str, self._parameters)),
        )

    def _checked(self, parameter: Parameter, argument: Any, position: int) -> tuple[Any, ...]:
        """Values of any argument that is accepted."""
        if parameter.struct:
            return self._struct(parameter, argument, position)
        if not parameter.array:
            return self._numbers(parameter, argument, position)
        address = self._address(parameter, argument, position)
        if parameter.numba_dimensions is None:
            return (address,)
        return self._numba_array(parameter, address, tuple(argument.shape), position)

    def _struct(self, parameter: Parameter, argument: Any, position: int) -> tuple[Any, ...]:
        """Values of the fields."""
        if not isinstance(argument, tuple) or _fields_of(argument) != parameter.fields:
            raise self._error("not a named tuple with the fields that are declared", parameter, position, argument)
        if _PLAIN_NUMBERS.issuperset(map(type, argument)) and not parameter.dtype.startswith("complex"):
            return argument
        return tuple(value for field in argument for value in self._numbers(parameter, field, position))

    def _numbers(self, parameter: Parameter, argument: Any, position: int) -> tuple[Any, ...]:
        if getattr(argument, "shape", ()) != ():
            raise self._error("an array where a value is declared", parameter, position, type(argument).__name__)
        if hasattr(argument, "__cuda_array_interface__"):
            raise self._error(
                "a value on the device where one of the host is declared",
                parameter,
                position,
                type(argument).__name__,
                cure="Pass a Python or NumPy number; reading it back would wait for the device",
            )
        if not parameter.dtype.startswith("complex"):
            return (argument,)
        try:
            value = complex(argument)
        except (TypeError, ValueError) as error:
            raise self._error(f"a value does not fit its parameter: {error}", parameter, position, argument) from error
        return value.real, value.imag

    def _numba_array(
        self, parameter: Parameter, address: int, shape: tuple[int, ...], position: int
    ) -> tuple[int, ...]:
        """Owner, parent, elements, bytes of one, address, shape, strides in bytes of an array in C order."""
        if len(shape) != parameter.numba_dimensions:
            raise self._error("an array of another number of dimensions", parameter, position, f"shape {shape}")
        itemsize = parameter.accepted[0].itemsize
        strides, elements = [], 1
        for length in reversed(shape):
            strides.append(elements * itemsize)
            elements *= length
        return 0, 0, elements, itemsize, address, *shape, *reversed(strides)

    def _address(self, parameter: Parameter, argument: Any, position: int) -> int:
        if argument is None and parameter.optional:
            return 0
        own = type(argument) is self._array_type
        if own:
            dtype, shape, address = argument.dtype, argument.shape, int(argument.data.ptr)
            strides = None if argument.flags.c_contiguous else argument.strides
        else:
            described = getattr(argument, "__cuda_array_interface__", None)
            if described is None:
                raise self._error(
                    "None where an array is declared" if argument is None else "not an array on a device",
                    parameter,
                    position,
                    type(argument).__name__,
                    cure="Upload it first (burstproof.device.memory.upload, cupy.asarray)",
                )
            dtype = getattr(argument, "dtype", None)
            dtype = dtype if isinstance(dtype, np.dtype) else np.dtype(described["typestr"])
            shape, strides, address = described["shape"], described.get("strides"), int(described["data"][0])
        if dtype not in parameter.accepted:
            raise self._error("an array of the wrong dtype", parameter, position, str(dtype))
        if strides is not None and not _contiguous(shape, strides, dtype.itemsize):
            raise self._error(
                "an array that is not contiguous in C order",
                parameter,
                position,
                f"shape {shape}, strides {strides}",
                cure="Make it so with cupy.ascontiguousarray",
            )
        if address and 0 not in shape:
            owner = argument.data.device_id if own else self._device_of(address)
            if owner not in (self._device_id, -1):
                raise self._error(
                    "an array on another device",
                    parameter,
                    position,
                    f"device {owner}",
                    cure=f"Copy it to device {self._device_id}, or load the kernel for device {owner}",
                )
        return address

    def _error(
        self, problem: str, parameter: Parameter, position: int, got: object, *, cure: str | None = None
    ) -> InputError:
        where = f"kernel {self._kernel}, argument {position} ({parameter})"
        return InputError(problem, where=where, got=got, allowed=str(parameter), cure=cure)


def _contiguous(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether ``strides`` in bytes are those of C order; dimensions of one element do not matter."""
    if 0 in shape:
        return True
    expected = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True
