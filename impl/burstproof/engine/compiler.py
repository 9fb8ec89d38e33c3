"""Compilation of host functions by numba."""

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
    """Within this context each compiled function gets a unique name that contains a digest of ``key``.

    numba names the symbols of a function after its Python name and a counter of the process. A kernel loaded from disk
    brings the symbols of the functions that it calls. If one had the name of a function that this process compiled for
    another key, the kernel would call that function.
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
    """Compile ``function`` with IEEE arithmetic; it runs without the interpreter's lock.

    Reference counting is off, because it takes long to compile: arrays belong to the caller, or lie on the stack.
    """
    compiled: Compiled = numba.njit(**_OPTIONS)(_named(function))
    return compiled


def inner_compiler(function: Compiled) -> Compiled:
    """Like ``compiler``, for functions that only kernels call: no entry from Python, which takes long to compile."""
    compiled: Compiled = numba.njit(**_OPTIONS, no_cpython_wrapper=True)(_named(function))
    return compiled
