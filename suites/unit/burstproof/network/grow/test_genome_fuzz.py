"""Whatever the bytes: a genome is grown within the caps, or refused with the one error of the reader."""

from __future__ import annotations

import copy
import gzip
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.errors import GenomeError
from burstproof.network.grow.genome import GenomePolicy, parse_genome
from burstproof.network.grow.growth import grow
from suites.support.networks.growth_golden import GENOMES, case_genome

pytestmark = pytest.mark.requirement("BE-1")

BAREBONES = (GENOMES / "barebones_genome.json").read_bytes()
LENIENT = GenomePolicy(ignore_unmodelled=True, as_the_engine=True)
MAX_NEURONS, MAX_SYNAPSES = 20_000, 50_000


def flat_seed():
    """The barebones genome with a small mapped area, few morphologies."""
    tree = json.loads(BAREBONES)
    tree["neuron_morphologies"] = dict(list(tree["neuron_morphologies"].items())[:6])
    for key, value in (("___bbx-i", 3), ("___bby-i", 2), ("___bbz-i", 2), ("_n_cnt-i", 2)):
        tree["blueprint"][f"_____10c-cX0000-cx-{key}"] = value
    rule = ["turn_left_level_one", [1, 1, 1], 1.5, True, 1, 2, 1]
    tree["neuron_morphologies"]["turn_left_level_one"] = {
        "type": "patterns",
        "parameters": {"patterns": [[["*", 0, "?"], [1, "!", "*"]], [[0, 0, 0], ["?", "?", "?"]]]},
    }
    tree["blueprint"]["_____10c-cX0000-cx-dstmap-d"] = {"cX0000": [rule], "_power": [["projector", 1, -1]]}
    return tree


def object_seed():
    """A recorded 3.x genome cut down to two pairs of areas."""
    tree = json.loads(gzip.decompress(case_genome("npv_mixed").read_bytes()))
    areas = tree["blueprint"]
    sources = [key for key, area in areas.items() if area["cortical_mapping_dst"]][:2]
    kept = {target for key in sources for target in areas[key]["cortical_mapping_dst"]} | set(sources)
    tree["blueprint"] = {key: area for key, area in areas.items() if key in kept}
    names = [rule["morphology_id"] for key in sources for rule in areas[key]["cortical_mapping_dst"].popitem()[1]]
    for key in sources:
        target = next(other for other in kept if other != key)
        areas[key]["cortical_mapping_dst"] = {target: [{"morphology_id": name} for name in names]}
    tree["neuron_morphologies"] = {name: tree["neuron_morphologies"][name] for name in names}
    return tree


SEEDS = (flat_seed(), object_seed())


def settle(data, policy=LENIENT):
    """Read and grow; every outcome but success and GenomeError fails the case."""
    try:
        genome = parse_genome(data, "fuzz.json", policy)
        network = grow(genome, max_neurons=MAX_NEURONS, max_synapses=MAX_SYNAPSES)
    except GenomeError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert str(refused).encode("utf-8").startswith(b"fuzz.json")
        assert refused.cure
        return None
    assert network.neuron_count <= MAX_NEURONS
    assert network.synapse_count <= MAX_SYNAPSES
    return network


def places(tree, path=()):
    """Every place of a JSON tree."""
    yield path
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        yield from places(value, (*path, key))


PLACES = tuple([place for place in places(seed) if place] for seed in SEEDS)

numbers = st.one_of(
    st.integers(-3, 12),
    st.integers(),
    st.sampled_from([2**16, 2**31, 2**32, 2**63, 10**25, -(10**400), 0.1, 1e38, -1e39, 1e308, math.inf, math.nan]),
    st.floats(),
)
texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["*", "?", "!", "projector", "tile", "rotator_z", "sweeper", "all_to_all", "randomizer", "2.0", "3.0"]
    ),
    st.characters(categories=("Cs", "Cc")),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


def change(tree, place, data):
    """Replace the value at a place, or rename its key; a place that an earlier change removed stays removed."""
    at = tree
    try:
        for key in place[:-1]:
            at = at[key]
        at[place[-1]]
    except (KeyError, IndexError, TypeError):
        return
    if isinstance(at, dict) and data.draw(st.booleans()):
        at[data.draw(texts)] = at.pop(place[-1])
    elif isinstance(at, dict | list):
        at[place[-1]] = data.draw(values)


def test_the_seeds_themselves_grow():
    for seed in SEEDS:
        network = settle(json.dumps(seed).encode(), GenomePolicy())
        assert network is not None
        assert network.synapse_count > 0


@pytest.mark.thorough("seconds")
@settings(max_examples=250, deadline=None)
@given(st.data())
def test_values_changed_anywhere(data):
    which = data.draw(st.integers(0, len(SEEDS) - 1))
    tree = copy.deepcopy(SEEDS[which])
    for place in data.draw(st.lists(st.sampled_from(PLACES[which]), min_size=1, max_size=3)):
        change(tree, place, data)
    settle(json.dumps(tree).encode(), data.draw(st.sampled_from([LENIENT, GenomePolicy()])))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_bytes_changed_anywhere(data):
    text = bytearray(json.dumps(SEEDS[data.draw(st.integers(0, 1))]).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(text) - 1))
        length = data.draw(st.integers(0, 3))
        text[position : position + length] = data.draw(st.binary(max_size=4))
    settle(bytes(text))


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200), values.map(lambda value: json.dumps({"version": "3.0", "blueprint": value}).encode())
    )
)
def test_any_bytes_at_all(data):
    settle(data)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_packed_bytes_changed_anywhere(data):
    packed = bytearray(gzip.compress(json.dumps(SEEDS[0]).encode()))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    settle(bytes(packed))


SHAPES = (
    "projector",
    "transpose_xz",
    "centered_projector",
    "tile",
    "sweeper",
    "rotator_z",
    "bitmask_decoder_y",
    "bitmask_encoder_z",
    "all_to_all",
    "last_to_first",
)

dimensions = st.one_of(st.integers(1, 6), st.integers(1, 2**32 - 1))


@settings(max_examples=200, deadline=None)
@given(st.tuples(*[dimensions] * 6), st.integers(0, 3), st.integers(0, 3), st.data())
def test_dimensions_of_any_size_stay_within_the_caps(sizes, source_count, target_count, data):
    names = [*sorted(SEEDS[0]["neuron_morphologies"]), *SHAPES]
    rules = [[name, 1, 1] for name in data.draw(st.lists(st.sampled_from(names), max_size=3))]
    blueprint = {
        "cA": {"block_boundaries": sizes[:3], "per_voxel_neuron_cnt": source_count},
        "cB": {"block_boundaries": sizes[3:], "per_voxel_neuron_cnt": target_count},
    }
    blueprint["cA"]["cortical_mapping_dst"] = {"cB": rules}
    tree = {"version": "3.0", "blueprint": blueprint, "neuron_morphologies": SEEDS[0]["neuron_morphologies"]}
    settle(json.dumps(tree).encode())
