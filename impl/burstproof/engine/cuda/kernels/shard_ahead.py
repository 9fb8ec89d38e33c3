"""What comes before the dynamics of a shard: stimulus from outside, and candidates counted ahead for the batch path."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.exchange.words import CENSUS_WORD, FAILED, SEQUENCE
from burstproof.engine.cuda.kernels.control import HALTED, INDEX, LIMIT, SLOT
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.stimulus import cancelled
from burstproof.engine.cuda.kernels.tally import make_block_tally
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.variant import Variant


@cache
def make_going() -> Callable[..., Any]:
    """``going(control, report, link)``: whether the train has another burst to do."""

    def going(control: Any, report: Any, link: Any) -> Any:
        return report[INDEX] + 1 < report[LIMIT] and control[HALTED] == 0 and link[FAILED] == 0

    return cuda.jit(device=True)(going)  # type: ignore[no-any-return]


def make_stimulate(variant: Variant) -> Callable[..., None]:
    """``stimulate(...)``: amounts of the coming burst into ``outside`` (n,), marks into ``forced`` (n,).

    The ids of one burst differ, so that no atomic operation is needed. A marker stands for an amount of 0.
    """
    going = make_going()
    zero, marker = variant.accumulator(0), cancelled(variant)

    def stimulate(
        control: Any,
        report: Any,
        link: Any,
        offsets: Any,
        ids: Any,
        amounts: Any,
        forced_offsets: Any,
        forced_ids: Any,
        outside: Any,
        forced: Any,
    ) -> None:
        if not going(control, report, link):
            return
        index = report[INDEX] + 1
        step = np.int64(cuda.gridsize(1))
        entry = np.int64(offsets[index]) + np.int64(cuda.grid(1))
        while entry < offsets[index + 1]:
            amount = amounts[entry]
            if amount == zero:
                amount = marker
            outside[ids[entry]] = amount
            entry += step
        entry = np.int64(forced_offsets[index]) + np.int64(cuda.grid(1))
        while entry < forced_offsets[index + 1]:
            forced[forced_ids[entry]] = np.uint8(1)
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
        control: Any,
        report: Any,
        link: Any,
        done: Any,
        sinks: Any,
        cells: Any,
        flags: Any,
        outside: Any,
        power_neuron: Any,
        neurons: Any,
        stride: Any,
        ring: Any,
        words: Any,
    ) -> None:
        tallies = cuda.shared.array(1, np.int32)
        if not going(control, report, link):
            return
        thread = np.uint32(cuda.threadIdx.x)
        if thread == np.uint32(0):
            tallies[0] = 0
        cuda.syncthreads()
        slot = np.uint32(np.uint32(control[SLOT]) + np.uint32(1))
        if slot == ring:
            slot = np.uint32(0)
        base = np.uint64(np.uint64(slot) * np.uint64(stride))
        neuron = np.uint64(cuda.grid(1))
        seen = np.int32(0)
        while neuron < np.uint64(neurons):
            place = np.uint64(base + neuron)
            is_candidate = flags[place] != 0 if flagged else number(cells[place]) != zero
            if is_candidate or outside[neuron] != zero or np.int64(neuron) == power_neuron:
                seen = np.int32(seen + 1)
            neuron = np.uint64(neuron + np.uint64(cuda.gridsize(1)))
        block_tally(seen, np.uint32(thread & lanes), tallies, 0)
        cuda.syncthreads()
        if thread == np.uint32(0):
            mine = np.uint64((np.uint64(1) << np.uint64(32)) + np.uint64(tallies[0]))
            before = np.uint64(cuda.atomic.add(done, 1, mine))
            if np.uint64(before >> np.uint64(32)) == np.uint64(cuda.gridDim.x) - np.uint64(1):
                done[1] = np.uint64(0)
                sequence = np.uint32(link[SEQUENCE] + 1)
                side = np.uint64(np.uint64(sequence & np.uint32(1)) * np.uint64(words))
                total = np.uint32((before + mine) & low)
                for sink in range(sinks.size):
                    store(sinks, sink, np.uint64(side + np.uint64(CENSUS_WORD)), word(sequence, total))

    return census
