"""Compiled functions of the CPU engine that a fault leaves alone: they are compiled once, before any fault is planted.

Kernels call functions, which call functions. Each is made at run time, from a code and from the values that the code
takes from around it, the functions that it calls among them. One that is made again of the same code and the same
values is the same; one that a fault changed is another, and so is whatever calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, SimpleNamespace
from unittest import mock

import numba
import numpy as np

from burstproof.engine.disk import DiskCache
from burstproof.engine.rules import Compiled
from suites.support.swapped_code import without_lines

_PLAIN = (bool, int, float, str, np.generic)


@contextmanager
def functions_made_once() -> Iterator[None]:
    """Within it, a function that is made again is the compiled one that was made before; none comes from disk."""
    made: dict[object, Compiled] = {}

    def njit(**options: bool | str) -> Callable[[FunctionType], Compiled]:
        def compiled(function: FunctionType) -> Compiled:
            what = repr(options), *_made_of(function)
            if what not in made:
                made[what] = numba.njit(**options)(function)
            made[what].disable_compile(False)  # who asked for it before may have settled on some types
            return made[what]

        return compiled

    with (
        mock.patch("burstproof.engine.compiler.numba", SimpleNamespace(njit=njit)),
        mock.patch.multiple(DiskCache, load_overload=lambda *_: None, save_overload=lambda *_: None),
    ):
        yield


def _made_of(function: FunctionType) -> tuple[object, ...]:
    """What decides how ``function`` is compiled, apart from the names of its module, which no fault binds anew."""
    around = [cell.cell_contents for cell in function.__closure__ or ()]
    values = [*around, *(function.__defaults__ or ())]
    return function.__module__, without_lines(function.__code__), *map(_same, values)


def _same(value: object) -> object:
    """Numbers are the same if they are equal and of one type; all else only if it is one object, which is kept."""
    return (type(value), repr(value)) if isinstance(value, _PLAIN) else id(value)
