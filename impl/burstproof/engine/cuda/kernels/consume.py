"""One neuron's part of a burst: consume its sum and its stimulus, then apply the rules of SEMANTICS section 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Chunks, Fcl, Floats, Identity, Ids, Network, Neurons
from burstproof.engine.cuda.kernels.cells import make_clear, make_is_candidate, make_sum_of
from burstproof.engine.cuda.kernels.features import (
    Traits,
    make_adapt,
    make_advance_train,
    make_find_traits,
    make_regulate,
)
from burstproof.engine.cuda.kernels.fetch import Loaded
from burstproof.engine.cuda.kernels.identity import make_in_register, make_seed
from burstproof.engine.cuda.kernels.modulators import make_drive
from burstproof.engine.cuda.kernels.neuron import Found, make_neuron
from burstproof.engine.cuda.kernels.neuron_values import make_kept_record
from burstproof.engine.cuda.kernels.stimulus import cancelled
from burstproof.engine.cuda.kernels.warp import Counters, make_append, make_block_count
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.features import CAN_TRAIN, DRIVES, IN_TRAIN
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.stimulus import FORCED_POTENTIAL

FOUND, PIECES = 3, 2
"""Counters of a block's chunk, and the index of the one that counts pieces of long rows."""


class Fired(NamedTuple):
    """The firings of a block's chunk, in shared memory.

    ``found`` counts firings, candidates, and pieces of the long rows of what fired.
    """

    ids: Ids
    potentials: Floats
    found: Counters


class Moment(NamedTuple):
    """Values common to all neurons of a burst.

    ``base`` is the first cell of the slot that the burst consumes. ``batch`` says that the batch path is emulated,
    ``stimulated`` that there may be stimulus. ``classes``: values of the classes of neurons (``kernels.classes``).
    """

    base: np.uint64
    burst: np.uint32
    batch: bool
    stimulated: np.uint32
    classes: Any


class OwnerTask(NamedTuple):
    """What a block needs to step the neurons of its owners (``kernels.owners``).

    ``sums`` are the owner's, in shared memory. Firings are appended to ``chunks``, from each chunk's first neuron on.
    ``ends`` has an element for each side (0 or 1: owners alternate) and chunk of an owner: first the chunk's first
    neuron, in the end where its firings end. ``found`` counts the candidates of each side.
    """

    sums: Any
    ends: Counters
    found: Counters
    moment: Moment
    loaded: Loaded
    fcl: Fcl
    neurons: Neurons
    chunks: Chunks
    network: Network
    identity: Identity


def make_consume(shard: ShardVariant, *, stimulable: bool = True, records_ahead: bool = False) -> Callable[..., Any]:
    """``consume(neuron, p, ...)`` -> (whether it joins the fired list, its potential there, whether it is a candidate).

    Entry ``p`` of ``loaded`` belongs to the neuron. Stimulus lies in ``outside`` if the shard keeps it ``apart``, else
    in the slot. In ``outside``, and in a slot without marks, a marker stands for an amount of 0. Without ``stimulable``
    the function serves only bursts without stimulus. ``record`` is the neuron's (``make_ready``) with
    ``records_ahead``, else unused. Owners pass ``neuron`` in 64 bits, others in 32.
    """
    variant, apart = shard.variant, shard.apart
    counted = shard.eager or shard.ahead
    neuron_burst = make_neuron(variant, counted, shard.marks_ahead, shard.leaks_ahead, records_ahead)
    seed_of = make_seed(shard)
    draws, marked, powered = variant.features.excitabilities, variant.word.marked, variant.powered
    holds_candidate, sum_of, clear = make_is_candidate(variant), make_sum_of(variant), make_clear(variant)
    number, zero, marker = variant.accumulator, variant.accumulator(0), cancelled(variant)
    trains, homeostats = variant.extras.trains, variant.extras.homeostats
    drives = variant.extras.modulators and not shard.exchanges
    advance_train, regulate, drive = make_advance_train(variant), make_regulate(), make_drive(shard.makes_factors)
    find_traits, adapt, featured = make_find_traits(variant), make_adapt(variant), variant.extras.by_neuron
    traits_ahead = shard.marks_ahead
    replays, forced_potential = variant.extras.replays, np.float32(FORCED_POTENTIAL)
    can_train, train_bit, drive_bit, none = np.uint32(CAN_TRAIN), np.uint32(IN_TRAIN), np.uint32(DRIVES), np.uint32(0)
    silent = np.float32(0)

    def consume(
        neuron: np.uint32,
        p: int,
        record: Any,
        moment: Moment,
        loaded: Loaded,
        fcl: Fcl,
        neurons: Neurons,
        network: Network,
        identity: Identity,
    ) -> Any:
        outside, extras = neurons.outside, neurons.extras
        loaded_traits, word = loaded.traits, loaded.word[p]
        traits = Traits(none, silent, silent)
        if featured and traits_ahead:
            traits = Traits(loaded_traits.kind[p], loaded_traits.rate[p], loaded_traits.leak[p])
        elif featured:
            traits = find_traits(neuron, extras)
        kind, adapted = traits.kind, adapt(traits, moment.classes)
        arrived, cell = sum_of(word), np.uint64(moment.base + np.uint64(neuron))
        is_candidate = holds_candidate(word, cell, fcl)
        if is_candidate:
            clear(cell, fcl)
            if not marked and not apart and arrived == marker:
                arrived = zero
        is_forced = False
        if stimulable and moment.stimulated != 0:
            if apart:
                amount = outside.outside[neuron]
                if amount != zero:
                    outside.outside[neuron] = zero
                    is_candidate = True
                    if amount != marker:
                        arrived = number(arrived + amount)
            is_forced = outside.forced[neuron] != 0
            if is_forced:
                outside.forced[neuron] = np.uint8(0)
        in_train = trains and (kind & train_bit) != none
        if powered and np.int64(neuron) == network.power_neuron:
            arrived = number(arrived + network.power_amount)
            is_candidate = True
        seed = moment.burst
        if draws and is_candidate:
            seed = seed_of(neuron, moment.burst, identity)
        found = Found(arrived, loaded.v[p], loaded.rc[p], loaded.cc[p], loaded.mark[p], loaded.decay[p], record)
        joins, potential, is_given = neuron_burst(
            neuron,
            seed,
            moment.burst,
            is_candidate,
            is_forced or in_train,
            moment.batch,
            found,
            adapted,
            moment.classes,
            neurons,
            network,
        )
        if is_given:
            joins, potential = True, forced_potential
            if in_train:
                potential = extras.held_potentials[neuron]
            elif replays:
                potential = extras.given_potentials[neuron]
        if trains and joins and (kind & can_train) != none:
            advance_train(neuron, kind, potential, neurons)
        if drives and joins and (kind & drive_bit) != none:
            drive(neuron, potential, moment.burst, extras)
        if homeostats:
            regulate(neuron, joins, adapted, moment.classes, extras)
        return joins, potential, is_candidate

    return cuda.jit(device=True)(consume)  # type: ignore[no-any-return]


