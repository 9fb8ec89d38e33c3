"""What a Python function for numba means: a digest of its code and of all that it takes from around it.

Kernels are made at run time from functions that call functions, each with values of its own. Two that are made of the
same code and the same values are compiled to the same machine code, whichever process made them; one whose code, or
that of anything it calls, was changed is another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from burstproof.errors import InputError

_PLAIN = (type(None), type(Ellipsis), bool, int, float, complex, str, bytes, np.generic, np.dtype)


def meaning_of(*values: object) -> str:
    """Digest of ``values``, in hexadecimal; the same in every process.

    Parameters
    ----------
    *values
        Functions for numba, compiled or not; types of numba; constants.

    Raises
    ------
    InputError
        A function takes something from around it that no digest stands for, such as an array.
    """
    return hashlib.sha256(repr(_Meanings().of(values)).encode()).hexdigest()


class _Meanings:
    """Describes values by tuples of text; what comes again is named by its number, so a function may call itself."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []

    def of(self, value: object) -> object:
        if isinstance(value, _PLAIN):
            return type(value).__name__, repr(value)
        if isinstance(value, tuple | list):
            return type(value).__qualname__, *map(self.of, value)
        if isinstance(value, frozenset | set):
            return "set", *sorted(repr(self.of(one)) for one in value)
        if isinstance(value, CodeType):
            return self._of_code(value)
        if isinstance(value, Enum):
            return _name(type(value)), value.name
        if isinstance(value, ModuleType | BuiltinFunctionType | type | np.ufunc):
            return self._of_name(value)
        return self._of_object(value)

    def _of_object(self, value: Any) -> object:
        if id(value) in self._numbers:
            return "again", self._numbers[id(value)]
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)  # so that no other object gets its id
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, types.Type | ir.Type):
            named = _fields_of(getattr(value, "instance_class", None))
            return _name(type(value)), str(value), named, *map(self.of, getattr(value, "types", ()))
        if is_dataclass(value):
            return _name(type(value)), *(self.of(getattr(value, field.name)) for field in fields(value))
        bare = getattr(value, "py_func", None) or getattr(value, "_defn", None)
        if bare is None:
            raise InputError("a value that a kernel cannot be told apart by", where="kernel", got=repr(value)[:200])
        options = sorted(getattr(value, "targetoptions", {}).items())
        return _name(type(value)), repr(options), self.of(bare)

    def _of_function(self, function: FunctionType) -> object:
        around = [cell.cell_contents for cell in function.__closure__ or ()]
        given = [function.__defaults__, sorted((function.__kwdefaults__ or {}).items())]
        names = sorted(set(_names_in(function.__code__)) & set(function.__globals__))
        globals_ = [(name, self.of(function.__globals__[name])) for name in names]
        return "function", self.of(function.__code__), *map(self.of, [*around, *given]), *globals_

    def _of_code(self, code: CodeType) -> object:
        numbers = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        return "code", numbers, names, code.co_code.hex(), *map(self.of, code.co_consts)

    def _of_name(self, value: Any) -> object:
        """A module, class or builtin stands for itself: its name tells, as numba knows it or the versions do."""
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "burstproof":
            raise InputError("a kernel takes a module of the package", where="kernel", got=value.__name__)
        return _name(value), *_fields_of(value)


def _names_in(code: CodeType) -> Iterator[str]:
    """Names that the code looks up, and those of the functions in it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_in(inner)


def _fields_of(kind: object) -> tuple[str, ...]:
    """Names in a class of named tuples, which no type of numba tells."""
    return getattr(kind, "_fields", ())


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', None) or value.__name__}"
