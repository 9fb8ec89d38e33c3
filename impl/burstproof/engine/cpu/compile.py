"""How the kernels of the numba CPU engine are compiled, and what for."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numba

from burstproof.engine.features.key import NO_KEY, ExtrasKey
from burstproof.engine.rules import Compiled, Features

CLAMPED, HISTORY = 0, 1
"""Places in the ``counters`` array (2,) int64: the sticky flag, and the number of past bursts that are known."""


@dataclass(frozen=True)
class KernelKey:
    """What the kernels are compiled for.

    Attributes
    ----------
    features : Features
    delayed : bool
        Some delay is above 1.
    static_clamps : bool
        Some static contribution was clamped.
    computed, plastic : bool
        There are computed rows, plastic mappings.
    round_mp_driven, plastic_all_window : bool
        Switches of the profile.
    restart_fired : bool
        Only the non-accumulating neurons of the last fired list restart (feagi-beta, large networks).
    shard : bool
        The neurons are those of a shard: they have ids beside their places.
    extras : ExtrasKey
        Features of FEATURES.md.
    recalled : bool
        Fired lists are kept, and rows read as they arrive (``recall.py``).
    """

    features: Features
    delayed: bool
    static_clamps: bool
    computed: bool
    plastic: bool
    round_mp_driven: bool
    plastic_all_window: bool
    restart_fired: bool
    shard: bool
    extras: ExtrasKey = NO_KEY
    recalled: bool = False

    @property
    def learns_first(self) -> bool:
        """Whether plasticity comes before propagation: so in feagi-beta, whose propagation is the next burst's."""
        return self.plastic_all_window

    def general(self) -> KernelKey:
        """The key of kernels that serve every network under the same profile: everything is compiled in."""
        return dataclasses.replace(
            self,
            features=self.features.general(),
            delayed=True,
            static_clamps=True,
            computed=True,
            plastic=True,
            extras=self.extras.general(),
        )


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
