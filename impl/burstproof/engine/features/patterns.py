"""Patterns of memory areas: what identifies the firings of the last D bursts (FEATURES sections 7.1 and 7.7)."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from burstproof.network.features import MemoryArea, MemoryChange


@dataclass(slots=True, eq=False)
class Fired:
    """What fired in one area in one burst: ``ids`` (F,) uint32 ascending, ``potentials`` (F,) float32."""

    ids: npt.NDArray[np.uint32]
    potentials: npt.NDArray[np.float32]


NOBODY = Fired(np.empty(0, np.uint32), np.empty(0, np.float32))

Window = Sequence[Sequence[Fired]]
"""What fired in each upstream area, by cortical index, in each of the last D bursts, the oldest first."""

_MOST = 1 << 63
_COUNT = struct.Struct("<I")
_BUCKET = struct.Struct("<Iq")


def key_of(area: MemoryArea, window: Window) -> int | None:
    """XXH64 of a pattern, or ``None`` where there is nothing to remember."""
    if area.change is not MemoryChange.NONE:
        return _key_of_changes(area, window)
    total, packed = 0, list[bytes]()
    for frame in window:
        for fired in frame:
            count = len(fired.ids)
            total += count
            packed += _COUNT.pack(count), fired.ids.tobytes()
    return xxhash.xxh64_intdigest(b"".join(packed), 0) if total else None


def _key_of_changes(area: MemoryArea, window: Window) -> int | None:
    differential = area.change is MemoryChange.DIFFERENTIAL
    buckets_of = _differences if differential else _ratios
    size = area.delta_quantization if differential else area.ratio_quantization
    found = [
        buckets_of(float(np.float32(size)), *_by_id(old, new))
        for before, after in itertools.pairwise(window)
        for old, new in zip(before, after, strict=True)
    ]
    if not any(found):
        return None
    packed = [bytes([1 if differential else 2])]
    for buckets in found:
        packed += [_COUNT.pack(len(buckets)), *(_BUCKET.pack(*bucket) for bucket in buckets)]
    return xxhash.xxh64_intdigest(b"".join(packed), 0)


def _by_id(*pair: Fired) -> list[dict[int, float]]:
    return [dict(zip(fired.ids.tolist(), fired.potentials.tolist(), strict=True)) for fired in pair]


def _differences(size: float, old: dict[int, float], new: dict[int, float]) -> list[tuple[int, int]]:
    ids = sorted(old.keys() | new.keys())
    return [(one, _rounded((new.get(one, 0.0) - old.get(one, 0.0)) / size)) for one in ids]


def _ratios(percent: float, old: dict[int, float], new: dict[int, float]) -> list[tuple[int, int]]:
    size = math.log1p(percent / 100)
    ids = sorted(one for one in old.keys() & new.keys() if old[one] > 0 and new[one] > 0)
    return [(one, _rounded(math.log(new[one] / old[one]) / size)) for one in ids]


def _rounded(value: float) -> int:
    """The nearest integer of 64 bits, halves away from 0; 0 for NaN."""
    if not abs(value) < _MOST:
        return 0 if math.isnan(value) else (_MOST - 1 if value > 0 else -_MOST)
    whole = math.trunc(value)
    if abs(value - whole) < 0.5:
        return whole
    return whole + 1 if value > 0 else whole - 1
