"""Checks of shards with queues per owner on the simulated CUDA device, among those of ``cuda_simulator_check``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np

from burstproof.engine.cuda.plan.block_size import FusedShape
from burstproof.engine.options import CudaOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Record, Stimulus
from burstproof.errors import ShardLostError
from burstproof.network.synthetic.build import synthesize
from suites.support.parity.mixed import mixed_network, mixed_options, mixed_plan
from suites.support.parity.queue_checks import with_equal_contributions
from suites.support.parity.simulator_check import SPECS, recordings_differ
from suites.support.shards.one_kernel_checks import Course
from suites.support.shards.simulated import cut_mix, sharded, small_logs

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.plan.shard_variant import ShardVariant

Has = Callable[["ShardVariant"], bool]
"""What a check wants of the shards' variants."""

_PLAN = "burstproof.engine.cuda.plan"


def queues_pay() -> AbstractContextManager[object]:
    """Shards are given queues wherever these can be, with small bins."""
    with ExitStack() as patches:
        patches.enter_context(mock.patch(f"{_PLAN}.queues._pays", return_value=True))
        patches.enter_context(mock.patch(f"{_PLAN}.queues._MOST_BIN_ROOM", 31))
        return patches.pop_all()


def owners_of_a_warp(per_thread: int = 1) -> AbstractContextManager[object]:
    """Owners have so few neurons, ``per_thread`` in a thread's chunk, that blocks take one after another."""
    with ExitStack() as patches:
        for name in ("_SHAPE", "_RECORDED_SHAPE"):
            patches.enter_context(mock.patch(f"{_PLAN}.queues.{name}", FusedShape(32, per_thread)))
        return patches.pop_all()


def _differs(course: Course, shards: int, strategy: str, path: str = "peer", has: Has = lambda _: True) -> list[str]:
    with queues_pay():
        engine = sharded(course.network, course.options, shards, strategy, path)
        problems = other_than(engine, has) or course.through(engine)
        engine.close()
    return problems


def other_than(engine: CudaEngine, has: Has = lambda _: True) -> list[str]:
    """A problem, if a shard has no queues, or not what is wanted of it."""
    shards = [shard.shard for shard in engine.devices.packed]
    return [] if all(shard.queues is not None and has(shard) for shard in shards) else ["shards of another variant"]


def check_owners_over_shards() -> list[str]:
    """Batches of all kinds, and back to a state from before: contributions of every width, with delays and without."""
    problems = []
    for name, changes, shards, strategy, path in (
        ("integers, all excitatory", {}, 2, "contiguous", "peer"),
        ("integers", {}, 3, "round_robin", "staged"),
        ("fractions, delays to 7", {}, 3, "dynamic", "peer"),
        ("fractions, delays to 7", {"largest_delay": 1}, 2, "contiguous", "peer"),
    ):
        course = Course(cut_mix(name, bursts=10, **changes))
        problems += [f"{name}: {each}" for each in _differs(course, shards, strategy, path)]
    return problems


def check_owners_with_palettes_over_shards() -> list[str]:
    """Entries of rows that are a target and a place in a palette."""
    course = Course(cut_mix("fractions, delays to 7", bursts=10))
    with mock.patch(f"{_PLAN}.entries._FEW_NEURONS", 0):
        return _differs(course, 2, "contiguous", has=lambda shard: shard.variant.palette)


def check_owners_of_neurons_that_sleep_over_shards() -> list[str]:
    """Candidates' records, which are loaded ahead."""
    course = Course(cut_mix("integers", bursts=10))
    with mock.patch(f"{_PLAN}.sizing._FEW_NEURONS", 0):
        return _differs(course, 2, "round_robin", has=lambda shard: shard.records_ahead)


def check_owners_of_sleepers_apart_over_shards() -> list[str]:
    """Neurons four at a time, whose draws depend on their ids in the network."""
    mix = cut_mix("integers", neurons=1000, synapses=5000, bursts=10)
    mixed = mixed_network(mix)
    draws = np.resize(np.array([0.6, 0.3, 0.0], np.float32), mix.neurons)
    course = Course(mix, network=mixed.replace(neurons=replace(mixed.neurons, excitabilities=draws)))
    with owners_of_a_warp(per_thread=4), mock.patch(f"{_PLAN}.sizing._FEW_AWAKE", np.inf):
        return _differs(course, 2, "round_robin", has=lambda shard: shard.sleepers)


def check_many_owners_over_shards() -> list[str]:
    """Blocks that take owner after owner, each of a warp's neurons."""
    course, problems = Course(cut_mix("integers", neurons=300, synapses=1500, bursts=10)), list[str]()
    with owners_of_a_warp():
        for shards in (1, 2):
            problems += _differs(course, shards, "round_robin", has=_has_many_owners)
    return problems


def _has_many_owners(shard: ShardVariant) -> bool:
    return shard.queues is not None and shard.queues.owners > 3


def check_owners_of_equal_contributions_over_shards() -> list[str]:
    """Entries of a queue that are targets alone."""
    mix = cut_mix("integers, all excitatory", bursts=10)
    course = Course(mix, network=with_equal_contributions(mixed_network(mix)))
    return _differs(course, 2, "contiguous", has=_has_targets_alone)


def _has_targets_alone(shard: ShardVariant) -> bool:
    return shard.queues is not None and shard.queues.entry_bits == 16


