"""Delays on the sender's side: the fired lists of the last bursts are read again, each for the delay that ends now.

Rows are sorted by delay, so that what a source delivers after d bursts lies together, and two slots of the FCL are
enough: a ring of a slot for every delay leaves the L2 cache, where additions are several times faster than in memory.
What the lists of earlier bursts deliver next depends on nothing that a burst does: the kernel of the burst sends both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Fcl, Network, Recall, Rows, Steering
from burstproof.engine.cuda.kernels.consume import Fired
from burstproof.engine.cuda.kernels.control import BURST, CLAMPED
from burstproof.engine.cuda.kernels.rows import make_bounds, make_send_part
from burstproof.engine.cuda.kernels.steer import make_fired_of
from burstproof.engine.cuda.plan.buffers import AHEAD_SLOT
from burstproof.engine.cuda.plan.variant import Variant, lists_kept


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


def _make_send_delayed(variant: Variant, share: int) -> Callable[..., Any]:
    """``send_delayed(source, before, part, slot, ...)``: what the row of ``source`` has of delay ``before`` + 1.

    It goes to the slot after ``slot``; thread ``part`` of the ``share`` that send it.
    """
    send_part, bounds, offset = make_send_part(variant), make_bounds(variant), variant.offset
    places, one, team = np.uint64(variant.recalled + 1), np.uint64(1), np.uint32(share)

    def send_delayed(
        source: np.uint32,
        before: np.uint32,
        part: np.uint32,
        slot: np.uint32,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        start, _ = bounds(source, rows)
        at = np.uint64(np.uint64(source) * places + np.uint64(before))
        low, high = recall.delay_starts[at], recall.delay_starts[np.uint64(at + one)]
        entry, end = offset(start + offset(low) + offset(part)), offset(start + offset(high))
        send_part(source, entry, end, team, slot, rows, fcl)

    return cuda.jit(device=True)(send_delayed)  # type: ignore[no-any-return]


def make_send_soon(variant: Variant, share: int) -> Callable[..., Any]:
    """``send_soon(source, part, slot, ...)``: what ``source``, which fired in the burst, has of delay 1."""
    send_delayed, clamps, zero = _make_send_delayed(variant, share), variant.clamps, np.uint32(0)

    def send_soon(
        source: np.uint32, part: np.uint32, slot: np.uint32, steering: Steering, recall: Recall, rows: Rows, fcl: Fcl
    ) -> None:
        send_delayed(source, zero, part, slot, recall, rows, fcl)
        if clamps and part == zero and rows.clamped_sources[source] != 0:
            steering.control[CLAMPED] = 1

    return cuda.jit(device=True)(send_soon)  # type: ignore[no-any-return]


def _make_send_lists(variant: Variant, share: int) -> Callable[..., Any]:
    """``send_lists(burst, latest, ahead, slot, ...)``: what lists up to that of ``burst`` deliver in burst + 1 + ahead.

    ``latest`` is the length of the burst's own list. It goes to the slot after ``slot``. All threads of a block call
    it; ``share`` of them take a row.
    """
    longest, turns = variant.recalled, np.uint32(lists_kept(variant) - 1)
    send_delayed = _make_send_delayed(variant, share)
    team, zero, one, room = np.uint32(share), np.uint32(0), np.uint32(1), max(1, longest)

    def send_lists(
        burst: np.uint32,
        latest: np.uint32,
        ahead: np.uint32,
        slot: np.uint32,
        steering: Steering,
        network: Network,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        lengths = cuda.shared.array(room, np.uint32)
        ends = cuda.shared.array(room, np.uint32)
        thread, lists = np.uint32(cuda.threadIdx.x), np.uint32(np.uint32(longest) - ahead)
        own, block = thread, np.uint32(cuda.blockDim.x)
        while own < lists:
            lengths[own] = recall.recalled_counts[np.uint32(burst - own) & turns] if own > zero else latest
            own = np.uint32(own + block)
        cuda.syncthreads()
        own = thread
        while own < lists:
            total = zero
            for earlier in range(np.uint32(own + one)):
                total = np.uint32(total + lengths[earlier])
            ends[own] = total
            own = np.uint32(own + block)
        cuda.syncthreads()
        total = ends[np.uint32(lists - one)]
        item, items = np.uint32(cuda.grid(1)) // team, np.uint32(cuda.gridsize(1)) // team
        part = np.uint32(thread % team)
        age, first = zero, zero
        while item < total:
            while item >= ends[age]:
                first = ends[age]
                age = np.uint32(age + one)
            place = np.uint64(np.uint64(np.uint32(burst - age) & turns) * np.uint64(network.neurons))
            source = recall.recalled_ids[np.uint64(place + np.uint64(np.uint32(item - first)))]
            send_delayed(source, np.uint32(age + ahead), part, slot, recall, rows, fcl)
            item = np.uint32(item + items)

    return cuda.jit(device=True)(send_lists)  # type: ignore[no-any-return]


def make_send_last_lists(variant: Variant, share: int) -> Callable[..., Any]:
    """``send_last_lists(burst, slot, ...)``: what the lists before that of ``burst`` deliver in the burst after it.

    That depends on nothing that the burst itself does.
    """
    send_lists, fired_of = _make_send_lists(variant, share), make_fired_of()
    turns, one = np.uint32(lists_kept(variant) - 1), np.uint32(1)

    def send_last_lists(
        burst: np.uint32, slot: np.uint32, steering: Steering, network: Network, recall: Recall, rows: Rows, fcl: Fcl
    ) -> None:
        last = np.uint32(burst - one)
        latest = fired_of(steering.tallies, last)
        if cuda.grid(1) == 0:
            recall.recalled_counts[last & turns] = latest
        send_lists(last, latest, one, slot, steering, network, recall, rows, fcl)

    return cuda.jit(device=True)(send_last_lists)  # type: ignore[no-any-return]


def make_send_ahead(variant: Variant) -> Callable[..., None]:
    """``send_ahead(...)``: what arrives ``ahead`` bursts later than in the next one, for the state between bursts.

    It goes to slot ``AHEAD_SLOT``.
    """
    send_lists, fired_of = _make_send_lists(variant, variant.tile_share), make_fired_of()

    def send_ahead(
        steering: Steering, network: Network, recall: Recall, rows: Rows, fcl: Fcl, ahead: np.uint32
    ) -> None:
        burst = np.uint32(steering.control[BURST])
        latest = fired_of(steering.tallies, burst)
        send_lists(burst, latest, ahead, np.uint32(AHEAD_SLOT - 1), steering, network, recall, rows, fcl)

    return send_ahead
