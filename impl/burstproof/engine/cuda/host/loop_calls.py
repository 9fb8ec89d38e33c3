"""Host side of a closed loop's call, compiled: check and quantise the stimulus, ring, wait, copy the fired list.

*Ringing* is storing the call word, which the kernel polls. All memory is allocated before the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.kernels.mailbox import (
    AMOUNTS_SHIFT,
    BESIDE,
    CALL,
    MAIL_HEAD,
    MOST_ENTRIES,
    NUMBER_SHIFT,
)
from burstproof.engine.packing import SCALE, WIDE, PackedStimulus, make_checks

_ODD = np.iinfo(np.int64).min
"""The sign bit, which marks the words of odd calls (``kernels.mailbox.BESIDE``)."""


def write_nothing(mail: npt.NDArray[np.int64], number: int) -> None:
    """Mark the words beside call ``number``, which has no stimulus, as written."""
    mail[MAIL_HEAD : MAIL_HEAD + min(BESIDE, room_of(mail))] = _ODD if number & 1 else 0


def write_packed(mail: npt.NDArray[np.int64], stimulus: PackedStimulus, number: int) -> None:
    """Write a stimulus that fits into the mail, for call ``number``."""
    room, count = room_of(mail), len(stimulus.ids)
    amounts, rest, forced = (mail[MAIL_HEAD + part * room :] for part in range(3))
    if stimulus.amounts.dtype == np.int32:
        words = stimulus.ids.astype(np.int64) << 32 | stimulus.amounts.view(np.uint32)
        write_nothing(mail, number)
        amounts[:count] = words | _ODD * (number & 1)
    else:
        amounts[:count], rest[:count] = stimulus.ids, stimulus.amounts
    forced[: len(stimulus.forced)] = stimulus.forced


def room_of(mail: npt.NDArray[np.int64]) -> int:
    """Most amounts of a call; see ``kernels.mailbox.mail_length``."""
    return (len(mail) - MAIL_HEAD) // 3


class LoopCalls(NamedTuple):
    """Compiled functions; array arguments are contiguous.

    - ``borrow(mail, limits, valid)`` -> the table of addresses that ``post`` takes.
    - ``post(addresses, ids, amounts, forced, number)`` writes a stimulus into the mail and rings; it returns ``False``
      without ringing if the stimulus is not both valid and ascending, and so has to be packed first.
    - ``ring(mail, number, amounts, forced)`` rings for a stimulus already in the mail, with these counts.
    - ``wait(answers, replies, number, chunks, fired)`` copies what fired and returns an answer, or a code below 0.
    - ``pick(fired, count, wanted, chosen)`` copies the wanted ids among the first ``count``, and returns their number.
    """

    borrow: Callable[..., npt.NDArray[np.int64]]
    post: Callable[..., bool]
    ring: Callable[..., Any]
    wait: Callable[..., int]
    pick: Callable[..., Any]


def _make_write() -> Any:
    """Make ``write(mail, ids, amounts, forced, limits, valid, number)``."""
    from numba import njit

    checks = make_checks(njit)
    ascend, within = checks.ascend, checks.within

    @njit
    def write(mail, ids, amounts, forced, limits, valid, number):  # type: ignore[no-untyped-def]
        """Write an ascending, valid stimulus into the mail; ``False`` for any other."""
        room, count = (len(mail) - MAIL_HEAD) // 3, len(ids)
        most, scale = min(room, MOST_ENTRIES), limits[SCALE]
        if count != len(amounts) or count > most or len(forced) > most:
            return False
        if not ascend(ids, limits, valid) or not ascend(forced, limits, valid):
            return False
        if not within(amounts, limits):
            return False
        words = mail[MAIL_HEAD:]
        if limits[WIDE] != 0.0:
            for entry in range(count):
                words[entry], words[room + entry] = ids[entry], np.int64(np.rint(np.float64(amounts[entry]) * scale))
        else:
            odd = np.int64(number & 1) << 63
            for entry in range(count):
                units = np.int32(np.rint(np.float64(amounts[entry]) * scale))
                words[entry] = odd | (np.int64(ids[entry]) << 32) | np.int64(np.uint32(units))
            for entry in range(count, min(BESIDE, room)):
                words[entry] = odd
        for entry in range(len(forced)):
            words[2 * room + entry] = forced[entry]
        return True

    return write


@cache
def loop_calls() -> LoopCalls:
    """Compile the functions; they raise ``TypeError`` for arguments of other types."""
    from numba import boolean, float32, int64, njit, types, uint32, void

    from burstproof.engine.atomics import atomic_store
    from burstproof.engine.cuda.host.borrowed import addresses_of, borrowed
    from burstproof.engine.cuda.host.loop_answers import make_wait

    write = _make_write()

    @njit(void(int64[::1], int64, int64, int64))
    def ring(mail, number, amounts, forced):  # type: ignore[no-untyped-def]
        atomic_store(mail, CALL, (number << NUMBER_SHIFT) | (amounts << AMOUNTS_SHIFT) | forced)

    words, ids_type = int64[::1], types.Array(uint32, 1, "C")

    @njit(boolean(words, ids_type, float32[::1], ids_type, int64))
    def post(addresses, ids, amounts, forced, number):  # type: ignore[no-untyped-def]
        mail = borrowed(addresses, 0, np.int64)
        limits, valid = borrowed(addresses, 1, np.float64), borrowed(addresses, 2, np.bool_)
        suited = write(mail, ids, amounts, forced, limits, valid, number)
        if suited:
            ring(mail, number, len(ids), len(forced))
        return suited

    @njit(int64(ids_type, int64, boolean[::1], ids_type))
    def pick(fired, count, wanted, chosen):  # type: ignore[no-untyped-def]
        picked = 0
        for entry in range(count):
            chosen[picked] = fired[entry]
            picked += wanted[fired[entry]]
        return picked

    return LoopCalls(addresses_of, post, ring, make_wait(), pick)
