"""Which networks have a calendar, in how many tiles, and what room its buckets have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.cuda.plan.block_size import FusedShape, fused_shape
from burstproof.engine.cuda.plan.buffers import calendar_room, calendar_shift
from burstproof.engine.cuda.plan.choices import choices_of
from burstproof.engine.cuda.plan.packed import Packed, pack_network
from burstproof.engine.cuda.plan.shard_variant import whole
from burstproof.engine.cuda.plan.sizing import CALENDAR, ROOMY_CALENDAR, sized
from burstproof.engine.cuda.plan.word import Word
from burstproof.engine.features.key import NO_KEY, ExtrasKey
from burstproof.engine.options import EngineOptions
from burstproof.network.model import Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-4", "BE-12")

_MILLION, _FAN, _BUCKETS = 1_000_000, 100, 16


def packed(neurons: int) -> Packed:
    """A small network with delays to 16, with the sizes of one of so many neurons."""
    ids = np.arange(8)
    synapses = SynapseTable.build(ids, np.roll(ids, 1), types=1, weights=200.0, delay_bursts=_BUCKETS)
    small = pack_network(Network(NeuronTable.build(8), synapses), EngineOptions())
    sizes = replace(small.sizes, neurons=neurons, static_entries=_FAN * neurons, longest_row=_FAN, in_degree=2 * _FAN)
    sizes = replace(sizes, distinct_delays=_BUCKETS)
    return replace(small, sizes=sizes, variant=sized(small.variant, sizes))


@pytest.mark.parametrize(
    ("millions", "tiles", "bits", "share"), [(1, 0, 20, 1), (5, 1, 23, 8), (10, 3, 22, 16), (20, 5, 22, 32)]
)
def test_a_calendar_is_in_tiles_where_a_slot_or_all_its_room_is_large(
    millions: int, tiles: int, bits: int, share: int
) -> None:
    own = packed(millions * _MILLION)
    variant, sizes = own.variant, own.sizes
    assert (variant.calendar, variant.calendar_tiles, variant.queues) == (_BUCKETS, tiles, None)
    assert calendar_shift(sizes, variant) == bits
    assert max(1, tiles) << bits >= sizes.neurons
    delivered = sizes.static_entries / share
    assert calendar_room(sizes, variant) * max(1, tiles) >= delivered
    assert ("tiles" in choices_of(own)) is (tiles > 0)


@pytest.mark.parametrize(
    ("neurons", "delays", "ring"), [(1, 1, True), (1, 2, True), (1, 3, False), (3, 1, True), (3, 2, False)]
)
def test_a_ring_of_which_a_burst_reaches_few_slots_stays(neurons: int, delays: int, ring: bool) -> None:
    many = packed(neurons * _MILLION)
    one = many.sized(many.variant, sizes=replace(many.sizes, distinct_delays=delays))
    assert (one.variant.calendar == one.variant.recalled == 0) is ring
    said = f"delays to 16 in a ring of 17 slots, {68 * neurons}.0 MB, of which a burst reaches {delays + 1}"
    assert choices_of(one).endswith(said) is ring


@pytest.mark.parametrize(("delays", "different"), [([1] * 8, 1), ([5] * 8, 1), ([9, 2] * 4, 2), ([*range(1, 9)], 8)])
def test_different_delays_are_counted(delays: list[int], different: int) -> None:
    ids = np.arange(8)
    synapses = SynapseTable.build(ids, np.roll(ids, 1), delay_bursts=delays)
    assert pack_network(Network(NeuronTable.build(8), synapses), EngineOptions()).sizes.distinct_delays == different


def test_without_room_for_every_synapse_a_calendar_has_one_tile_and_without_any_lists_are_read_again() -> None:
    small = packed(_MILLION).lacking(ROOMY_CALENDAR)
    assert (small.variant.calendar, small.variant.calendar_tiles) == (_BUCKETS, 1)
    none = small.lacking(CALENDAR).variant
    assert (none.calendar, none.calendar_tiles, none.recalled) == (0, 0, _BUCKETS)


def test_what_needs_many_tiles_has_queues_per_owner_or_lists_that_are_read_again() -> None:
    variant = packed(40 * _MILLION).variant
    assert (variant.calendar, variant.queues is not None) == (0, True)
    assert packed(100 * _MILLION).variant.calendar == 0


@pytest.mark.parametrize(
    ("word", "key", "per_thread", "limit"),
    [
        (Word(32, mark_bits=8), NO_KEY, 2, 32),
        (Word(32), NO_KEY, 2, 32),
        (Word(64, mark_bits=8), NO_KEY, 1, 32),
        (Word(32, mark_bits=8), ExtrasKey(homeostats=True), 1, 40),
        (Word(32, mark_bits=8), ExtrasKey(homeostats=True), 2, None),
    ],
)
def test_registers_have_a_limit_where_words_are_loaded_ahead_of_a_bucket(
    word: Word, key: ExtrasKey, per_thread: int, limit: int | None
) -> None:
    variant = replace(packed(_MILLION).variant, word=word, extras=key, overlapped=True)
    shard = whole(replace(variant, fused=FusedShape(512, per_thread)))
    assert (shard.words_ahead, shard.registers) == (True, limit)


@pytest.mark.parametrize(
    ("neurons", "delays", "columns", "key", "per_thread"),
    [
        (380_000, _BUCKETS, False, NO_KEY, 1),
        (500_000, _BUCKETS, True, NO_KEY, 2),
        (500_000, 1, False, NO_KEY, 1),
        (_MILLION, _BUCKETS, True, NO_KEY, 2),
        (_MILLION, 1, True, NO_KEY, 1),
        (_MILLION, 1, False, NO_KEY, 2),
        (_MILLION, _BUCKETS, True, ExtrasKey(homeostats=True), 1),
    ],
)
def test_a_thread_has_two_neurons_where_it_has_registers_for_them(
    neurons: int, delays: int, columns: bool, key: ExtrasKey, per_thread: int
) -> None:
    own = packed(neurons)
    sizes = replace(own.sizes, distinct_delays=delays, uniform=frozenset() if columns else own.sizes.uniform)
    fresh = replace(own.variant, fused=fused_shape(0, neurons), extras=key)
    sized_before = sized(fresh, replace(sizes, distinct_delays=_BUCKETS - delays + 1))
    for variant in (sized(fresh, sizes), sized(sized_before, sizes)):
        assert variant.fused is not None
        assert (variant.calendar > 0, variant.fused.threads) == (delays > 1, 512)
        assert variant.fused.per_thread == per_thread


def test_nothing_is_loaded_ahead_of_a_bucket_in_tiles_or_in_a_small_network() -> None:
    variant = packed(_MILLION).variant
    shard = whole(replace(variant, fused=FusedShape(512, 2)))
    for other in (replace(shard, early=False), replace(shard, variant=replace(variant, calendar_tiles=1))):
        assert (other.ahead, other.words_ahead) == (False, False)
