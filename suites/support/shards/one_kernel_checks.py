"""Checks of bursts in one kernel on the simulated CUDA device: shards of any size, one kind of batch after another.

They are among those of ``cuda_simulator_check``, which runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np

from burstproof.engine.options import CudaOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.sharded.partition import Partition, make_partition
from burstproof.engine.state import EngineState, Record, StimulusPlan
from burstproof.errors import ShardLostError
from burstproof.network.model import Network
from suites.support.parity.mixed import Mix, compare_mix, mixed_network, mixed_options, mixed_plan
from suites.support.parity.simulator_check import recordings_differ
from suites.support.shards.prefilled import CHUNK, Prefilled
from suites.support.shards.simulated import cut_mix, sharded, small_logs

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine

_BATCH = 3
_LEAST_LOG = "burstproof.engine.cuda.host.shard_forms._LOG_PER_NEURON"


class Course:
    """A reference at the start of ``mix``, a state on its way, and engines to compare with it.

    ``network`` takes the place of the mix's own.
    """

    def __init__(self, mix: Mix, sum_bits: int = 0, network: Network | None = None) -> None:
        self.mix, self.network = mix, network or mixed_network(mix)
        self.options = replace(mixed_options(mix), cuda=CudaOptions(batch_length=_BATCH, sum_bits=sum_bits))
        self.plan: StimulusPlan = mixed_plan(mix, self.network)
        self.expected = self.reference().run(mix.bursts, self.plan)

    def reference(self, bursts: int = 0) -> ReferenceEngine:
        """The reference after so many bursts."""
        engine = ReferenceEngine.create(self.network, self.options)
        engine.run(bursts, self.plan)
        return engine

    def through(self, engine: Engine) -> list[str]:
        """Run ``engine`` from the start: all kinds of batches, and back from the end to the middle."""
        half = self.mix.bursts // 2
        reference, problems = self.reference(), list[str]()

        def run(bursts: int, record: Record) -> None:
            problems.extend(
                recordings_differ(reference.run(bursts, self.plan, record), engine.run(bursts, self.plan, record))
            )
            problems.extend(reference.state().differences(engine.state()))

        run(half, Record.FIRED)
        middle: EngineState = reference.state()
        for bursts, record in ((1, Record.NONE), (2, Record.NONE), (half - 3, Record.FIRED)):
            run(bursts, record)
        reference.restore(middle)
        engine.restore(middle)
        run(half, Record.COUNTS)
        return problems


@contextmanager
def engine_of(course: Course, partition: Partition, filled: Prefilled, timeout_s: float = 20.0) -> Iterator[CudaEngine]:
    """An engine of one kernel a burst, whose shards find what the others would have sent."""
    with filled.patched(resident=3):
        shards = partition.shards
        engine = sharded(course.network, course.options, shards, "", timeout_s=timeout_s, partition=partition)
        yield engine
        engine.close()


def check_burst_in_one_kernel() -> list[str]:
    """A shard on a device of its own, burst by burst: delays, records that no count decides to read, packed sums."""
    problems = list[str]()
    for name in ("fractions, delays to 7", "neither draws nor limits"):
        problems += compare_mix(cut_mix(name), lambda network, options: sharded(network, options, 1, "contiguous"))
    packed = CudaOptions(sum_bits=8)
    return problems + compare_mix(
        cut_mix("integers, all excitatory"),
        lambda network, options: sharded(network, replace(options, cuda=packed), 1, "contiguous"),
    )


def check_batches_in_one_kernel() -> list[str]:
    """A shard on a device of its own: batches with lists and without, steps, and a state from before."""
    course = Course(cut_mix("fractions, delays to 7", bursts=8))
    engine = sharded(course.network, course.options, 1, "contiguous")
    return course.through(engine)


def check_late_burst_in_one_kernel() -> list[str]:
    """Burst numbers that pass 2^32, of which the ring's six slots are no divisor."""
    mix = cut_mix("fractions, delays to 7", largest_delay=5, bursts=6)
    network = mixed_network(mix).replace(burst_count=2**32 - 4)
    reference = ReferenceEngine.create(network, mixed_options(mix))
    engine, plan = sharded(network, mixed_options(mix), 1, "contiguous"), mixed_plan(mix, network)
    problems = recordings_differ(reference.run(6, plan), engine.run(6, plan))
    return problems + list(reference.state().differences(engine.state()))


