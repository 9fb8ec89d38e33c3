"""Genome files: what the reader makes of them, and what it accepts because the real engine does."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json

import pytest

from burstproof.network.genome import parse_genome, read_genome
from suites.stage4_small_genome.growth_golden import GENOMES, SHIPPED, case_genome, genome_tree

pytestmark = pytest.mark.requirement("BE-1")

CORE = ("___death", "___power", "___fatig", "___pain_", "___pleas", "___fear_", "___hope_")


def plain_id(cortical_id):
    return base64.b64decode(cortical_id)


def parse(tree):
    return parse_genome(json.dumps(tree).encode(), "case.json")


def area(genome, name):
    return next(spec for spec in genome.areas if spec.name == name)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_genomes_load_unchanged(name):
    path = GENOMES / f"{name}_genome.json"
    tree = genome_tree(path)
    genome = read_genome(path)
    named = {key[9:15] for key in tree["blueprint"]}
    core_named = sum("__" + text in CORE for text in named)
    assert genome.title == tree["genome_title"]
    assert genome.version == tree["version"]
    assert genome.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert set(genome.morphologies) == set(tree["neuron_morphologies"])
    assert len(genome.areas) == 7 + len(named) - core_named
    assert genome.physiology["max_age"] == tree["physiology"]["max_age"]


@pytest.mark.parametrize("name", SHIPPED)
def test_core_areas_come_first_and_the_others_in_file_order(name):
    path = GENOMES / f"{name}_genome.json"
    genome = read_genome(path)
    assert tuple(plain_id(spec.cortical_id).decode() for spec in genome.areas[:7]) == CORE
    order = [key[9:15] for key in genome_tree(path)["blueprint"] if key.endswith("cx-__name-t")]
    names = genome_tree(path)["blueprint"]
    expected = [names[f"_____10c-{text}-cx-__name-t"] for text in order if "__" + text not in CORE]
    assert sorted(spec.name for spec in genome.areas[7:]) == sorted(expected)
    first_seen = list(dict.fromkeys(key[9:15] for key in names))
    expected = [names[f"_____10c-{text}-cx-__name-t"] for text in first_seen if "__" + text not in CORE]
    assert [spec.name for spec in genome.areas[7:]] == expected


def test_flat_ids_become_eight_bytes():
    ids = {plain_id(spec.cortical_id) for spec in read_genome(GENOMES / "essential_genome.json").areas}
    assert {b"c__for__", b"cRSMot__", b"cKQM2___", b"omot\x05\0\0\0", b"ogaz\x02\0\0\0"} <= ids
    assert {b"isvi" + bytes([16 * n + 9, 0, 0, 0]) for n in range(9)} <= ids


@pytest.mark.parametrize("name", ["example_fp32", "example_int8"])
def test_a_blueprint_of_no_known_format_gives_the_core_areas(name):
    genome = read_genome(GENOMES / f"{name}_genome.json")
    assert [plain_id(spec.cortical_id).decode() for spec in genome.areas] == list(CORE)
    assert genome.ignored_blueprint_keys == 1


def test_packed_and_plain_files_read_alike(tmp_path):
    packed = case_genome("equal")
    plain = tmp_path / "equal.json"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    first, second = read_genome(packed), read_genome(str(plain))
    assert [(a.cortical_id, a.dimensions) for a in first.areas] == [(a.cortical_id, a.dimensions) for a in second.areas]
    assert first.morphologies == second.morphologies
    assert first.sha256 != second.sha256


def test_an_area_that_states_nothing_takes_the_defaults():
    for tree in (
        {"version": "3.0", "blueprint": {"cX": {}}},
        {"version": "2.0", "blueprint": {"_____10c-cX____-cx-unknown-i": 1}},
    ):
        spec = parse(tree).areas[7]
        assert plain_id(spec.cortical_id) == b"cX______"
        assert (spec.dimensions, spec.neurons_per_voxel, spec.firing_threshold) == ((1, 1, 1), 1, 1.0)
        assert (spec.leak_coefficient, spec.excitability, spec.postsynaptic_current) == (0.0, 1.0, 1.0)
        flags = spec.mp_charge_accumulation, spec.psp_uniform_distribution, spec.mp_driven_psp
        assert flags == (False, False, False)


def test_block_boundaries_stand_in_for_missing_dimensions():
    assert parse({"blueprint": {"cX": {"block_boundaries": [2, 3, 4]}}}).areas[7].dimensions == (2, 3, 4)
    both = {"block_boundaries": [2, 3, 4], "cortical_dimensions": {"width": 5, "height": 6, "depth": 7}}
    assert parse({"blueprint": {"cX": both}}).areas[7].dimensions == (5, 6, 7)


def test_the_power_area_always_passes_and_is_uniform():
    power = {"neuron_excitability": 0.2, "psp_uniform_distribution": False, "firing_threshold": 3.5}
    spec = parse({"blueprint": {"___power": power}}).areas[1]
    assert (spec.excitability, spec.psp_uniform_distribution, spec.firing_threshold) == (1.0, True, 3.5)
    essential = read_genome(GENOMES / "essential_genome.json").areas[1]
    assert (essential.excitability, essential.psp_uniform_distribution) == (1.0, True)


def test_both_forms_of_a_rule_say_the_same():
    flat = ["projector", [1, 1, 1], -2.5, True, 3, 4, 5, 9]
    record = {
        "morphology_id": "projector",
        "morphology_scalar": [1, 1, 1],
        "postSynapticCurrent_multiplier": -2.5,
        "plasticity_flag": True,
        "plasticity_constant": 3,
        "ltp_multiplier": 4,
        "ltd_multiplier": 5,
        "plasticity_window": 0,
    }
    rules = [
        parse({"blueprint": {"cX": {"cortical_mapping_dst": {"cX": [rule]}}}}).areas[7].mappings[0].rules[0]
        for rule in (flat, record)
    ]
    assert rules[0] == rules[1]
    assert (rules[0].multiplier, rules[0].delay_bursts, rules[0].attractivity) == (-2.5, 1, 100.0)
    assert (rules[0].window, rules[0].constant, rules[0].ltp_multiplier, rules[0].ltd_multiplier) == (1, 3.0, 4.0, 5.0)


def test_unknown_keys_and_unused_odd_morphologies_are_passed_over():
    tree = genome_tree(GENOMES / "barebones_genome.json")
    tree["blueprint"]["note"] = {"anything": [1, None]}
    tree["neuron_morphologies"]["later"] = {"type": "gradient", "parameters": {"x": 1}}
    tree["surprise"] = None
    assert len(parse(tree).areas) == 7


def test_a_plastic_rule_keeps_its_own_window():
    rule = {"morphology_id": "projector", "plasticity_flag": True, "plasticity_window": 4}
    spec = parse({"blueprint": {"cX": {"cortical_mapping_dst": {"cX": [rule]}}}}).areas[7]
    assert spec.mappings[0].rules[0].window == 4
    assert area(parse({"blueprint": {"cX": {"cortical_name": "here"}}}), "here").mappings == ()
