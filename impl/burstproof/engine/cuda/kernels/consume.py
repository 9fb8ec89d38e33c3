"""What a burst does to one neuron: consume its sum and what comes from outside, then the rules of section 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Fcl, Floats, Identity, Ids, Network, Outside, Parameters, State
from burstproof.engine.cuda.kernels.identity import make_seed
from burstproof.engine.cuda.kernels.neuron import Found, make_neuron
from burstproof.engine.cuda.kernels.stimulus import cancelled
from burstproof.engine.cuda.kernels.storage import make_widen
from burstproof.engine.cuda.kernels.warp import WARP, Counters, make_append, make_block_count
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant


class Fired(NamedTuple):
    """What fired in a block's chunk, in shared memory; ``found``: how many did, and how many were candidates."""

    ids: Ids
    potentials: Floats
    found: Counters


def make_fetch(variant: Variant) -> Callable[..., Any]:
    """``fetch(neuron, neurons, base, fcl, state)`` -> sum, potential, countdown; zeros beyond all.

    ``base`` is the first cell of the slot that the burst consumes.
    """
    refractory, widen = variant.features.refractory_periods, make_widen(variant.features.storage)
    number, zero, silent = variant.accumulator, variant.accumulator(0), np.float32(0)

    def fetch(neuron: np.uint32, neurons: np.uint32, base: np.uint64, fcl: Fcl, state: State) -> Any:
        if neuron >= neurons:
            return zero, silent, np.int32(0)
        rc = np.int32(0)
        if refractory:
            rc = np.int32(state.countdowns[neuron])
        return number(fcl.cells[np.uint64(base + np.uint64(neuron))]), widen(state.potentials[neuron]), rc

    return cuda.jit(device=True)(fetch)  # type: ignore[no-any-return]


def make_consume(shard: ShardVariant) -> Callable[..., Any]:
    """``consume(neuron, ...)`` -> (whether it joins the fired list, its potential there, whether it is a candidate).

    ``found`` is what ``fetch`` found. Stimulus lies in ``outside`` where it lies ``apart``, else in the slot; in either
    a marker stands for an amount of 0.
    """
    variant, apart = shard.variant, shard.apart
    neuron_burst, seed_of = make_neuron(variant), make_seed(shard)
    flagged, draws, cell = variant.flags, variant.features.excitabilities, variant.cell
    number, zero, marker = variant.accumulator, variant.accumulator(0), cancelled(variant)

    def consume(
        neuron: np.uint32,
        base: np.uint64,
        burst_seed: np.uint32,
        batch: bool,
        stimulated: np.uint32,
        found: Found,
        fcl: Fcl,
        outside: Outside,
        state: State,
        parameters: Parameters,
        network: Network,
        identity: Identity,
    ) -> Any:
        arrived = found.total
        cell_place = np.uint64(base + np.uint64(neuron))
        is_candidate = fcl.flags[cell_place] != 0 if flagged else arrived != zero
        if is_candidate:
            fcl.cells[cell_place] = cell(0)
            if flagged:
                fcl.flags[cell_place] = np.uint8(0)
            elif not apart and arrived == marker:
                arrived = zero
        is_forced = False
        if stimulated != 0:
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
        if np.int64(neuron) == network.power_neuron:
            arrived = number(arrived + network.power_amount)
            is_candidate = True
        seed = burst_seed
        if draws and is_candidate:
            seed = seed_of(neuron, burst_seed, identity)
        found = Found(arrived, found.v, found.rc)
        joins, potential = neuron_burst(
            neuron, seed, is_candidate, is_forced, batch, found, state, parameters, network.unit
        )
        return joins, potential, is_candidate

    return cuda.jit(device=True)(consume)  # type: ignore[no-any-return]


def make_consume_chunk(shard: ShardVariant, threads: int) -> Callable[..., Any]:
    """``consume_chunk(first, base, burst, stimulated, fired, ...)`` -> uint32: how many fired.

    What the burst does to a block's chunk, the neurons from ``first`` on. All threads of the block call it.
    """
    fetch, consume = make_fetch(shard.variant), make_consume(shard)
    append, block_count = make_append(), make_block_count()
    per_thread, number = shard.chunk // threads, shard.variant.accumulator
    lanes, block, silent, counters = np.uint32(WARP - 1), np.uint32(threads), np.float32(0), np.uint32(2)

    def consume_chunk(
        first: np.uint32,
        base: np.uint64,
        burst: np.uint32,
        stimulated: np.uint32,
        fired: Fired,
        fcl: Fcl,
        outside: Outside,
        state: State,
        parameters: Parameters,
        network: Network,
        identity: Identity,
    ) -> Any:
        total = cuda.local.array(per_thread, number)
        v = cuda.local.array(per_thread, np.float32)
        rc = cuda.local.array(per_thread, np.int32)
        thread, neurons = np.uint32(cuda.threadIdx.x), network.neurons
        lane = np.uint32(thread & lanes)
        for p in range(per_thread):
            neuron = np.uint32(first + thread + np.uint32(p) * block)
            total[p], v[p], rc[p] = fetch(neuron, neurons, base, fcl, state)
        if thread < counters:
            fired.found[thread] = 0
        cuda.syncthreads()
        for p in range(per_thread):
            neuron = np.uint32(first + thread + np.uint32(p) * block)
            joins, potential, is_candidate = False, silent, False
            if neuron < neurons:
                found = Found(total[p], v[p], rc[p])
                joins, potential, is_candidate = consume(
                    neuron, base, burst, False, stimulated, found, fcl, outside, state, parameters, network, identity
                )
            append(joins, lane, fired.found, 0, neuron, potential, fired.ids, fired.potentials)
            block_count(is_candidate, lane, fired.found, 1)
        cuda.syncthreads()
        return np.uint32(fired.found[0])

    return cuda.jit(device=True)(consume_chunk)  # type: ignore[no-any-return]
