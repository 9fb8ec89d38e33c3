"""Checks of shards on one simulated CUDA device, for a process of their own: all that crosses between shards.

``python -m suites.stage7_multi_gpu.cuda_simulator_check`` runs them and prints one JSON object: the name of each check
with the list of its problems.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from unittest import mock

import numpy as np

from burstproof.burst.engine import CudaOptions, Engine, EngineOptions
from burstproof.burst.reference import ReferenceEngine
from burstproof.errors import ShardLostError
from burstproof.network.model import Network
from suites.stage5_parity.mixed import MIXES, Mix, compare_mix, mixed_network, mixed_options, mixed_plan
from suites.stage5_parity.simulator_check import recordings_differ

_EVERYTHING = "plastic, windows 3 and 2, delays to 4, mp-driven"


def _mix(name: str, **changes: object) -> Mix:
    """A mixed network cut to what the simulator does in a second or two."""
    found = next(mix for mix in MIXES if mix.name == name)
    return replace(found, **{"neurons": 40, "synapses": 220, "bursts": 5, **changes})  # type: ignore[arg-type]


def _sharded(
    network: Network, options: EngineOptions, shards: int, strategy: str, path: str = "peer", timeout_s: float = 20.0
) -> Engine:
    from burstproof.sharding.cuda_choice import ShardingChoice
    from burstproof.sharding.cuda_engine import CudaShardedEngine
    from burstproof.sharding.cuda_mail import Path

    choice = ShardingChoice((0,) * shards, strategy, path=Path(path), timeout_s=timeout_s)
    return CudaShardedEngine.create(network, options, None, choice)


def check_general_kernels() -> list[str]:
    """Plasticity, delays, mp-driven contributions and invalid neurons over three shards by round robin."""
    return compare_mix(_mix(_EVERYTHING), lambda network, options: _sharded(network, options, 3, "round_robin"))


def check_packed_sums() -> list[str]:
    """Constant contributions in packed sums over two shards, through mailboxes in host memory."""
    packed = CudaOptions(sum_bits=8)
    return compare_mix(
        _mix("integers, all excitatory"),
        lambda network, options: _sharded(network, replace(options, cuda=packed), 2, "contiguous", "staged"),
    )


def check_tiles() -> list[str]:
    """Shards whose FCL is sent in tiles of few targets, with delays."""
    tiles = "burstproof.burst.cuda.tiles"
    with mock.patch(f"{tiles}._UNTILED_BYTES", 64), mock.patch(f"{tiles}._TILE_BYTES", 30):
        return compare_mix(
            _mix("fractions, delays to 7"), lambda network, options: _sharded(network, options, 2, "round_robin")
        )


def check_batch_path() -> list[str]:
    """The batch path is taken by what all shards count together, here from 12 candidates on."""
    modules = ("burst.cuda.variant", "burst.reference", "sharding.kernels_shard")
    with ExitStack() as patches:
        for module in modules:
            patches.enter_context(mock.patch(f"burstproof.{module}.BATCH_PATH_CANDIDATES", 12))
        mix = _mix("integers", emulate_batch_path=True)
        return compare_mix(mix, lambda network, options: _sharded(network, options, 2, "dynamic"))


def check_trains_from_another_state() -> list[str]:
    """Trains of 3 bursts from the reference's state, then from another partition's: history and delays go along."""
    from burstproof.sharding.cuda_engine import CudaShardedEngine
    from burstproof.sharding.partition import make_partition

    mix = _mix(_EVERYTHING, bursts=12)
    network, plan = mixed_network(mix), mixed_plan(mix, mixed_network(mix))
    options = replace(mixed_options(mix), cuda=CudaOptions(train_length=3))
    reference, engine = ReferenceEngine.create(network, options), _sharded(network, options, 2, "contiguous")
    reference.run(4, plan)
    engine.restore(reference.state())
    expected = reference.run(4, plan)
    problems = recordings_differ(expected, engine.run(4, plan))
    fired = expected.fired_ids
    assert isinstance(engine, CudaShardedEngine)
    if engine.rates is None or not (engine.rates * 4 == np.bincount(fired, minlength=network.neuron_count)).all():
        problems.append("the rates are not those of the bursts so far")
    engine.reshard(make_partition(network, 3, "dynamic", engine.rates))
    problems += recordings_differ(reference.run(4, plan), engine.run(4, plan))
    return problems + list(reference.state().differences(engine.state()))


def _small_logs() -> mock._patch[object]:
    from burstproof.burst.cuda.buffers import TrainSizes

    return mock.patch("burstproof.sharding.cuda_pack.train_sizes", lambda n, length: TrainSizes(length, n, n + 1))


def check_full_log() -> list[str]:
    """A shard whose log is full stops all: with no room beside one burst, bursts are done one by one."""
    with _small_logs():
        return compare_mix(
            _mix("integers", bursts=4), lambda network, options: _sharded(network, options, 2, "contiguous")
        )


def check_burst_in_one_kernel() -> list[str]:
    """A shard on a device of its own; delays, packed sums, and a log that is full now and then."""
    problems = compare_mix(
        _mix("fractions, delays to 7"), lambda network, options: _sharded(network, options, 1, "contiguous")
    )
    packed = CudaOptions(sum_bits=8, train_length=3)
    with _small_logs(), mock.patch("burstproof.sharding.cuda_resident._LOG_PER_NEURON", 2):
        return problems + compare_mix(
            _mix("integers, all excitatory", bursts=9),
            lambda network, options: _sharded(network, replace(options, cuda=packed), 1, "contiguous"),
        )


def check_packets() -> list[str]:
    """Two shards in one kernel each: one after the other here, so each finds the other's packets put there before."""
    from suites.stage7_multi_gpu.prefilled import CHUNK, Prefilled

    mix = _mix("integers, all excitatory", neurons=5 * CHUNK, synapses=1200, bursts=6)
    network, options = mixed_network(mix), mixed_options(mix)
    plan = mixed_plan(mix, network)
    reference = ReferenceEngine.create(network, options)
    expected = reference.run(mix.bursts, plan)
    filled = Prefilled(expected)
    with filled.patched():
        engine = _sharded(network, replace(options, cuda=CudaOptions(train_length=4)), 2, "round_robin")
        problems = recordings_differ(expected, engine.run(mix.bursts, plan))
    if filled.packets != mix.bursts * 2 * 3:
        problems.append(f"{filled.packets} packets were asked for: the bursts were not in one kernel each")
    return problems + list(reference.state().differences(engine.state()))


