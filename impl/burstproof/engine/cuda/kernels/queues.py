"""Queues per owner: contributions are binned by the block that owns their targets and adds them up in shared memory.

An owner is a range of neurons (``plan.queues``). A block keeps a bin per owner in shared memory (``kernels.bins``). It
reads thousands of row entries at a time, always one window ahead (``kernels.windows``), converts each to a queue entry
(``kernels.queue_entries``) and puts it into its owner's bin. Once a bin is nearly full, all bins are flushed to the
queues in device memory, in whole lines and with one reservation a bin. What a full queue has no room for is added to
the FCL. ``kernels.enqueue`` decides which entries a block reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Fcl, Ids, Queues
from burstproof.engine.cuda.kernels.bins import make_flush_bins, make_put, unit_of
from burstproof.engine.cuda.kernels.windows import (
    entries_per_thread,
    make_load_window,
    make_note_all,
    noted_places,
    stored_type,
)
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant


def make_sort_parts(variant: Variant, queues: OwnerQueues, threads: int, whole: bool = False) -> Callable[..., Any]:
    """``sort_parts(total, ...)``: put all ``total`` entries of a block's parts into bins, window by window.

    ``whole``: there is one part, of a bucket. Windows are double-buffered: the next one is loaded before the current
    one is binned. This load is unconditional, and as long as no bin is nearly full, only the next iteration waits for
    it. (For loads in a branch, or across the head of another loop, the assembler waits at once.)
    """
    target, stored = variant.target, stored_type(variant)
    per_thread, unit = entries_per_thread(variant, queues), np.uint32(unit_of(queues))
    load_window = make_load_window(variant, queues, threads, whole)
    put, put_every = (make_put(variant, queues, threads, every=every) for every in (False, True))
    flush_bins, note_all = make_flush_bins(variant, queues, threads), make_note_all(variant, queues, threads, whole)
    places = noted_places(variant, queues, threads, whole)
    warp, window, one, zero = np.uint32(WARP), np.uint32(threads * per_thread), np.uint32(1), np.uint32(0)
    all_of_thread = np.uint32((1 << per_thread) - 1)

    def sort_parts(
        total: np.uint32,
        parts: np.uint32,
        firsts: Any,
        ends: Ids,
        amounts: Any,
        counts: Ids,
        bins: Any,
        targets: Any,
        contributions: Any,
        fcl: Fcl,
        queue: Queues,
    ) -> None:
        noted = cuda.shared.array(places, np.uint16)
        words, values = cuda.local.array(per_thread, target), cuda.local.array(per_thread, stored)
        next_words, next_values = cuda.local.array(per_thread, target), cuda.local.array(per_thread, stored)
        thread, base = np.uint32(cuda.threadIdx.x), zero
        own_first = np.uint32(np.uint32(thread // warp) * np.uint32(WARP * per_thread) + thread % warp)
        shift = note_all(total, parts, ends, noted)
        load_window(zero, total, parts, shift, firsts, ends, amounts, noted, targets, contributions, words, values)
        while base < total:
            following = np.uint32(base + window)
            after = min(following, np.uint32(total - one))
            load_window(
                after,
                total,
                parts,
                shift,
                firsts,
                ends,
                amounts,
                noted,
                targets,
                contributions,
                next_words,
                next_values,
            )
            pending, put_done, flush, again = zero, bool(following <= total), True, True
            if put_done:
                pending, crowded = put_every(all_of_thread, words, values, counts, bins)
                again = cuda.syncthreads_or(crowded) != 0
            else:
                for i in range(per_thread):
                    if np.uint32(base + own_first + np.uint32(i) * warp) < total:
                        pending = np.uint32(pending | np.uint32(one << np.uint32(i)))
            while again:
                if not put_done:
                    pending, crowded = put(pending, words, values, counts, bins)
                    flush = cuda.syncthreads_or(crowded) != 0
                put_done, again = False, False
                if flush:
                    flush_bins(unit, counts, bins, queue, fcl)
                    again = cuda.syncthreads_or(np.int32(pending)) != 0
            for i in range(per_thread):
                words[i], values[i] = next_words[i], next_values[i]
            base = following

    return cuda.jit(device=True)(sort_parts)  # type: ignore[no-any-return]
