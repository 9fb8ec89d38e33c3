"""What compute-sanitizer watches: the replay of recordings, or a kernel with a planted fault.

``python -m suites.support.parity.sanitized WHAT``: ``recordings``, or the name of the tool that is to find a fault.
"""

from __future__ import annotations

import sys

from burstproof.engine.options import CudaOptions
from burstproof.engine.replay import replay
from suites.support.parity.backends import Backend
from suites.support.parity.queue_checks import differs_as_chosen, queues_of
from suites.support.parity.recordings import recording

RECORDINGS = "recordings"

_TRACES = ("traces/lif_mix", "traces/delays_frac", "traces/stdp_w3", "traces/essential_stim")
"""Recordings that between them launch the fused burst, delays, plasticity and forced firing."""

_FAULTS = {
    "memcheck": 'extern "C" __global__ void planted(int* data) { data[1 << 20] = 1; }',
    "racecheck": (
        'extern "C" __global__ void planted(int* data) { __shared__ int row[64]; row[threadIdx.x] = data[threadIdx.x];'
        " data[threadIdx.x] = row[63 - threadIdx.x]; }"
    ),
    "initcheck": 'extern "C" __global__ void planted(int* data) { data[1] = data[0] + 1; }',
}


def planted(tool: str) -> str:
    """Launch the kernel whose fault ``tool`` finds."""
    import cupy

    memory = cupy.cuda.memory.Memory(1024)
    if tool != "initcheck":
        cupy.cuda.runtime.memset(memory.ptr, 0, 1024)
    cupy.RawKernel(_FAULTS[tool], "planted")((1,), (64,), (cupy.cuda.memory.MemoryPointer(memory, 0).ptr,))
    cupy.cuda.runtime.deviceSynchronize()
    return "done"


def replayed() -> str:
    """Replay the recordings on the device, and bursts of a network with queues.

    The network is small, and its batches are short: racecheck keeps each access to shared memory, 6 GB of host memory.
    """
    create = Backend("cuda", cuda=CudaOptions()).create
    found = {name: replay(recording(name), create) for name in _TRACES}
    differ = [f"{name}: {result.first}" for name, result in found.items() if not result.agrees]
    with queues_of(room=20):
        problems = differs_as_chosen(delay=5, per_row=30, neurons=2000, bin_room=97, batch_length=10)
    differ += [f"queues: {problem}" for problem in problems]
    return "; ".join(differ) or "all agree"


def main(what: str) -> None:
    """Do it, and say how it went."""
    print(replayed() if what == RECORDINGS else planted(what), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
