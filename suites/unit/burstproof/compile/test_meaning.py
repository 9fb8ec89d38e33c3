"""Kernels that are made of the same code and values are the same in every process; a change anywhere in them tells."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, ModuleType
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


@dataclass(frozen=True)
class Law:
    low: int


def leaf(x: Any) -> Any:
    return x + 1


def make(number: object = 1, inner: Callable[..., Any] = leaf, default: int = 0) -> FunctionType:
    """A function that calls another and takes a constant, a default and a global."""

    def kernel(a: Any, b: int = default) -> None:
        a[0] = inner(number) * FACTOR + b + sum(i for i in (1, 2))

    return kernel


def _changed_code() -> FunctionType:
    def kernel(a: Any, b: int = 0) -> None:
        a[0] = leaf(1) * FACTOR - b

    return kernel


def test_functions_made_alike_mean_the_same() -> None:
    assert meaning_of(make()) == meaning_of(make())
    assert meaning_of(make(Law(1))) == meaning_of(make(Law(1)))


@pytest.mark.parametrize(
    "other",
    [
        make(2),
        make(1.0),
        make(np.float32(1)),
        make(True),
        make((1,)),
        make(Law(1)),
        make(inner=lambda x: x + 2),
        make(inner=make()),
        make(default=1),
        _changed_code(),
    ],
    ids=["number", "float", "NumPy", "bool", "tuple", "law", "callee", "deeper callee", "default", "code"],
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


def test_a_function_may_call_itself() -> None:
    def endless(x: Any) -> Any:
        return endless(x)

    assert meaning_of(endless) == meaning_of(endless)


@pytest.mark.parametrize(
    "unknown",
    [np.zeros(3), object(), sys.modules["burstproof.errors"]],
    ids=["array", "object", "module of the package"],
)
def test_what_no_digest_stands_for_is_refused(unknown: np.ndarray | ModuleType | object) -> None:
    with pytest.raises(InputError, match="kernel: a"):
        meaning_of(make(unknown))


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
