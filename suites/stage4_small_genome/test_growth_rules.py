"""Rules of growth that are laws or single observations: attractivity, delays, several rules, the randomizer, caps."""

from __future__ import annotations

import json
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.errors import GenomeError, InputError
from burstproof.network.grow.genome import parse_genome
from burstproof.network.grow.growth import grow

pytestmark = pytest.mark.requirement("BE-1")


def block(width=1, height=1, depth=1, **fields):
    return {"cortical_dimensions": {"width": width, "height": height, "depth": depth}, **fields}


def genome(rules, source=None, target=None, morphologies=None):
    """Two areas cA, cB and the rules from the first to the second."""
    areas = {"cA": dict(source or block(4, 3, 2)), "cB": dict(target or block(4, 3, 2))}
    areas["cA"]["cortical_mapping_dst"] = {"cB": rules}
    tree = {"version": "3.0", "blueprint": areas, "neuron_morphologies": morphologies or {}}
    return parse_genome(json.dumps(tree).encode(), "case.json")


def rule(morphology="block_to_block", **fields):
    return {"morphology_id": morphology, **fields}


def ends(network):
    return set(zip(network.synapses.source_neurons.tolist(), network.synapses.target_neurons.tolist(), strict=True))


@pytest.mark.parametrize("percent", [5.0, 50.0, 90.0])
def test_attractivity_is_a_binomial_subset(percent):
    areas = block(8, 8, 2), block(8, 8, 2)
    whole = grow(genome([rule("all_to_all")], *areas))
    thinned = [grow(genome([rule("all_to_all", synapse_attractivity=percent)], *areas), seed=seed) for seed in range(4)]
    n, p = whole.synapse_count, percent / 100
    assert n == 128 * 128
    for network in thinned:
        assert ends(network) < ends(whole)
        assert abs(network.synapse_count - n * p) < 5 * sqrt(n * p * (1 - p))
    both = len(ends(thinned[0]) & ends(thinned[1]))
    assert abs(both - n * p * p) < 5 * sqrt(n * p * p * (1 - p * p))


def test_attractivity_of_a_small_mapping_over_many_seeds_follows_the_law():
    small = genome([rule("all_to_all", synapse_attractivity=50)], block(1), block(4))
    counts = np.bincount([grow(small, seed=seed).synapse_count for seed in range(800)], minlength=5)
    expected = np.array([800 * comb(4, k) / 16 for k in range(5)])
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 23.5, "4 degrees of freedom: exceeded by one seed range in ten thousand"


@pytest.mark.parametrize(("percent", "kept"), [(0, 0), (100, 24), (250, 24)])
def test_attractivity_bounds(percent, kept):
    assert grow(genome([rule(synapse_attractivity=percent)])).synapse_count == kept


