"""Cases and mixes by name on one backend, without a fault and under each: what ``planted.workshop`` runs in a copy.

``python -m suites.support.parity.planted_check BACKEND`` reads a JSON object: ``package``, the copy's folder, in which
it plants; ``checks``, the names of those that run without a fault; and ``faults``. It prints one: the ``healthy``
answer, and the answer ``found`` under each fault. An answer is the problems of each check, and why there are none.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
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
    LISTS,
    LISTS_OF_THREADS,
    ON_CPU,
    SHARDS,
    SHARED,
    SIMULATED_SHARDS,
    SIMULATOR,
    THREADS,
    WGPU,
    Fault,
)
from suites.support.parity.planted.forks import answer_in_fork, answer_of, try_in_fork
from suites.support.parity.planted.reuse import functions_made_once


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
    LISTS: Backend(LISTS, cpu=CpuOptions(threads=1, specialise=True)),
    LISTS_OF_THREADS: Backend(LISTS_OF_THREADS, cpu=CpuOptions(threads=2, specialise=True)),
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
    """Every case worked out by hand, mix and batch by name."""
    for case in (*CASES, *FEATURE_CASES):
        yield case.name, lambda create, case=case: run_case(case, create)
    for mix in MIXES:
        cut = _small(mix) if backend in (SIMULATOR, SIMULATED_SHARDS) else mix
        yield f"mix: {mix.name}", lambda create, cut=cut: compare_mix(cut, create)
        yield f"batch: {mix.name}", lambda create, cut=cut: compare_run(cut, create)


@contextmanager
def _ready(backend: str) -> Iterator[None]:
    """What has to hold for all checks of a backend."""
    with ExitStack() as stack:
        if backend in ON_CPU:
            stack.enter_context(functions_made_once())
        if backend in (LISTS, LISTS_OF_THREADS):
            stack.enter_context(
                mock.patch.multiple("burstproof.engine.cpu.recall", _FEWEST_PART=0, _FEWEST_OF_REGION=0)
            )
        if backend in (SIMULATOR, SIMULATED_SHARDS):
            from suites.support.simulated_blocks import quick_simulator

            stack.enter_context(quick_simulator())
            stack.enter_context(mock.patch("burstproof.engine.cuda.plan.packed.default_batch_length", return_value=4))
        yield


def main(backend: str) -> int:
    """Run the checks without a fault, then under each, and print what they find."""
    warnings.simplefilter("ignore", RuntimeWarning)
    asked = json.load(sys.stdin)
    package = Path(burstproof.__file__).parent
    if package != Path(asked["package"]):
        raise SystemExit(f"the package that runs is {package}")
    known = dict(checks(backend))

    def problems(names: Sequence[str]) -> dict[str, list[str]]:
        return {name: known[name](SUBJECTS[backend].create) for name in names}

    with _ready(backend):
        simulated = backend in (SIMULATOR, SIMULATED_SHARDS)  # a fork would lack the simulator's threads
        healthy = (answer_in_fork if simulated else answer_of)(lambda: problems(asked["checks"]))
        faults = [Fault(**{**fault, "caught_by": tuple(fault["caught_by"])}) for fault in asked["faults"]]
        found = [try_in_fork(package, fault, lambda names=fault.checks: problems(names)) for fault in faults]
    print(json.dumps({"healthy": healthy, "found": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
