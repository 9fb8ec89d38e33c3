"""The host's side of a closed loop's calls, compiled: check and quantise the stimulus, ring, wait, take the list.

Everything here works on memory that was made before the first call.
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
    CANDIDATES_SHIFT,
    COUNT_BITS,
    MAIL_HEAD,
    MOST_ENTRIES,
    NUMBER_SHIFT,
    RUNNING,
    STATUS,
    UNIT_BITS,
)
from burstproof.engine.options import EngineOptions
from burstproof.engine.stimulus import PackedStimulus
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

UNSUITED, LATE, NOT_RUNNING = -1, -2, -3
"""Instead of an answer: the stimulus is not one for the shortest way, the answer is not there yet, or the kernel ended
before it saw the call."""

FIRED_BITS = 32
"""An answer: the number of firings in so many bits, above them that of the candidates."""
MANY = (1 << FIRED_BITS) - 1
"""Instead of a number of firings: more of them than there is room for in the replies."""
SLACK = 3
"""Elements that a list needs behind its last firing: it is written unit by unit."""

SPINS = 20_000
"""How often an answer is looked for at a time, about a millisecond."""

_ODD = np.iinfo(np.int64).min

SCALE, CLAMP, LARGEST, FRACTIONS, WIDE, SOME_INVALID = 0, 1, 2, 3, 4, 5
"""Places in the limits of a stimulus: 2^k, the largest integer, the largest amount; 1 where fractions are allowed,
where sums have 64 bits, where not all neurons are valid."""


def limits_of(network: Network, options: EngineOptions, point: FixedPoint) -> npt.NDArray[np.float64]:
    """The limits of a stimulus (6,)."""
    limits = np.empty(6)
    limits[SCALE], limits[CLAMP] = point.scale, point.clamp_float
    limits[LARGEST], limits[FRACTIONS] = options.max_stimulus, options.fractional_stimulus
    limits[WIDE], limits[SOME_INVALID] = point.bits != 32, not network.neurons.valid_mask.all()
    return limits


def write_nothing(mail: npt.NDArray[np.int64], number: int) -> None:
    """Say that call ``number`` has no stimulus."""
    mail[1 : 1 + BESIDE] = _ODD if number & 1 else 0


def write_packed(mail: npt.NDArray[np.int64], stimulus: PackedStimulus, number: int) -> None:
    """Put a stimulus, which fits, into the mail for call ``number``."""
    room, count = (len(mail) - MAIL_HEAD) // 3, len(stimulus.ids)
    amounts, rest, forced = (mail[MAIL_HEAD + part * room :] for part in range(3))
    amounts[:count] = stimulus.ids
    if stimulus.amounts.dtype == np.int32:
        amounts[:count] = (amounts[:count] << 32) | stimulus.amounts.view(np.uint32)
        mail[1 : 1 + BESIDE] = 0
        mail[1 : 1 + min(count, BESIDE)] = amounts[: min(count, BESIDE)]
        mail[1 : 1 + BESIDE] |= _ODD * (number & 1)
    else:
        rest[:count] = stimulus.amounts
    forced[: len(stimulus.forced)] = stimulus.forced


class LoopCalls(NamedTuple):
    """Compiled functions, of arguments that are contiguous.

    ``call(mail, answers, replies, ids, amounts, forced, valid, limits, number, chunks, fired)`` does a whole call;
    ``ring(mail, number, amounts, forced)`` one whose stimulus lies in the mail already; ``wait(answers, replies,
    number, chunks, fired)`` goes on waiting; ``pick(fired, count, wanted, chosen)`` -> how many of the first ``count``
    are wanted, which it copies. ``call`` and ``wait`` leave what fired in ``fired`` and return an answer, or one of the
    numbers above.
    """

    call: Callable[..., Any]
    ring: Callable[..., Any]
    wait: Callable[..., Any]
    pick: Callable[..., Any]


def _make_write() -> Any:
    """``write(mail, ids, amounts, forced, valid, limits, number)``, for any types."""
    from numba import njit

    @njit
    def ascend(ids, valid, some_invalid):  # type: ignore[no-untyped-def]
        """Whether ``ids`` are valid neurons, ascending, each once. No branch leaves the loops: they become vectors."""
        count = len(ids)
        if count == 0:
            return True
        wrong = False
        for entry in range(1, count):
            wrong |= ids[entry] <= ids[entry - 1]
        if wrong or ids[count - 1] >= len(valid):
            return False
        if some_invalid:
            for entry in range(count):
                wrong |= not valid[ids[entry]]
        return not wrong

    @njit
    def write(mail, ids, amounts, forced, valid, limits, number):  # type: ignore[no-untyped-def]
        """Put an ascending, valid stimulus into the mail; ``False`` for any other."""
        room, count = (len(mail) - MAIL_HEAD) // 3, len(ids)
        most = min(room, MOST_ENTRIES)
        if count != len(amounts) or count > most or len(forced) > most:
            return False
        some_invalid = limits[SOME_INVALID] != 0.0
        if not ascend(ids, valid, some_invalid) or not ascend(forced, valid, some_invalid):
            return False
        scale, clamp, largest = limits[SCALE], limits[CLAMP], limits[LARGEST]
        whole, wide, right = limits[FRACTIONS] == 0.0, limits[WIDE] != 0.0, True
        for entry in range(count):
            amount = np.float64(amounts[entry])
            scaled = np.rint(amount * scale)
            right &= (abs(amount) <= largest) & (abs(scaled) <= clamp) & ((not whole) | (np.rint(amount) == amount))
        if not right:
            return False
        if wide:
            for entry in range(count):
                mail[MAIL_HEAD + entry] = ids[entry]
                mail[MAIL_HEAD + room + entry] = np.int64(np.rint(np.float64(amounts[entry]) * scale))
        else:
            odd = np.int64(number & 1) << 63
            others, their_amounts, words = ids[BESIDE:], amounts[BESIDE:], mail[MAIL_HEAD + BESIDE :]
            for entry in range(len(others)):
                units = np.int32(np.rint(np.float64(their_amounts[entry]) * scale))
                words[entry] = (np.int64(others[entry]) << 32) | np.int64(np.uint32(units))
            for entry in range(BESIDE):
                word = odd
                if entry < count:
                    units = np.int32(np.rint(np.float64(amounts[entry]) * scale))
                    word |= (np.int64(ids[entry]) << 32) | np.int64(np.uint32(units))
                mail[1 + entry] = word
        for entry in range(len(forced)):
            mail[MAIL_HEAD + 2 * room + entry] = forced[entry]
        return True

    return write


@cache
def loop_calls() -> LoopCalls:
    """Compile them; for arguments of other types they raise ``TypeError``."""
    from numba import boolean, float32, float64, int64, njit, types, uint32, void

    from burstproof.engine.atomics import atomic_load, atomic_store, relax

    counts, shift = (1 << NUMBER_SHIFT) - 1, NUMBER_SHIFT
    write = _make_write()

    @njit(void(int64[::1], int64, int64, int64))
    def ring(mail, number, amounts, forced):  # type: ignore[no-untyped-def]
        atomic_store(mail, CALL, (number << shift) | (amounts << AMOUNTS_SHIFT) | forced)

    words, ids_type = int64[::1], types.Array(uint32, 1, "C")
    in_line, line_bits = (1 << UNIT_BITS) - 1, UNIT_BITS + 1

    @njit
    def here(answers, replies, place, number):  # type: ignore[no-untyped-def]
        """Wait for the unit at ``place``: 0, or why it is not there."""
        for _ in range(SPINS):
            if atomic_load(replies, place) & counts == number:
                return 0
            if atomic_load(answers, STATUS) != RUNNING and atomic_load(replies, place) & counts != number:
                return NOT_RUNNING
            relax()
        return LATE

    @njit(int64(words, words, int64, int64, ids_type))
    def wait(answers, replies, number, chunks, fired):  # type: ignore[no-untyped-def]
        """Take the chunks' units one after another: each is whole if its first word says ``number``."""
        room, found, candidates, many = (len(replies) // chunks) >> line_bits << UNIT_BITS, 0, 0, False
        for chunk in range(chunks):
            place = chunk << line_bits
            word = atomic_load(replies, place)
            if word & counts != number:
                missing = here(answers, replies, place, number)
                if missing != 0:
                    return missing
                word = atomic_load(replies, place)
            count, pair = (word >> shift) & COUNT_BITS, atomic_load(replies, place + 1)
            candidates += word >> (shift + CANDIDATES_SHIFT)
            fired[found], fired[found + 1] = pair & counts, pair >> shift
            units = (count + 3) // 3
            if units > room:
                many, units = True, 1
            entry = found + 2
            for unit in range(1, units):
                place = (((unit >> UNIT_BITS) * chunks + chunk) << line_bits) + ((unit & in_line) << 1)
                word = atomic_load(replies, place)
                if word & counts != number:
                    missing = here(answers, replies, place, number)
                    if missing != 0:
                        return missing
                    word = atomic_load(replies, place)
                pair = atomic_load(replies, place + 1)
                fired[entry], fired[entry + 1], fired[entry + 2] = word >> shift, pair & counts, pair >> shift
                entry += 3
            if not many:
                found += count
        return (candidates << FIRED_BITS) | (MANY if many else found)

    @njit(
        int64(words, words, words, ids_type, float32[::1], ids_type, boolean[::1], float64[::1], int64, int64, ids_type)
    )
    def call(mail, answers, replies, ids, amounts, forced, valid, limits, number, chunks, fired):  # type: ignore[no-untyped-def]
        if not write(mail, ids, amounts, forced, valid, limits, number):
            return UNSUITED
        ring(mail, number, len(ids), len(forced))
        return wait(answers, replies, number, chunks, fired)

    @njit(int64(ids_type, int64, boolean[::1], ids_type))
    def pick(fired, count, wanted, chosen):  # type: ignore[no-untyped-def]
        picked = 0
        for entry in range(count):
            chosen[picked] = fired[entry]
            picked += wanted[fired[entry]]
        return picked

    return LoopCalls(call, ring, wait, pick)
