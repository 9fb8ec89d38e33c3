"""The host's side of a closed loop against a thread that reads the mail as the device does, at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from burstproof.engine.atomics import atomic_load, atomic_store, relax
from burstproof.engine.cuda.host.loop_calls import loop_calls, write_packed
from burstproof.engine.cuda.host.loop_codes import FIRED_BITS, LATE, LONGER, MANY, NOT_RUNNING, SLACK
from burstproof.engine.cuda.kernels.mailbox import (
    AMOUNTS_SHIFT,
    ANSWERS_LENGTH,
    BESIDE,
    CALL,
    CANDIDATES_SHIFT,
    ENDED,
    LEAVE,
    MAIL_HEAD,
    MOST_ENTRIES,
    NUMBER_SHIFT,
    RUNNING,
    STATUS,
    UNIT_BITS,
    mail_length,
    reply_lines,
)
from burstproof.engine.packing import PackedStimulus

pytestmark = [pytest.mark.requirement("BE-20"), pytest.mark.xdist_group("loop calls")]

ROOM, NEURONS, CALLS, CHUNKS, CHUNK, FEW_LINES = 300, 5000, 20_000, 3, 200, 2
MORE = 30_000
"""Candidates of a chunk beside what fires, so that their number takes all of its bits."""
LINES = reply_lines(CHUNKS * CHUNK, CHUNK)
NO_IDS, NO_AMOUNTS = np.empty(0, np.uint32), np.empty(0, np.float32)
VALID = np.ones(NEURONS, np.bool_)
LIMITS = np.array([1.0, 2.0**30, 255.0, 0.0, 0.0, NEURONS])
PATIENCE_S = 60.0
MOST_POLLS = 1 << 31

Mail = npt.NDArray[np.int64]


def counts_of(found: int) -> list[int]:
    """How many neurons fire in each chunk where the amounts add up to ``found``."""
    return [(found + 61 * chunk) % CHUNK for chunk in range(CHUNKS)]


def candidates_of(found: int) -> int:
    """How many candidates there are then: ``MORE`` in each chunk beside what fires."""
    return sum(counts_of(found)) + MORE * CHUNKS


def answer_of(found: int) -> int:
    """The answer to a call whose amounts add up to ``found``."""
    return candidates_of(found) << FIRED_BITS | sum(counts_of(found))


def _reader() -> Callable[[Mail, Mail, Mail], None]:
    """Answers every call by the sum of neuron times amount, until told to leave.

    Before it looks at the call, it reads as many words of amounts as the call before wrote.
    """
    from numba import njit

    in_line = 1 << UNIT_BITS

    @njit(nogil=True)
    def answer(replies, number, chunk, count):  # type: ignore[no-untyped-def]
        """Neurons 0, 1, ... of the chunk, the last unit first."""
        for unit in range((count + 3) // 3 - 1, -1, -1):
            place = 2 * (((unit // in_line) * CHUNKS + chunk) * in_line + unit % in_line)
            low = chunk * CHUNK + 3 * unit - 1
            replies[place + 1] = (low + 1) | ((low + 2) << 32)
            head = count | ((count + MORE) << CANDIDATES_SHIFT)
            atomic_store(replies, place, number | ((head if unit == 0 else low) << 32))

    @njit(nogil=True)
    def read(mail, answers, replies):  # type: ignore[no-untyped-def]
        served, polled, reached = np.int64(0), np.zeros(ROOM, np.int64), BESIDE
        for _ in range(MOST_POLLS):
            for entry in range(reached):
                polled[entry] = atomic_load(mail, MAIL_HEAD + entry)
            call = atomic_load(mail, CALL)
            if call == served:
                relax()
                continue
            if call == LEAVE:
                atomic_store(answers, STATUS, ENDED)
                return
            number, count, found = call >> NUMBER_SHIFT, (call >> AMOUNTS_SHIFT) & MOST_ENTRIES, np.int64(0)
            for entry in range(count):
                word = polled[entry]
                if entry >= reached or (word >> 63) & 1 != number & 1:
                    word = mail[MAIL_HEAD + entry]
                found += ((word >> 32) & 0x7FFFFFFF) * np.int64(np.int32(word))
            reached = max(count, BESIDE)
            for entry in range(call & MOST_ENTRIES):
                found += mail[MAIL_HEAD + 2 * ROOM + entry]
            served = call
            for chunk in range(CHUNKS):
                answer(replies, number, chunk, (found + 61 * chunk) % CHUNK)

    return read  # type: ignore[no-any-return]


def memory() -> tuple[Mail, Mail, Mail]:
    sizes = mail_length(ROOM), ANSWERS_LENGTH, (2 << UNIT_BITS) * CHUNKS * LINES
    return np.zeros(sizes[0], np.int64), np.zeros(sizes[1], np.int64), np.zeros(sizes[2], np.int64)


def room_for_list() -> npt.NDArray[np.uint32]:
    return np.empty(CHUNKS * CHUNK + SLACK, np.uint32)


@pytest.mark.thorough("compiles a reader of its own: three seconds")
def test_every_call_is_read_whole() -> None:
    """Calls of 0 to 300 amounts and some forced firings: what the reader adds up is what was put in."""
    calls, read, (mail, answers, replies), fired = loop_calls(), _reader(), memory(), room_for_list()
    mail[CALL] = LEAVE
    read(mail, answers, replies)
    answers[STATUS] = RUNNING
    rng = np.random.default_rng(1)
    given = []
    for count in (0, 1, 16, 31, 32, 33, 100, 300, 0, 2, 31, 7):
        ids = np.sort(rng.choice(NEURONS, count, replace=False)).astype(np.uint32)
        forced = np.sort(rng.choice(NEURONS, count % 5, replace=False)).astype(np.uint32)
        given.append((ids, rng.integers(-9, 99, count).astype(np.float32), forced))
    sums = [
        int((ids.astype(np.int64) * amounts.astype(np.int64)).sum() + forced.sum()) for ids, amounts, forced in given
    ]
    want = [np.concatenate([CHUNK * c + np.arange(count) for c, count in enumerate(counts_of(one))]) for one in sums]
    write_packed(mail, PackedStimulus(NO_IDS, np.empty(0, np.int32), NO_IDS, False, True), 1)
    calls.ring(mail, 1, 0, 0)
    addresses = calls.borrow(mail, LIMITS, VALID)
    thread = threading.Thread(target=read, args=(mail, answers, replies), daemon=True)
    thread.start()
    try:
        assert settled(calls.wait, LATE, answers, replies, 1, fired) == answer_of(0)
        for number in range(2, CALLS):
            place = number % len(given)
            assert calls.post(addresses, *given[place], number)
            found = calls.wait(answers, replies, number, CHUNKS, fired)
            if found == LATE:
                found = settled(calls.wait, found, answers, replies, number, fired)
            assert found == answer_of(sums[place]), f"call {number}"
            assert np.array_equal(fired[: found & MANY], want[place]), f"call {number}"
    finally:
        mail[CALL] = LEAVE
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert calls.wait(answers, replies, CALLS, CHUNKS, fired) == NOT_RUNNING


def settled(
    wait: Callable[..., int], found: int, answers: Mail, replies: Mail, number: int, fired: npt.NDArray[np.uint32]
) -> int:
    """Go on waiting, as the engine does; a machine with one busy core needs its time."""
    for _ in range(10_000):
        if found != LATE:
            break
        found = wait(answers, replies, number, CHUNKS, fired)
    return found


def test_a_longer_list_than_there_are_lines_is_said_to_be_one() -> None:
    """All chunks are waited for; the host then reads the list from the device. An array may be too short as well."""
    calls, (_, answers, replies), fired = loop_calls(), memory(), room_for_list()
    answers[STATUS] = RUNNING
    few = replies[: (2 << UNIT_BITS) * CHUNKS * FEW_LINES]
    heads = np.arange(CHUNKS) * (2 << UNIT_BITS)
    counts, candidates = np.array([1, 3 * FEW_LINES << UNIT_BITS, 2]), np.array([7, 199, 2])
    few[heads] = 7 | (counts | candidates << CANDIDATES_SHIFT) << 32
    few[heads + 1] = 5
    assert calls.wait(answers, few, 7, CHUNKS, fired) == 208 << FIRED_BITS | MANY
    few[heads[1]] = 7 | (2 | 199 << CANDIDATES_SHIFT) << 32
    few[heads + 1] = [5 | 6 << 32, 7 | 8 << 32, 9 | 10 << 32]
    assert calls.wait(answers, few, 7, CHUNKS, fired) == 208 << FIRED_BITS | 5
    assert fired[:5].tolist() == [5, 7, 8, 9, 10]
    assert calls.wait(answers, few, 7, CHUNKS, fired[: 4 + SLACK]) == LONGER
    few[heads[2]] = 6
    assert calls.wait(answers, few, 7, CHUNKS, fired) == LATE


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("number", [6, 7])
@pytest.mark.parametrize("count", [0, 5, 31, 40, 300])
def test_both_ways_write_the_same_mail(count: int, number: int, bits: int) -> None:
    """What the compiled code writes, and what is written of a stimulus that was packed."""
    calls, (mail, answers, replies), (other, _, _), fired = loop_calls(), memory(), memory(), room_for_list()
    answers[STATUS] = ENDED
    mail[1:] = other[1:] = 99
    limits = LIMITS.copy()
    limits[4] = bits == 64
    ids = np.arange(3, 3 + count, dtype=np.uint32)
    amounts = np.arange(count, dtype=np.float32) % 7 - 3
    assert calls.post(calls.borrow(mail, limits, VALID), ids, amounts, ids[:4], number)
    assert calls.wait(answers, replies, number, CHUNKS, fired) == NOT_RUNNING
    sums = amounts.astype(np.int32 if bits == 32 else np.int64)
    write_packed(other, PackedStimulus(ids, sums, ids[:4], False, False), number)
    calls.ring(other, number, count, len(ids[:4]))
    np.testing.assert_array_equal(mail, other)


def test_other_stimuli_do_not_go_the_short_way() -> None:
    """None of them rings: the mail still says what it said."""
    calls, (mail, _, _) = loop_calls(), memory()
    invalid = VALID.copy()
    invalid[9], mail[CALL] = False, 77
    addresses = calls.borrow(mail, LIMITS, invalid)
    many = np.arange(ROOM + 1, dtype=np.uint32)
    for ids, amounts, forced in (
        (np.array([2, 1]), [1, 1], []),
        (np.array([2, 2]), [1, 1], []),
        (np.array([NEURONS]), [1], []),
        (np.array([9]), [1], []),
        (np.array([1]), [1, 2], []),
        (np.array([1]), [0.5], []),
        (np.array([1]), [256], []),
        (np.array([1]), [-256], []),
        (np.array([1]), [np.nan], []),
        (many, np.ones(ROOM + 1), []),
        (NO_IDS, NO_AMOUNTS, [4, 3]),
        (NO_IDS, NO_AMOUNTS, [9]),
        (NO_IDS, NO_AMOUNTS, many),
    ):
        given = np.array(ids, np.uint32), np.array(amounts, np.float32), np.array(forced, np.uint32)
        assert not calls.post(addresses, *given, 1)
        assert mail[CALL] == 77
