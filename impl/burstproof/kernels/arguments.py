"""What a launch is given against what its kernel declares: dtype, device, layout and kind, before the launch."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burstproof.errors import InputError
from burstproof.kernels.parameters import ArgumentBlock, Parameter

DeviceOf = Callable[[int], int]
"""Device that owns an address; -1 for memory that no device owns."""


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
        self, kernel: str, parameters: Sequence[Parameter], device_id: int, array_type: Any, device_of: DeviceOf
    ) -> None:
        self._kernel = kernel
        self._parameters = tuple(parameters)
        self._device_id = device_id
        self._array_type = array_type
        self._device_of = device_of
        self._plan = tuple((p.array, p.accepted[0] if p.array else None, p) for p in parameters)

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
        for position, (array, dtype, parameter) in enumerate(self._plan):
            argument = arguments[position]
            if not array:
                found.extend(self._numbers(parameter, argument, position))
            elif parameter.numba_dimensions is not None:
                found.extend(self._numba_array(parameter, argument, position))
            elif type(argument) is own and argument.dtype is dtype and argument.flags.c_contiguous:
                memory = argument.data
                if memory.device_id != device and argument.size:
                    raise self._wrong_device(parameter, memory.device_id, position)
                found.append(memory.ptr)
            else:
                found.append(self._address(parameter, argument, position))
        return found

    def fill(self, block: ArgumentBlock, values: Sequence[Any]) -> None:
        """Write checked values into ``block``.

        Raises
        ------
        InputError
            A number that its type cannot hold.
        """
        try:
            block.fill(values)
        except (struct.error, OverflowError, TypeError, ValueError) as error:
            raise InputError(
                f"a value does not fit its parameter: {error}",
                where=f"kernel {self._kernel}",
                got=tuple(values),
                allowed=" ".join(map(str, self._parameters)),
            ) from error

    def _numbers(self, parameter: Parameter, argument: Any, position: int) -> tuple[Any, ...]:
        if hasattr(argument, "shape") and argument.shape != ():
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

    def _numba_array(self, parameter: Parameter, argument: Any, position: int) -> tuple[int, ...]:
        """Owner, parent, elements, bytes of one, address, shape, strides in bytes of an array in C order."""
        address = self._address(parameter, argument, position)
        described = getattr(argument, "array", argument).__cuda_array_interface__
        shape = tuple(described["shape"])
        if len(shape) != parameter.numba_dimensions:
            raise self._error("an array of another number of dimensions", parameter, position, f"shape {shape}")
        itemsize = parameter.accepted[0].itemsize
        strides, elements = [], 1
        for length in reversed(shape):
            strides.append(elements * itemsize)
            elements *= length
        return 0, 0, elements, itemsize, address, *shape, *reversed(strides)

    def _address(self, parameter: Parameter, argument: Any, position: int) -> int:
        """Address of an array that is not the array type with the first accepted dtype."""
        argument = getattr(argument, "array", argument)
        if argument is None:
            if parameter.optional:
                return 0
            raise self._error("None where an array is declared", parameter, position, None)
        described = getattr(argument, "__cuda_array_interface__", None)
        if described is None:
            raise self._error(
                "not an array on a device",
                parameter,
                position,
                type(argument).__name__,
                cure="Upload it first (burstproof.kernels.buffers, cupy.asarray)",
            )
        dtype = getattr(argument, "dtype", None)
        dtype = dtype if isinstance(dtype, np.dtype) else np.dtype(described["typestr"])
        if dtype not in parameter.accepted:
            raise self._error("an array of the wrong dtype", parameter, position, str(dtype))
        shape, strides = described["shape"], described.get("strides")
        if strides is not None and not _contiguous(shape, strides, dtype.itemsize):
            raise self._error(
                "an array that is not contiguous in C order",
                parameter,
                position,
                f"shape {shape}, strides {strides}",
                cure="Make it so with cupy.ascontiguousarray",
            )
        address = int(described["data"][0])
        if address and 0 not in shape and (owner := self._device_of(address)) not in (self._device_id, -1):
            raise self._wrong_device(parameter, owner, position)
        return address

    def _wrong_device(self, parameter: Parameter, owner: int, position: int) -> InputError:
        return self._error(
            "an array on another device",
            parameter,
            position,
            f"device {owner}",
            cure=f"Copy it to device {self._device_id}, or load the kernel for device {owner}",
        )

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
