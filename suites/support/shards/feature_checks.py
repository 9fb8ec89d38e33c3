"""Checks of features (FEATURES.md) over shards on the simulated CUDA device: cases worked out by hand, and recordings.

They are among those of ``cuda_simulator_check``, which runs them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.replay import trace_options
from burstproof.engine.sharded.partition import make_partition
from burstproof.network.model import Network
from suites.support.parity.batch_checks import recordings_differ
from suites.support.parity.builder import Case, CreateEngine, run_case
from suites.support.parity.cases.feature_firing import firing_cases
from suites.support.parity.cases.feature_learning import teaching_cases
from suites.support.parity.cases.feature_memory import memory_cases
from suites.support.parity.cases.feature_parameters import parameter_cases
from suites.support.parity.feature_checks import compare_recorded, short_recordings
from suites.support.parity.recordings import recording
from suites.support.shards.simulated import sharded

_FEW_NEURONS = 64
_PART = 6


def _two(network: Network, options: EngineOptions) -> Engine:
    return sharded(network, options, min(2, network.neuron_count), "round_robin")


def _through_the_host(network: Network, options: EngineOptions) -> Engine:
    return sharded(network, options, min(3, network.neuron_count), "contiguous", "staged")


def _in_one_kernel(network: Network, options: EngineOptions) -> Engine:
    return sharded(network, options, 1, "contiguous")


def _of_ranks(network: Network, options: EngineOptions) -> Engine:
    """Shards on devices of different ranks, between which the host carries what fired."""
    from burstproof.engine.cluster.cuda_ranks import CudaRankShard
    from burstproof.engine.sharded.engine import ShardedEngine

    partition = make_partition(network, min(2, network.neuron_count), "round_robin")
    return ShardedEngine(network, options, partition, CudaRankShard)


def _problems(cases: Sequence[Case], create: CreateEngine) -> list[str]:
    small = [case for case in cases if case.network.neuron_count <= _FEW_NEURONS]
    return [f"{case.name}: {problem}" for case in small for problem in run_case(case, create)]


def check_features_that_change_parameters() -> list[str]:
    """Homeostats and modulators of areas: every shard works out the signals of drivers that others own."""
    return _problems(parameter_cases(), _two)


def check_features_that_fire_and_wear() -> list[str]:
    """Trains, the 8-bit range, gains, gates, degeneration."""
    return _problems(firing_cases(), _two)


def check_features_that_teach() -> list[str]:
    """Rewards and learning rates: at the owner of the synapse."""
    return _problems(teaching_cases(), _two)


def check_features_that_remember() -> list[str]:
    """Memories and associations: the machine of the host, and shards with room for twins."""
    return _problems(memory_cases(), _two)


def check_features_through_the_host() -> list[str]:
    """Each sixth case of all over three shards whose mailboxes are in host memory."""
    every = [*parameter_cases(), *firing_cases(), *teaching_cases(), *memory_cases()]
    return _problems(every[::_PART], _through_the_host)


def check_features_in_one_kernel() -> list[str]:
    """Each sixth case on a shard with a device of its own, where a burst is one kernel unless signals need lists."""
    every = [*parameter_cases(), *firing_cases(), *teaching_cases(), *memory_cases()]
    return _problems(every[1::_PART], _in_one_kernel)


def check_features_of_ranks() -> list[str]:
    """Each sixth case over the devices of ranks."""
    every = [*parameter_cases(), *firing_cases(), *teaching_cases(), *memory_cases()]
    return _problems(every[2::_PART], _of_ranks)


def check_recorded_features() -> list[str]:
    """The first recording of each kind: from the start, and on from the reference's state."""
    return [f"{name}: {problem}" for name in short_recordings() for problem in compare_recorded(name, _two)]


def check_features_from_another_partition() -> list[str]:
    """A run with memories goes on over three shards where two stopped."""
    from burstproof.engine.cuda.device_engine import DeviceEngine

    trace = recording("features/mem2t_12")
    options, bursts = trace_options(trace), len(trace.bursts) // 2
    reference, engine = ReferenceEngine.create(trace.network, options), _two(trace.network, options)
    assert isinstance(engine, DeviceEngine)
    problems = recordings_differ(reference.run(bursts, trace.plan), engine.run(bursts, trace.plan))
    rates = np.full(trace.network.neuron_count, 0.1)
    engine.reshard(make_partition(trace.network, 3, "dynamic", rates))
    problems += recordings_differ(reference.run(8, trace.plan), engine.run(8, trace.plan))
    return problems + list(reference.state().differences(engine.state()))
