"""Kernels that are made of the same code and values are the same in every process; a change anywhere in them tells."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import types

from burstproof.compile.meaning import meaning_of
from burstproof.errors import InputError

pytestmark = pytest.mark.requirement("KL-1", "ST-3")

FACTOR = 3


class Pair(NamedTuple):
    first: int
    second: int


class Swapped(NamedTuple):
    second: int
    first: int


class Kind(Enum):
    ONE = 1


@dataclass(frozen=True)
class Law:
    low: int


class Meaning:
    """Stands for what numba makes of a function; real ones need its CUDA part."""

    def __init__(self, function: FunctionType, **options: object) -> None:
        self.py_func, self.targetoptions = function, options


def leaf(x: Any) -> Any:
    return x + 1


def make(number: object = 1, inner: Callable[..., Any] | Meaning = leaf, default: int = 0) -> FunctionType:
    """A function that calls another and takes a constant, a default and a global."""

    def kernel(a: Any, b: int = default) -> None:
        a[0] = inner(number) * FACTOR + b + sum(i for i in (1, 2))  # type: ignore[operator]

    return kernel


def _changed_code() -> FunctionType:
    def kernel(a: Any, b: int = 0) -> None:
        a[0] = leaf(1) * FACTOR - b

    return kernel


def test_functions_made_alike_mean_the_same() -> None:
    assert meaning_of(make()) == meaning_of(make())
    assert meaning_of(make((1, 2.0))) == meaning_of(make((1, 2.0)))


@pytest.mark.parametrize(
    "other",
    [
        make(2),
        make(1.0),
        make(np.float32(1)),
        make(True),
        make((1,)),
        make(inner=lambda x: x + 2),
        make(inner=make()),
        make(inner=Meaning(leaf)),
        make(default=1),
        _changed_code(),
    ],
    ids=["number", "float", "NumPy", "bool", "tuple", "callee", "deeper callee", "compiled callee", "default", "code"],
)
def test_whatever_differs_is_another_meaning(other: FunctionType) -> None:
    assert meaning_of(other) != meaning_of(make())


def test_a_callee_that_is_exchanged_later_counts() -> None:
    def inner(x: Any) -> Any:
        return x + 1

    def other(x: Any) -> Any:
        return x - 1

    kernel = make(inner=inner)
    before = meaning_of(kernel)
    inner.__code__ = other.__code__
    assert meaning_of(kernel) != before


def test_a_global_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = meaning_of(make())
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert meaning_of(make()) != before


def test_names_of_fields_count() -> None:
    """Types of numba print the types of a named tuple's fields only, and fields are looked up by name."""
    pair, swapped = (types.NamedUniTuple(types.int32, 2, kind) for kind in (Pair, Swapped))
    assert meaning_of(pair) != meaning_of(swapped)
    assert meaning_of(types.Tuple((pair, types.int32))) != meaning_of(types.Tuple((swapped, types.int32)))
    assert meaning_of(types.Optional(pair)) != meaning_of(types.Optional(swapped))


def test_a_function_may_call_itself() -> None:
    def endless(x: Any) -> Any:
        return endless(x)

    assert meaning_of(endless) == meaning_of(endless)


def test_options_of_a_compiled_function_count() -> None:
    plain, fast = (make(inner=Meaning(leaf, fastmath=one)) for one in (False, True))
    assert meaning_of(plain) != meaning_of(fast)


def test_bits_of_a_number_count() -> None:
    """Of zeros and of what is no number, which look alike."""
    negative = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000000))[0]
    numbers = (0.0, -0.0, float("nan"), negative, np.float32(0), np.float32(-0.0))
    assert len({meaning_of(make(number)) for number in numbers}) == len(numbers)


def test_an_attribute_is_no_global(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(a: Any) -> None:
        a[0] = a.FACTOR

    before = meaning_of(kernel)
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert meaning_of(kernel) == before


def _importing() -> FunctionType:
    def kernel(a: Any) -> None:
        from math import pi

        a[0] = pi

    return kernel


def _empty_cell() -> FunctionType:
    def kernel(a: Any) -> None:
        a[0] = late

    if kernel is None:
        late = 1
    return kernel


@pytest.mark.parametrize(
    "unknown",
    [
        make(np.zeros(3)),
        make(object()),
        make(sys.modules["burstproof.errors"]),
        make(os),
        make(Kind.ONE),
        make(Kind),
        make(Law(1)),
        make(Pair(1, 2)),
        make([1]),
        make(inner=Meaning(leaf, extensions=[object()])),
        _importing(),
        _empty_cell(),
    ],
    ids=[
        *("array", "object", "module of the package", "another module", "member", "enumeration", "dataclass"),
        *("named tuple", "list", "extensions", "import", "empty cell"),
    ],
)
def test_what_no_digest_stands_for_is_refused(unknown: FunctionType) -> None:
    with pytest.raises(InputError, match="kernel: a"):
        meaning_of(unknown)


def test_every_process_finds_the_same() -> None:
    """Sets have another order in each process."""
    program = (
        "from burstproof.compile.meaning import meaning_of\n"
        "def f(x):\n    return x in {'a', 'b', 'c', 'd'} or x in (1, ..., None)\n"
        "print(meaning_of(f))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "12345"
    }
    assert len(answers) == 1


def test_every_kernel_of_the_engine_has_a_meaning() -> None:
    """So all can be launched and are kept on disk; those of another name or other types never have the same.

    It needs no compiler, so it runs wherever numba is installed.
    """
    from suites.support.compile.sass_compare import surveyed

    found: dict[str, set[tuple[str, str]]] = {}
    for _, spec in surveyed():
        meaning = meaning_of(spec.function, *spec.signature.args)
        found.setdefault(meaning, set()).add((spec.function.__name__, str(spec.signature)))
    assert all(len(kernels) == 1 for kernels in found.values())
