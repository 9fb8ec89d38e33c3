"""In which recent bursts a neuron fired, as one word, for deferred learning (``kernels.deferred``).

The upper 56 bits are bursts, the highest one the last burst in which the neuron fired; the low 8 bits are that burst's
number mod 256. A word whose last burst is 56 bursts back says nothing, and is cleared before 256 have passed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BURSTS = 56
"""Bursts that a word covers."""

LONGEST_DEFERRED = 48
"""Longest window for which words are used: a longer one leaves too few bursts between two looks at a row."""

MOST_RULES = 65534
"""Most plastic mappings: a synapse names its own in 16 bits, with 0 for none."""

Longs = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.uint16]
_LOW = 255


def period_of(longest_window: int) -> int:
    """Bursts after which a row is brought up to date even if its source did not fire.

    The words then still cover the ``longest_window`` before the oldest burst that the row has to catch up on.
    """
    return max(1, BURSTS - longest_window)


def words_of(last_fired: Longs, streaks: Shorts, burst: int) -> npt.NDArray[np.uint64]:
    """Words (N,) uint64 after ``burst``, of last firings and of the unbroken runs (``streaks``) that these end."""
    runs = np.clip(streaks, 1, BURSTS).astype(np.uint64)
    bits = ((np.uint64(1) << runs) - np.uint64(1)) << (np.uint64(64) - runs)
    known = (last_fired > 0) & (burst - last_fired < BURSTS)
    return np.where(known, bits | (last_fired & _LOW).astype(np.uint64), np.uint64(0))


def firings_of(words: npt.NDArray[np.uint64], burst: int, longest_window: int) -> tuple[Longs, Shorts]:
    """Last firings, and the unbroken runs that these end, at most ``longest_window``, of words (N,) after ``burst``."""
    ages = (burst - (words & np.uint64(_LOW)).astype(np.int64)) & _LOW
    known = (words != 0) & (ages < BURSTS)
    streaks, unbroken = np.zeros(len(words), np.uint16), known
    for back in range(longest_window):
        unbroken = unbroken & ((words >> np.uint64(63 - back)) & np.uint64(1) != 0)
        streaks += unbroken
    return np.where(known, burst - ages, 0), streaks
