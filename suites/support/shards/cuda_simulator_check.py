"""Checks of shards on one simulated CUDA device, for a process of their own: all that crosses between shards.

``NUMBA_ENABLE_CUDASIM=1 python -m suites.support.shards.cuda_simulator_check`` runs them and prints one JSON object:
the problems of each check, and the device functions that ran.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np

from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Record, Stimulus
from burstproof.errors import InputError, ShardLostError
from burstproof.network.model import Network
from burstproof.network.synthetic.build import synthesize
from suites.support.parity.interrupted import BATCH, interruption_differs
from suites.support.parity.mixed import compare_mix, mixed_network, mixed_options, mixed_plan
from suites.support.parity.simulator_check import SPECS, recordings_differ
from suites.support.shards import feature_checks, one_kernel_checks, padded_checks, queue_checks
from suites.support.shards.simulated import cut_mix, sharded, small_logs
from suites.support.simulated_process import print_problems

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine

_EVERYTHING = "plastic, windows 3 and 2, delays to 4, mp-driven"


def check_general_kernels() -> list[str]:
    """Plasticity, delays, mp-driven contributions and invalid neurons over three shards by round robin."""
    return compare_mix(cut_mix(_EVERYTHING), lambda network, options: sharded(network, options, 3, "round_robin"))


def check_packed_sums() -> list[str]:
    """Constant contributions in packed sums over two shards, through mailboxes in host memory."""
    packed = CudaOptions(sum_bits=8)
    return compare_mix(
        cut_mix("integers, all excitatory"),
        lambda network, options: sharded(network, replace(options, cuda=packed), 2, "contiguous", "staged"),
    )


def check_tiles() -> list[str]:
    """Shards whose FCL is sent in tiles of few targets, with delays."""
    tiles = "burstproof.engine.cuda.plan.sizing"
    with mock.patch(f"{tiles}._UNTILED_BYTES", 64), mock.patch(f"{tiles}._TILE_BYTES", 30):
        return compare_mix(
            cut_mix("fractions, delays to 7"), lambda network, options: sharded(network, options, 2, "round_robin")
        )


def _early_batch_path() -> ExitStack:
    """The batch path is taken from 12 candidates on, while the result is open."""
    modules = ("engine.cuda.plan.variant", "engine.reference", "engine.cuda.kernels.dynamics")
    with ExitStack() as patches:
        for module in modules:
            patches.enter_context(mock.patch(f"burstproof.{module}.BATCH_PATH_CANDIDATES", 12))
        return patches.pop_all()


def check_batch_path() -> list[str]:
    """The batch path is taken by what all shards count together, here from 12 candidates on."""
    with _early_batch_path():
        mix = cut_mix("integers", emulate_batch_path=True)
        return compare_mix(mix, lambda network, options: sharded(network, options, 2, "dynamic"))


def check_networks_made_on_the_device() -> list[str]:
    """Each shard makes its own rows; so does one device, where nothing is fused since the batch path is emulated."""
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.exchange.mail import Path
    from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice

    shards = (ShardingChoice((0,) * 3, strategy, path=Path.PEER) for strategy in ("contiguous", "round_robin"))
    options, problems = EngineOptions(emulate_batch_path=True), list[str]()
    for choice in (None, *shards):
        for spec in SPECS[:2]:
            plan = {1: Stimulus(forced=np.arange(0, spec.neurons, 3, dtype=np.uint32))}
            with _early_batch_path():
                reference = ReferenceEngine.create(synthesize(spec), options)
                engine = CudaEngine.from_spec(spec, options, choice)
                found = recordings_differ(reference.run(6, plan), engine.run(6, plan))
                found += set(reference.state().differences(engine.state())) - {"weights", "eligibility_traces"}
                engine.close()
            problems += [f"{choice.strategy if choice else 'one device'}: {name}" for name in found]
    return problems


def check_batches_from_another_state() -> list[str]:
    """Batches of 3 bursts from the reference's state, then from another partition's: history and delays go along."""
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.sharded.partition import make_partition

    mix = cut_mix(_EVERYTHING, bursts=12)
    network, plan = mixed_network(mix), mixed_plan(mix, mixed_network(mix))
    options = replace(mixed_options(mix), cuda=CudaOptions(batch_length=3))
    reference, engine = ReferenceEngine.create(network, options), sharded(network, options, 2, "contiguous")
    reference.run(4, plan)
    engine.restore(reference.state())
    expected = reference.run(4, plan)
    problems = recordings_differ(expected, engine.run(4, plan))
    assert isinstance(engine, CudaEngine)
    rates = np.bincount(expected.fired_ids, minlength=network.neuron_count) / 4
    engine.reshard(make_partition(network, 3, "dynamic", rates))
    problems += recordings_differ(reference.run(4, plan), engine.run(4, plan))
    problems += list(reference.state().differences(engine.state()))
    return problems + _refuses_other_partitions(engine, CudaEngine.create(network, options))


def _refuses_other_partitions(sharded_engine: CudaEngine, whole: CudaEngine) -> list[str]:
    """Resharding that is refused, and leaves the engine as it is."""
    from burstproof.engine.sharded.partition import make_partition

    neurons = whole.network.neuron_count
    other = make_partition(mixed_network(replace(cut_mix(_EVERYTHING), neurons=neurons + 1)), 2, "contiguous")
    own = make_partition(whole.network, 2, "contiguous")
    problems = []
    for engine, partition, said in ((sharded_engine, other, "another network"), (whole, own, "no partition")):
        before = engine.state()
        try:
            engine.reshard(partition)
            problems.append(f"a partition of {said} is taken")
        except InputError as error:
            problems += [] if said in str(error) else [str(error)]
        problems += before.differences(engine.state())
    return problems


def check_full_log() -> list[str]:
    """A shard whose log is full stops all: with no room beside one burst, a batch of three does them one by one."""
    mix = cut_mix("integers", bursts=4)
    network, plan = mixed_network(mix), mixed_plan(mix, mixed_network(mix))
    options = replace(mixed_options(mix), cuda=CudaOptions(batch_length=3))
    with small_logs():
        engine = sharded(network, options, 2, "contiguous")
    reference, batches = ReferenceEngine.create(network, options), list[int]()
    problems = recordings_differ(reference.run(4, plan), engine.run(4, plan, progress=batches.append))
    if sum(batches) != 4 or len(batches) < 3:
        problems.append(f"batches of {batches} bursts: no log was full")
    return problems + list(reference.state().differences(engine.state()))


def check_interrupted_run() -> list[str]:
    """A callback that raises while a batch is under way leaves all shards after it, where the next run goes on."""
    mix, short = cut_mix("integers", neurons=12, synapses=60, bursts=3 * BATCH + 2), CudaOptions(batch_length=BATCH)

    def create(network: Network, options: EngineOptions) -> Engine:
        return sharded(network, replace(options, cuda=short), 2, "contiguous")

    return interruption_differs(mix, create, [Record.COUNTS])


def check_shards_of_ranks() -> list[str]:
    """Shards on devices of different ranks, between which the host carries what fired."""
    from burstproof.engine.cluster.cuda_ranks import CudaRankShard
    from burstproof.engine.sharded.engine import ShardedEngine
    from burstproof.engine.sharded.partition import make_partition

    return compare_mix(
        cut_mix(_EVERYTHING),
        lambda network, options: ShardedEngine(
            network, options, make_partition(network, 2, "round_robin"), CudaRankShard
        ),
    )


def check_silent_shard() -> list[str]:
    """A shard that publishes nothing ends the run with an error that names it, and the engine does not go on."""
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.kernels.control import HALTED

    mix = cut_mix("integers")
    engine = sharded(mixed_network(mix), mixed_options(mix), 2, "contiguous", timeout_s=3.0)
    engine.run(1)
    assert isinstance(engine, CudaEngine)
    engine.devices.shards[1].device.write_control(HALTED, 1)
    problems = []
    for attempt in ("first", "second"):
        try:
            engine.run(2)
            problems.append(f"{attempt} run: no error")
        except ShardLostError as error:
            if "shard 1 published nothing" not in str(error):
                problems.append(f"{attempt} run: {error}")
    engine.close()
    return problems


def checks() -> dict[str, Callable[[], list[str]]]:
    """Every check by name."""
    modules = vars(one_kernel_checks) | vars(padded_checks) | vars(feature_checks) | vars(queue_checks) | globals()
    found = {name: value for name, value in modules.items() if name.startswith("check_")}
    return {name.removeprefix("check_").replace("_", " "): found[name] for name in sorted(found)}


if __name__ == "__main__":
    sys.exit(print_problems(checks(), sys.argv[1:]))
