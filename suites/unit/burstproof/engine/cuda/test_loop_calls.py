"""The host's side of a closed loop against a thread that reads the mail as the device does, at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from burstproof.engine.atomics import atomic_load, atomic_store, relax
from burstproof.engine.cuda.host.loop_calls import LATE, NOT_RUNNING, UNSUITED, loop_calls, write_packed
from burstproof.engine.cuda.kernels.mailbox import (
    AMOUNTS_SHIFT,
    ANSWERS_HEAD,
    BESIDE,
    CALL,
    ENDED,
    LEAVE,
    MAIL_HEAD,
    MOST_ENTRIES,
    NUMBER_SHIFT,
    RUNNING,
    STATUS,
    mail_length,
)
from burstproof.engine.stimulus import PackedStimulus

pytestmark = pytest.mark.requirement("BE-20")

ROOM, NEURONS, CALLS, ANSWERING = 300, 5000, 20_000, 3
NO_IDS, NO_AMOUNTS = np.empty(0, np.uint32), np.empty(0, np.float32)
VALID = np.ones(NEURONS, np.bool_)
LIMITS = np.array([1.0, 2.0**30, 255.0, 0.0, 0.0, 0.0])
PATIENCE_S = 60.0
MOST_POLLS = 1 << 31

Mail = npt.NDArray[np.int64]


def _reader() -> Callable[[Mail, Mail], None]:
    """Answers every call with the sum of neuron times amount, until told to leave; words beside it are read first."""
    from numba import njit

    @njit(nogil=True)
    def read(mail, answers):  # type: ignore[no-untyped-def]
        served, beside = np.int64(0), np.zeros(BESIDE, np.int64)
        for _ in range(MOST_POLLS):
            for entry in range(BESIDE):
                beside[entry] = atomic_load(mail, 1 + entry)
            call = atomic_load(mail, CALL)
            if call == served:
                relax()
                continue
            if call == LEAVE:
                atomic_store(answers, STATUS, ENDED)
                return
            number, count, found = call >> NUMBER_SHIFT, (call >> AMOUNTS_SHIFT) & MOST_ENTRIES, np.int64(0)
            for entry in range(count):
                word = beside[entry] if entry < BESIDE else mail[MAIL_HEAD + entry]
                if entry < BESIDE:
                    while (word >> 63) & 1 != number & 1:
                        word = atomic_load(mail, 1 + entry)
                found += ((word >> 32) & 0x7FFFFFFF) * np.int64(np.int32(word))
            for entry in range(call & MOST_ENTRIES):
                found += mail[MAIL_HEAD + 2 * ROOM + entry]
            served = call
            for block in range(ANSWERING):
                atomic_store(answers, ANSWERS_HEAD + block, (number << NUMBER_SHIFT) | (found & 0xFFFFFFFF))

    return read  # type: ignore[no-any-return]


def memory() -> tuple[Mail, Mail]:
    return np.zeros(mail_length(ROOM), np.int64), np.zeros(ANSWERS_HEAD + ANSWERING, np.int64)


@pytest.mark.thorough("compiles a reader of its own: three seconds")
def test_every_call_is_read_whole() -> None:
    """Calls of 0 to 300 amounts and some forced firings: what the reader adds up is what was put in."""
    calls, read, (mail, answers) = loop_calls(), _reader(), memory()
    mail[CALL] = LEAVE
    read(mail, answers)
    answers[STATUS] = RUNNING
    rng = np.random.default_rng(1)
    given = []
    for count in (0, 1, 16, 31, 32, 33, 100, 300, 0, 2, 31, 7):
        ids = np.sort(rng.choice(NEURONS, count, replace=False)).astype(np.uint32)
        forced = np.sort(rng.choice(NEURONS, count % 5, replace=False)).astype(np.uint32)
        given.append((ids, rng.integers(-9, 99, count).astype(np.float32), forced))
    want = [
        int((ids.astype(np.int64) * amounts.astype(np.int64)).sum() + forced.sum()) for ids, amounts, forced in given
    ]
    write_packed(mail, PackedStimulus(NO_IDS, np.empty(0, np.int32), NO_IDS, False, True), 1)
    calls.ring(mail, 1, 0, 0)
    thread = threading.Thread(target=read, args=(mail, answers), daemon=True)
    thread.start()
    try:
        assert settled(calls.wait, LATE, answers, 1) == 0
        for number in range(2, CALLS):
            place = number % len(given)
            found = calls.call(mail, answers, *given[place], VALID, LIMITS, number, ANSWERING)
            if found == LATE:
                found = settled(calls.wait, found, answers, number)
            assert found == want[place] & 0xFFFFFFFF, f"call {number}"
    finally:
        mail[CALL] = LEAVE
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert calls.wait(answers, CALLS, ANSWERING) == NOT_RUNNING


def settled(wait: Callable[..., int], found: int, answers: Mail, number: int) -> int:
    """Go on waiting, as the engine does; a machine with one busy core needs its time."""
    for _ in range(10_000):
        if found != LATE:
            break
        found = wait(answers, number, ANSWERING)
    return found


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("number", [6, 7])
@pytest.mark.parametrize("count", [0, 5, 31, 40, 300])
def test_both_ways_write_the_same_mail(count: int, number: int, bits: int) -> None:
    """What the compiled code writes, and what is written of a stimulus that was packed."""
    calls, (mail, answers), (other, _) = loop_calls(), memory(), memory()
    answers[STATUS] = ENDED
    mail[1 : 1 + BESIDE] = other[1 : 1 + BESIDE] = 99
    limits = LIMITS.copy()
    limits[4] = bits == 64
    ids = np.arange(3, 3 + count, dtype=np.uint32)
    amounts = np.arange(count, dtype=np.float32) % 7 - 3
    assert calls.call(mail, answers, ids, amounts, ids[:4], VALID, limits, number, ANSWERING) == NOT_RUNNING
    sums = amounts.astype(np.int32 if bits == 32 else np.int64)
    write_packed(other, PackedStimulus(ids, sums, ids[:4], False, False), number)
    calls.ring(other, number, count, len(ids[:4]))
    behind = slice(MAIL_HEAD + BESIDE, None) if bits == 32 else slice(MAIL_HEAD, None)
    places = slice(0, 1 + BESIDE) if bits == 32 else slice(0, 1)
    np.testing.assert_array_equal(mail[places], other[places])
    np.testing.assert_array_equal(mail[behind], other[behind])


def test_other_stimuli_do_not_go_the_short_way() -> None:
    """None of them rings: the mail still says what it said."""
    calls, (mail, answers) = loop_calls(), memory()
    invalid, limits = VALID.copy(), LIMITS.copy()
    invalid[9], limits[5], mail[CALL] = False, 1.0, 77
    many = np.arange(ROOM + 1, dtype=np.uint32)
    for ids, amounts, forced in (
        (np.array([2, 1]), [1, 1], []),
        (np.array([2, 2]), [1, 1], []),
        (np.array([NEURONS]), [1], []),
        (np.array([9]), [1], []),
        (np.array([1]), [1, 2], []),
        (np.array([1]), [0.5], []),
        (np.array([1]), [256], []),
        (np.array([1]), [np.nan], []),
        (many, np.ones(ROOM + 1), []),
        (NO_IDS, NO_AMOUNTS, [4, 3]),
        (NO_IDS, NO_AMOUNTS, [9]),
        (NO_IDS, NO_AMOUNTS, many),
    ):
        given = np.array(ids, np.uint32), np.array(amounts, np.float32), np.array(forced, np.uint32)
        assert calls.call(mail, answers, *given, invalid, limits, 1, ANSWERING) == UNSUITED
        assert mail[CALL] == 77
