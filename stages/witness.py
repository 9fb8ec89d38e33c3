"""Checks that a case ran the function in its source to the end.

A hook in a conftest file can replace the function, keep it from being called, or swallow what it raises; pytest reports
a pass each time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from pathlib import Path
from types import CodeType

import pytest
from _pytest.assertion import rewrite

_RAN = pytest.StashKey[bool]()


class Witness:
    """A pytest plugin that notes for each case whether its own function ran to the end."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Wrap the function so that its return is noted; with ``@given`` also the function that hypothesis calls."""
        function, config = pyfuncitem.obj, pyfuncitem.config
        handle = getattr(function, "hypothesis", None)
        body = function if handle is None else handle.inner_test
        ended: list[object] = []

        def ending(called: Callable[..., object]) -> Callable[..., object]:
            @functools.wraps(called)
            def call(*positional: object, **named: object) -> object:
                __tracebackhide__ = True
                result = called(*positional, **named)
                ended.append(called)
                return result

            return call

        pyfuncitem.obj = ending(function)
        if handle is not None:
            handle.inner_test = ending(body)
        try:
            return (yield)
        finally:
            pyfuncitem.obj = function
            if handle is not None:
                handle.inner_test = body
            code = getattr(body, "__code__", None)
            pyfuncitem.stash[_RAN] = function in ended and body in ended and code in _codes(pyfuncitem.path, config)


def ran(item: pytest.Item) -> bool:
    """Whether the case's own function has run to the end."""
    return item.stash.get(_RAN, False)


@functools.cache
def _codes(file: Path, config: pytest.Config) -> frozenset[CodeType]:
    """The code objects of all functions in a test module, as pytest compiles it."""
    compiled = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
    module = rewrite._read_pyc(file, compiled) or rewrite._rewrite_test(file, config)[1]
    found = [module]
    for code in found:
        found += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return frozenset(found)
