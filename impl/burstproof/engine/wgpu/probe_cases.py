"""The cases of the probe: where a float32 that is not IEEE 754's shows, special values and random ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
_Floats = npt.NDArray[np.float32]

_SPECIAL = (0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, 1.1754944e-38, -3e-39, 3.4028235e38, -3.4028235e38)
_MORE = (np.inf, -np.inf, np.nan, 1.0, -1.0, 1.0000001, 0.99999994, 16777216.0, 1.5, 0.1, 100.0)
_SUMS = (0, 1, -1, 3, 16777215, 16777217, 16777219, -16777217, 33554435, 2147483647, -2147483647, 2147483583)
_DECAYS = (1.0, 0.9, 0.0, -9.0, 0.5, 1e-30, 1.0000001, -0.25, 3.4028235e38)
_EXCITABILITIES = (0.0, -1.0, 0.3, 0.998, 0.999, 1.0, np.nan, 1e-40)
_SCALES = (0, 20, 25, 30)
_RANDOM = 1024

_LAST_PLACES = (0, 1, 2, 3, 5, 7, 1000001, 0x400000, 0x7FFFFE, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x1000001)
"""Potentials about the smallest normal number, 0x800000, in places of 2^-149 up to there; then in words."""

_SMALL_DECAYS = (
    *(1.0, 0.5, 0.25, 0.75, 0.125, 2.0, -9.0, 0.9, -0.1, 0.99999994, 1.0000001, 5.9604645e-08, -1.1920929e-07, 0.0),
    *(3.4028235e38, -1.7014118e38, 1e-45, 1e-40, -1.1754942e-38, 1.1754944e-38, np.inf, np.nan),
)
_SMALL_SUMS = (0, 0, 1, 0, -1, 0, 2147483583)
_SMALL_EXCITABILITIES = (1e-45, -1e-45, 1e-40, 1.1754942e-38, 1e-30, 0.0, -0.0)
_ZERO_DRAW = 5, 1250361618
"""A neuron and a burst whose draw is 0."""

_BURSTS = 64


def probe_cases() -> Words:
    """All cases of the probe, (C, 6) uint32: v, sum, unit, leak factor, threshold, excitability."""
    return np.concatenate([_special_cases(), _small_grid(), small_cases(_RANDOM, 17)])


def _cases(v: _Floats, sums: npt.NDArray[np.int64], decay: _Floats, threshold: _Floats, excitability: _Floats) -> Words:
    units = np.float32(2) ** -np.resize(np.array(_SCALES, np.float32), len(v))
    columns = (v, sums.astype(np.int32), units, decay, threshold, excitability)
    return np.stack([np.ascontiguousarray(c).view(np.uint32) for c in columns], axis=1)


def _cycle(values: tuple[float, ...], count: int) -> _Floats:
    return np.resize(np.array(values, np.float32), count)


def _special_cases() -> Words:
    """Special values against each other, then random words, then ordinary numbers."""
    special = np.array([*_SPECIAL, *_MORE], np.float32)
    v, other = (grid.ravel() for grid in np.meshgrid(special, special))
    rng = np.random.default_rng(16)
    bits = rng.integers(0, 1 << 32, _RANDOM, np.uint64).astype(np.uint32).view(np.float32)
    v = np.concatenate([v, bits, rng.random(_RANDOM, np.float32) * np.float32(8) - np.float32(4)])
    near = v[-_RANDOM:] * np.float32(1.0000001)
    threshold = np.concatenate([other, rng.permutation(bits), near])
    count = len(v)
    sums = np.concatenate([np.resize(_SUMS, len(other)), rng.integers(-(2**31) + 1, 2**31, count - len(other))])
    decay = _cycle(_DECAYS, count)
    decay[-_RANDOM:] = np.float32(1) - rng.random(_RANDOM, np.float32) * np.float32(1.25)
    return _cases(v, sums, decay, threshold, _cycle(_EXCITABILITIES, count))


def _small_grid() -> Words:
    """Subnormals and their neighbours, of both signs, against every factor and against each other."""
    places = np.array(_LAST_PLACES, np.uint32)
    potentials = np.concatenate([places, places | np.uint32(1 << 31)]).view(np.float32)
    v, decay = (grid.ravel() for grid in np.meshgrid(potentials, np.array(_SMALL_DECAYS, np.float32)))
    count = len(v)
    threshold = np.repeat(np.roll(potentials, 1), len(_SMALL_DECAYS))
    cases = _cases(v, np.resize(_SMALL_SUMS, count), decay, threshold, _cycle(_SMALL_EXCITABILITIES, count))
    unexcited = cases[: len(_SMALL_EXCITABILITIES)].copy()
    unexcited[:, :2] = _ZERO_DRAW
    return np.concatenate([cases, unexcited])


def small_cases(count: int, seed: int) -> Words:
    """Random cases about the smallest normal number, (``count``, 6) uint32.

    A third of the potentials are subnormal; most products come out between 2^-160 and 2^-110. In a half
    of the cases both have few significant bits, so that many products lie halfway between two numbers.
    """
    rng = np.random.default_rng(seed)
    field = np.where(rng.random(count) < 1 / 3, 0, rng.integers(1, 161, count))
    fraction = rng.integers(0, 1 << 23, count) >> np.where(field == 0, rng.integers(0, 23, count), 0)
    coarse = rng.random(count) < 0.5
    fraction &= np.where(coarse & (field != 0), 0x700000, 0x7FFFFF)
    factor_fraction = rng.integers(0, 1 << 23, count) & np.where(coarse, 0x600000, 0x7FFFFF)
    factor_field = np.where(field == 0, rng.integers(100, 150, count), 127 - field + rng.integers(-33, 18, count))
    signs = rng.integers(0, 2, (2, count))
    v = _word(signs[0], field, fraction)
    decay = _word(signs[1], np.clip(factor_field, 0, 254), factor_fraction)
    threshold = v.view(np.uint32) + rng.integers(-1, 2, count).astype(np.uint32)
    threshold ^= rng.integers(0, 4, count).astype(np.uint32) // 3 << np.uint32(31)
    sums = rng.integers(-_BURSTS, _BURSTS, count) * (rng.random(count) < 0.5)
    return _cases(v, sums, decay, threshold.view(np.float32), _cycle(_SMALL_EXCITABILITIES, count))


def _word(sign: npt.NDArray[np.int64], field: npt.NDArray[np.int64], fraction: npt.NDArray[np.int64]) -> _Floats:
    """float32 of their three parts."""
    return (sign << 31 | field << 23 | fraction).astype(np.uint32).view(np.float32)
