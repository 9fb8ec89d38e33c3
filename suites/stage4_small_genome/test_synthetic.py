"""Synthetic networks: the same from the same seed, and distributed as their laws say."""

from __future__ import annotations

import dataclasses
import json
import math

import numba
import numpy as np
import pytest

from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.errors import NetworkError
from burstproof.network.schema import NEURON_FIELDS, SYNAPSE_FIELDS
from burstproof.network.synthetic.build import (
    CONNECTIVITIES,
    SyntheticSpec,
    driven_network,
    driven_spec,
    initial_stimulus,
    make_generator,
    synthesize,
)
from burstproof.network.synthetic.counter_random import make_counter_random
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("BE-3")

OUT_DEGREE = tuple(name for name in CONNECTIVITIES if name != "fixed_in_degree")
ACCEPTED_DEVIATIONS = 5.0
"""Standard deviations that a count may be off; the seeds are fixed, so a case that passes stays passed."""


def plain(function):
    """The compiler that leaves a function to NumPy's scalars."""
    return function


def spec_of(connectivity, **changes):
    laws = {"distance_scale": 60.0, "blocks": 7, "inside_fraction": 0.7, "weights": (2, 9), "delays": (1, 5)}
    values = {"neurons": 2003, "synapses_per_neuron": 20, "seed": 77, "inhibitory_fraction": 0.2, **laws, **changes}
    return SyntheticSpec(connectivity=connectivity, **values)


def differing(one, other):
    return [
        f"{table}.{name}"
        for table, fields in (("neurons", NEURON_FIELDS), ("synapses", SYNAPSE_FIELDS))
        for name in fields
        if getattr(getattr(one, table), name).tobytes() != getattr(getattr(other, table), name).tobytes()
    ]


@pytest.mark.parametrize("compiler", [plain, numba.njit])
@pytest.mark.parametrize(
    ("key", "low", "high", "expected"),
    [
        (0, 0, 0, (0xFF1DAE59, 0x6CD10DF2)),
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, (0x2C3F628B, 0xAB4FD7AD)),
        (0x13198A2E, 0x243F6A88, 0x85A308D3, (0xDD7CE038, 0xF62A4C12)),
    ],
)
def test_generator_gives_the_published_numbers(compiler, key, low, high, expected):
    words = make_counter_random(compiler).philox(np.uint32(key), np.uint32(low), np.uint32(high))
    assert tuple(int(word) for word in words) == expected


def test_numbers_below_a_bound_are_the_product_with_the_full_word():
    below = make_counter_random(numba.njit).below
    generator = np.random.default_rng(1)
    for high, low, bound in generator.integers(0, 1 << 32, (200, 3)).tolist():
        bound = max(bound, 1)
        expected = (((high << 32) | low) * bound) >> 64
        assert int(below(np.uint32(high), np.uint32(low), np.uint64(bound))) == expected


@pytest.mark.parametrize("connectivity", thinned(CONNECTIVITIES, "compiles for a law of many", keep=first(2)))
def test_same_seed_same_network_other_seed_another(connectivity):
    one, again = synthesize(spec_of(connectivity)), synthesize(spec_of(connectivity))
    assert differing(one, again) == []
    assert one.areas == again.areas
    other = synthesize(spec_of(connectivity, seed=78))
    assert "synapses.target_neurons" in differing(one, other)


@pytest.mark.parametrize("connectivity", thinned(CONNECTIVITIES, "compiles for a law of many", keep=first(2)))
def test_synapses_are_grouped_by_source(connectivity):
    network = synthesize(spec_of(connectivity))
    assert network.synapse_count == 2003 * 20
    assert network.row_order.order is None
    assert int(network.row_order.offsets[-1]) == network.synapse_count


