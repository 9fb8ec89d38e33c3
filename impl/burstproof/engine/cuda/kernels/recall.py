"""Delays on the sender's side: the fired lists of the last bursts are read again, each for the delay that ends now.

Rows are sorted by delay, so that what a source delivers after d bursts lies together, and one slot of the FCL is
enough: a ring of a slot for every delay leaves the L2 cache, where additions are several times faster than in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Fcl, Ids, Network, Recall, Rows, Steering, Turn
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.consume import Fired
from burstproof.engine.cuda.kernels.control import BURST, CLAMPED, INDEX, ORIGIN
from burstproof.engine.cuda.kernels.rows import make_bounds, make_read_once
from burstproof.engine.cuda.kernels.steer import make_fired_of
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.variant import Variant, lists_kept

ROOM = WARP if SIMULATED else 256
"""Threads of a block, and parts of rows that it finds at a time: a power of two, no less than the largest delay."""


def make_keep_recalled(variant: Variant, block: int) -> Callable[..., Any]:
    """``keep_recalled(place, burst, count, fired, network, recall)``: a chunk's firings into the burst's list."""
    turns, step = np.uint32(lists_kept(variant) - 1), np.uint32(block)

    def keep_recalled(
        place: np.int64, burst: np.uint32, count: np.uint32, fired: Fired, network: Network, recall: Recall
    ) -> None:
        first = np.uint64(np.uint64(burst & turns) * np.uint64(network.neurons) + np.uint64(place))
        entry = np.uint32(cuda.threadIdx.x)
        while entry < count:
            recall.recalled_ids[np.uint64(first + np.uint64(entry))] = fired.ids[entry]
            entry = np.uint32(entry + step)

    return cuda.jit(device=True)(keep_recalled)  # type: ignore[no-any-return]


def _make_find(variant: Variant) -> Callable[..., Any]:
    """``find(item, burst, ahead, ends, network, recall, rows)`` -> entries of a part of a row: first and number.

    ``item`` counts through the lists, which end at ``ends``: what its source delivers after the list's age and
    ``ahead``. Also returned: the source and the age.
    """
    longest, turns = np.uint32(variant.recalled), np.uint32(lists_kept(variant) - 1)
    bounds, offset, zero, one = make_bounds(variant), variant.offset, np.uint32(0), np.uint32(1)

    def find(
        item: np.uint32, burst: np.uint32, ahead: np.uint32, ends: Ids, network: Network, recall: Recall, rows: Rows
    ) -> Any:
        age, first = zero, zero
        while item >= ends[age]:
            first = ends[age]
            age = np.uint32(age + one)
        place = np.uint64(np.uint64(np.uint32(burst - age) & turns) * np.uint64(network.neurons))
        source = recall.recalled_ids[np.uint64(place + np.uint64(np.uint32(item - first)))]
        start, _ = bounds(source, rows)
        at = np.uint64(np.uint64(source) * np.uint64(longest + one) + np.uint64(np.uint32(age + ahead)))
        low, high = np.uint32(recall.delay_starts[at]), np.uint32(recall.delay_starts[np.uint64(at + np.uint64(1))])
        return offset(start + offset(low)), np.uint32(high - low), source, age

    return cuda.jit(device=True)(find)  # type: ignore[no-any-return]


def _make_add_up(room: int) -> Callable[..., Any]:
    """``add_up(length, ends, other)``: sums of the lengths up to each thread's own, (room,), by all threads.

    W. D. Hillis and G. L. Steele, Data parallel algorithms, 1986: in rounds, two at a time, until they reach over all.
    The sums are in ``ends``, of which the first element is 0; ``other`` is as long.
    """
    pairs, one = room.bit_length() // 2, np.uint32(1)

    def add_up(length: np.uint32, ends: Ids, other: Ids) -> None:
        place = np.uint32(np.uint32(cuda.threadIdx.x) + one)
        ends[place] = length
        if place == one:
            ends[0] = np.uint32(0)
            other[0] = np.uint32(0)
        cuda.syncthreads()
        distance = one
        for _ in range(pairs):
            _step(place, distance, ends, other)
            distance = np.uint32(distance + distance)
            _step(place, distance, other, ends)
            distance = np.uint32(distance + distance)

    return cuda.jit(device=True)(add_up)  # type: ignore[no-any-return]


@cuda.jit(device=True)
def _step(place: np.uint32, distance: np.uint32, given: Ids, taken: Ids) -> None:
    """One round: to each sum the one ``distance`` places before it."""
    total = given[place]
    if place > distance:
        total = np.uint32(total + given[np.uint32(place - distance)])
    taken[place] = total
    cuda.syncthreads()


def _make_holder(room: int) -> Callable[..., Any]:
    """``holder(entry, ends)`` -> the last place whose sum is at most ``entry``, by halving (room,)."""
    rounds = room.bit_length() - 1

    def holder(entry: np.uint32, ends: Ids) -> Any:
        place, width = np.uint32(0), np.uint32(room)
        for _ in range(rounds):
            width = np.uint32(width >> np.uint32(1))
            if ends[np.uint32(place + width)] <= entry:
                place = np.uint32(place + width)
        return place

    return cuda.jit(device=True)(holder)  # type: ignore[no-any-return]


def _make_send_found(variant: Variant) -> Callable[..., Any]:
    """``send_found(ends, begins, amounts, rows, fcl)``: the parts that a block has found, entry by entry.

    Four entries are loaded before the first is added, so that their latencies overlap.
    """
    holder, deliver, number, offset = _make_holder(ROOM), make_deliver(variant), variant.accumulator, variant.offset
    uniform_rows, step, last, read_once = variant.uniform_rows, np.uint32(ROOM), ROOM, make_read_once()

    def load(entry: np.uint32, ends: Ids, begins: Any, amounts: Any, rows: Rows) -> Any:
        part = holder(entry, ends)
        at = offset(begins[part] + offset(entry))
        if uniform_rows:
            return np.uint64(read_once(rows.targets, at)), amounts[part]
        return np.uint64(read_once(rows.targets, at)), number(read_once(rows.contributions, at))

    load = cuda.jit(device=True)(load)

    def send_found(ends: Ids, begins: Any, amounts: Any, rows: Rows, fcl: Fcl) -> None:
        end, entry = ends[last], np.uint32(cuda.threadIdx.x)
        while entry < end:
            second, third = np.uint32(entry + step), np.uint32(entry + step + step)
            fourth = np.uint32(third + step)
            place, amount = load(entry, ends, begins, amounts, rows)
            place_2, place_3, place_4 = place, place, place
            amount_2, amount_3, amount_4 = amount, amount, amount
            if second < end:
                place_2, amount_2 = load(second, ends, begins, amounts, rows)
            if third < end:
                place_3, amount_3 = load(third, ends, begins, amounts, rows)
            if fourth < end:
                place_4, amount_4 = load(fourth, ends, begins, amounts, rows)
            deliver(place, amount, fcl)
            if second < end:
                deliver(place_2, amount_2, fcl)
            if third < end:
                deliver(place_3, amount_3, fcl)
            if fourth < end:
                deliver(place_4, amount_4, fcl)
            entry = np.uint32(fourth + step)

    return cuda.jit(device=True)(send_found)  # type: ignore[no-any-return]


def _make_send_lists(variant: Variant) -> Callable[..., Any]:
    """``send_lists(burst, latest, ahead, ...)``: what the lists up to that of ``burst`` deliver in burst + 1 + ahead.

    ``latest`` is the length of the burst's own list. All ``ROOM`` threads of a block call it: each finds a part of a
    row, then they share the entries of all parts evenly.
    """
    longest, turns = np.uint32(variant.recalled), np.uint32(lists_kept(variant) - 1)
    room, places = ROOM, ROOM + 1
    find, add_up, send_found = _make_find(variant), _make_add_up(ROOM), _make_send_found(variant)
    clamps, uniform_rows, number, offset = variant.clamps, variant.uniform_rows, variant.accumulator, variant.offset
    zero, one, size, kept = np.uint32(0), np.uint32(1), np.uint32(ROOM), ROOM if variant.uniform_rows else 1

    def send_lists(
        burst: np.uint32,
        latest: np.uint32,
        ahead: np.uint32,
        steering: Steering,
        network: Network,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        lists_end = cuda.shared.array(room, np.uint32)
        ends = cuda.shared.array(places, np.uint32)
        other = cuda.shared.array(places, np.uint32)
        begins = cuda.shared.array(room, offset)
        amounts = cuda.shared.array(kept, number)
        thread, lists = np.uint32(cuda.threadIdx.x), np.uint32(longest - ahead)
        length = zero
        if thread == zero:
            length = latest
        elif thread < lists:
            length = recall.recalled_counts[np.uint32(burst - thread) & turns]
        add_up(length, ends, other)
        lists_end[thread] = ends[np.uint32(thread + one)]
        total = ends[room]
        base = np.uint32(np.uint32(cuda.blockIdx.x) * size)
        while base < total:
            cuda.syncthreads()
            item, length = np.uint32(base + thread), zero
            if item < total:
                begin, length, source, age = find(item, burst, ahead, lists_end, network, recall, rows)
                begins[thread] = begin
                if uniform_rows:
                    amounts[thread] = number(rows.contributions[source])
                if clamps and age == zero and rows.clamped_sources[source] != 0:
                    steering.control[CLAMPED] = 1
            add_up(length, ends, other)
            begins[thread] = offset(begins[thread] - offset(ends[thread]))
            cuda.syncthreads()
            send_found(ends, begins, amounts, rows, fcl)
            base = np.uint32(base + np.uint32(cuda.gridDim.x) * size)

    return cuda.jit(device=True)(send_lists)  # type: ignore[no-any-return]


def make_send_recalled(variant: Variant) -> Callable[..., None]:
    """``send_recalled(...)``: what arrives in the burst after that of the turn."""
    send_lists, fired_of = _make_send_lists(variant), make_fired_of()
    turns, one, zero = np.uint32(lists_kept(variant) - 1), np.uint32(1), np.uint32(0)

    def send_recalled(steering: Steering, network: Network, recall: Recall, rows: Rows, fcl: Fcl, turn: Turn) -> None:
        report = steering.report
        if report[INDEX] != np.int64(turn.place):
            return
        burst = np.uint32(np.uint32(report[ORIGIN]) + turn.place + one)
        latest = fired_of(steering.tallies, burst)
        if cuda.grid(1) == 0:
            recall.recalled_counts[burst & turns] = latest
        send_lists(burst, latest, zero, steering, network, recall, rows, fcl)

    return send_recalled


def make_send_ahead(variant: Variant) -> Callable[..., None]:
    """``send_ahead(...)``: what arrives ``ahead`` bursts later than in the next one, for the state between bursts."""
    send_lists = _make_send_lists(variant)
    turns = np.uint32(lists_kept(variant) - 1)

    def send_ahead(
        steering: Steering, network: Network, recall: Recall, rows: Rows, fcl: Fcl, ahead: np.uint32
    ) -> None:
        burst = np.uint32(steering.control[BURST])
        send_lists(burst, recall.recalled_counts[burst & turns], ahead, steering, network, recall, rows, fcl)

    return send_ahead
