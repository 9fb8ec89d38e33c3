"""What a Python function for numba means: a digest of its code and of all that it takes from around it.

Kernels are made at run time from functions that call functions, each with values of its own. Those that are made of the
same code and the same values have the same digest in every process; one whose code, or that of anything it calls, was
changed has another. What cannot be told so is refused rather than described by its name alone.
"""

from __future__ import annotations

import dis
import hashlib
import struct
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from burstproof.errors import InputError

_PLAIN = (type(None), type(Ellipsis), bool, int, str, bytes)
_KNOWN = ("builtins", "cmath", "llvmlite", "math", "numba", "numba_cuda", "numpy", "operator")
"""Packages whose modules, classes and functions are told by their names: with their versions they are the same."""


def meaning_of(*values: object) -> str:
    """Digest of ``values``, in hexadecimal.

    Parameters
    ----------
    *values
        Functions for numba, compiled or not; types of numba; constants.

    Raises
    ------
    InputError
        A function takes something from around it that no digest stands for, such as an array, an object or a function
        that is not compiled.
    """
    try:
        return hashlib.sha256(repr(_Meanings().of(values)).encode()).hexdigest()
    except (ValueError, RecursionError) as error:  # a cell that is empty yet, or calls without an end
        raise InputError(f"a kernel that cannot be told from others: {error}", where="kernel") from error


class _Meanings:
    """Describes values by tuples of text; what comes again is named by its number, so a function may call itself."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []

    def of(self, value: object) -> object:
        if type(value) in _PLAIN:
            return type(value).__name__, repr(value)
        if isinstance(value, np.generic):
            return type(value).__name__, value.tobytes().hex()
        if type(value) is float:
            return "float", struct.pack("<d", value).hex()
        if type(value) is tuple:
            return "tuple", *map(self.of, value)
        if type(value) is frozenset:
            return "set", *sorted(repr(self.of(one)) for one in value)
        if isinstance(value, CodeType):
            return self._of_code(value)
        if isinstance(value, types.Type | ir.Type | np.dtype):
            return self._of_type(value)
        if isinstance(value, ModuleType | BuiltinFunctionType | type | np.ufunc):
            return self._of_name(value)
        return self._of_function(value)

    def _of_function(self, value: Any) -> object:
        """A function of Python, or what numba made of one."""
        if id(value) in self._numbers:
            return "again", self._numbers[id(value)]
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)  # so that no other object gets its id
        if isinstance(value, FunctionType):
            return self._of_parts(value)
        bare = getattr(value, "py_func", None) or getattr(value, "_defn", None)
        options = getattr(value, "targetoptions", {})
        if bare is None or any(options.get(name) for name in ("link", "extensions")):
            raise _refused(value)
        given = [(name, repr(option)) for name, option in sorted(options.items()) if type(option) in _PLAIN]
        signatures = [str(one) for one in getattr(value, "overloads", ())] if not self._grows(value) else ()
        return _name(type(value)), given, signatures, self.of(bare)

    @staticmethod
    def _grows(value: Any) -> bool:
        """Whether numba compiles the function for whatever types come; another has the types that it was given."""
        return bool(getattr(value, "_can_compile", True))

    def _of_parts(self, function: FunctionType) -> object:
        around = [cell.cell_contents for cell in function.__closure__ or ()]
        given = function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items()))
        names = sorted(_globals_of(function.__code__) & set(function.__globals__))
        globals_ = [(name, self.of(function.__globals__[name])) for name in names]
        return "function", self.of(function.__code__), *map(self.of, [*around, *given]), *globals_

    def _of_code(self, code: CodeType) -> object:
        numbers = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        return "code", numbers, names, code.co_code.hex(), *map(self.of, code.co_consts)

    def _of_type(self, value: Any) -> object:
        """A type of numba, LLVM or NumPy; numba's print no names of fields, by which kernels look values up."""
        parts = (*getattr(value, "types", ()), getattr(value, "type", None), getattr(value, "dtype", None))
        inner = [self._of_type(part) for part in parts if isinstance(part, types.Type)]
        return _name(type(value)), str(value), getattr(getattr(value, "instance_class", None), "_fields", ()), *inner

    def _of_name(self, value: Any) -> object:
        """What is known by its name, and a class of named tuples by those of its fields."""
        named = isinstance(value, type) and issubclass(value, tuple) and value is not tuple
        home = value.__name__ if isinstance(value, ModuleType) else value.__module__ or "builtins"
        if not named and home.partition(".")[0] not in _KNOWN:
            raise _refused(value)
        return _name(value), getattr(value, "_fields", ())


@cache
def _globals_of(code: CodeType) -> frozenset[str]:
    """Names that the code, and that of the functions in it, looks up in its module.

    Raises
    ------
    InputError
        It imports something, which is in no digest.
    """
    steps = list(dis.get_instructions(code))
    if any(step.opname == "IMPORT_NAME" for step in steps):
        raise InputError("a function that a kernel is made of imports something", where="kernel", got=code.co_name)
    inner = (_globals_of(one) for one in code.co_consts if isinstance(one, CodeType))
    return frozenset(step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")).union(*inner)


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', None) or value.__name__}"


def _refused(value: object) -> InputError:
    return InputError("a kernel takes something that no digest stands for", where="kernel", got=repr(value)[:200])
