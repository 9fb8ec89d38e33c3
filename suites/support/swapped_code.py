"""Faults planted in functions that were imported before: the code of one of them is exchanged."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Container, Iterator
from types import CodeType, FunctionType, ModuleType

Swapped = tuple[FunctionType, CodeType]


def swapped_code(module: str, plain: str, edited: str) -> Swapped | None:
    """The function of a module that an edit changes, with its code there; ``None`` if it changes no function alone.

    ``plain`` and ``edited`` are the source without and with the edit. What an edit changes when the module is imported,
    such as a constant or a default value, is in no function.
    """
    here = importlib.import_module(module)
    functions = {function.__qualname__: function for function in _functions(here, here)}
    before, after = (_codes(source, here, functions) for source in (plain, edited))
    changed = [name for name, code in after.items() if without_lines(code) != without_lines(before[name])]
    if len(changed) != 1 or after[changed[0]].co_freevars != functions[changed[0]].__code__.co_freevars:
        return None
    return functions[changed[0]], after[changed[0]]


def without_lines(code: CodeType) -> CodeType:
    """``code`` without where it stands, to be compared: an edit above it may move it."""
    inner = tuple(without_lines(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_consts=inner, co_firstlineno=1, co_linetable=b"")


def _functions(place: object, module: ModuleType) -> Iterator[FunctionType]:
    """Functions of a module, or of a class in it, without what decorates them."""
    for value in vars(place).values():
        bare = getattr(value, "fget", None) or inspect.unwrap(getattr(value, "__func__", value))
        if isinstance(bare, FunctionType) and bare.__globals__ is vars(module):
            yield bare
        elif isinstance(bare, type) and place is module and bare.__module__ == module.__name__:
            yield from _functions(bare, module)


def _codes(source: str, module: ModuleType, functions: Container[str]) -> dict[str, CodeType]:
    """The codes of these functions in a source of the module."""
    found = {}
    left = [compile(source, str(module.__file__), "exec", dont_inherit=True)]
    while left:
        for inner in left.pop().co_consts:
            if isinstance(inner, CodeType) and inner.co_qualname in functions:
                found[inner.co_qualname] = inner
            elif isinstance(inner, CodeType):
                left.append(inner)
    return found
