"""An owner's neurons where most candidates sleep: four at a time, apart from the few that may fire.

A candidate sleeps if its draw keeps it silent whatever its sum (``Network.largest_excitability``). Of its parameters
only the leak matters then. A thread steps a group of four neurons at a time (``kernels.groups``), almost without a
branch. Those of them that are awake follow one by one (``kernels.consume``), from the same registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Network, Neurons
from burstproof.engine.cuda.kernels.cells import make_sum_of
from burstproof.engine.cuda.kernels.consume import OwnerTask, make_consume
from burstproof.engine.cuda.kernels.fetch import Loaded
from burstproof.engine.cuda.kernels.groups import make_element, make_load_group, make_store_group
from burstproof.engine.cuda.kernels.identity import make_seed
from burstproof.engine.cuda.kernels.marks import CANDIDATE_MARK, RESTARTING_MARK
from burstproof.engine.cuda.kernels.neuron import make_restarts
from burstproof.engine.cuda.kernels.neuron_values import make_record, make_value
from burstproof.engine.cuda.kernels.warp import make_any_lane, make_append, make_block_tally
from burstproof.engine.cuda.plan.block_size import GROUP, WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import OwnerQueues
from burstproof.engine.rules import make_rules
from burstproof.network.schema import NO_LIMIT, UNLIMITED_FIRES, Parameters

_EACH_BYTE = 0x01010101


@dataclass(frozen=True)
class Column:
    """Where a group's elements of a column lie among its words, and their size in bytes, 0 if it has none."""

    start: int
    size: int

    @property
    def element(self) -> Callable[..., Any]:
        """``groups.make_element`` of the column."""
        return make_element(max(1, self.size))


class Columns:
    """The columns of a group: potentials, leaks, countdowns, counts and marks; ``words`` is their number of words."""

    def __init__(self, shard: ShardVariant) -> None:
        features, narrow = shard.variant.features, shard.narrow
        self.words = 0
        self.v, self.leak = self._column(4), self._column(4 if shard.leaks_ahead else 0)
        self.rc = self._column((1 if "countdowns" in narrow else 2) if features.refractory_periods else 0)
        self.cc = self._column(1 if "counts" in narrow else 2)
        self.mark = self._column(1 if features.restarts else 0)

    def _column(self, size: int) -> Column:
        self.words += size
        return Column(self.words - size, size)


def make_fetch_group(shard: ShardVariant) -> Callable[..., Any]:
    """``fetch_group(first, neurons, group)``: load the columns of four neurons from ``first`` on; all of them exist."""
    columns = Columns(shard)
    fetch_v, fetch_leak, fetch_rc, fetch_cc, fetch_mark = (
        _make_fetch_column(one) for one in (columns.v, columns.leak, columns.rc, columns.cc, columns.mark)
    )
    leaks, counts_down, marks = columns.leak.size > 0, columns.rc.size > 0, columns.mark.size > 0

    def fetch_group(first: np.uint64, neurons: Neurons, group: Any) -> None:
        state = neurons.state
        fetch_v(state.potentials, first, group)
        if leaks:
            fetch_leak(neurons.parameters.decays, first, group)
        if counts_down:
            fetch_rc(state.countdowns, first, group)
        fetch_cc(state.counts, first, group)
        if marks:
            fetch_mark(state.marks, first, group)

    return cuda.jit(device=True)(fetch_group)  # type: ignore[no-any-return]


def _make_fetch_column(column: Column) -> Callable[..., Any]:
    """``fetch_column(values, first, group)``: load a group's elements of one column."""
    load, start, size = make_load_group(max(1, column.size)), column.start, column.size

    def fetch_column(values: Any, first: np.uint64, group: Any) -> None:
        words = load(values, first)
        for i in range(size):
            group[start + i] = words[i]

    return cuda.jit(device=True)(fetch_column)  # type: ignore[no-any-return]


def make_take_sums(shard: ShardVariant, queues: OwnerQueues) -> Callable[..., Any]:
    """``take_sums(sums, local)`` -> four words: a group's sums, which are cleared (``owners.make_shared_sums``)."""
    load, store, word = make_load_group(4), make_store_group(4), shard.variant.word.added
    bits, span, zero = np.int64(queues.low_bits), np.uint64(queues.span), np.int32(0)
    nothing = (zero, zero, zero, zero)

    def joined(low: np.uint32, high: np.uint32) -> Any:
        return word((np.int64(np.int32(high)) << bits) + np.int64(np.int32(low)))

    joined = cuda.jit(device=True)(joined)

    def take_one(sums: Any, local: np.uint64) -> Any:
        low = load(sums, local)
        store(sums, local, nothing)
        return word(np.int32(low[0])), word(np.int32(low[1])), word(np.int32(low[2])), word(np.int32(low[3]))

    def take_two(sums: Any, local: np.uint64) -> Any:
        above = np.uint64(local + span)
        low, high = load(sums, local), load(sums, above)
        store(sums, local, nothing)
        store(sums, above, nothing)
        return joined(low[0], high[0]), joined(low[1], high[1]), joined(low[2], high[2]), joined(low[3], high[3])

    return cuda.jit(device=True)(take_two if queues.low_bits else take_one)  # type: ignore[no-any-return]