def check_states_with_other_weights_of_owners() -> list[str]:
    """From shards with queues to others, for weights that nothing bounds, and back, with contributions under way."""
    mix = cut_mix("fractions, delays to 7", bursts=10)
    course, problems = Course(mix), list[str]()
    with queues_pay():
        engine = sharded(course.network, course.options, 2, "contiguous")
        for factor in (1.0, 0.5, 1.0):
            reference = course.reference(4)
            state = reference.state()
            state = replace(state, weights=(state.weights * np.float32(factor)).astype(np.float32))
            reference.restore(state)
            engine.restore(state)
            problems += reference.state().differences(engine.state())
            problems += recordings_differ(reference.run(6, course.plan), engine.run(6, course.plan))
            problems += reference.state().differences(engine.state())
        engine.close()
    return problems


def check_full_log_of_owners() -> list[str]:
    """A log with room for hardly one burst: batches of three end early, none too early or too late."""
    mix = cut_mix("integers", bursts=4)
    network, plan = mixed_network(mix), mixed_plan(mix, mixed_network(mix))
    options = replace(mixed_options(mix), cuda=CudaOptions(batch_length=3))
    with queues_pay(), small_logs():
        engine = sharded(network, options, 2, "contiguous")
    reference, batches = ReferenceEngine.create(network, options), list[int]()
    problems = other_than(engine)
    problems += recordings_differ(reference.run(4, plan), engine.run(4, plan, progress=batches.append))
    if sum(batches) != 4 or len(batches) < 3:
        problems.append(f"batches of {batches} bursts: no log was full")
    problems += recordings_differ(
        reference.run(4, plan, Record.COUNTS), engine.run(4, plan, Record.COUNTS, progress=batches.append)
    )
    return problems + list(reference.state().differences(engine.state()))


def check_late_bursts_of_owners() -> list[str]:
    """Burst numbers that pass 2^32."""
    mix = cut_mix("fractions, delays to 7", largest_delay=5, bursts=6)
    network = mixed_network(mix).replace(burst_count=2**32 - 4)
    reference, plan = ReferenceEngine.create(network, mixed_options(mix)), mixed_plan(mix, network)
    with queues_pay():
        engine = sharded(network, mixed_options(mix), 2, "contiguous")
    problems = other_than(engine) + recordings_differ(reference.run(6, plan), engine.run(6, plan))
    return problems + list(reference.state().differences(engine.state()))


def check_queues_of_shards_that_are_full() -> list[str]:
    """What a queue has no room for goes to the FCL; a bucket without room is read from the lists again."""
    with mock.patch(f"{_PLAN}.buffers._LEAST_ROOM", 1), mock.patch(f"{_PLAN}.buffers._ROOM_SHARE", 64):
        return _differs(Course(cut_mix("fractions, delays to 7", bursts=10)), 2, "contiguous")


def check_silent_shard_of_owners() -> list[str]:
    """A shard that publishes nothing ends the run with an error that names it."""
    from burstproof.engine.cuda.kernels.control import HALTED

    mix = cut_mix("integers")
    with queues_pay():
        engine = sharded(mixed_network(mix), mixed_options(mix), 2, "contiguous", timeout_s=3.0)
    problems = other_than(engine)
    engine.run(1)
    engine.devices.shards[1].device.write_control(HALTED, int(np.int64(1)))
    try:
        engine.run(2)
        problems.append("no error")
    except ShardLostError as error:
        if "shard 1 published nothing" not in str(error):
            problems.append(str(error))
    engine.close()
    return problems


def check_owners_of_networks_made_on_the_device() -> list[str]:
    """Each shard makes its own rows."""
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.exchange.mail import Path
    from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice

    problems = []
    for strategy in ("contiguous", "round_robin"):
        choice = ShardingChoice((0,) * 3, strategy, path=Path.PEER)
        for spec in SPECS[:2]:
            plan = {1: Stimulus(forced=np.arange(0, spec.neurons, 3, dtype=np.uint32))}
            with queues_pay():
                reference, engine = ReferenceEngine.create(synthesize(spec)), CudaEngine.from_spec(spec, None, choice)
            found = other_than(engine) + recordings_differ(reference.run(6, plan), engine.run(6, plan))
            found += set(reference.state().differences(engine.state())) - {"weights", "eligibility_traces"}
            engine.close()
            problems += [f"{strategy}: {name}" for name in found]
    return problems


def check_long_rows_over_shards() -> list[str]:
    """Rows too long for one team of threads make shards take queues, however few neurons they have."""
    mix = cut_mix("integers, all excitatory", bursts=6)
    course, problems = Course(mix), list[str]()
    with mock.patch(f"{_PLAN}.shard_pack.LONG_ROW", 4):
        engine = sharded(course.network, course.options, 2, "contiguous")
        problems += other_than(engine) or course.through(engine)
        engine.close()
    return problems


def check_slots_beyond_the_cache_over_shards() -> list[str]:
    """Delays whose slots exceed the cache make shards take queues and put rows off to buckets."""
    course = Course(cut_mix("fractions, delays to 7", bursts=10))
    with mock.patch(f"{_PLAN}.shard_pack._MOST_SLOTS_BYTES", 0):
        engine = sharded(course.network, course.options, 3, "round_robin")
        problems = other_than(engine, lambda shard: bool(shard.queues and shard.queues.rows_put_off))
        problems = problems or course.through(engine)
        engine.close()
    return problems
