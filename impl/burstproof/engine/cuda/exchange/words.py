"""Places in what shards say to each other, and in what a shard knows of it; no device is needed to name them."""

from __future__ import annotations

SEQUENCE = 0
"""Number of the last exchange; it only grows, whatever state is restored."""
FAILED = 1
"""0, or what ``make_failure`` tells apart: the exchange in which a shard was waited for in vain, and which; stays.

No kernel does anything any more, but for the rest of that exchange.
"""
WAITED = 2
"""Nanoseconds that the shard has waited for lists, as its first block saw it."""
LINK_LENGTH = 8

COUNT_WORD = 0
"""Header word with the number of firings; its bit 31 says that the sender's log has no room for another burst."""
CENSUS_WORD = 1
"""Header word with the number of candidates, where they are counted ahead."""
HEADER_WORDS = 16
"""Words before the first id of a side of a mailbox."""
FULL_BIT = 1 << 31

MOST_SHARDS = 64
"""Most shards of a CUDA engine: their counts lie in shared memory."""


def failure_of(word: int) -> tuple[int, int]:
    """The shard that was waited for in vain, and the exchange (uint32), as ``FAILED`` names them; (-1, 0) for none."""
    return (word & 0xFFFFFFFF) - 1, word >> 32 & 0xFFFFFFFF


def side_words(capacity: int, carries_potentials: bool) -> int:
    """Words of one side of a mailbox that holds ``capacity`` firings."""
    return HEADER_WORDS + capacity * (2 if carries_potentials else 1)


def packet_words(chunk: int) -> int:
    """Words of the packet of a chunk of so many neurons: its count, its ids, and what else a warp reads at once."""
    return chunk + 32


def packets_side_words(chunks: int, chunk: int) -> int:
    """Words of one side of a mailbox of so many packets."""
    return HEADER_WORDS + chunks * packet_words(chunk)