def make_pick(shard: ShardVariant) -> Callable[..., Any]:
    """``pick(p, words, group, loaded)``: copy the ``p``-th neuron of a group to entry 0 of ``loaded``."""
    columns = Columns(shard)
    v, leak, rc, cc, mark = columns.v, columns.leak, columns.rc, columns.cc, columns.mark
    v_of, leak_of, rc_of, cc_of, mark_of = v.element, leak.element, rc.element, cc.element, mark.element
    v_at, leak_at, rc_at, cc_at, mark_at = v.start, leak.start, rc.start, cc.start, mark.start
    leaks, counts_down, marks = leak.size > 0, rc.size > 0, mark.size > 0
    word_of, zero, none = make_element(4), np.int32(0), np.uint32(0)

    def pick(p: np.uint32, words: Any, group: Any, loaded: Loaded) -> None:
        loaded.word[0], loaded.v[0] = word_of(words, 0, p), v_of(group, v_at, p).view(np.float32)
        loaded.rc[0], loaded.cc[0], loaded.mark[0] = zero, np.int32(cc_of(group, cc_at, p)), none
        if leaks:
            loaded.decay[0] = leak_of(group, leak_at, p).view(np.float32)
        if counts_down:
            loaded.rc[0] = np.int32(rc_of(group, rc_at, p))
        if marks:
            loaded.mark[0] = mark_of(group, mark_at, p)

    return cuda.jit(device=True)(pick)  # type: ignore[no-any-return]


def make_step_sleeper(shard: ShardVariant) -> Callable[..., Any]:
    """``step_sleeper(neuron, seed, loaded, ...)`` -> (whether it is awake; if not, its potential and its countdown).

    Entry 0 of ``loaded`` is the neuron. One that is no candidate, or counts down, is awake only if it needs its record.
    """
    variant, features = shard.variant, shard.variant.features
    rules, restarts_of = make_rules(features, cuda.jit(device=True)), make_restarts(variant)
    sum_of, draw, candidate, common_leak = (
        make_sum_of(variant),
        rules.draw,
        rules.candidate,
        make_value(variant, "decays"),
    )
    leaks, leak_is_common, mixed = shard.leaks_ahead, features.decays and not shard.leaks_ahead, features.restarts
    ticks, powered = not features.countdown_only_candidates, variant.powered
    counts = np.int32(1 if features.consecutive_fire_limits else UNLIMITED_FIRES)
    restarting, nothing, none = np.uint32(RESTARTING_MARK), variant.word.added(0), np.uint32(0)
    one, zero, never, silent = np.int32(1), np.int32(0), np.float32(np.nan), np.float32(0)
    no_limit, whole = np.float32(NO_LIMIT), np.float32(1)

    def step_sleeper(neuron: np.uint64, seed: np.uint32, loaded: Loaded, neurons: Neurons, network: Network) -> Any:
        word, v, rc, decay, accumulates = loaded.word[0], loaded.v[0], loaded.rc[0], whole, True
        if leaks:
            decay = loaded.decay[0]
        elif leak_is_common:
            decay = common_leak(neurons.parameters.decays, neuron)
        if mixed:
            accumulates = (loaded.mark[0] & restarting) == none
            if restarts_of(loaded.mark[0], accumulates, rc):
                v = silent
        arrived = word != nothing and rc == zero
        may_fire = not draw(neuron, seed) > network.largest_excitability or loaded.cc[0] >= counts
        is_awake = may_fire and (arrived or rc == one)
        if powered:
            is_awake = is_awake or np.int64(neuron) == network.power_neuron
        x = np.float32(np.float32(sum_of(word)) * network.unit)
        # Numbers in the place of columns.
        own = Parameters(never, no_limit, decay, zero, zero, zero, whole, accumulates)  # type: ignore[arg-type]
        _, _, left, _, _ = candidate(x, v, zero, own, neuron, seed, False)
        if arrived:
            v = left
        if rc > zero and (ticks or word != nothing):
            rc = np.int32(rc - one)
        return is_awake, v, rc

    return cuda.jit(device=True)(step_sleeper)  # type: ignore[no-any-return]


