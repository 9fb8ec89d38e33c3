"""Something goes wrong on a real device, for a process of its own.

``python -m suites.support.parity.device_fault_check KIND`` with one of

``none``     a short run, compared with the reference;
``kernel``   a kernel writes outside its memory while the engine has bursts to do;
``memory``   the engine needs memory when there is none left;
``killed``   bursts without end, until somebody kills the process;
``looped``   the same call by call, in a closed loop;
``loop``     a kernel writes outside its memory while a closed loop is under way.

It prints ``running`` when the engine is up, then one line: ``agrees``, or the name of the package's error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from burstproof.engine.cuda.kernels.mailbox import IDLE_NS
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.state import Record
from burstproof.errors import BurstproofError
from suites.support.parity.batch_checks import all_fire, cuda_engine, runs_differ

_NEURONS = 100_000
_BURSTS = 20
_WITHOUT_END = 1 << 40
_KEPT_FREE_BYTES = 1 << 20

_OUTSIDE = 'extern "C" __global__ void outside() { *reinterpret_cast<int*>(16) = 1; }'


def _agree() -> str:
    network, plan = all_fire(_NEURONS)
    return ", ".join(runs_differ(network, EngineOptions(), _BURSTS, plan)) or "agrees"


def _fault_in_kernel(engine: Engine) -> None:
    import cupy

    cupy.RawKernel(_OUTSIDE, "outside")((1,), (1,), ())
    engine.run(_BURSTS)


def _memory_runs_out(engine: Engine) -> None:
    """A state with other weights has the network packed again, in an arena that nobody can give."""
    import cupy

    state = engine.state()
    changed = replace(state, weights=np.where(np.arange(len(state.weights)) % 2, 1, 2).astype(np.float32))
    held = []
    try:
        size = cupy.cuda.Device().mem_info[0]
        while size > _KEPT_FREE_BYTES:
            try:
                held.append(cupy.cuda.memory.Memory(size))
            except cupy.cuda.runtime.CUDARuntimeError:
                size //= 2
        engine.restore(changed)
    finally:
        held.clear()


def _until_killed(engine: Engine) -> None:
    engine.run(_WITHOUT_END, record=Record.NONE)


def _looped_until_killed(engine: Engine) -> None:
    with engine.closed_loop() as loop:
        while True:
            loop.step()


def _fault_in_loop(engine: Engine) -> None:
    import cupy

    with engine.closed_loop() as loop:
        for _ in range(_BURSTS):
            loop.step()
        cupy.RawKernel(_OUTSIDE, "outside")((1,), (1,), ())
        for _ in range(_BURSTS):
            loop.step()
            time.sleep(2 * IDLE_NS / 1e9)


_FAULTS: dict[str, Callable[[Engine], None]] = {
    "kernel": _fault_in_kernel,
    "memory": _memory_runs_out,
    "killed": _until_killed,
    "looped": _looped_until_killed,
    "loop": _fault_in_loop,
}


def main(kind: str) -> None:
    """Do what ``kind`` says."""
    if kind == "none":
        print(_agree(), flush=True)
        return
    network, plan = all_fire(_NEURONS)
    engine = cuda_engine(network, EngineOptions())
    engine.run(_BURSTS, plan)
    print("running", flush=True)
    try:
        _FAULTS[kind](engine)
        print("no error", flush=True)
    except BurstproofError as error:
        print(type(error).__name__, flush=True)
    engine.close()
    if kind == "memory":
        print(_agree(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
