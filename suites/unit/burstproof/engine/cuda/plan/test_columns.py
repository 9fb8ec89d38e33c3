"""How parameters and state of neurons lie on a device: columns that take 8 bits, and records."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from burstproof.engine.cuda.plan.columns import NO_RECORD, record_of
from burstproof.engine.cuda.plan.packed import Packed, pack_network, packed_for
from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.network.features import AreaFeatures, Features, Homeostat, MemoryArea
from burstproof.network.model import Network
from suites.support.parity.builder import network

pytestmark = pytest.mark.requirement("BE-4", "BE-5")

NEURONS = 3


def ring(**columns: object) -> Network:
    """Neurons with limits of their own, unless ``columns`` have others."""
    return network(NEURONS, **{"consecutive_fire_limits": [1, 2, 3], **columns})


def packed_of(made: Network) -> Packed:
    return pack_network(made, EngineOptions())


@pytest.mark.parametrize(
    ("columns", "wide"),
    [
        ({}, set()),
        ({"consecutive_fire_limits": [1, 2, 255]}, set()),
        ({"consecutive_fire_limits": [1, 2, 256]}, {"consecutive_fire_limits", "counts"}),
        ({"consecutive_fire_limits": [1, 2, 65535]}, {"consecutive_fire_limits", "counts"}),
        ({"consecutive_fire_limits": [1, 2, 0]}, {"counts"}),
        ({"consecutive_fire_counts": [0, 0, 255]}, set()),
        ({"consecutive_fire_counts": [0, 0, 256]}, {"counts"}),
        ({"refractory_periods": [0, 1, 255]}, set()),
        ({"refractory_periods": [0, 1, 256]}, {"refractory_periods", "countdowns"}),
        ({"refractory_periods": [0, 1, 200], "snooze_periods": [0, 55, 0]}, set()),
        ({"refractory_periods": [0, 1, 200], "snooze_periods": [0, 56, 0]}, {"countdowns"}),
        ({"refractory_periods": [0, 1, 2], "snooze_periods": [0, 1, 300]}, {"snooze_periods", "countdowns"}),
        ({"refractory_periods": [0, 1, 2], "refractory_countdowns": [0, 256, 0]}, {"countdowns"}),
    ],
)
def test_a_column_takes_8_bits_where_no_value_can_ever_exceed_255(columns: dict[str, object], wide: set[str]) -> None:
    packed = packed_of(ring(**columns))
    specs = {spec.name: spec for spec in packed.buffers if spec.count >= NEURONS}
    places = packed.variant.record.places
    found = {name for name in specs.keys() & KEPT if specs[name].dtype == np.uint16}
    found |= {name for name in places.keys() & KEPT if places[name].bits == 16}
    assert found == wide
    assert packed.variant.narrow >= (specs.keys() | places.keys()) & KEPT - wide


KEPT = {"refractory_periods", "consecutive_fire_limits", "snooze_periods", "countdowns", "counts"}


def test_a_restored_state_above_the_bounds_gets_wider_columns_and_none_narrower_ones() -> None:
    made = ring(refractory_periods=[0, 1, 2])
    packed, state = packed_of(made), ReferenceEngine.create(made).state()
    assert packed_for(packed, state) is packed
    high = np.array([0, 256, 0], np.uint16)
    wide = packed_for(packed, replace(state, consecutive_fire_counts=high))
    assert packed.variant.narrow - wide.variant.narrow == {"counts"}
    widest = packed_for(wide, replace(state, refractory_countdowns=high))
    assert packed.variant.narrow - widest.variant.narrow == {"counts", "countdowns"}
    assert packed_for(widest, state) is widest


def featured(feature: AreaFeatures, **columns: object) -> Network:
    """Neurons with limits of their own, of which the last is an area with ``feature``."""
    areas = np.array([AREA + 1, AREA + 1, AREA])
    return ring(cortical_areas=areas, **columns).replace(features=Features(areas={AREA: feature}))


AREA = 20
HOMEOSTAT, TRAIN = AreaFeatures(Homeostat()), AreaFeatures(spike_train=True)
MEMORY = AreaFeatures(memory=MemoryArea((AREA + 1,)))


@pytest.mark.parametrize(
    ("feature", "count", "wide"),
    [
        (HOMEOSTAT, 255, set()),
        (HOMEOSTAT, 256, {"counts"}),
        (TRAIN, 254, set()),
        (TRAIN, 255, {"counts"}),  # its train may count once more
        (MEMORY, 0, {"consecutive_fire_limits", "counts"}),  # twins have limits of their own
    ],
)
def test_features_have_8_bits_where_they_keep_to_the_bounds(feature: AreaFeatures, count: int, wide: set[str]) -> None:
    made = featured(feature)
    kept = {"consecutive_fire_limits", "counts"}
    high = replace(ReferenceEngine.create(ring()).state(), consecutive_fire_counts=np.array([0, 0, count], np.uint16))
    assert kept - packed_for(packed_of(made), high).variant.narrow == wide


def test_features_keep_what_few_neurons_read_in_a_record_unless_twins_may_appear() -> None:
    columns = {"excitabilities": [0.25, 0.5, 0.125], "thresholds": [1, 2, 3]}
    with mock.patch("burstproof.engine.cuda.plan.sizing._FEW_NEURONS", 0):
        records = [packed_of(featured(feature, **columns)).variant.record for feature in (HOMEOSTAT, TRAIN, MEMORY)]
    assert [record.words for record in records] == [4, 4, 0]


def test_whether_neurons_accumulate_is_no_column() -> None:
    packed = packed_of(ring(mp_charge_accumulation=[True, False, True]))
    assert "mp_charge_accumulation" not in {spec.name for spec in packed.buffers}
    assert packed.variant.features.restarts


COLUMNS = {
    "thresholds": np.array([1.5, -2, 3], np.float32),
    "excitabilities": np.array([0.25, 0.5, -1], np.float32),
    "refractory_periods": np.array([1, 65535, 3], np.uint16),
    "consecutive_fire_limits": np.array([255, 7, 0], np.uint16),
    "snooze_periods": np.array([9, 0, 255], np.uint16),
}
OTHERS = frozenset({"threshold_limits", "decays", "mp_charge_accumulation"})


def test_a_record_keeps_every_parameter_in_words_of_a_power_of_two() -> None:
    record = record_of(OTHERS, frozenset({"consecutive_fire_limits", "snooze_periods"}))
    assert record.words == 4
    words = record.packed(COLUMNS).reshape(NEURONS, record.words)
    for name, column in COLUMNS.items():
        place = record.places[name]
        found = words[:, place.word] >> np.uint32(place.shift) & np.uint32((1 << place.bits) - 1)
        kept = found.view(np.float32) if column.dtype == np.float32 else found
        assert kept.tolist() == column.tolist(), name


@pytest.mark.parametrize(
    ("shared", "narrow", "words"),
    [
        (set(), set(), 8),  # three words and one and a half
        (set(), {"snooze_periods"}, 8),
        (set(), {"snooze_periods", "refractory_periods"}, 4),
        ({"thresholds", "threshold_limits"}, set(), 4),
        ({"thresholds", "threshold_limits", "excitabilities"}, {"snooze_periods", "refractory_periods"}, 1),
    ],
)
def test_a_record_has_room_for_what_neurons_do_not_share(shared: set[str], narrow: set[str], words: int) -> None:
    assert record_of(frozenset(shared | {"mp_charge_accumulation"}), frozenset(narrow)).words == words


def test_one_parameter_is_a_column() -> None:
    kept = {"thresholds", "decays"}
    assert record_of(frozenset(COLUMNS.keys() | OTHERS) - kept, frozenset()) == NO_RECORD
