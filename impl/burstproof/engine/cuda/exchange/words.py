"""Word offsets in mailboxes and in a shard's *link*, the record of its exchanges; needs no device."""

from __future__ import annotations

SEQUENCE = 0
"""Number of the last exchange; restoring a state does not reset it."""
FAILED = 1
"""0, or the exchange in which a shard was waited for in vain, and that shard (``failure_of``); never reset.

Once it is set, kernels finish that exchange and then do nothing.
"""
WAITED = 2
"""Nanoseconds that the shard's first block has waited for lists."""
LINK_LENGTH = 8

COUNT_WORD = 0
"""Header word: number of firings; bit 31 is set if the sender's log has no room for another burst."""
CENSUS_WORD = 1
"""Header word: number of candidates, if they are counted ahead."""
HEADER_WORDS = 16
"""Header words at the start of a side of a mailbox; ids follow."""
FULL_BIT = 1 << 31

MOST_SHARDS = 64
"""Most shards of a CUDA engine; their counts are kept in shared memory."""


def failure_of(word: int) -> tuple[int, int]:
    """Decode ``FAILED``: the shard that was waited for in vain, and the exchange (uint32); (-1, 0) for none."""
    return (word & 0xFFFFFFFF) - 1, word >> 32 & 0xFFFFFFFF


def side_words(capacity: int, carries_potentials: bool) -> int:
    """Words of one side of a mailbox that holds ``capacity`` firings."""
    return HEADER_WORDS + capacity * (2 if carries_potentials else 1)


def packet_words(chunk: int) -> int:
    """Words of the packet of ``chunk`` neurons: a count, the ids, and slack, since a warp reads 32 words at once."""
    return chunk + 32


def packets_side_words(chunks: int, chunk: int) -> int:
    """Words of one side of a mailbox with a packet for each of ``chunks`` chunks."""
    return HEADER_WORDS + chunks * packet_words(chunk)
