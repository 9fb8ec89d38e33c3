"""Checks of padded rows on the simulated CUDA device: rows that fit and rows that do not, uploaded and made there.

They are among those of ``cuda_simulator_check``, which runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.plan.padded_rows import HEADER_AND_LINK, UNIT
from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.partition import make_partition
from burstproof.network.model import Network, SynapseTable
from burstproof.network.synthetic.build import synthesize
from burstproof.network.synthetic.spec import SyntheticSpec
from suites.support.parity.mixed import mixed_network
from suites.support.parity.simulator_check import recordings_differ
from suites.support.shards.one_kernel_checks import Course, engine_of
from suites.support.shards.prefilled import Prefilled
from suites.support.shards.simulated import cut_mix, sharded

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine

_OWN_DEVICES = "burstproof.engine.cuda.host.many_devices.have_devices_of_their_own"


def with_equal_rows(network: Network, seed: int = 1) -> Network:
    """``network`` with as many synapses, all of a source alike, and a tenth of them from two sources."""
    table, rng = network.synapses, np.random.default_rng(seed)
    count = len(table.weights)
    many = rng.random(count) < 0.1
    sources = np.sort(np.where(many, rng.integers(3, 5, count), rng.integers(0, network.neuron_count, count)))
    first = np.searchsorted(sources, sources)
    return network.replace(
        synapses=SynapseTable.build(
            sources,
            table.target_neurons,
            weights=table.weights[first],
            postsynaptic_potentials=table.postsynaptic_potentials[first],
            types=table.types[first],
        )
    )


def _course(neurons: int, synapses: int, *, sum_bits: int = 0, mix: str = "integers", bursts: int = 8) -> Course:
    cut = cut_mix(mix, neurons=neurons, synapses=synapses, bursts=bursts)
    return Course(cut, sum_bits, with_equal_rows(mixed_network(cut)))


def _unlike(engine: CudaEngine) -> list[str]:
    """Rows have to be padded, and some be too long."""
    shards = [shard.shard for group in engine.devices.groups for shard in group.shards]
    widths = {shard.shard.row_words for shard in shards}
    longest = max(len(shard.lengths) - 1 for shard in shards)
    if len(widths) != 1 or 0 in widths or longest < max(widths):
        return [f"rows of {widths} words, the longest has {longest} entries"]
    return []


def check_padded_rows() -> list[str]:
    """All kinds of batches of a shard with a device of its own: sums of 32 bits, and packed ones."""
    problems = []
    for course in (_course(40, 480), _course(40, 480, mix="integers, all excitatory", sum_bits=8)):
        engine = sharded(course.network, course.options, 1, "contiguous")
        problems += _unlike(engine) + course.through(engine)
    return problems


def check_padded_rows_where_there_is_room() -> list[str]:
    """A byte less than padded rows take, and rows lie behind offsets, which need less."""
    course, problems = _course(40, 480, bursts=4), list[str]()
    first = sharded(course.network, course.options, 1, "contiguous")
    needed = first.devices.groups[0].shards[0].plan.total_bytes
    for room, padded in ((needed, True), (needed - 1, False)):
        options = replace(course.options, cuda=replace(course.options.cuda, memory_limit_bytes=room))
        engine = sharded(course.network, options, 1, "contiguous")
        if (engine.devices.groups[0].shards[0].shard.shard.row_words > 0) is not padded:
            problems.append(f"{room} bytes of {needed}: padded rows must be {padded}")
        problems += recordings_differ(course.expected, engine.run(4, course.plan))
    return problems


def check_padded_rows_of_packets() -> list[str]:
    """Rows of what other shards sent."""
    course = _course(90, 3240, bursts=4)
    partition = make_partition(course.network, 3, "round_robin")
    with engine_of(course, partition, Prefilled(course.expected, partition)) as engine:
        problems = _unlike(engine) + recordings_differ(course.expected, engine.run(4, course.plan))
        return problems + list(course.reference(4).state().differences(engine.state()))


def check_padded_rows_made_on_the_device() -> list[str]:
    """Each shard's rows are those of the network that the host builds, rests and all."""
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.exchange.mail import Path
    from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice

    spec = SyntheticSpec(24, 24, inhibitory_fraction=0.3, weights=2, seed=5)
    network, problems = synthesize(spec), list[str]()
    host = "burstproof.engine.cuda.host.generate"
    few = mock.patch(f"{host}._WAVES", 1), mock.patch(f"{host}.BLOCK", 4)
    with mock.patch(_OWN_DEVICES, return_value=True), few[0], few[1]:
        choice = ShardingChoice((0, 0), "round_robin", path=Path.PEER)
        engine = CudaEngine.from_spec(spec, EngineOptions(), choice)
    problems += _unlike(engine)
    owner = make_partition(network, 2, "round_robin")
    for shard in engine.devices.groups[0].shards:
        places = owner.local_ids
        words = shard.shard.shard.row_words
        rows, amounts = unpadded(shard.device.read("targets"), spec.neurons, words)
        own = owner.owner[network.synapses.target_neurons] == shard.shard.number
        sources = network.synapses.source_neurons[own]
        targets = places[network.synapses.target_neurons[own]]
        signs = np.where(network.synapses.types[own] != 0, -1, 1)
        scale = int(shard.shard.packed.fixed_point.scale)
        for source in range(spec.neurons):
            mine = sources == source
            expected = {int(2 * scale * sign) for sign in signs[mine]}
            if sorted(rows[source]) != sorted(targets[mine]) or (mine.any() and {amounts[source]} != expected):
                problems.append(f"shard {shard.shard.number}: row {source}")
                break
    engine.close()
    return problems


def unpadded(table: npt.NDArray[np.uint64], sources: int, words: int) -> tuple[list[Sequence[int]], list[int]]:
    """Targets and contribution of every row of a table, read without any code of the package."""
    flat = table.view(np.uint32)
    rows, amounts = [], []
    for source in range(sources):
        row = flat[source * words : (source + 1) * words]
        length = int(row[0]) & 0xFFFF
        amounts.append(int(row[:1].view(np.int32)[0]) >> 16)
        entries = row[1 : 1 + length]
        if length >= words:
            inside = words - HEADER_AND_LINK
            rest = int(row[-2]) * UNIT
            entries = np.concatenate([row[1 : 1 + inside], flat[rest : rest + length - inside]])
        rows.append([int(target) for target in entries])
    return rows, amounts
