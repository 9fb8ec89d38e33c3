"""The answer of a chunk in a closed loop: its firings, ascending, in units that each carry the number of their call.

A unit is one store of 16 bytes: the number of the call, then three numbers. Once the host sees the number of the call,
it has the whole unit: no store has to wait for earlier ones, and no block for another. The first unit of a chunk holds
the counts of firings and candidates, then two ids; each further unit holds three ids. Eight units make a line. The
first lines of all chunks lie together, then the second lines: what the host reads is dense, whatever fires.

Potentials come in the same form, if they are asked for. The host may read them during the next burst, so even and odd
calls use different buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Ids, Mailbox
from burstproof.engine.cuda.kernels.consume import Fired
from burstproof.engine.cuda.kernels.mailbox import CANDIDATES_SHIFT, UNIT_BITS
from burstproof.engine.cuda.kernels.relay import make_relay
from burstproof.engine.cuda.plan.block_size import WARP

_ALL = 0xFFFFFFFF


def _make_scan(per_lane: int) -> Callable[..., Any]:
    """``scan(present, starts)``, a block: bits set in ``present`` before each of its ``WARP * per_lane`` words."""
    lanes = np.uint32(WARP)

    def by_thread(present: Ids, starts: Ids) -> None:
        if cuda.threadIdx.x == 0:
            start = np.uint32(0)
            for word in range(WARP * per_lane):
                starts[word] = start
                start = np.uint32(start + np.uint32(cuda.popc(present[word])))

    def by_warp(present: Ids, starts: Ids) -> None:
        lane = np.uint32(cuda.threadIdx.x)
        if lane < lanes:
            low, own = np.uint32(lane * np.uint32(per_lane)), np.uint32(0)
            for word in range(per_lane):
                own = np.uint32(own + np.uint32(cuda.popc(present[np.uint32(low + np.uint32(word))])))
            total, step = np.int32(own), 1
            while step < WARP:
                below = np.int32(cuda.shfl_up_sync(_ALL, total, step))
                if lane >= np.uint32(step):
                    total = np.int32(total + below)
                step <<= 1
            start = np.uint32(np.uint32(total) - own)
            for word in range(per_lane):
                at = np.uint32(low + np.uint32(word))
                starts[at] = start
                start = np.uint32(start + np.uint32(cuda.popc(present[at])))

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


def make_sort_fired(chunk: int, threads: int) -> Callable[..., Any]:
    """``sort_fired(first, count, fired)``: sort the firings of the chunk of neuron ``first`` by id, with a bitmap."""
    per_lane, per_thread = -(-chunk // (32 * WARP)), chunk // threads
    room, scan, block = WARP * per_lane, _make_scan(per_lane), np.uint32(threads)
    words = np.uint32(room)
    one, low_bits, word_bits = np.uint32(1), np.uint32(31), np.uint32(5)

    def sort_fired(first: np.uint32, count: np.uint32, fired: Fired) -> None:
        present = cuda.shared.array(room, np.uint32)
        starts = cuda.shared.array(room, np.uint32)
        ids, potentials = cuda.local.array(per_thread, np.uint32), cuda.local.array(per_thread, np.float32)
        thread = np.uint32(cuda.threadIdx.x)
        if count == np.uint32(0):
            return
        word = thread
        while word < words:
            present[word] = np.uint32(0)
            word = np.uint32(word + block)
        cuda.syncthreads()
        for p in range(per_thread):
            entry = np.uint32(thread + np.uint32(p) * block)
            if entry < count:
                ids[p], potentials[p] = fired.ids[entry], fired.potentials[entry]
                inside = np.uint32(ids[p] - first)
                cuda.atomic.or_(present, np.uint32(inside >> word_bits), np.uint32(one << (inside & low_bits)))
        cuda.syncthreads()
        scan(present, starts)
        cuda.syncthreads()
        for p in range(per_thread):
            if np.uint32(thread + np.uint32(p) * block) < count:
                inside = np.uint32(ids[p] - first)
                word = np.uint32(inside >> word_bits)
                before = np.uint32(present[word] & np.uint32(np.uint32(one << (inside & low_bits)) - one))
                place = np.uint32(starts[word] + np.uint32(cuda.popc(before)))
                fired.ids[place], fired.potentials[place] = ids[p], potentials[p]
        cuda.syncthreads()

    return cuda.jit(device=True)(sort_fired)  # type: ignore[no-any-return]


def make_reply(threads: int) -> Callable[..., Any]:
    """``reply(item, items, call, count, fired, mailbox)``: store the answer of chunk ``item`` to call number ``call``.

    If there are too few lines for the list, only the first unit is stored; its count says so.
    """
    store, block, zero, one, three = make_relay().reply, np.uint32(threads), np.uint32(0), np.uint32(1), np.uint32(3)
    line_bits, in_line, unit_words = np.uint32(UNIT_BITS), np.uint32((1 << UNIT_BITS) - 1), np.uint32(4)
    candidates_shift = np.uint32(CANDIDATES_SHIFT)

    def bits_of(potential: np.float32) -> Any:
        return np.float32(potential).view(np.uint32)

    bits_of = cuda.jit(device=True)(bits_of)

    def reply(
        item: np.uint32, items: np.uint32, call: np.uint32, count: np.uint32, fired: Fired, mailbox: Mailbox
    ) -> None:
        unit, units = np.uint32(cuda.threadIdx.x), np.uint32((count + three) // three)
        ids, potentials = fired.ids, fired.potentials
        if units > np.uint32(mailbox.reply_lines << line_bits):
            units = one
        while unit < units:
            line = np.uint32((unit >> line_bits) * items + item)
            place = np.uint32(unit_words * np.uint32((line << line_bits) + (unit & in_line)))
            entry = np.uint32(three * unit)
            head = np.uint32(count | (np.uint32(fired.found[1]) << candidates_shift))
            first = head if unit == zero else ids[np.uint32(entry - one)]
            second = ids[entry] if entry < count else zero
            third = ids[np.uint32(entry + one)] if np.uint32(entry + one) < count else zero
            store(mailbox.replies, place, call, first, second, third)
            if mailbox.shows != zero:
                place = np.uint32(place + np.uint32(call & one) * mailbox.shows)
                first = head if unit == zero else bits_of(potentials[np.uint32(entry - one)])
                second = bits_of(potentials[entry]) if entry < count else zero
                third = bits_of(potentials[np.uint32(entry + one)]) if np.uint32(entry + one) < count else zero
                store(mailbox.shown, place, call, first, second, third)
            unit = np.uint32(unit + block)

    return cuda.jit(device=True)(reply)  # type: ignore[no-any-return]
