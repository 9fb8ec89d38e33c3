"""The words in which a closed loop calls a kernel that stays on the device, and in which its blocks tell each other.

*Mail* is host memory that the host writes, *answers* and *replies* host memory that the device writes, *relay* device
memory. A call
is one word, so that whoever reads it has all of it: its number, and how many amounts and forced firings come with it.
"""

from __future__ import annotations

CALL = 0
"""Place in the mail: the call at hand, or ``LEAVE``."""
MAIL_HEAD = 1
"""From here amounts: the neuron in the upper 32 bits of a word, the amount in the lower, if sums have 32 bits; else the
neuron, and the amount ``mail_room`` words on. From ``2 * mail_room`` on forced ids."""
BESIDE = 31
"""Words behind the call, or ``mail_room`` if that is less, that every call writes where sums have 32 bits; words of
amounts are then read with the call, not after it: as many as the call before wrote, or the first of them. Each says in
its sign to which call it belongs, an odd or an even one."""
LEAVE = -1
"""Instead of a call: the kernel shall end. It is launched while a call is waiting."""
NUMBER_SHIFT, AMOUNTS_SHIFT = 32, 16
"""A call: its number from bit 32 on (31 bits), amounts from bit 16 on, forced firings below (16 bits each)."""
CALL_NUMBERS = 1 << 31
"""Numbers that a call's 31 bits can hold; 0 and the last are not used, so that neighbours always differ in parity."""
MOST_ENTRIES = (1 << 16) - 1
"""Most amounts, and most forced firings, of a call."""

STATUS = 0
"""Place in the answers: ``RUNNING`` until the kernel has handled its last call. The host sets it before a launch."""
RUNNING, ENDED, STUCK = 0, 1, 2
"""``STUCK``: a block waited in vain for the others of its kernel, and what the burst did is lost."""
LAST, ANSWERS_LENGTH = 1, 8
"""Place in the answers where the kernel, as it ends, says which call it did last, in the upper 32 bits, and how many
neurons fired in it, in the lower."""
CANDIDATES_SHIFT, COUNT_BITS = 16, (1 << 16) - 1
"""The first unit of a chunk says how many neurons fired, in the lowest bits, and how many were candidates."""
UNIT_BITS = 3
"""A line of the replies (``kernels.replies``) has 2^this units of 16 bytes."""
MOST_REPLY_BYTES = 1 << 26
"""Host memory for replies at most; longer lists are read from the device."""

GO, ARRIVED = 0, 16
"""Places in the relay, a cache line apart: the turn that the first block lets begin; and how many blocks have done
their part of the burst, or of one of its two phases, counted over all turns since the launch."""
RELAY_LENGTH = 32

GO_ON, GO_STIMULATED = 1, 2
"""The lowest bits of ``GO``: whether there is a burst to do, whether it has stimulus."""
GO_CALL_SHIFT, GO_TURN_SHIFT = 2, 33
"""Above them the number of the call (31 bits), and the turn, counted from 1."""
MOST_TURNS = 1 << 29
"""Turns of a launch at most, so that the word stays positive."""

IDLE_NS = 10_000_000
"""Nanoseconds without a call after which the kernel ends by itself; the next call launches it again."""
STUCK_NS = 10_000_000_000
"""Nanoseconds after which a block gives up on the others: they are on the device, so they do come."""


def mail_length(room: int) -> int:
    """Words of the mail for calls of at most ``room`` amounts, and as many forced firings."""
    return MAIL_HEAD + 3 * room


def reply_lines(neurons: int, chunk: int) -> int:
    """Lines of a chunk's replies: room for all that can fire, as far as ``MOST_REPLY_BYTES`` reach."""
    units, chunks, line_bytes = (chunk + 3) // 3, -(-neurons // chunk), 16 << UNIT_BITS
    return max(1, min(-(-units // (1 << UNIT_BITS)), MOST_REPLY_BYTES // (chunks * line_bytes)))
