"""Keys of patterns: the bytes that are hashed, buckets of steps, and what leaves nothing to remember."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import xxhash

from burstproof.engine.features.patterns import NOBODY, Fired, key_of
from burstproof.network.features import MemoryArea, MemoryChange

pytestmark = pytest.mark.requirement("BE-4")


def fired(*pairs: tuple[int, float]) -> Fired:
    return Fired(np.array([one for one, _ in pairs], np.uint32), np.array([p for _, p in pairs], np.float32))


def test_counts_and_ids_of_each_burst_and_area_are_hashed() -> None:
    window = [[fired((3, 1.0), (7, 1.0)), NOBODY], [NOBODY, fired((9, 2.0))]]
    packed = struct.pack("<7I", 2, 3, 7, 0, 0, 1, 9)
    assert key_of(MemoryArea((5, 6), 2), window) == xxhash.xxh64_intdigest(packed, 0)


def test_potentials_do_not_identify_a_pattern() -> None:
    area = MemoryArea((5,), mp_learning=True)
    assert key_of(area, [[fired((3, 1.0))]]) == key_of(area, [[fired((3, 2.5))]])


@pytest.mark.parametrize("change", list(MemoryChange))
def test_nothing_fired_or_changed_is_no_pattern(change: MemoryChange) -> None:
    assert key_of(MemoryArea((5,), 2, change=change), [[NOBODY], [NOBODY]]) is None
    if change is not MemoryChange.NONE:
        assert key_of(MemoryArea((5,), 1, change=change), [[fired((3, 1.0))]]) is None


@pytest.mark.parametrize(("step", "bucket"), [(0.5, 1), (-0.5, -1), (0.49, 0), (1.5, 2), (-2.5, -3), (1e30, 2**63 - 1)])
def test_halves_of_a_difference_go_away_from_0_and_buckets_have_64_bits(step: float, bucket: int) -> None:
    area = MemoryArea((5,), 2, change=MemoryChange.DIFFERENTIAL)
    packed = b"\x01" + struct.pack("<IIq", 1, 3, bucket)
    assert key_of(area, [[NOBODY], [fired((3, step))]]) == xxhash.xxh64_intdigest(packed, 0)


def test_a_ratio_is_of_neurons_that_fired_in_both_bursts() -> None:
    area = MemoryArea((5,), 2, change=MemoryChange.RATIO, ratio_quantization=100.0)
    window = [[fired((3, 1.0), (4, 1.0), (6, -1.0))], [fired((3, 4.0), (5, 1.0), (6, 1.0))]]
    packed = b"\x02" + struct.pack("<IIq", 1, 3, 2)
    assert key_of(area, window) == xxhash.xxh64_intdigest(packed, 0)
