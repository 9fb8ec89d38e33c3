"""The map source id -> synapse indices that a ``.connectome`` carries beside its synapse table.

The map repeats what the table says, in the order of the engine's hash table; it is kept as bytes and checked
against the table.
Layout: u64 count, then per source u32 id, u64 count, u64 indices; every part is a multiple of 4 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from burstproof.network.model import Network

Words = npt.NDArray[np.uint32]

_PROBLEMS = {
    1: "the synapse index reaches past the end of the payload",
    2: "the synapse index points outside the synapse table",
    3: "the synapse index names a synapse under a source that is not its own",
    4: "the synapse index names a synapse twice",
}


@lru_cache(maxsize=1)
def _walk() -> Callable[..., tuple[int, int]]:
    import numba

    def walk(words: Words, sources: Words, seen: npt.NDArray[np.bool_]) -> tuple[int, int]:
        size = words.size
        if size < 2:
            return 1, 0
        keys = np.uint64(words[0]) | (np.uint64(words[1]) << np.uint64(32))
        position = 2
        done = np.uint64(0)
        while done < keys:
            if size - position < 3:
                return 1, position
            key = words[position]
            count = np.uint64(words[position + 1]) | (np.uint64(words[position + 2]) << np.uint64(32))
            position += 3
            if count > np.uint64((size - position) // 2):
                return 1, position
            for _ in range(np.int64(count)):
                index = np.uint64(words[position]) | (np.uint64(words[position + 1]) << np.uint64(32))
                if index >= np.uint64(sources.size):
                    return 2, position
                row = np.int64(index)
                if sources[row] != key:
                    return 3, position
                if seen[row]:
                    return 4, position
                seen[row] = True
                position += 2
            done += np.uint64(1)
        return 0, position

    compiled: Callable[..., tuple[int, int]] = numba.njit(nogil=True)(walk)
    return compiled


def index_length(data: bytes, source_neurons: npt.NDArray[np.uint32]) -> tuple[int, str | None]:
    """Length in bytes of the map at the start of ``data``, and what is wrong with it or ``None``.

    ``source_neurons`` (S,) is the column that the map must agree with. With a problem, the length is the byte at
    which it was found.
    """
    words = np.frombuffer(data, "<u4", count=len(data) // 4)
    sources = np.ascontiguousarray(source_neurons)
    code, position = _walk()(words, sources, np.zeros(len(sources), np.bool_))
    return 4 * int(position), _PROBLEMS.get(int(code))


def build_index(network: Network) -> bytes:
    """The map of all synapses of ``network``, ascending sources, ascending rows within a source."""
    offsets, order = network.row_order.offsets, network.row_order.order
    synapses = network.synapse_count
    rows = np.arange(synapses, dtype=np.int64) if order is None else order
    counts = np.diff(offsets)
    keys = np.flatnonzero(counts)
    words = np.zeros(2 + 3 * len(keys) + 2 * synapses, np.uint32)
    words[0], words[1] = len(keys) & 0xFFFFFFFF, len(keys) >> 32
    heads = 2 + 3 * np.arange(len(keys), dtype=np.int64) + 2 * offsets[keys]
    words[heads] = keys
    words[heads + 1] = counts[keys] & 0xFFFFFFFF
    words[heads + 2] = counts[keys] >> 32
    items = 2 + 3 * np.repeat(np.arange(1, len(keys) + 1, dtype=np.int64), counts[keys])
    items += 2 * np.arange(synapses, dtype=np.int64)
    words[items] = rows & 0xFFFFFFFF
    words[items + 1] = rows >> 32
    return words.astype("<u4").tobytes()
