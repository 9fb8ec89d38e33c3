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
    Parts,
    entries_per_thread,
    make_load_window,
    make_note_all,
    noted_places,
    stored_type,
    vector_width,
)
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant


def make_sort_parts(variant: Variant, queues: OwnerQueues, threads: int, whole: bool = False) -> Callable[..., Any]:
    """``sort_parts(total, ...)``: put the entries of a block's ``total`` places into bins, window by window.

    ``whole``: there is one part, of a bucket. Windows are double-buffered: the next one is loaded before the current
    one is binned. This load is unconditional, and as long as no bin is nearly full, only the next iteration waits for
    it. (For loads in a branch, or across the head of another loop, the assembler waits at once.)
    """
    target, stored = variant.target, stored_type(variant)
    per_thread, unit = entries_per_thread(variant, queues, whole), np.uint32(unit_of(queues))
    width = vector_width(variant, queues, whole)
    load_window = make_load_window(variant, queues, threads, whole)
    put = make_put(variant, queues, threads, per_thread)
    flush_bins, note_all = make_flush_bins(variant, queues, threads), make_note_all(variant, queues, threads, whole)
    places = noted_places(variant, queues, threads, whole)
    window, one, zero = np.uint32(threads * per_thread // width), np.uint32(1), np.uint32(0)

    def sort_parts(
        total: np.uint32,
        count: np.uint32,
        parts: Parts,
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
        shift, base = note_all(total, count, parts.ends, noted), zero
        pending = load_window(zero, total, count, parts, shift, noted, targets, contributions, words, values)
        while base < total:
            following = np.uint32(base + window)
            after = min(following, np.uint32(total - one))
            coming = load_window(
                after, total, count, parts, shift, noted, targets, contributions, next_words, next_values
            )
            pending, crowded = put(pending, words, values, counts, bins)
            again = cuda.syncthreads_or(crowded) != 0
            while again:
                flush_bins(unit, counts, bins, queue, fcl)
                again = cuda.syncthreads_or(np.int32(pending)) != 0
                if again:
                    pending, crowded = put(pending, words, values, counts, bins)
                    again = cuda.syncthreads_or(crowded) != 0
            for i in range(per_thread):
                words[i], values[i] = next_words[i], next_values[i]
            base, pending = following, coming

    return cuda.jit(device=True)(sort_parts)  # type: ignore[no-any-return]
