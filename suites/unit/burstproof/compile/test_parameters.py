"""What a launch is given is checked before it: parameters, arguments, grid, block and shared memory, without a GPU."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from burstproof.compile.launch import LaunchLimits, check_launch
from burstproof.compile.parameters import MISFITS, ArgumentBlock, ArgumentChecker, parse_parameters, struct_of
from burstproof.errors import InputError

pytestmark = pytest.mark.requirement("KL-2", "ST-3")

LIMITS = LaunchLimits((2**31 - 1, 65535, 65535), (1024, 1024, 64), 1024, 2048, 227 << 10)


class Rates(NamedTuple):
    step: float
    decay: float


class NoArray:
    """Stands for CuPy's array type, of which no argument here is."""


@dataclass
class OnDevice:
    """An array of another library: an address that says what lies there."""

    address: int
    typestr: str = "<f4"
    shape: tuple[int, ...] = (4,)
    strides: tuple[int, ...] | None = None
    __cuda_array_interface__: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.__cuda_array_interface__ = {
            "data": (self.address, False),
            "typestr": self.typestr,
            "shape": self.shape,
            "strides": self.strides,
            "version": 3,
        }


def device_of(address: int) -> int:
    """Addresses from 1 << 40 on belong to device 1."""
    return int(address >= 1 << 40)


def checker(declared: str) -> ArgumentChecker:
    return ArgumentChecker("k", parse_parameters(declared), 0, NoArray, device_of)


def in_memory(declared: str, *arguments: object) -> list[bytes]:
    """The bytes that the driver would copy for each parameter."""
    block, checks = ArgumentBlock(parse_parameters(declared)), checker(declared)
    values = checks.values(arguments)
    try:
        block.fill(*values)
    except MISFITS as error:
        raise checks.misfit(error, values) from error
    codes = [parameter.formats[0] for parameter in parse_parameters(declared)]
    sizes = [sum({"?": 1, "b": 1, "H": 2, "e": 2, "i": 4, "I": 4, "f": 4}.get(c, 8) for c in code) for code in codes]
    addresses = (ctypes.c_uint64 * len(sizes)).from_address(block.addresses)
    return [ctypes.string_at(address, size) for address, size in zip(addresses, sizes, strict=True)]


def test_values_lie_in_memory_as_their_types_have_them() -> None:
    declared = "float32[] uint32 float32 complex128 bool int8 float16 int64 float64 bfloat16[]?"
    got = in_memory(declared, OnDevice(4096), 7, 1.5, 2 + 3j, True, -5, 0.5, -(2**40), 0.1, None)
    kinds = (np.uint64, np.uint32, np.float32, np.complex128, np.bool_, np.int8, np.float16, np.int64, np.float64)
    values = (4096, 7, 1.5, 2 + 3j, True, -5, 0.5, -(2**40), 0.1)
    expected = [kind(value).tobytes() for kind, value in zip(kinds, values, strict=True)]
    assert got == [*expected, bytes(8)]


def test_a_struct_is_declared_as_its_named_tuple_has_it() -> None:
    assert struct_of(Rates, "float32") == "Rates(float32:step,decay)"
    (parameter,) = parse_parameters("Rates(float32:step,decay)")
    assert (parameter.struct, parameter.fields) == ("Rates", ("step", "decay"))
    assert str(parameter) == "Rates(float32:step,decay)"


def test_fields_of_a_struct_lie_side_by_side_between_other_parameters() -> None:
    class Strides(NamedTuple):
        batch: int
        head: int
        row: int

    rates, strides = Rates(0.5, -2), Strides(np.int64(3), -4, 1 << 40)
    declared = f"int32 {struct_of(Strides, 'int64')} {struct_of(Rates, 'float32')} int8 {struct_of(Rates, 'complex64')}"
    numbers = (np.int32(7), np.array(strides, np.int64), np.array(rates, np.float32), np.int8(-1))
    expected = [value.tobytes() for value in (*numbers, np.array(rates, np.complex64))]
    assert in_memory(declared, 7, strides, rates, -1, rates) == expected


def test_numpy_numbers_are_numbers() -> None:
    assert in_memory("uint32 float32", np.int64(3), np.float64(0.25)) == [
        np.uint32(3).tobytes(),
        np.float32(0.25).tobytes(),
    ]


