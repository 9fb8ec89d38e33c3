"""Compiles an engine's kernels for its device model when they are first asked for.

numba compiles on one core. If cores are idle and several kernels are not in the disk cache yet, *helper* processes
compile some of them: a helper stores each in the image cache, where this process finds it, or waits for it. If the
helpers fail, this process compiles everything itself.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from burstproof.device.protocol import DeviceRuntime
from burstproof.engine.cores import idle_cores
from burstproof.engine.cuda.plan.shard_variant import ShardVariant

if TYPE_CHECKING:
    from burstproof.engine.cuda.kernels.spec import KernelSpec

_LONGEST_FIRST = ("enqueue", "burst", "dynamics", "propagate_computed")
"""Kernels that take longest to compile, in order; this process compiles the first missing kernel itself."""

_HELPERS = 2
_IS_HELPER = "BURSTPROOF_COMPILES_FOR_ANOTHER"

Work = tuple[ShardVariant, Sequence[str], tuple[int, int]]
"""A helper's task: the shard variant, names of its kernels, and the compute capability."""

_COMPILED: dict[tuple[Callable[..., None], str], Any] = {}
"""Kernels by function and device model; each device loads a kernel when it is first launched there."""


def compiled_once(runtime: DeviceRuntime, spec: KernelSpec) -> Any:
    """The kernel of ``spec``, compiled once per device model."""
    key = spec.function, runtime.name
    if key not in _COMPILED:
        _COMPILED[key] = runtime.kernel(spec.code)
    return _COMPILED[key]


def kernels_of(runtime: DeviceRuntime, shard: ShardVariant) -> dict[str, Any]:
    """The kernels of ``shard`` by name, each compiled once per device model."""
    from burstproof.engine.cuda.kernels.catalogue import catalogue

    specs = sorted(catalogue(shard), key=_rank)
    with _with_helpers(runtime, shard, specs):
        return {spec.name: compiled_once(runtime, spec) for spec in specs}


def _rank(spec: KernelSpec) -> int:
    return _LONGEST_FIRST.index(spec.name) if spec.name in _LONGEST_FIRST else len(_LONGEST_FIRST)


@contextmanager
def _with_helpers(runtime: DeviceRuntime, shard: ShardVariant, specs: Sequence[KernelSpec]) -> Iterator[None]:
    """A ``with`` block beside which helpers compile all missing kernels but the first; no helper outlives it."""
    can_help = not runtime.simulated and idle_cores() > _HELPERS and _can_start_python()
    missing = [spec.name for spec in specs if can_help and not _is_known(runtime, spec)]
    helpers: list[subprocess.Popen[bytes]] = []
    try:
        if len(missing) > _HELPERS:
            with suppress(OSError, ValueError, pickle.PicklingError):
                for names in (missing[1:2], missing[2:]):
                    helpers.append(_start_helper())
                    _send_task(helpers[-1], (shard, names, runtime.capability))
        yield
    finally:
        for helper in helpers:
            helper.kill()
        for helper in helpers:
            helper.wait()


def _is_known(runtime: DeviceRuntime, spec: KernelSpec) -> bool:
    """Whether the kernel of ``spec`` is in memory or in the disk cache."""
    return (spec.function, runtime.name) in _COMPILED or spec.code.is_kept(runtime.capability)


def _can_start_python() -> bool:
    """Whether ``sys.executable`` is an interpreter: a frozen program would run itself again. Helpers start none."""
    return bool(sys.executable) and not getattr(sys, "frozen", False) and _IS_HELPER not in os.environ


def _start_helper() -> subprocess.Popen[bytes]:
    """Start a helper with this process's module path; ``-P`` keeps the current folder out unless it is on that path."""
    places = [place or os.getcwd() for place in sys.path if isinstance(place, str)]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places), _IS_HELPER: "1"},
    )


def _send_task(helper: subprocess.Popen[bytes], work: Work) -> None:
    """Send ``helper`` its task."""
    assert helper.stdin is not None
    with helper.stdin as pipe:
        pickle.dump(work, pipe)


def _run_helper() -> None:
    """The helper's main function: compile until done or until the parent is gone. Only the parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from burstproof.engine.cuda.kernels.catalogue import catalogue

    work: Work = pickle.load(sys.stdin.buffer)
    (shard, names, capability), parent = work, os.getppid()
    codes = {spec.name: spec.code for spec in catalogue(shard)}
    for name in names:
        if os.getppid() == parent:
            codes[name].image(capability)


if __name__ == "__main__":
    _run_helper()