@pytest.mark.parametrize("connectivity", thinned(OUT_DEGREE, "compiles for a law of many", keep=first(1)))
@pytest.mark.parametrize(
    ("compiler", "changes"),
    [(numba.njit, {}), (plain, {}), (plain, {"weights": 1.5, "delays": 3, "inhibitory_fraction": 0.0})],
    ids=["njit", "plain", "plain, fixed values"],
)
def test_generator_functions_give_the_network(connectivity, compiler, changes):
    spec = spec_of(connectivity, **changes)
    network, generator = synthesize(spec), make_generator(spec, compiler)
    synapses = network.synapses
    for row in range(0, network.synapse_count, 997):
        source, item = np.uint32(row // 20), np.uint32(row % 20)
        assert int(source) == synapses.source_neurons[row]
        assert int(generator.target(source, item)) == synapses.target_neurons[row]
        assert float(generator.weight(source, item)) == synapses.weights[row]
        assert int(generator.type(source, item)) == synapses.types[row]
        assert int(generator.delay(source, item)) == synapses.delay_bursts[row]


def test_fixed_in_degree_has_no_generator_by_source():
    with pytest.raises(NetworkError, match="connectivity"):
        make_generator(spec_of("fixed_in_degree"), numba.njit)


def test_fixed_in_degree_is_exact_and_sources_are_uniform():
    synapses = synthesize(spec_of("fixed_in_degree")).synapses
    assert np.all(np.bincount(synapses.target_neurons, minlength=2003) == 20)
    check_uniform(np.bincount(synapses.source_neurons, minlength=2003))
    inside = np.diff(synapses.source_neurons.astype(np.int64)) == 0
    assert np.all(np.diff(synapses.target_neurons.astype(np.int64))[inside] >= 0)


def check_uniform(counts):
    """Pearson's statistic of equally likely cells lies within the accepted deviations of its mean."""
    expected = counts.sum() / len(counts)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    assert abs(statistic - freedom) < ACCEPTED_DEVIATIONS * math.sqrt(2 * freedom)


def test_uniform_targets():
    network = synthesize(spec_of("uniform"))
    assert np.all(np.bincount(network.synapses.source_neurons) == 20)
    check_uniform(np.bincount(network.synapses.target_neurons, minlength=2003))


@pytest.mark.parametrize("scale", [1.0, 60.0, 250.0])
def test_distance_law(scale):
    synapses = synthesize(spec_of("distance", distance_scale=scale, synapses_per_neuron=100)).synapses
    offsets = synapses.target_neurons.astype(np.int64) - synapses.source_neurons
    offsets = (offsets + 2003 // 2) % 2003 - 2003 // 2
    count = len(offsets)
    deviation = math.sqrt(scale**2 + 1 / 12)
    assert abs(offsets.mean()) < ACCEPTED_DEVIATIONS * deviation / math.sqrt(count)
    assert offsets.std() == pytest.approx(deviation, rel=0.01)
    assert abs(offsets).max() <= 2 * math.sqrt(3) * scale + 1
    if scale > 1:
        within = np.mean(abs(offsets) < scale)
        assert within == pytest.approx(0.674, abs=0.02), "the share within one deviation of a sum of four uniforms"


@pytest.mark.parametrize("blocks", [1, 7, 2003])
@pytest.mark.parametrize("inside", [0.0, 0.7, 1.0])
def test_block_law(blocks, inside):
    spec = spec_of("block", blocks=blocks, inside_fraction=inside)
    network = synthesize(spec)
    size = spec.block_size
    source, target = (ends // size for ends in (network.synapses.source_neurons, network.synapses.target_neurons))
    members = np.bincount(np.arange(2003) // size)
    chance = inside + (1 - inside) * float(np.repeat(members, members).mean()) / 2003
    count = network.synapse_count
    margin = ACCEPTED_DEVIATIONS * math.sqrt(count * chance * (1 - chance)) + 1e-9 * count
    assert abs(int((source == target).sum()) - count * chance) <= margin
    assert [area.neurons_per_voxel for area in network.areas] == members.tolist()
    assert np.array_equal(network.neurons.cortical_areas, 7 + np.arange(2003) // size)


@pytest.mark.parametrize("connectivity", thinned(CONNECTIVITIES, "compiles for a law of many", keep=first(2)))
def test_values_follow_their_laws(connectivity):
    network = synthesize(spec_of(connectivity))
    synapses = network.synapses
    weights, delays = np.bincount(synapses.weights.astype(np.int64)), np.bincount(synapses.delay_bursts)
    assert np.array_equal(synapses.weights, np.rint(synapses.weights))
    assert weights[:2].sum() == delays[:1].sum() == 0
    assert (len(weights), len(delays)) == (10, 6)
    check_uniform(weights[2:])
    check_uniform(delays[1:])
    inhibitory = synapses.types == 1
    assert np.all(synapses.types <= 1)
    sources = np.unique(synapses.source_neurons[inhibitory])
    assert not np.isin(synapses.source_neurons[~inhibitory], sources).any(), "a neuron is inhibitory as a whole"
    assert abs(len(sources) - 2003 * 0.2) < ACCEPTED_DEVIATIONS * math.sqrt(2003 * 0.2 * 0.8)


def test_what_does_not_vary_takes_no_memory():
    network = synthesize(SyntheticSpec(1000, 10, threshold=2.5, leak=0.5, refractory_period=3, excitability=0.25))
    whole = {"source_neurons", "target_neurons"}
    for table, fields in ((network.neurons, NEURON_FIELDS), (network.synapses, SYNAPSE_FIELDS)):
        for name in fields:
            assert name in whole or not any(getattr(table, name).strides), name
    neurons = network.neurons
    values = (
        neurons.thresholds[0],
        neurons.leak_coefficients[0],
        neurons.refractory_periods[0],
        neurons.excitabilities[0],
    )
    assert values == (2.5, 0.5, 3, 0.25)


def test_parameters_are_drawn_for_each_neuron():
    """Uniform between their ends, another number for each law, and the same whatever synapses there are."""
    ranges = {"threshold": (1.0, 3.0), "threshold_limit": (8.0, 9.0), "leak": (0.1, 0.3), "excitability": (0.25, 0.75)}
    spans = {"refractory_period": (0, 3), "consecutive_fire_limit": (1, 4), "snooze_period": (2, 5)}
    neurons = synthesize(SyntheticSpec(4000, 3, seed=5, accumulates=0.7, **ranges, **spans)).neurons
    drawn = (neurons.thresholds, neurons.threshold_limits, neurons.leak_coefficients, neurons.excitabilities)
    for column, (low, high) in zip(drawn, ranges.values(), strict=True):
        assert low <= column.min() < column.max() <= high
        check_uniform(np.histogram(column, 8, (low, high))[0])
    counted = (neurons.refractory_periods, neurons.consecutive_fire_limits, neurons.snooze_periods)
    for column, (low, _) in zip(counted, spans.values(), strict=True):
        check_uniform(np.bincount(column)[low:])
    assert abs(np.corrcoef(np.stack([*drawn, *counted, neurons.mp_charge_accumulation])) - np.eye(8)).max() < 0.08
    assert neurons.mp_charge_accumulation.mean() == pytest.approx(0.7, abs=0.04)
    without = synthesize(SyntheticSpec(4000, 0, seed=5, accumulates=0.7, **ranges, **spans)).neurons
    assert without.excitabilities.tobytes() == neurons.excitabilities.tobytes()


def test_provenance_holds_the_specification():
    spec = spec_of("block")
    stored = json.loads(synthesize(spec).provenance["spec"])
    stored |= {"weights": tuple(stored["weights"]), "delays": tuple(stored["delays"])}
    assert SyntheticSpec(**stored) == spec


@pytest.mark.parametrize("connectivity", thinned(CONNECTIVITIES, "compiles for a law of many", keep=first(2)))
def test_networks_without_synapses_or_with_one_neuron(connectivity):
    lone = SyntheticSpec(16, 0, connectivity=connectivity, distance_scale=2.0)
    assert synthesize(lone).synapse_count == 0
    if connectivity != "distance":
        network = synthesize(SyntheticSpec(1, 3, connectivity=connectivity))
        assert network.synapses.target_neurons.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("neurons", 0),
        ("neurons", 1 << 32),
        ("neurons", 10.0),
        ("neurons", True),
        ("synapses_per_neuron", -1),
        ("synapses_per_neuron", 1 << 28),
        ("seed", -1),
        ("seed", 1 << 32),
        ("connectivity", "small world"),
        ("weights", -1.0),
        ("weights", float("nan")),
        ("weights", float("inf")),
        ("weights", (3, 2)),
        ("weights", (0.5, 2)),
        ("weights", (0, (1 << 24) + 1)),
        ("delays", 0),
        ("delays", 256),
        ("delays", (0, 3)),
        ("delays", (1, 2, 3)),
        ("inhibitory_fraction", 1.5),
        ("inside_fraction", float("nan")),
        ("initial_firing", -0.1),
        ("blocks", 0),
        ("blocks", 101),
        ("postsynaptic_potential", -1.0),
        ("threshold", float("inf")),
        ("leak", "0.1"),
        ("leak", 10**400),
        ("refractory_period", 65536),
        ("consecutive_fire_limit", -1),
        ("snooze_period", 1.5),
        ("excitability", float("nan")),
        ("accumulates", 1.5),
        ("threshold", (2.0, 1.0)),
        ("threshold", (0.0, float("inf"))),
        ("leak", (0.1, 0.2, 0.3)),
        ("refractory_period", (0, 65536)),
        ("snooze_period", (0.5, 2)),
        ("accumulates", (True, False)),
    ],
    ids=lambda part: f"{part}"[:24],
)
def test_a_wrong_value_is_named(field, value):
    with pytest.raises(NetworkError, match=rf"SyntheticSpec\.{field}") as caught:
        dataclasses.replace(SyntheticSpec(100, 10), **{field: value})
    assert caught.value.allowed
    assert caught.value.cure


def test_wrong_distances_are_named():
    for scale in (0.0, 13.0, float("nan")):
        with pytest.raises(NetworkError, match="distance_scale"):
            SyntheticSpec(100, 10, connectivity="distance", distance_scale=scale)
    with pytest.raises(NetworkError, match="neurons"):
        SyntheticSpec(15, 10, connectivity="distance", distance_scale=1.0)


def test_a_product_beyond_float32_is_refused():
    with pytest.raises(NetworkError, match="postsynaptic_potential"):
        SyntheticSpec(10, 10, weights=1e30, postsynaptic_potential=1e30)


def test_initial_stimulus_picks_the_stated_fraction_and_stops():
    spec = SyntheticSpec(50_000, 1, 5, delays=(1, 3), initial_firing=0.02)
    picks = [initial_stimulus(spec, burst) for burst in range(1, 6)]
    assert [len(ids) > 0 for ids in picks] == [True, True, True, False, False]
    for ids in picks[:3]:
        assert ids.dtype == np.uint32
        assert np.all(np.diff(ids.astype(np.int64)) > 0)
        assert abs(len(ids) - 1000) < ACCEPTED_DEVIATIONS * math.sqrt(1000 * 0.98)
    assert not np.array_equal(picks[0], picks[1])
    with pytest.raises(NetworkError, match="burst"):
        initial_stimulus(spec, 0)


def independent_rates(spec, bursts):
    """Firing rates of the driven law, simulated without the engine and with another random generator."""
    generator = np.random.default_rng(spec.seed)
    neurons, fan = spec.neurons, spec.synapses_per_neuron
    targets = generator.integers(0, neurons, (neurons, fan))
    fired = generator.random(neurons) < spec.initial_firing
    blocked = np.zeros(neurons, np.int64)
    rates = []
    for _ in range(bursts):
        candidates = np.zeros(neurons, np.bool_)
        candidates[targets[fired].ravel()] = True
        free = blocked == 0
        blocked = np.maximum(blocked - 1, 0)
        fired = candidates & free & (generator.random(neurons) < spec.excitability)
        blocked[fired] = spec.refractory_period
        rates.append(fired.mean())
    return np.array(rates)


@pytest.mark.parametrize(
    ("neurons", "fan", "rate", "period"), [(20_000, 100, 0.01, 1), (3_000, 20, 0.1, 2), (2_000, 100, 0.2, 0)]
)
def test_driven_law_holds_in_an_independent_simulation(neurons, fan, rate, period):
    rates = independent_rates(driven_spec(neurons, fan, rate, 3, refractory_period=period), 1500)
    assert rates.min() > 0.3 * rate
    for part in (rates[:300], rates[-300:], rates):
        assert part.mean() == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize(("neurons", "fan", "rate"), [(3_000, 20, 0.1), (16_000, 100, 0.01)])
def test_driven_network_keeps_its_rate_under_the_full_rules(neurons, fan, rate):
    spec = driven_spec(neurons, fan, rate, 9)
    engine = ReferenceEngine(driven_network(neurons, fan, rate, 9), EngineOptions())
    start = initial_stimulus(spec)
    assert engine.step(Stimulus(forced=start)).fired_ids.tolist() == start.tolist()
    counts = engine.run(400).fired_counts
    engine.close()
    for part in (counts[:5], counts[-100:], counts):
        assert part.mean() / neurons == pytest.approx(rate, rel=0.15 if len(part) == 5 else 0.07)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((1000, 1, 0.5), "firing_rate"),
        ((1000, 100, 0.0), "firing_rate"),
        ((1000, 100, 0.5), "firing_rate"),
        ((1000, 100, float("nan")), "firing_rate"),
        ((1000, 0, 0.1), "synapses_per_neuron"),
        ((1000, 100, 0.01), "neurons"),
        ((0, 100, 0.01), "neurons"),
    ],
)
def test_rates_that_cannot_be_held_are_refused(arguments, field):
    with pytest.raises(NetworkError, match=rf"SyntheticSpec\.{field}"):
        driven_spec(*arguments)


@pytest.mark.parametrize(("fan", "period"), [(100, 1), (2, 5), (10, 0), (10_000, 65_535)])
def test_the_rate_that_an_error_allows_is_held(fan, period):
    with pytest.raises(NetworkError, match=r"at most \S+ with") as caught:
        driven_spec(10**9, fan, 1.0, refractory_period=period)
    largest = float(caught.value.allowed.split()[2])
    driven_spec(10**9, fan, largest, refractory_period=period)
    with pytest.raises(NetworkError):
        driven_spec(10**9, fan, 1.02 * largest, refractory_period=period)


def test_a_driven_network_without_stimulus_rests():
    engine = ReferenceEngine(driven_network(3_000, 20, 0.1), EngineOptions())
    assert engine.run(5).candidate_counts.tolist() == [0] * 5
    engine.close()


def test_distances_stay_exact_at_the_largest_scale():
    spec = SyntheticSpec(72_000_000, 1, 3, connectivity="distance", distance_scale=9_000_000.0)
    target = make_generator(spec, plain).target
    sources = np.random.default_rng(1).integers(0, spec.neurons, 4000)
    with np.errstate(over="ignore"):
        targets = np.array([int(target(np.uint32(source), np.uint32(0))) for source in sources])
    assert targets.max() < spec.neurons
    offsets = (targets - sources + spec.neurons // 2) % spec.neurons - spec.neurons // 2
    assert offsets.std() == pytest.approx(9_000_000.0, rel=0.05)
    assert abs(offsets.mean()) < ACCEPTED_DEVIATIONS * 9_000_000.0 / math.sqrt(4000)