def check_full_log_in_one_kernel() -> list[str]:
    """A log with room for hardly one burst, then for two: batches of three end early, none too early or too late."""
    course, problems = Course(cut_mix("integers, all excitatory", bursts=4), sum_bits=8), list[str]()
    for room in (1, 2):
        with small_logs(), mock.patch(_LEAST_LOG, room):
            engine = sharded(course.network, course.options, 1, "contiguous")
        batches: list[int] = []
        problems += recordings_differ(course.expected, engine.run(4, course.plan, progress=batches.append))
        if batches != [room] * (4 // room):
            problems.append(f"batches of {batches} bursts with room for {room}")
    return problems


def check_packets() -> list[str]:
    """Two shards in one kernel each: one after the other here, so each finds the other's packets put there before."""
    course = Course(cut_mix("integers, all excitatory", neurons=5 * CHUNK, synapses=1200, bursts=4))
    partition = make_partition(course.network, 2, "round_robin")
    filled = Prefilled(course.expected, partition)
    with engine_of(course, partition, filled) as engine:
        problems = recordings_differ(course.expected, engine.run(4, course.plan))
        problems += course.reference(4).state().differences(engine.state())
    if filled.packets != 4 * 2 * 3:
        problems.append(f"{filled.packets} packets were asked for: the bursts were not in one kernel each")
    return problems


def _unequal(network: Network) -> Partition:
    """Shards of three chunks, of one neuron and of none; the ids of the first are not evenly spaced."""
    owner = np.zeros(network.neuron_count, np.uint16)
    owner[int(np.flatnonzero(network.neurons.valid_mask)[7])] = 1
    return Partition(owner, 3, "by hand")


def check_unequal_shards() -> list[str]:
    """Three shards, one of them empty, whose packets are taken a chunk behind; all kinds of batches."""
    course = Course(cut_mix("fractions, delays to 7", neurons=3 * CHUNK - 4, synapses=500, bursts=8))
    partition = _unequal(course.network)
    with engine_of(course, partition, Prefilled(course.expected, partition)) as engine:
        problems = course.through(engine)
        lags = {
            int(call.merged.arguments[list(signature(call.merged.kernel.fn).parameters).index("exchange")].lag)
            for shard in engine.devices.groups[0].shards
            for call in shard.calls
            if call.merged
        }
    return problems + ([] if lags == {1} else [f"packets were taken {lags} chunks behind"])


def check_full_logs_of_unequal_shards() -> list[str]:
    """The log of the smaller shard is full first, now and then: all stop with it, and go on."""
    course = Course(cut_mix("integers, all excitatory", neurons=32, synapses=200, bursts=6))
    owner = (np.arange(32) % 3 == 0).astype(np.uint16)
    partition = Partition(owner, 2, "by hand")
    filled = Prefilled(course.expected, partition)
    with small_logs(), mock.patch(_LEAST_LOG, 2), engine_of(course, partition, filled) as engine:
        filled.logs = [shard.shard.packed.batch.log for shard in engine.devices.groups[0].shards]
        batches: list[int] = []
        problems = recordings_differ(course.expected, engine.run(6, course.plan, progress=batches.append))
        problems += course.reference(6).state().differences(engine.state())
    if max(batches) == _BATCH or sum(batches) != 6:
        problems.append(f"batches of {batches} bursts with logs of {filled.logs}")
    return problems


def check_lost_shard_in_one_kernel() -> list[str]:
    """Who waited first names the lost shard; nobody does a burst after the one in which it waited in vain."""
    course = Course(cut_mix("integers, all excitatory", neurons=30, synapses=100, bursts=6))
    partition = make_partition(course.network, 3, "contiguous")
    filled, problems = Prefilled(course.expected, partition), list[str]()
    begin = course.network.burst_count
    for record in (Record.FIRED, Record.NONE):
        filled.silent = {(0, 1): begin + 3, (1, 2): begin + 2}
        with engine_of(course, partition, filled, timeout_s=0.5) as engine:
            shards = engine.devices.groups[0].shards
            try:
                engine.run(6, course.plan, record)
                problems.append("no error")
            except ShardLostError as error:
                if "shard 2 published nothing" not in str(error):
                    problems.append(str(error))
            done = [len(shard.result(0).report.candidates) for shard in shards]
            if done != [3, 2, 3]:
                problems.append(f"bursts done: {done}")
    return problems
