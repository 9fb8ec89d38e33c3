"""Which networks get queues per owner, and what their owners hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from burstproof.engine.cuda.host.regret import Regret
from burstproof.engine.cuda.plan.budget import MemoryPlan, place_synapses
from burstproof.engine.cuda.plan.buffers import bucket_room, queue_room
from burstproof.engine.cuda.plan.choices import choices_of
from burstproof.engine.cuda.plan.packed import Packed, pack_network, streaming
from burstproof.engine.cuda.plan.queues import block_bytes, lost_us, room_for_events
from burstproof.engine.cuda.plan.sizing import BUCKETS, CALENDAR, QUEUES, sized
from burstproof.engine.cuda.plan.word import Word
from burstproof.engine.features.key import ExtrasKey
from burstproof.engine.options import CudaOptions, EngineOptions, SynapseMemory
from burstproof.errors import InputError
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.bench.feature_networks import with_every_feature
from suites.support.bench.rows import Row

pytestmark = pytest.mark.requirement("BE-4", "BE-12")

_MILLION, _FAN = 1_000_000, 100
_SHARED_BYTES = 227 << 10
"""What a block may have on an H200."""


def packed(neurons: int, **synapses: Any) -> Packed:
    """A small network, with the sizes of one of so many neurons of the same kind."""
    ids = np.arange(max(8, *(np.size(column) for column in synapses.values())))
    network = Network(NeuronTable.build(8), SynapseTable.build(ids % 8, np.roll(ids, 1) % 8, **synapses))
    small = pack_network(network, EngineOptions())
    sizes = replace(small.sizes, neurons=neurons, static_entries=_FAN * neurons, longest_row=_FAN, in_degree=2 * _FAN)
    sizes = replace(sizes, distinct_delays=sizes.ring - 1)
    return replace(small, sizes=sizes, variant=sized(small.variant, sizes))


INHIBITION: dict[str, Any] = {"types": 1, "weights": 200.0}
DELAYS = {**INHIBITION, "delay_bursts": 16}
FRACTIONS = {**DELAYS, "weights": np.geomspace(1e-5, 200.0, 8)}
VARIED = {**DELAYS, "weights": np.arange(1.0, 129.0, 8.0)}
VARIED_FRACTIONS = {**DELAYS, "weights": np.geomspace(1e-5, 200.0, 16)}
"""Two contributions of each neuron, which differ."""
WIDE = {**VARIED_FRACTIONS, "delay_bursts": 1}


@pytest.mark.parametrize(
    ("neurons", "synapses", "queued"),
    [
        (1_400_000, INHIBITION, False),
        (1_500_000, INHIBITION, True),
        (20 * _MILLION, INHIBITION, True),
        (5 * _MILLION, DELAYS, False),
        (20 * _MILLION, DELAYS, False),
        (_MILLION, FRACTIONS, False),
        (2 * _MILLION, FRACTIONS, False),
        (4 * _MILLION, FRACTIONS, False),
        (5 * _MILLION, FRACTIONS, True),
        (20 * _MILLION, FRACTIONS, True),
        (60 * _MILLION, FRACTIONS, False),
        (1_400_000, VARIED, False),
        (1_500_000, VARIED, True),
        (5 * _MILLION, VARIED, True),
        (1_400_000, VARIED_FRACTIONS, False),
        (1_500_000, VARIED_FRACTIONS, True),
        (1_300_000, WIDE, False),
        (1_500_000, WIDE, True),
        (20 * _MILLION, VARIED, True),
    ],
)
def test_queues_where_they_pay(neurons: int, synapses: dict[str, Any], queued: bool) -> None:
    variant = packed(neurons, **synapses).variant
    queues = variant.queues
    assert (queues is not None) is queued
    if queues is not None and variant.fused is not None:
        assert queues.span % variant.fused.chunk == 0
        assert (queues.owners - 1) * queues.span < neurons <= queues.owners * queues.span
        assert block_bytes(variant) <= _SHARED_BYTES
        assert variant.recalled == synapses.get("delay_bursts", 1)
        if any(synapses is equal for equal in (INHIBITION, DELAYS)):
            assert queues.entry_bits == 16
        else:
            assert queues.entry_bits == (32 if synapses is VARIED else 64)


def test_parameters_of_their_own_do_not_matter_but_features_without_delays_do() -> None:
    many = packed(20 * _MILLION, **INHIBITION)
    sizes = replace(many.sizes, uniform=frozenset())
    assert sized(many.variant, sizes).queues is not None
    assert sized(replace(many.variant, extras=ExtrasKey(trains=True)), sizes).queues is None
    delayed = replace(sizes, ring=17)
    assert sized(many.variant, delayed).queues is None
    assert sized(many.variant, delayed, without=frozenset({CALENDAR})).queues is not None


def test_few_contributions_are_places_where_words_have_no_room() -> None:
    network = packed(20 * _MILLION, **VARIED_FRACTIONS)
    assert network.variant.contribution_bits > 16
    few = network.sized(network.variant, sizes=replace(network.sizes, palette=500))
    queues, wide = few.variant.queues, network.variant.queues
    assert queues is not None
    assert wide is not None
    assert few.variant.placed
    assert (queues.entry_bits, wide.entry_bits) == (32, 64)
    assert queues.bin_room > wide.bin_room
    assert queues.rows_put_off > wide.rows_put_off
    assert MemoryPlan.of(few).total_bytes < MemoryPlan.of(network).total_bytes
    assert "places of 16 bits" in choices_of(few)
    assert not few.lacking(BUCKETS).lacking(CALENDAR).lacking(QUEUES).variant.palette
    integers = packed(20 * _MILLION, **VARIED)
    assert not sized(integers.variant, replace(integers.sizes, palette=500)).palette
    words = sized(few.variant, replace(few.sizes, neurons=5 * _MILLION))
    assert words.palette
    assert not words.placed


def test_queues_stay_where_places_without_them_would_take_more() -> None:
    network = packed(20 * _MILLION, **VARIED_FRACTIONS)
    placed = network.sized(network.variant, sizes=replace(network.sizes, palette=500)).lacking(BUCKETS)
    assert MemoryPlan.of(placed).total_bytes < MemoryPlan.of(placed.lacking(QUEUES)).total_bytes
    device = replace(placed.options, cuda=replace(placed.options.cuda, synapse_memory=SynapseMemory.DEVICE))
    kept = place_synapses(replace(placed, options=device), MemoryPlan.of(placed).total_bytes - 1)
    assert kept.variant.placed


def test_rows_are_put_off_where_entries_differ() -> None:
    queues, buckets = packed(5 * _MILLION, **VARIED).variant.queues, 16
    assert queues is not None
    entries = queues.owners * queues.bin_room
    assert 0 < queues.rows_put_off * (_FAN + buckets + 1) <= entries < (queues.rows_put_off + 1) * (_FAN + buckets + 1)
    equal = packed(5 * _MILLION, **FRACTIONS).variant.queues
    assert equal is not None
    assert equal.rows_put_off == 0


def test_bins_are_larger_where_few_rows_are_expected() -> None:
    made = packed(20 * _MILLION, **{**VARIED, "delay_bursts": 1})
    few, many = (sized(made.variant, replace(made.sizes, firing_rate=rate)) for rate in (0.001, 0.1))
    assert few.queues is not None
    assert many.queues is not None
    assert few.queues.most_parts < many.queues.most_parts
    assert few.queues.bin_room > many.queues.bin_room
    assert max(block_bytes(few), block_bytes(many)) <= _SHARED_BYTES


def test_buckets_are_the_first_thing_to_go_without() -> None:
    network = packed(5 * _MILLION, **VARIED)
    needed = MemoryPlan.of(network).total_bytes
    assert place_synapses(network, needed) is network
    smaller = place_synapses(network, needed - 1)
    assert smaller.without == {BUCKETS, CALENDAR}
    assert smaller.variant.queues is not None
    assert smaller.variant.queues.rows_put_off == 0


def test_a_bucket_has_room_for_a_sixteenth_of_all_synapses() -> None:
    network = packed(5 * _MILLION, **VARIED)
    assert bucket_room(network.sizes, network.variant) == 5 * _MILLION * _FAN // 16
    assert bucket_room(network.firing(0.1).sizes, network.variant) == 75 * _MILLION
    assert queue_room(network.firing(0.3).sizes, network.variant) * 132 >= 225 * _MILLION
    huge = replace(network.sizes, static_entries=1 << 40)
    assert 16 * bucket_room(huge, network.variant) < 1 << 32


def test_a_network_with_features_is_sized_as_one() -> None:
    row = Row(400, 0.2, synapses_per_neuron=5, kind="parameters")
    plain = row.network()
    with mock.patch("burstproof.engine.cuda.plan.queues.MANY_NEURONS", 1):
        assert pack_network(plain, EngineOptions()).variant.queues is not None
        featured = pack_network(with_every_feature(plain, 1.0), EngineOptions())
    assert featured.variant.extras
    assert featured.variant.queues is None


def test_owners_take_turns_of_equal_length() -> None:
    sizes = replace(packed(5 * _MILLION, **FRACTIONS).sizes, ring=2)
    queues = sized(packed(5 * _MILLION, **FRACTIONS).variant, sizes).queues
    assert queues is not None
    assert (queues.owners, queues.span) == (233, 21504)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_without_delays_narrow_sums_have_queues_too(bits: int) -> None:
    small = packed(_MILLION, weights=200.0)
    for neurons, queued in ((_MILLION, False), (2 * _MILLION, True)):
        sizes = replace(small.sizes, neurons=neurons, static_entries=neurons * _FAN)
        assert (sized(replace(small.variant, word=Word(bits)), sizes).queues is not None) is queued


@pytest.mark.parametrize(
    ("neurons", "rate", "queued"),
    [
        (_MILLION, 0.01, False),
        (_MILLION, 0.02, True),
        (_MILLION, 0.1, True),
        (300_000, 0.1, True),
        (190_000, 0.5, False),
        (2_800_000, 0.001, False),
        (3 * _MILLION, 0.001, True),
        (4 * _MILLION, 0.0001, True),
    ],
)
def test_what_fires_decides_where_neurons_do_not(neurons: int, rate: float, queued: bool) -> None:
    quiet = packed(neurons, weights=200.0)
    network = quiet.firing(rate)
    assert (network.variant.queues is not None) is queued
    assert network.firing(quiet.sizes.firing_rate).variant == quiet.variant
    has_a_choice = 200_000 <= neurons < 3 * _MILLION
    assert not has_a_choice or lost_us(network.variant, network.sizes, 10, 10 * network.sizes.events) < 0
    if neurons == _MILLION:
        reason = "since a burst in which 10 % of the neurons fire has 10.0 M contributions"
        assert choices_of(network).endswith(reason) is (rate == 0.1)


@pytest.mark.parametrize(("rate", "queued"), [(0.01, False), (0.02, True), (0.1, True)])
def test_what_fires_decides_with_delays_too(rate: float, queued: bool) -> None:
    network = packed(_MILLION, **VARIED).firing(rate)
    assert (network.variant.queues is not None) is queued
    featured = sized(replace(network.variant, extras=ExtrasKey(trains=True)), network.sizes)
    assert featured.queues is None
    if queued:
        reason = f"since a burst in which {100 * rate:.0f} % of the neurons fire has {100 * rate:.1f} M contributions"
        assert choices_of(network).endswith(f"with a bucket for each of 16 bursts, {reason}")


def test_buckets_without_room_for_what_fires_are_laid_out_with_more() -> None:
    """At 10 %, the queues of 3 M neurons have room for 37.5 M contributions; a bucket for 18.75 M."""
    network = packed(3 * _MILLION, **VARIED)
    assert room_for_events(network.variant, network.sizes) == 18_750_000
    regret = Regret(network, 0.02)
    regret.add(10, 10 * 3 * _MILLION // 10)
    assert regret.better() is None
    regret.add(100, 100 * 3 * _MILLION // 10)
    better = regret.better()
    assert better is not None
    assert room_for_events(better.variant, better.sizes) == 45_000_000


def test_the_rate_that_is_expected_is_an_option() -> None:
    network = Network(NeuronTable.build(8), SynapseTable.build(0, 1))
    assert pack_network(network, EngineOptions()).sizes.firing_rate == 0.01
    told = EngineOptions(cuda=CudaOptions(firing_rate=0.3))
    assert pack_network(network, told).sizes.firing_rate == 0.3
    for rate in (-0.1, 1.5, True, "x", float("nan")):
        with pytest.raises(InputError, match="firing rate"):
            CudaOptions(firing_rate=rate)  # type: ignore[arg-type]


def test_a_layout_is_due_once_bursts_have_lost_what_it_costs() -> None:
    """At 10 %, a million neurons lose 42.5 us a burst without queues; a layout takes 0.04 s."""
    regret, burst = Regret(packed(_MILLION, weights=200.0), 0.04), _MILLION // 10
    regret.add(900, 900 * burst)
    assert regret.better() is None
    regret.add(100, 100 * burst)
    better = regret.better()
    assert better is not None
    assert better.variant.queues is not None
    assert better.sizes.firing_rate == 0.1
    regret.add(100_000, 0)
    assert regret.better() is None
    back = Regret(better, 0.001)
    back.add(1000, 1000)
    quiet = back.better()
    assert quiet is not None
    assert quiet.variant.queues is None


@pytest.mark.parametrize(("neurons", "rates"), [(100_000, (0.0, 1.0)), (20 * _MILLION, (0.0, 0.12))])
def test_a_layout_stays_where_there_is_no_other(neurons: int, rates: tuple[float, ...]) -> None:
    network = packed(neurons, weights=200.0)
    for rate in rates:
        regret = Regret(network, 0.0)
        regret.add(100, int(100 * neurons * rate))
        assert regret.better() is None
    fixed = replace(network.options, cuda=replace(network.options.cuda, block_size=256))
    chosen = Regret(replace(packed(_MILLION, weights=200.0), options=fixed), 0.0)
    chosen.add(10, 10 * _MILLION)
    assert chosen.better() is None


def test_queues_without_room_for_what_fires_are_laid_out_with_more() -> None:
    """At 50 %, queues with room for an eighth of all synapses lose 18 ms a burst."""
    network = packed(20 * _MILLION, weights=200.0)
    regret = Regret(network, 1.0)
    regret.add(10, 10 * 20 * _MILLION // 2)
    assert regret.better() is None
    regret.add(50, 50 * 20 * _MILLION // 2)
    better = regret.better()
    assert better is not None
    assert room_for_events(better.variant, better.sizes) > better.sizes.events
    again = Regret(better, 0.0)
    again.add(100, 100 * 20 * _MILLION // 2)
    assert again.better() is None


@pytest.mark.parametrize(("bits", "ring", "queued"), [(8, 3, False), (16, 3, False), (16, 17, False), (32, 3, True)])
def test_with_delays_narrow_sums_stay_in_the_cache(bits: int, ring: int, queued: bool) -> None:
    many = packed(3 * _MILLION, **VARIED)
    sizes = replace(many.sizes, ring=ring, distinct_delays=ring - 1, firing_rate=0.001)
    variant = replace(many.lacking(QUEUES).variant, word=Word(bits))
    assert (sized(variant, sizes).queues is not None) is queued


@pytest.mark.parametrize(("bits", "neurons", "queued"), [(32, 5, True), (32, 4, False), (8, 20, False), (8, 34, True)])
def test_fired_lists_are_read_again_where_no_calendar_is(bits: int, neurons: int, queued: bool) -> None:
    many = packed(neurons * _MILLION, **DELAYS).lacking(QUEUES).lacking(CALENDAR)
    variant = sized(replace(many.variant, word=Word(bits)), many.sizes, without=frozenset({CALENDAR}))
    assert (variant.queues is not None) is queued


def test_owners_have_registers_for_what_their_neurons_have() -> None:
    plain = packed(20 * _MILLION, **VARIED)
    sizes, sleepy = plain.sizes, replace(plain.sizes, uniform=frozenset())
    of_features = sized(replace(plain.variant, extras=ExtrasKey(trains=True)), sizes)
    excitable = replace(plain.variant.features, excitabilities=True)
    of_records = sized(replace(plain.variant, features=excitable), sleepy)
    shapes = []
    for variant in (plain.variant, of_records, of_features):
        assert variant.queues is not None
        assert variant.fused is not None
        assert variant.queues.span % variant.fused.chunk == 0
        shapes.append((variant.fused.threads, variant.fused.per_thread))
    assert shapes == [(1024, 3), (1024, 2), (512, 4)]


@pytest.mark.parametrize(("mean", "longest", "noted"), [(25, 25, True), (25, 20_000, False), (100, 100, False)])
def test_rows_are_written_down_where_all_are_short(mean: int, longest: int, noted: bool) -> None:
    """One thread writes down a row, so a long one is looked up."""
    made = packed(20 * _MILLION, **INHIBITION)
    sizes = replace(made.sizes, static_entries=mean * made.sizes.neurons, longest_row=longest)
    queues = sized(made.variant, sizes).queues
    assert queues is not None
    assert queues.notes_parts is noted


def test_low_bits_add_up_without_reaching_the_high_ones() -> None:
    queues = packed(20 * _MILLION, **FRACTIONS).variant.queues
    assert queues is not None
    assert (2 * _FAN + 2) * ((1 << queues.low_bits) - 1) < 1 << 31


def test_without_queues_the_variant_is_what_it_was() -> None:
    queued, small = packed(20 * _MILLION, **DELAYS).lacking(CALENDAR), packed(8, **DELAYS)
    plain = queued.lacking(QUEUES).variant
    assert (plain.queues, plain.word, plain.fused) == (None, small.variant.word, small.variant.fused)
    assert streaming(queued).variant.queues is None
    assert block_bytes(plain) == 0


def test_the_record_names_owners_and_reason() -> None:
    owners, reason = "queues for 383 owners of 52224 neurons", "since a slot takes 80 MB"
    assert choices_of(packed(20 * _MILLION, **INHIBITION)).endswith(f"; {owners}, since there are 20.0 M neurons")
    put_off = choices_of(packed(20 * _MILLION, **VARIED))
    assert put_off.endswith(f"; {owners}, with a bucket for each of 16 bursts, {reason}")
    delayed = choices_of(packed(20 * _MILLION, **DELAYS).lacking(CALENDAR))
    assert delayed.endswith(f"; {owners}, with delays on the sender's side, {reason}")
