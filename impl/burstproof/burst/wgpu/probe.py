"""Whether an adapter's float32 is the one that the rules need: the rules run on a table of cases, before any network.

WGSL lets an adapter flush subnormals to zero, ignore infinities and NaN, and round conversions as it likes. A burst
that is exact needs none of that, so every adapter shows on the very functions of the burst what it does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from burstproof.burst.reference import draw
from burstproof.errors import BackendUnavailableError

Words = npt.NDArray[np.uint32]
RunProbe = Callable[[Words], Words]
"""Takes the cases, (C, 6) uint32, and returns the adapter's answers, (C, 8) uint32."""

ANSWERS = (
    "the sum added to a potential",
    "the sum added to a potential, negative ones as 0",
    "a potential times the leak factor",
    "a potential compared with a threshold",
    "a potential compared with a limit",
    "the excitability draw",
    "the excitability test",
    "a 64-bit sum converted",
)

_CASE = ("potential", "sum", "unit", "leak factor", "threshold", "excitability")
_SPECIAL = (0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, 1.1754944e-38, -3e-39, 3.4028235e38, -3.4028235e38)
_MORE = (np.inf, -np.inf, np.nan, 1.0, -1.0, 1.0000001, 0.99999994, 16777216.0, 1.5, 0.1, 100.0)
_SUMS = (0, 1, -1, 3, 16777215, 16777217, 16777219, -16777217, 33554435, 2147483647, -2147483647, 2147483583)
_KEEPS = (1.0, 0.9, 0.0, -9.0, 0.5, 1e-30, 1.0000001, -0.25, 3.4028235e38)
_SCALES = (0, 20, 25, 30)
_RANDOM = 1024


@dataclass(frozen=True, eq=False)
class Probe:
    """``cases`` (C, 6) uint32 and the ``expected`` answers, (C, 8) uint32, as NumPy gives them."""

    cases: Words
    expected: Words


@cache
def make_probe() -> Probe:
    """Special values against each other, then random ones; always the same."""
    special = np.array([*_SPECIAL, *_MORE], np.float32)
    v, other = (grid.ravel() for grid in np.meshgrid(special, special))
    rng = np.random.default_rng(16)
    bits = rng.integers(0, 1 << 32, _RANDOM, np.uint64).astype(np.uint32).view(np.float32)
    v = np.concatenate([v, bits, rng.random(_RANDOM, np.float32) * np.float32(8) - np.float32(4)])
    near = v[-_RANDOM:] * np.float32(1.0000001)
    threshold = np.concatenate([other, rng.permutation(bits), near])
    count = len(v)
    sums = np.concatenate([np.resize(_SUMS, len(other)), rng.integers(-(2**31) + 1, 2**31, count - len(other))])
    units = np.float32(2) ** -np.resize(np.array(_SCALES, np.float32), count)
    keep = np.resize(np.array(_KEEPS, np.float32), count)
    keep[-_RANDOM:] = np.float32(1) - rng.random(_RANDOM, np.float32) * np.float32(1.25)
    excitability = np.resize(np.array([0.0, -1.0, 0.3, 0.998, 0.999, 1.0, np.nan, 1e-40], np.float32), count)
    columns = (v.view(np.uint32), sums.astype(np.int32).view(np.uint32), units, keep, threshold, excitability)
    cases = np.stack([np.ascontiguousarray(c).view(np.uint32) for c in columns], axis=1)
    return Probe(cases, _expected(cases))


def _expected(cases: Words) -> Words:
    v, units, keep, threshold, excitability = (
        np.ascontiguousarray(cases[:, c]).view(np.float32) for c in (0, 2, 3, 4, 5)
    )
    sums = np.ascontiguousarray(cases[:, 1]).view(np.int32)
    with np.errstate(all="ignore"):
        x = sums.astype(np.float32) * units
        added, floored = v + x, v + np.where(x < 0, np.float32(0), x)
        lost = v * keep
    draws = np.array([draw(row[:1], int(row[1]))[0] for row in cases[:, :2]], np.float32)
    passes = (excitability >= np.float32(0.999)) | ((excitability > 0) & (draws < excitability))
    wide = (sums.astype(np.int64) << 32 | cases[:, 0]).astype(np.float32)
    floats = [column.view(np.uint32) for column in (added, floored, lost)]
    others = v >= threshold, v > threshold, draws.view(np.uint32), passes, wide.view(np.uint32)
    return np.stack([*floats, *others], axis=1).astype(np.uint32)


def check_adapter(name: str, run: RunProbe) -> None:
    """Refuse an adapter whose float32 is another one.

    Raises
    ------
    BackendUnavailableError
        An answer differs in a bit from NumPy's (any NaN equals any other).
    """
    probe = make_probe()
    answers = run(probe.cases)
    wrong = (answers != probe.expected) & ~(_nan(answers) & _nan(probe.expected))
    if wrong.any():
        case, column = (int(place) for place in np.argwhere(wrong)[0])
        raise BackendUnavailableError(
            f"the float32 of this adapter is not exact: {ANSWERS[column]} is wrong in {int(wrong[:, column].sum())} of "
            f"{len(answers)} cases of the probe, first for {_shown(probe.cases[case])}",
            where=f"WGPU adapter {name}",
            got=f"{int(answers[case, column]):#010x}",
            allowed=f"{int(probe.expected[case, column]):#010x}",
            cure="Take another adapter or driver, or --backend cpu",
        )


def _nan(words: Words) -> npt.NDArray[np.bool_]:
    """Which answers are NaN; columns that are no floats hold small numbers and never look like one."""
    found: npt.NDArray[np.bool_] = (words & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return found


def _shown(case: Words) -> str:
    values: tuple[float, ...] = struct.unpack("<fiffff", np.ascontiguousarray(case).tobytes())
    return ", ".join(f"{name} {value!r}" for name, value in zip(_CASE, values, strict=True))
