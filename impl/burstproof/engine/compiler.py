"""How numba compiles functions that run on the host."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numba

from burstproof.engine.rules import Compiled

_suffix: ContextVar[Callable[[], str]] = ContextVar("_suffix", default=lambda: "")


@contextmanager
def names_of(key: object) -> Iterator[None]:
    """Within it, every compiled function gets a name of its own that belongs to ``key``.

    numba names the symbols of a function after its Python name and a number that counts the functions of the process.
    A kernel loaded from disk brings the symbols of what it calls along; were one of them named like a function that
    this process compiled for another key, the kernel would call that one.
    """
    digest, count = hashlib.sha256(repr(key).encode()).hexdigest()[:12], itertools.count()
    token = _suffix.set(lambda: f"_{digest}_{next(count)}")
    try:
        yield
    finally:
        _suffix.reset(token)


def _named(function: Compiled) -> Compiled:
    function.__qualname__ += _suffix.get()()
    return function


_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": False, "no_cfunc_wrapper": True, "_nrt": False}


def compiler(function: Compiled) -> Compiled:
    """Compile ``function`` with IEEE arithmetic, outside the interpreter's lock.

    Kernels do not count references, which takes long to compile: arrays belong to the caller, or lie on the stack.
    """
    compiled: Compiled = numba.njit(**_OPTIONS)(_named(function))
    return compiled


def inner_compiler(function: Compiled) -> Compiled:
    """Compile as ``compiler`` does, but for other kernels only: without the entry from Python, which takes long."""
    compiled: Compiled = numba.njit(**_OPTIONS, no_cpython_wrapper=True)(_named(function))
    return compiled
