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
    such as a constant, a default value or what decorates a function, is in no function.
    """
    here = importlib.import_module(module)
    functions = {function.__qualname__: function for function in _functions(here, here)}
    whole = [compile(source, str(here.__file__), "exec", dont_inherit=True) for source in (plain, edited)]
    before, after = (_codes(code, functions) for code in whole)
    changed = [name for name, code in after.items() if without_lines(code) != without_lines(before[name])]
    if _outside(whole[0]) != _outside(whole[1]) or len(changed) != 1:
        return None
    function, code = functions[changed[0]], after[changed[0]]
    return (function, code) if code.co_freevars == function.__code__.co_freevars else None


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


def _outside(module: CodeType) -> CodeType:
    """What a module does when it is imported, without its functions and classes."""
    consts = tuple(None if isinstance(one, CodeType) else one for one in module.co_consts)
    return without_lines(module.replace(co_consts=consts))


def _codes(module: CodeType, functions: Container[str]) -> dict[str, CodeType]:
    """The codes of these functions in that of a module."""
    found = {}
    left = [module]
    while left:
        for inner in left.pop().co_consts:
            if isinstance(inner, CodeType) and inner.co_qualname in functions:
                found[inner.co_qualname] = inner
            elif isinstance(inner, CodeType):
                left.append(inner)
    return found