def check_shards_of_ranks() -> list[str]:
    """Shards on devices of different ranks, between which the host carries what fired."""
    from burstproof.sharding.cuda_rank import CudaRankShard
    from burstproof.sharding.engine import ShardedEngine
    from burstproof.sharding.partition import make_partition

    return compare_mix(
        _mix(_EVERYTHING),
        lambda network, options: ShardedEngine(
            network, options, make_partition(network, 2, "round_robin"), CudaRankShard
        ),
    )


def check_silent_shard() -> list[str]:
    """A shard that publishes nothing ends the run with an error that names it, and the engine does not go on."""
    from burstproof.burst.cuda.control import HALTED
    from burstproof.sharding.cuda_engine import CudaShardedEngine

    mix = _mix("integers")
    engine = _sharded(mixed_network(mix), mixed_options(mix), 2, "contiguous", timeout_s=3.0)
    engine.run(1)
    assert isinstance(engine, CudaShardedEngine)
    engine.shard_on_device(1).device.write_control(HALTED, 1)
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
    names = sorted(name for name in globals() if name.startswith("check_"))
    return {name.removeprefix("check_").replace("_", " "): globals()[name] for name in names}


def main(names: list[str]) -> int:
    """Run the checks called ``names``, or all, and print their problems."""
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    warnings.simplefilter("ignore", RuntimeWarning)
    print(json.dumps({name: check() for name, check in checks().items() if not names or name in names}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
