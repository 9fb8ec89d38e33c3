"""Layout of the words by which a closed loop and the blocks of a kernel that stays on the device communicate.

*Mail* is host memory that the host writes; *answers* and *replies* are host memory that the device writes; *relay* is
device memory. A call is one word, so a reader has all of it: its number, its counts of amounts and of forced firings.
"""

from __future__ import annotations

CALL = 0
"""Place in the mail of the current call, or ``LEAVE``."""
MAIL_HEAD = 1
"""Place of the first amount. If sums have 32 bits, a word holds the neuron in its upper half, the amount in its lower;
else it holds the neuron, and the amount is ``mail_room`` words further on. Forced ids are ``2 * mail_room`` on."""
BESIDE = 31
"""Words behind the call that every call writes if sums have 32 bits; ``mail_room`` if that is less. The first words of
amounts, at most as many as the previous call wrote, are then read with the call, not after it: the sign bit of each
says whether it belongs to an odd or an even call."""
LEAVE = -1
"""In place of a call: the kernel is to end. It is only launched while a call is waiting."""
NUMBER_SHIFT, AMOUNTS_SHIFT = 32, 16
"""A call: its number from bit 32 on (31 bits), amounts from bit 16 on, forced firings below (16 bits each)."""
CALL_NUMBERS = 1 << 31
"""Values of a call's number of 31 bits; 0 and the last are unused, so that successive numbers differ in parity."""
MOST_ENTRIES = (1 << 16) - 1
"""Most amounts, and most forced firings, of a call."""

STATUS = 0
"""Place in the answers: ``RUNNING`` until the kernel has handled its last call. The host sets it before a launch."""
RUNNING, ENDED, STUCK = 0, 1, 2
"""``STUCK``: a block waited for others of its kernel in vain; the burst is lost."""
LAST, ANSWERS_LENGTH = 1, 8
"""Place in the answers of a word that the kernel writes as it ends: the number of its last call in the upper 32 bits,
the firings of that call in the lower."""
CANDIDATES_SHIFT, COUNT_BITS = 16, (1 << 16) - 1
"""The first unit of a chunk has the number of firings in its lowest bits, the number of candidates above them."""
UNIT_BITS = 3
"""A line of the replies (``kernels.replies``) has 2^this units of 16 bytes."""
MOST_REPLY_BYTES = 1 << 26
"""Most host memory for replies; longer lists are read from the device."""

GO, ARRIVED = 0, 16
"""Places in the relay, a cache line apart: the turn that the first block starts; and arrivals, one for each block that
has done its part of a burst, or of one of its two phases, counted over all turns since the launch."""
RELAY_LENGTH = 32

GO_ON, GO_STIMULATED = 1, 2
"""The lowest bits of ``GO``: whether there is a burst to do, whether it has stimulus."""
GO_CALL_SHIFT, GO_TURN_SHIFT = 2, 33
"""Above them the number of the call (31 bits), and the turn, counted from 1."""
MOST_TURNS = 1 << 29
"""Most turns of a launch, so that the word stays positive."""

IDLE_NS = 10_000_000
"""Nanoseconds without a call after which the kernel ends by itself; the next call launches it again."""
STUCK_NS = 10_000_000_000
"""Nanoseconds after which a block gives up waiting for others; all are resident, so they do arrive."""


def mail_length(room: int) -> int:
    """Words of the mail for calls of at most ``room`` amounts, and as many forced firings."""
    return MAIL_HEAD + 3 * room


def reply_lines(neurons: int, chunk: int) -> int:
    """Lines of a chunk's replies: enough for all that can fire, as far as ``MOST_REPLY_BYTES`` allow."""
    units, chunks, line_bytes = (chunk + 3) // 3, -(-neurons // chunk), 16 << UNIT_BITS
    return max(1, min(-(-units // (1 << UNIT_BITS)), MOST_REPLY_BYTES // (chunks * line_bytes)))
