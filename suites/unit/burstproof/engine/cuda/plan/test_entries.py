"""Entries of rows as words: what goes in comes out, and a palette has every contribution once or does not exist."""

import numpy as np
import pytest

from burstproof.engine.cuda.plan import entries
from burstproof.engine.layout import StaticRows

pytestmark = pytest.mark.requirement("BE-1")


def rows(contributions: np.ndarray, neurons: int) -> StaticRows:
    """One source with these contributions, onto targets all over the network."""
    targets = np.random.default_rng(1).integers(0, neurons, len(contributions)).astype(np.uint32)
    targets[:2] = 0, neurons - 1
    return StaticRows(np.array([0, len(targets)]), targets, contributions, None, None)


@pytest.mark.parametrize("palette", [False, True], ids=["beside", "palette"])
def test_words_say_target_and_contribution(palette: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("burstproof.engine.spans._CACHED", 64)
    neurons = 1 << 20
    largest = 2047 * 1000 if palette else 2047
    values = np.arange(-2047, 2048, dtype=np.int32) * (1000 if palette else 1)
    static = rows(np.random.default_rng(2).permutation(values), neurons)
    bits = entries.target_bits(neurons)
    assert entries.fits_beside(bits, largest) is not palette
    table = entries.palette_of(static.contributions) if palette else None
    words = entries.entry_words(static, bits, table)
    assert words.dtype == np.int32
    assert (words.view(np.uint32) & ((1 << bits) - 1) == static.targets).all()
    assert (entries.amounts_of(words, bits, table) == static.contributions).all()


def test_places_say_which_contribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("burstproof.engine.spans._CACHED", 64)
    contributions = np.random.default_rng(2).integers(-2047, 2048, 5000) * 10**9
    table = entries.palette_of(contributions)
    places = entries.places_in(table, contributions)
    assert places.dtype == np.uint16
    assert (table[places] == contributions).all()


def test_a_palette_has_every_contribution_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_PROBE", 7)
    monkeypatch.setattr("burstproof.engine.spans._CACHED", 100)
    most = np.arange(-2048, 2048, dtype=np.int64) * 1000
    assert (entries.palette_of(np.repeat(most, 2)[::-1]) == most).all()
    assert not len(entries.palette_of(np.append(most, 1)))
    assert not len(entries.palette_of(most[:0]))


@pytest.mark.parametrize("distinct", [1, 2, 3, 255, 4095, 4096])
def test_places_are_found_whatever_the_values(distinct: int) -> None:
    """Drawn ones, powers of two and their neighbours, and multiples of large ones: some factors do not fit."""
    ends = np.iinfo(np.int64)
    rng = np.random.default_rng(distinct)
    drawn = [np.unique(rng.integers(ends.min, ends.max, distinct, endpoint=True)) for _ in range(5)]
    spaced = np.arange(distinct) - distinct // 2
    powers = np.unique(np.concatenate([[ends.min, ends.max], 2 ** np.arange(63), 1 - 2 ** np.arange(63)]))[:distinct]
    for table in (*drawn, spaced, spaced * 2**40, powers):
        assert (entries.places_in(table, table) == np.arange(len(table))).all()


def test_nothing_is_in_an_empty_palette() -> None:
    none = np.empty(0, np.int32)
    assert len(entries.places_in(none, none)) == 0


def test_many_values_that_come_late_have_no_palette(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_PROBE", 10)
    monkeypatch.setattr("burstproof.engine.spans._CACHED", 5000)
    late = np.arange(40_000, dtype=np.int64) // 8
    assert not len(entries.palette_of(late))
    assert entries.palette_of(late[: 8 * 4096]).tolist() == list(range(4096))
    assert not len(entries.palette_of(np.concatenate([late[:16], np.arange(100_000)])))


def test_no_word_has_more_than_32_bits() -> None:
    assert entries.fits_beside(20, 2047)
    assert not entries.fits_beside(20, 2048)
    assert entries.indexed_beside(20, 4096)
    assert not entries.indexed_beside(21, 4096)
    assert not entries.indexed_beside(20, 0)