def test_the_same_seed_gives_the_same_network_and_rules_draw_apart():
    half = genome([rule("all_to_all", synapse_attractivity=50)] * 2)
    first, again, other = (grow(half, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(first.synapses.target_neurons, again.synapses.target_neurons)
    assert ends(first) != ends(other)
    pairs = list(zip(first.synapses.source_neurons, first.synapses.target_neurons, strict=True))
    assert 0.6 < len(set(pairs)) / 576 < 0.9, "two independent halves cover three quarters"


@pytest.mark.parametrize(("delay", "grown"), [(1, 1), (255, 255), (256, 1), (300, 1)])
def test_delays(delay, grown):
    assert set(grow(genome([rule(synaptic_delay_bursts=delay)])).synapses.delay_bursts) == {grown}


LEARNING = {
    "plasticity_flag": True,
    "plasticity_window": 1,
    "plasticity_constant": 1,
    "ltp_multiplier": 1,
    "ltd_multiplier": 1,
}


def test_two_rules_on_one_mapping_make_two_synapses_per_pair_which_all_learn():
    both = [rule(postSynapticCurrent_multiplier=-0.5, **LEARNING), rule(postSynapticCurrent_multiplier=2)]
    network = grow(genome(both))
    assert (network.synapse_count, len(ends(network))) == (48, 24)
    assert sorted(set(network.synapses.weights)) == [0.5, 2.0]
    (mapping,) = network.plastic_mappings
    assert np.array_equal(mapping.synapses, np.arange(48))


def test_the_last_plastic_rule_of_a_pair_governs_it():
    first = rule(**{**LEARNING, "plasticity_window": 2, "plasticity_constant": 2.5})
    second = rule("all_to_0-0-0", **{**LEARNING, "plasticity_window": 3, "ltp_multiplier": -128, "ltd_multiplier": 127})
    (mapping,) = grow(genome([first, second, rule("all_to_all")])).plastic_mappings
    values = mapping.window, mapping.constant, mapping.ltp_multiplier, mapping.ltd_multiplier
    assert values == (3, 1.0, -128.0, 127.0)
    assert len(mapping.synapses) == 24 + 24 + 24 * 24
    (mapping,) = grow(genome([second, first])).plastic_mappings
    assert (mapping.window, mapping.constant) == (2, 2.5), "as the genome states it; the engine truncates"


def test_plastic_rules_without_synapses_still_govern_their_pair():
    silent = rule(synapse_attractivity=0, **LEARNING)
    (mapping,) = grow(genome([rule(), silent])).plastic_mappings
    assert np.array_equal(mapping.synapses, np.arange(24))
    assert grow(genome([silent])).plastic_mappings == ()


def test_pairs_learn_apart_and_the_flat_form_has_window_1():
    areas = {"cA": block(2), "cB": block(2), "cC": block(2)}
    learning = ["block_to_block", 1, 1, True, 3, 2, 1]
    areas["cA"]["cortical_mapping_dst"] = {"cB": [learning], "cC": [["block_to_block", 1, 1]]}
    areas["cB"]["cortical_mapping_dst"] = {"cA": [["block_to_block", 1, 1], learning], "cB": [["block_to_block", 1, 1]]}
    tree = {"version": "3.0", "blueprint": areas}
    network = grow(parse_genome(json.dumps(tree).encode(), "case.json"))
    learned = [
        set(network.neurons.cortical_areas[network.synapses.target_neurons[m.synapses]].tolist())
        for m in network.plastic_mappings
    ]
    assert learned == [{8}, {7}]
    assert [len(m.synapses) for m in network.plastic_mappings] == [2, 4]
    assert [(m.window, m.constant, m.ltp_multiplier, m.ltd_multiplier) for m in network.plastic_mappings] == [
        (1, 3.0, 2.0, 1.0)
    ] * 2


@pytest.mark.parametrize("multiplier", [2.5, 1000.5, 0.001, 0.0, -3.0])
def test_weight_and_type(multiplier):
    table = grow(genome([rule(postSynapticCurrent_multiplier=multiplier)])).synapses
    assert set(table.weights) == {np.float32(abs(multiplier))}
    assert set(table.types) == {int(multiplier < 0)}


def test_a_negative_psp_is_kept_and_stays_excitatory():
    table = grow(genome([rule()], source=block(2, postsynaptic_current=-2.5))).synapses
    assert (set(table.postsynaptic_potentials), set(table.types)) == ({np.float32(-2.5)}, {0})


@pytest.mark.parametrize(("source_count", "target_count"), [(0, 1), (1, 0), (0, 0)])
def test_an_area_without_neurons_connects_to_nothing(source_count, target_count):
    empty = genome(
        [rule("all_to_all")],
        block(3, per_voxel_neuron_cnt=source_count),
        block(3, per_voxel_neuron_cnt=target_count),
    )
    network = grow(empty)
    assert network.synapse_count == 0
    assert network.neuron_count == 7 + 3 * (source_count + target_count)


def test_the_genome_s_own_vectors_win_over_a_core_name():
    own = {"block_to_block": {"type": "vectors", "parameters": {"vectors": [[1, 0, 0]]}}}
    assert grow(genome([rule()], morphologies=own)).synapse_count == 18
    named = {"block_to_block": {"type": "functions", "parameters": {}}}
    assert grow(genome([rule()], morphologies=named)).synapse_count == 24


def test_the_randomizer_grows_only_when_asked():
    case = genome([rule("randomizer")], block(40, 5, 1, per_voxel_neuron_cnt=2), block(2, 5, 1, per_voxel_neuron_cnt=3))
    assert grow(case).synapse_count == 0
    network = grow(case, seed=3, grow_randomizer=True)
    assert np.array_equal(network.synapses.source_neurons, 7 + np.arange(400))
    local = network.synapses.target_neurons.astype(int) - 407
    assert set(local % 3) == {2}
    counts = np.bincount(local // 3, minlength=10)
    assert float(((counts - 40) ** 2 / 40).sum()) < 33.7, "9 degrees of freedom: one seed in ten thousand"
    assert ends(network) == ends(grow(case, seed=3, grow_randomizer=True))
    assert ends(network) != ends(grow(case, seed=4, grow_randomizer=True))


def test_caps_are_checked_before_anything_is_allocated():
    huge = genome([rule("all_to_all")], block(10**6, 10**6, 10**6))
    with pytest.raises(GenomeError, match=r"case.json: blueprint.cA: .*1000000 x 1000000 x 1000000.*max_neurons"):
        grow(huge)
    hollow = genome([rule()], block(4_000_000_000, 4_000_000_000, 1, per_voxel_neuron_cnt=0))
    with pytest.raises(GenomeError, match="voxels"):
        grow(hollow)
    dense = genome([rule("all_to_all")], block(1000, 1000), block(1000, 1000))
    with pytest.raises(GenomeError, match=r"cortical_mapping_dst.cB\[0\].*1000000000000 from all_to_all.*max_synapses"):
        grow(dense)


def test_caps_admit_exactly_their_number():
    case = genome([rule("all_to_all")])
    assert grow(case, max_neurons=55, max_synapses=576).synapse_count == 576
    with pytest.raises(GenomeError, match="max_neurons"):
        grow(case, max_neurons=54)
    with pytest.raises(GenomeError, match="max_synapses"):
        grow(case, max_synapses=575)


def test_values_that_follow_must_be_finite():
    steep = block(100, firing_threshold=1e38, firing_threshold_increment_x=1e38)
    with pytest.raises(GenomeError, match=r"blueprint.cA: a threshold does not fit float32"):
        grow(genome([rule()], source=steep))
    strong = block(2, postsynaptic_current=1e20)
    with pytest.raises(GenomeError, match=r"cB\[0\]: weight x postsynaptic current"):
        grow(genome([rule(postSynapticCurrent_multiplier=1e20)], source=strong))


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(InputError, match="seed"):
        grow(genome([rule()]), seed=seed)


sizes = st.tuples(*[st.integers(1, 6)] * 3)
elements = st.one_of(st.integers(-1, 6), st.sampled_from("*?!"))
pattern_pairs = st.lists(st.tuples(st.tuples(*[elements] * 3), st.tuples(*[elements] * 3)), min_size=1, max_size=4)


def voxels_of(pattern, p, target):
    """Target voxels of one pattern for one source voxel, straight from the sentence of the rule."""
    choices = []
    for element, coordinate, size in zip(pattern, p, target, strict=True):
        allowed = {"*": set(range(size)), "?": {coordinate}, "!": set(range(size)) - {coordinate}}
        choices.append((allowed[element] if isinstance(element, str) else {element}) & set(range(size)))
    return {(x, y, z) for x in choices[0] for y in choices[1] for z in choices[2]}


@settings(max_examples=60, deadline=None)
@given(sizes, sizes, pattern_pairs)
def test_patterns_equal_their_sentence_voxel_by_voxel(source, target, pairs):
    own = {"own": {"type": "patterns", "parameters": {"patterns": pairs}}}
    network = grow(genome([rule("own")], block(*source), block(*target), own))
    expected = set()
    for p in np.ndindex(*source):
        for accepts, leads_to in pairs:
            if all(isinstance(e, str) or e == c for e, c in zip(accepts, p, strict=True)):
                expected |= {(p, q) for q in voxels_of(leads_to, p, target)}
    places = [tuple(map(int, row)) for row in network.neurons.coordinates]
    got = [(places[a], places[b]) for a, b in ends(network)]
    assert set(got) == expected
    assert network.synapse_count == len(expected)


FUNCTIONS = (
    "projector",
    "transpose_xy",
    "transpose_xz",
    "transpose_yz",
    "centered_projector",
    "tile",
    "sweeper",
    "rotator_z",
    "bitmask_decoder_x",
    "bitmask_encoder_y",
    "bitmask_decoder_z",
    "first_to_last",
    "all_to_all",
    "lateral_-y",
)


@settings(max_examples=80, deadline=None)
@given(sizes, sizes, st.sampled_from(FUNCTIONS))
def test_the_count_that_guards_the_cap_is_exact_or_a_bound(source, target, name):
    case = genome([rule(name)], block(*source), block(*target))
    network = grow(case)
    assert len(ends(network)) == network.synapse_count
    if name not in ("sweeper", "rotator_z") and network.synapse_count:
        grow(case, max_synapses=network.synapse_count)
        with pytest.raises(GenomeError, match="max_synapses"):
            grow(case, max_synapses=network.synapse_count - 1)


def test_thresholds_are_added_up_in_float32():
    start, steps, size = 1.1, (0.1, 0.01, 0.7), (5, 7, 9)
    names = [f"firing_threshold_increment_{axis}" for axis in "xyz"]
    sloped = block(*size, firing_threshold=start, **dict(zip(names, steps, strict=True)))
    thresholds = grow(genome([], source=sloped)).neurons.thresholds[7 : 7 + 5 * 7 * 9]
    single, double = [], []
    for place in np.ndindex(*size):
        value = np.float32(start)
        for coordinate, step in zip(place, steps, strict=True):
            value = value + np.float32(coordinate) * np.float32(step)
        single.append(value)
        double.append(np.float32(start + sum(c * s for c, s in zip(place, steps, strict=True))))
    assert np.array_equal(thresholds, np.array(single, np.float32))
    assert not np.array_equal(thresholds, np.array(double, np.float32)), "the case tells the two apart"