def make_turn_marks() -> Callable[..., Any]:
    """``turn_marks(marks, arrived, awake)``: the marks of four neurons, a byte each, after the burst.

    ``arrived`` and ``awake`` have a 1 in the byte of each candidate and of each neuron that is awake, whose mark stays.
    """
    each = np.uint32(RESTARTING_MARK * _EACH_BYTE)
    down, byte = np.uint32((RESTARTING_MARK // CANDIDATE_MARK).bit_length() - 1), np.uint32(255)

    def turn_marks(marks: np.uint32, arrived: np.uint32, awake: np.uint32) -> Any:
        restarting, kept = np.uint32(marks & each), np.uint32(awake * byte)
        turned = np.uint32(restarting | np.uint32(np.uint32(restarting >> down) & arrived))
        return np.uint32(np.uint32(turned & ~kept) | np.uint32(marks & kept))

    return cuda.jit(device=True)(turn_marks)  # type: ignore[no-any-return]


def make_consume_sleepers(shard: ShardVariant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``owners.make_consume_owned`` for bursts without stimulus, where few candidates may fire.

    All neurons of the owner must exist, and the group of each thread behind them. ``loaded.record`` has the columns of
    the thread's next group, in flight. Nothing of this group may be overwritten before its last neuron is done: else
    the assembler would copy what is in flight at once, and wait for it.
    """
    variant, columns = shard.variant, Columns(shard)
    consume = make_consume(shard, stimulable=False, records_ahead=variant.record.words > 0)
    fetch, take_sums = make_fetch_group(shard), make_take_sums(shard, queues)
    pick, step_sleeper = make_pick(shard), make_step_sleeper(shard)
    seed_of, turn_marks, (record_of, _) = make_seed(shard), make_turn_marks(), make_record(variant)
    store, store_marks = make_store_group(4), make_store_group(1)
    any_lane, append, block_tally = make_any_lane(), make_append(), make_block_tally()
    counts_down, marks, marks_at = columns.rc.size > 0, columns.mark.size > 0, columns.mark.start
    kept, lanes, group = columns.words, np.uint32(WARP - 1), np.uint32(GROUP)
    stride, span, size = np.uint32(GROUP * threads), np.uint32(queues.span), np.uint32(shard.chunk)
    parts, nothing = np.uint32(queues.span // shard.chunk), variant.word.added(0)
    none, one, silent, bits, to_index = np.uint32(0), np.uint32(1), np.float32(0), np.uint32(8), np.uint32(3)

    def consume_sleepers(begin: np.uint32, side: np.uint32, task: OwnerTask) -> None:
        sums, ends, chunks, moment, loaded, fcl = task.sums, task.ends, task.chunks, task.moment, task.loaded, task.fcl
        neurons, network, identity = task.neurons, task.network, task.identity
        now, coming, v = cuda.local.array(kept, np.uint32), loaded.record, cuda.local.array(GROUP, np.float32)
        thread, candidates, state = np.uint32(cuda.threadIdx.x), np.int32(0), neurons.state
        lane, local = np.uint32(thread & lanes), np.uint32(thread * group)
        first = np.uint64(np.uint64(begin) + np.uint64(local))
        while local < span:
            for i in range(kept):
                now[i] = coming[i]
            fetch(np.uint64(first + np.uint64(stride)), neurons, coming)
            words, part = take_sums(sums, np.uint64(local)), np.uint32(side * parts + local // size)
            awake, arrived, changed = none, none, False
            for place in range(GROUP):
                p = np.uint32(place)
                neuron, bit = np.uint64(first + np.uint64(p)), np.uint32(one << np.uint32(p * bits))
                pick(p, words, now, loaded)
                seed = seed_of(neuron, moment.burst, identity)
                is_awake, after, rc = step_sleeper(neuron, seed, loaded, neurons, network)
                v[place] = loaded.v[0]
                if loaded.word[0] != nothing:
                    arrived = np.uint32(arrived | bit)
                if is_awake:
                    awake = np.uint32(awake | bit)
                else:
                    changed = changed or after.view(np.uint32) != v[place].view(np.uint32)
                    v[place] = after
                    if counts_down and rc != loaded.rc[0]:
                        state.countdowns[neuron] = np.uint16(rc)
            candidates = np.int32(candidates + np.int32(cuda.popc(np.uint32(arrived & ~awake))))
            if changed:
                store(state.potentials, first, (v[0], v[1], v[2], v[3]))
            if marks:
                turned = turn_marks(now[marks_at], arrived, awake)
                if turned != now[marks_at]:
                    store_marks(state.marks, first, (turned,))
            while any_lane(awake != none):
                joins, potential, p = False, silent, none
                if awake != none:
                    p = np.uint32(np.uint32(np.uint32(cuda.ffs(awake)) - one) >> to_index)
                    awake = np.uint32(awake & np.uint32(awake - one))
                    neuron = np.uint64(first + np.uint64(p))
                    record = record_of(neurons.parameters, neuron)
                    pick(p, words, now, loaded)
                    joins, potential, is_candidate = consume(
                        neuron, 0, record, moment, loaded, fcl, neurons, network, identity
                    )
                    candidates = np.int32(candidates + np.int32(is_candidate))
                own = np.uint32(first + np.uint64(p))
                append(joins, lane, ends, part, own, potential, chunks.chunk_ids, chunks.chunk_potentials)
            local, first = np.uint32(local + stride), np.uint64(first + np.uint64(stride))
        block_tally(candidates, lane, task.found, side)

    return cuda.jit(device=True)(consume_sleepers)  # type: ignore[no-any-return]