@pytest.mark.parametrize(
    ("declared", "argument", "problem"),
    [
        ("float32[]", OnDevice(4096, "<f8"), "an array of the wrong dtype .*float64"),
        ("float32[]", OnDevice(1 << 40), "an array on another device .*device 1.*Copy it to device 0"),
        ("float32[]", OnDevice(4096, strides=(8,)), "not contiguous in C order .*ascontiguousarray"),
        ("float32[]", OnDevice(4096, shape=(2, 3), strides=(4, 8)), "not contiguous in C order"),
        ("float32[]", np.zeros(4, np.float32), "not an array on a device .*Upload it first"),
        ("float32[]", 4096, "not an array on a device"),
        ("float32[]", None, "None where an array is declared"),
        ("uint32", -1, "a value does not fit"),
        ("uint32", 2**32, "a value does not fit"),
        ("uint32", 0.5, "a value does not fit"),
        ("uint32", None, "a value does not fit"),
        ("float32", 1e300, "a value does not fit"),
        ("float32", "1", "a value does not fit"),
        ("float32", np.zeros(3), "an array where a value is declared"),
        ("float32", OnDevice(4096, shape=()), "a value on the device where one of the host is declared"),
        ("complex64", "two", "a value does not fit"),
        ("Rates(float32:step,decay)", (1.0, 2.0), "not a named tuple with the fields that are declared"),
        ("Rates(float32:decay,step)", Rates(1, 2), "not a named tuple with the fields that are declared"),
        ("Rates(float32:step)", 1.0, "not a named tuple with the fields that are declared"),
        ("Rates(float32:step,decay)", Rates, "not a named tuple with the fields that are declared"),
        ("Rates(float32:step,decay)", tuple.__new__(Rates, (1,)), "a value does not fit"),
        ("Rates(int32:step,decay)", Rates(1, 0.5), "a value does not fit"),
        ("Rates(float32:step,decay)", Rates(1, np.zeros(2)), "an array where a value is declared"),  # type: ignore[arg-type]
    ],
)
def test_an_argument_that_does_not_fit_is_named(declared: str, argument: object, problem: str) -> None:
    with pytest.raises(InputError, match=f"kernel k.*{problem}"):
        in_memory(declared, argument)


def test_an_argument_is_named_by_its_position() -> None:
    with pytest.raises(InputError, match=r"kernel k, argument 2 \(float32\[\]\)"):
        in_memory("complex128 float32[] float32[]", 1j, OnDevice(4096), OnDevice(4096, "<i4"))


@pytest.mark.parametrize("arguments", [(), (1, 2)])
def test_the_number_of_arguments_is_checked(arguments: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"wrong number of arguments .*allowed: 1 \(uint32\)"):
        in_memory("uint32", *arguments)


def test_strides_of_single_elements_and_of_empty_arrays_do_not_matter() -> None:
    assert in_memory("float32[]", OnDevice(4096, shape=(1, 4), strides=(999, 4)))
    assert in_memory("float32[]", OnDevice(0, shape=(0, 4), strides=(3, 1)))


def test_a_numba_array_brings_its_shape_and_strides() -> None:
    from burstproof.compile.parameters import Parameter

    parameter = Parameter("float32", True, numba_dimensions=2)
    checks = ArgumentChecker("k", [parameter], 0, NoArray, device_of)
    assert checks.values([OnDevice(4096, shape=(3, 5))]) == [0, 0, 15, 4, 4096, 3, 5, 20, 4]
    with pytest.raises(InputError, match="another number of dimensions"):
        checks.values([OnDevice(4096, shape=(15,))])


@pytest.mark.parametrize(
    "declared",
    ["float31", "float32?", "bfloat16", "float32[][]", "[]", "S()", "S(float31:a)", "S(int8:a,)", "S(int8:a)[]"],
)
def test_an_unknown_type_is_refused(declared: str) -> None:
    with pytest.raises(InputError, match="not a type of a kernel's parameter"):
        parse_parameters(declared)


@pytest.mark.parametrize(
    ("grid", "block", "shared", "problem"),
    [
        (0, 32, 0, "grid size along x out of range .*Skip the launch"),
        ((1, 0), 32, 0, "grid size along y out of range"),
        ((1, 65536), 32, 0, r"grid size along y .*1\.\.\.65535"),
        ((1, 1, 1, 1), 32, 0, "not one to three sizes"),
        (1, 0, 0, "block size along x out of range"),
        (1, 1025, 0, "block size along x out of range"),
        (1, (64, 32), 0, "too many threads per block .*at most 1024"),
        (1, (1, 1, 65), 0, "block size along z out of range"),
        (1, 32, 226 << 10, "too much dynamic shared memory .*2048 bytes that the kernel declares.*smaller tiles"),
        (1, 32, -1, "not a number of bytes"),
    ],
)
def test_a_launch_that_does_not_fit_is_refused(grid: Any, block: Any, shared: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        check_launch("k", LIMITS, grid, block, shared)


def test_a_launch_that_fits_is_filled_up_to_three_axes() -> None:
    found = check_launch("k", LIMITS, (7, 2), 1024, 225 << 10)
    assert found == ((7, 2, 1), (1024, 1, 1))
