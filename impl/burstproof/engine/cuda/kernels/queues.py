"""Queues per owner: what fired is sorted by the blocks that own its targets, which add it up in shared memory.

An owner is a range of neurons (``plan.queues``). A block keeps a bin for each owner in shared memory
(``kernels.bins``). It reads entries of rows by the thousand, always a window ahead (``kernels.windows``), and puts each
into its owner's bin; an entry is the target within the owner, and above it the contribution, or its place in the
palette (``kernels.queue_entries``). Once a bin is nearly full, all are emptied into the queues in device memory, in
whole lines, with one reservation a bin. What a full queue has no room for is added to the FCL. Which entries a block
reads is up to ``kernels.enqueue``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Fcl, Ids, Queues
from burstproof.engine.cuda.kernels.bins import make_empty_bins, make_put, unit_of
from burstproof.engine.cuda.kernels.windows import entries_per_thread, make_load_window, stored_type
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant


def make_sort_parts(variant: Variant, queues: OwnerQueues, threads: int, whole: bool = False) -> Callable[..., Any]:
    """``sort_parts(total, ...)``: all ``total`` entries of a block's parts into bins, window by window.

    ``whole``: there is one part, of a bucket. The next window is loaded before this one is put, whether there is one or
    not; as long as no bin is nearly full, nothing waits for it but the next turn: what comes in a branch or crosses
    the head of a loop, the assembler waits for at once.
    """
    target, stored = variant.target, stored_type(variant)
    per_thread, unit = entries_per_thread(variant, queues), np.uint32(unit_of(queues))
    load_window = make_load_window(variant, queues, threads, whole)
    put, put_every = (make_put(variant, queues, threads, every=every) for every in (False, True))
    empty_bins, short = make_empty_bins(variant, queues, threads), queues.notes_parts and not whole
    places = threads * per_thread if short else 1
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
        part_of = cuda.shared.array(places, np.uint16)
        owned, values = cuda.local.array(per_thread, target), cuda.local.array(per_thread, stored)
        coming, amounts_coming = cuda.local.array(per_thread, target), cuda.local.array(per_thread, stored)
        thread, base = np.uint32(cuda.threadIdx.x), zero
        own_first = np.uint32(np.uint32(thread // warp) * np.uint32(WARP * per_thread) + thread % warp)
        load_window(zero, total, parts, firsts, ends, amounts, part_of, targets, contributions, owned, values)
        while base < total:
            following = np.uint32(base + window)
            after = min(following, np.uint32(total - one))
            load_window(
                after, total, parts, firsts, ends, amounts, part_of, targets, contributions, coming, amounts_coming
            )
            pending, placed, full, waits = zero, bool(following <= total), True, True
            if placed:
                pending, crowded = put_every(all_of_thread, owned, values, counts, bins)
                waits = cuda.syncthreads_or(crowded) != 0
            else:
                for i in range(per_thread):
                    if np.uint32(base + own_first + np.uint32(i) * warp) < total:
                        pending = np.uint32(pending | np.uint32(one << np.uint32(i)))
            while waits:
                if not placed:
                    pending, crowded = put(pending, owned, values, counts, bins)
                    full = cuda.syncthreads_or(crowded) != 0
                placed, waits = False, False
                if full:
                    empty_bins(unit, counts, bins, queue, fcl)
                    waits = cuda.syncthreads_or(np.int32(pending)) != 0
            for i in range(per_thread):
                owned[i], values[i] = coming[i], amounts_coming[i]
            base = following

    return cuda.jit(device=True)(sort_parts)  # type: ignore[no-any-return]
