"""Genome files: what the reader makes of them, and what it accepts because the real engine does."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json

import pytest

from burstproof.errors import GenomeError
from burstproof.network.grow.fields import Field
from burstproof.network.grow.flat import flat_id
from burstproof.network.grow.genome import GenomePolicy, parse_genome, read_genome
from suites.support.networks.growth_golden import GENOMES, SHIPPED, case_genome, genome_tree

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
    policy = GenomePolicy(ignore_unmodelled=True)
    first, second = read_genome(packed, policy), read_genome(str(plain), policy)
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
    assert parse({"version": "3.0", "blueprint": {"cX": {"block_boundaries": [2, 3, 4]}}}).areas[7].dimensions == (
        2,
        3,
        4,
    )
    both = {"block_boundaries": [2, 3, 4], "cortical_dimensions": {"width": 5, "height": 6, "depth": 7}}
    assert parse({"version": "3.0", "blueprint": {"cX": both}}).areas[7].dimensions == (5, 6, 7)


def test_the_power_area_is_one_neuron_that_always_passes_and_is_uniform():
    power = {"neuron_excitability": 0.2, "psp_uniform_distribution": False, "firing_threshold": 3.5}
    power |= {"block_boundaries": [2, 2, 1], "per_voxel_neuron_cnt": 3}
    spec = parse({"version": "3.0", "blueprint": {"___power": power}}).areas[1]
    assert (spec.excitability, spec.psp_uniform_distribution, spec.firing_threshold) == (1.0, True, 3.5)
    assert (spec.dimensions, spec.neuron_count) == ((1, 1, 1), 1)
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
        "plasticity_window": 1,
    }
    rules = [
        parse({"version": "3.0", "blueprint": {"cX": {"cortical_mapping_dst": {"cX": [rule]}}}})
        .areas[7]
        .mappings[0]
        .rules[0]
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
    steps = {"plasticity_constant": 1, "ltp_multiplier": 1, "ltd_multiplier": 1}
    rule = {"morphology_id": "projector", "plasticity_flag": True, "plasticity_window": 4, **steps}
    spec = parse({"version": "3.0", "blueprint": {"cX": {"cortical_mapping_dst": {"cX": [rule]}}}}).areas[7]
    assert spec.mappings[0].rules[0].window == 4
    assert area(parse({"version": "3.0", "blueprint": {"cX": {"cortical_name": "here"}}}), "here").mappings == ()


@pytest.mark.parametrize("name", ["___death", "___power", "___hope_"])
def test_a_core_area_of_a_flat_genome_takes_the_defaults_of_an_ordinary_area(name):
    index, own = CORE.index(name), "_____10c-" + name[2:]
    flat = parse({"version": "2.0", "blueprint": {f"{own}-cx-___bbx-i": 1}}).areas[index]
    stated = parse({"version": "3.0", "blueprint": {name: {}}}).areas[index]
    missing = parse({"version": "2.0", "blueprint": {}}).areas[index]
    assert (flat.firing_threshold, stated.firing_threshold, missing.firing_threshold) == (1.0, 0.1, 0.1)
    assert flat.psp_uniform_distribution is (name == "___power")
    assert stated.psp_uniform_distribution is missing.psp_uniform_distribution is True


def test_the_core_areas_of_the_vision_genome():
    death, power = read_genome(GENOMES / "vision_genome.json").areas[:2]
    assert (death.firing_threshold, power.firing_threshold) == (1.0, 1.0)


DOWNLOADED = {
    "version": "3.0",
    "genome_schema_version": 7,
    "blueprint": {
        "_____10c-Y0FfX19fX18=-cx-__name-t": "a",
        "_____10c-Y0FfX19fX18=-cx-___bbx-i": 3,
        "_____10c-Y0FfX19fX18=-nx-fire_t-f": 2.5,
        "_____10c-Y0FfX19fX18=-cx-dstmap-d": {
            "Y0FfX19fX18=": [["projector", [1, 1, 1], 2, False, 1, 1, 1]],
            "X19fcG93ZXI=": [{"morphology_id": "all_to_all", "synaptic_delay_bursts": 3}],
        },
        "_____10c-X19fcG93ZXI=-nx-fire_t-f": 0.5,
        "_____10c-Zy8rX0AAAAA=-cx-___bby-i": 2,
    },
}


def test_the_form_that_the_engine_itself_writes():
    genome = parse(DOWNLOADED)
    assert [plain_id(spec.cortical_id) for spec in genome.areas[7:]] == [b"cA______", b"g/+_@\0\0\0"]
    assert (genome.areas[7].dimensions, genome.areas[7].firing_threshold) == ((3, 1, 1), 2.5)
    assert (genome.areas[1].firing_threshold, genome.areas[8].dimensions) == (0.5, (1, 2, 1))
    rules = {plain_id(mapping.target): mapping.rules[0] for mapping in genome.areas[7].mappings}
    assert rules[b"cA______"].multiplier == 2.0
    assert rules[b"___power"].delay_bursts == 3
    assert genome.schema == 7


def flat_text(value):
    """A genome as ``genome/download`` writes it, from one of the shipped 2.x form: the ids in base64."""
    tree = genome_tree(GENOMES / "essential_genome.json")
    ids = {key[9:15] for key in tree["blueprint"]}
    long = {text: base64.b64encode(value(text)).decode() for text in ids}
    blueprint = {}
    for key, entry in tree["blueprint"].items():
        if key.endswith("dstmap-d"):
            entry = {long[target]: rules for target, rules in entry.items()}
        blueprint[f"_____10c-{long[key[9:15]]}{key[15:]}"] = entry
    return {**tree, "blueprint": blueprint, "genome_schema_version": 7, "version": "3.0"}


def test_a_downloaded_genome_is_the_one_it_was_loaded_from():
    original = read_genome(GENOMES / "essential_genome.json")
    again = parse(flat_text(lambda text: flat_id(text, Field("", "", text))))
    assert [(a.cortical_id, a.name, a.dimensions) for a in again.areas] == [
        (a.cortical_id, a.name, a.dimensions) for a in original.areas
    ]
    assert [[mapping.target for mapping in a.mappings] for a in again.areas] == [
        [mapping.target for mapping in a.mappings] for a in original.areas
    ]


@pytest.mark.parametrize("form", ["flat", "object"])
def test_areas_of_no_family_are_skipped_with_their_synapses(form):
    rules = [["all_to_all", 1, 1]]
    if form == "flat":
        target, kept = "zA0000", "cA0000"
        blueprint = {f"_____10c-{text}-cx-dstmap-d": {target: rules, kept: rules} for text in (kept, target)}
    else:
        target, kept = "zA", "cA"
        blueprint = {text: {"cortical_mapping_dst": {target: rules, kept: rules}} for text in (kept, target)}
    genome = parse({"version": "2.0" if form == "flat" else "3.0", "blueprint": blueprint})
    assert [plain_id(spec.cortical_id)[:2] for spec in genome.areas[7:]] == [b"cA"]
    assert [plain_id(mapping.target)[:2] for mapping in genome.areas[7].mappings] == [b"cA"]
    assert genome.notes == {"skipped_areas": target}


@pytest.mark.parametrize("first", "cmiog_")
def test_areas_of_every_family_are_taken(first):
    assert len(parse({"version": "3.0", "blueprint": {f"{first}Xx": {}}}).areas) == 8
    assert len(parse({"version": "3.0", "blueprint": {f"{first.upper()}Xx": {}}}).areas) == (8 if first == "_" else 7)


@pytest.mark.parametrize(
    ("version", "stated", "schema"),
    [
        *((version, stated, stated) for version in ("2.0", "3.0", "2.7", "3.x") for stated in range(2, 8)),
        *((version, stated, 2) for version in ("2.0", "2.1") for stated in ("absent", "7", 7.0, 7.5, -1, True, None)),
        *(("3.0", stated, 3) for stated in ("absent", "7", 7.0, 7.5, -1, True, None)),
    ],
)
def test_schema_versions_that_are_taken(version, stated, schema):
    assert parse(versioned(version, stated)).schema == schema


@pytest.mark.parametrize(
    ("version", "stated", "says"),
    [
        *(("3.0", stated, "genome_schema_version: unknown schema version") for stated in (0, 1, 8, 2**70)),
        *((version, "absent", "no schema version is stated") for version in ("2.2", "3.1", "2.", "3.0.0")),
        *((version, 7, "unknown genome version") for version in ("", "2", "3", "4.0", "1.0", "v3.0")),
        ("absent", 7, "the genome has no version"),
    ],
)
def test_schema_versions_that_are_refused(version, stated, says):
    with pytest.raises(GenomeError, match=says) as caught:
        parse(versioned(version, stated))
    assert caught.value.cure


def versioned(version, stated):
    entries = {"version": version, "genome_schema_version": stated}
    return {**{key: value for key, value in entries.items() if value != "absent"}, "blueprint": {}}