def make_consume_part(shard: ShardVariant, threads: int, per_thread: int, *, counts: bool = True) -> Callable[..., Any]:
    """``consume_part(first, moment, loaded, fired, ...)`` -> bool: whether the thread's last neuron is a candidate.

    Steps the neurons from ``first`` on, ``per_thread`` of each thread; all threads of the block call it. Firings are
    appended to the block's list. Candidates are counted if ``counts``; else the caller does it.
    """
    records_ahead = shard.eager and shard.record.words > 0
    consume, append, block_count = make_consume(shard, records_ahead=records_ahead), make_append(), make_block_count()
    lanes, block, silent = np.uint32(WARP - 1), np.uint32(threads), np.float32(0)
    in_register, record_of = make_in_register(shard.extras.by_neuron), make_kept_record(shard.variant, records_ahead)

    def consume_part(
        first: np.uint32,
        moment: Moment,
        loaded: Loaded,
        fired: Fired,
        fcl: Fcl,
        neurons: Neurons,
        network: Network,
        identity: Identity,
    ) -> Any:
        thread = np.uint32(cuda.threadIdx.x)
        lane, is_candidate = np.uint32(thread & lanes), False
        for p in range(per_thread):
            neuron = in_register(np.uint32(first + thread + np.uint32(p) * block))
            joins, potential, is_candidate = False, silent, False
            if neuron < network.neurons:
                joins, potential, is_candidate = consume(
                    neuron, p, record_of(p, loaded.record), moment, loaded, fcl, neurons, network, identity
                )
            append(joins, lane, fired.found, 0, neuron, potential, fired.ids, fired.potentials)
            if counts:
                block_count(is_candidate, lane, fired.found, 1)
        return is_candidate

    return cuda.jit(device=True)(consume_part)  # type: ignore[no-any-return]


def make_consume_chunk(
    shard: ShardVariant, threads: int, per_thread: int, *, keeps_count: bool = False
) -> Callable[..., Any]:
    """``consume_chunk(first, moment, loaded, fired, ...)`` -> (uint32 firings, int32 candidates).

    Steps a block's chunk, the neurons from ``first`` on. All threads of the block call it. With one neuron per thread
    the barrier at the end counts the candidates, unless ``keeps_count`` asks for their number in ``fired``, too.
    """
    at_barrier, counters = per_thread == 1 and not keeps_count, np.uint32(FOUND)
    consume_part = make_consume_part(shard, threads, per_thread, counts=not at_barrier)

    def consume_chunk(
        first: np.uint32,
        moment: Moment,
        loaded: Loaded,
        fired: Fired,
        fcl: Fcl,
        neurons: Neurons,
        network: Network,
        identity: Identity,
    ) -> Any:
        thread = np.uint32(cuda.threadIdx.x)
        if thread < counters:
            fired.found[thread] = 0
        cuda.syncthreads()
        is_candidate = consume_part(first, moment, loaded, fired, fcl, neurons, network, identity)
        if at_barrier:
            candidates = np.int32(cuda.syncthreads_count(np.int32(is_candidate)))
        else:
            cuda.syncthreads()
            candidates = np.int32(fired.found[1])
        return np.uint32(fired.found[0]), candidates

    return cuda.jit(device=True)(consume_chunk)  # type: ignore[no-any-return]
