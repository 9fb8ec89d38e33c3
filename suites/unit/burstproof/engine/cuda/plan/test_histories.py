"""Words of firings: what a state says of last firings and runs goes in and comes out again."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.cuda.plan.histories import BURSTS, LONGEST_DEFERRED, firings_of, period_of, words_of

pytestmark = pytest.mark.requirement("BE-17")

BURST = 1000


@pytest.mark.parametrize("burst", [BURST, 1 << 32])
def test_firings_come_back(burst: int) -> None:
    last = np.array([0, burst, burst - 1, burst - BURSTS + 1], np.int64)
    streaks = np.array([0, 1, 3, 5], np.uint16)
    found = firings_of(words_of(last, streaks, burst), burst, 5)
    assert found[0].tolist() == last.tolist()
    assert found[1].tolist() == streaks.tolist()


def test_what_words_do_not_tell_is_nothing() -> None:
    words = words_of(np.array([0, BURST - BURSTS], np.int64), np.array([0, 1], np.uint16), BURST)
    assert words.tolist() == [0, 0]


def test_a_word_of_long_ago_says_nothing() -> None:
    """It is read as nothing until 256 bursts have passed; rows have their turn, and are cleared, long before."""
    word = words_of(np.array([BURST], np.int64), np.array([1], np.uint16), BURST)
    assert firings_of(word, BURST + BURSTS - 1, 3)[0].tolist() == [BURST]
    assert firings_of(word, BURST + BURSTS, 3)[0].tolist() == [0]
    assert BURSTS + 2 * period_of(1) < 256


def test_runs_end_at_the_longest_window() -> None:
    words = words_of(np.array([BURST], np.int64), np.array([9], np.uint16), BURST)
    assert firings_of(words, BURST, 4)[1].tolist() == [4]


@pytest.mark.parametrize("window", [1, 3, LONGEST_DEFERRED])
def test_a_row_waits_no_longer_than_words_remember(window: int) -> None:
    """The oldest burst to catch up on lies ``period`` bursts back, and its window reaches ``window`` - 1 further."""
    assert period_of(window) + window - 1 < BURSTS
