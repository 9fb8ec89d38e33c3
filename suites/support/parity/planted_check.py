"""Cases and mixes by name on one backend, in a process of its own: what ``planted.workshop`` runs in an edited copy.

``python -m suites.support.parity.planted_check BACKEND NAME...`` prints one JSON object: which package ran, and the
problems of each name.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from unittest import mock

import burstproof
from burstproof.engine.options import CpuOptions, CudaOptions, EngineOptions, WgpuOptions
from burstproof.engine.protocol import Engine
from burstproof.network.model import Network
from suites.support.parity.backends import Backend
from suites.support.parity.builder import CreateEngine, run_case
from suites.support.parity.cases import CASES, FEATURE_CASES
from suites.support.parity.mixed import MIXES, Mix, compare_mix, compare_run
from suites.support.parity.planted.fault import (
    CPU,
    CUDA,
    FEATURES,
    SHARDS,
    SHARED,
    SIMULATED_SHARDS,
    SIMULATOR,
    THREADS,
    WGPU,
)


class SimulatedShards(Backend):
    """Two shards on the one simulated device, by turns."""

    def create(self, network: Network, options: EngineOptions) -> Engine:
        """An engine over ``network``."""
        from suites.support.shards.simulated import sharded

        return sharded(network, options, max(1, min(2, network.neuron_count)), "round_robin")


SUBJECTS = {
    CPU: Backend(CPU, cpu=CpuOptions(threads=1)),
    FEATURES: Backend(FEATURES, cpu=CpuOptions(threads=1)),
    SHARED: Backend(SHARED, cpu=CpuOptions(threads=1)),
    THREADS: Backend(THREADS, cpu=CpuOptions(threads=2)),
    SHARDS: Backend(SHARDS, shards=2),
    WGPU: Backend(WGPU, wgpu=WgpuOptions()),
    SIMULATED_SHARDS: SimulatedShards(SIMULATED_SHARDS),
    SIMULATOR: Backend(SIMULATOR, cuda=CudaOptions(batch_length=4)),
    CUDA: Backend(CUDA, cuda=CudaOptions()),
}

Check = Callable[[CreateEngine], list[str]]


def _small(mix: Mix) -> Mix:
    """``mix`` cut to what the simulator does in a second or two."""
    return replace(mix, neurons=40, synapses=250, bursts=6)


def checks(backend: str) -> Iterator[tuple[str, Check]]:
    """Every case worked out by hand, mix and train by name."""
    for case in (*CASES, *FEATURE_CASES):
        yield case.name, lambda create, case=case: run_case(case, create)
    for mix in MIXES:
        cut = _small(mix) if backend in (SIMULATOR, SIMULATED_SHARDS) else mix
        yield f"mix: {mix.name}", lambda create, cut=cut: compare_mix(cut, create)
        yield f"train: {mix.name}", lambda create, cut=cut: compare_run(cut, create)


def main(backend: str, names: list[str]) -> int:
    """Run the checks called ``names`` and print what they find."""
    warnings.simplefilter("ignore", RuntimeWarning)
    known = dict(checks(backend))
    with ExitStack() as stack:
        if backend in (SIMULATOR, SIMULATED_SHARDS):
            from suites.support.simulated_blocks import quick_blocks

            stack.enter_context(quick_blocks())
            stack.enter_context(mock.patch("burstproof.engine.cuda.plan.packed.default_batch_length", return_value=4))
        problems = {name: known[name](SUBJECTS[backend].create) for name in names}
    print(json.dumps({"package": burstproof.__file__, "problems": problems}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
