"""What comes before the dynamics of a shard: stimulus from outside, and candidates counted ahead for the batch path."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Exchange, Fcl, Network, Outside, Steering, Stimulus, Words
from burstproof.engine.cuda.exchange.words import CENSUS_WORD, FAILED, SEQUENCE
from burstproof.engine.cuda.kernels.control import HALTED, INDEX, LIMIT, SLOT
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.stimulus import cancelled
from burstproof.engine.cuda.kernels.tally import make_block_tally
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.variant import Variant


@cache
def make_going() -> Callable[..., Any]:
    """``going(steering, exchange)``: whether the train has another burst to do."""

    def going(steering: Steering, exchange: Exchange) -> Any:
        report = steering.report
        return report[INDEX] + 1 < report[LIMIT] and steering.control[HALTED] == 0 and exchange.link[FAILED] == 0

    return cuda.jit(device=True)(going)  # type: ignore[no-any-return]


def make_stimulate(variant: Variant) -> Callable[..., None]:
    """``stimulate(...)``: amounts of the coming burst into ``outside`` (n,), marks into ``forced`` (n,).

    The ids of one burst differ, so that no atomic operation is needed. A marker stands for an amount of 0.
    """
    going = make_going()
    zero, marker = variant.accumulator(0), cancelled(variant)

    def stimulate(steering: Steering, exchange: Exchange, stimulus: Stimulus, outside: Outside) -> None:
        if not going(steering, exchange):
            return
        index = steering.report[INDEX] + 1
        step = np.int64(cuda.gridsize(1))
        entry = np.int64(stimulus.stimulus_offsets[index]) + np.int64(cuda.grid(1))
        while entry < stimulus.stimulus_offsets[index + 1]:
            amount = stimulus.stimulus_amounts[entry]
            if amount == zero:
                amount = marker
            outside.outside[stimulus.stimulus_ids[entry]] = amount
            entry += step
        entry = np.int64(stimulus.forced_offsets[index]) + np.int64(cuda.grid(1))
        while entry < stimulus.forced_offsets[index + 1]:
            outside.forced[stimulus.forced_ids[entry]] = np.uint8(1)
            entry += step

    return stimulate


def make_census(variant: Variant) -> Callable[..., None]:
    """``census(...)``: count the shard's candidates and tell all shards, for the batch path."""
    going, link_to = make_going(), make_link()
    store, word = link_to.store, link_to.word
    block_tally = make_block_tally()
    flagged, zero = variant.flags, variant.accumulator(0)
    number, lanes, low = variant.accumulator, np.uint32(WARP - 1), np.uint64(0xFFFFFFFF)

    def census(
        steering: Steering, exchange: Exchange, fcl: Fcl, outside: Outside, network: Network, done: Words
    ) -> None:
        tallies = cuda.shared.array(1, np.int32)
        if not going(steering, exchange):
            return
        neurons, sinks = network.neurons, exchange.sinks
        thread = np.uint32(cuda.threadIdx.x)
        if thread == np.uint32(0):
            tallies[0] = 0
        cuda.syncthreads()
        slot = np.uint32(np.uint32(steering.control[SLOT]) + np.uint32(1))
        if slot == fcl.ring:
            slot = np.uint32(0)
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        neuron = np.uint64(cuda.grid(1))
        seen = np.int32(0)
        while neuron < np.uint64(neurons):
            place = np.uint64(base + neuron)
            is_candidate = fcl.flags[place] != 0 if flagged else number(fcl.cells[place]) != zero
            if is_candidate or outside.outside[neuron] != zero or np.int64(neuron) == network.power_neuron:
                seen = np.int32(seen + 1)
            neuron = np.uint64(neuron + np.uint64(cuda.gridsize(1)))
        block_tally(seen, np.uint32(thread & lanes), tallies, 0)
        cuda.syncthreads()
        if thread == np.uint32(0):
            mine = np.uint64((np.uint64(1) << np.uint64(32)) + np.uint64(tallies[0]))
            before = np.uint64(cuda.atomic.add(done, 1, mine))
            if np.uint64(before >> np.uint64(32)) == np.uint64(cuda.gridDim.x) - np.uint64(1):
                done[1] = np.uint64(0)
                sequence = np.uint32(exchange.link[SEQUENCE] + 1)
                side = np.uint64(np.uint64(sequence & np.uint32(1)) * np.uint64(exchange.words))
                total = np.uint32((before + mine) & low)
                for sink in range(sinks.size):
                    store(sinks, sink, np.uint64(side + np.uint64(CENSUS_WORD)), word(sequence, total))

    return census
