"""Genomes that cannot be used: one clear error that names file, place, value and cure."""

from __future__ import annotations

import copy
import gzip
import json

import pytest

from burstproof.errors import ExitCode, GenomeError
from burstproof.network.grow.genome import parse_genome, read_genome
from burstproof.network.grow.growth import grow
from suites.support.networks.growth_golden import GENOMES

pytestmark = pytest.mark.requirement("BE-1")

OBJECT = {
    "version": "3.0",
    "neuron_morphologies": {
        "own": {"type": "vectors", "parameters": {"vectors": [[0, 0, 1]]}},
        "mask": {"type": "patterns", "parameters": {"patterns": [[["*", 0, "?"], [1, "!", "*"]]]}},
    },
    "blueprint": {
        "cA": {
            "cortical_name": "a",
            "cortical_dimensions": {"width": 2, "height": 2, "depth": 2},
            "per_voxel_neuron_cnt": 1,
            "firing_threshold": 1.0,
            "mp_charge_accumulation": True,
            "cortical_mapping_dst": {"cA": [{"morphology_id": "own", "postSynapticCurrent_multiplier": 1}]},
        }
    },
    "physiology": {},
}

AREA = ("blueprint", "cA")
RULE = (*AREA, "cortical_mapping_dst", "cA", 0)
VECTORS = ("neuron_morphologies", "own", "parameters", "vectors")
PATTERNS = ("neuron_morphologies", "mask", "parameters", "patterns")

WRONG = [
    (("blueprint",), [], "blueprint: wrong type", "an object"),
    (("blueprint", "cA"), 3, "blueprint.cA: wrong type", "an object"),
    (("version",), 3.0, "version: wrong type", "a string"),
    (("version",), "4.0", "version: unknown genome version", "2.x or 3.x"),
    (("genome_title",), 7, "genome_title: wrong type", "a string"),
    (("physiology",), "none", "physiology: wrong type", "an object"),
    ((*AREA, "cortical_name"), None, "cortical_name: wrong type", "null"),
    ((*AREA, "cortical_dimensions", "width"), 0, "cortical_dimensions.width: out of range", "1...4294967295"),
    ((*AREA, "cortical_dimensions", "height"), -4, "cortical_dimensions.height: out of range", "got -4"),
    ((*AREA, "cortical_dimensions", "depth"), 10**30, "cortical_dimensions.depth: out of range", "1...4294967295"),
    ((*AREA, "cortical_dimensions", "depth"), 1.5, "cortical_dimensions.depth: wrong type", "got 1.5"),
    ((*AREA, "cortical_dimensions", "depth"), "2", "cortical_dimensions.depth: wrong type", "without quotes"),
    ((*AREA, "cortical_dimensions"), [2, 2, 2], "cortical_dimensions: wrong type", "a list of 3"),
    ((*AREA, "per_voxel_neuron_cnt"), -1, "per_voxel_neuron_cnt: out of range", "got -1"),
    ((*AREA, "per_voxel_neuron_cnt"), True, "per_voxel_neuron_cnt: wrong type", "got True"),
    ((*AREA, "firing_threshold"), float("nan"), "firing_threshold: the number is not finite", "nan"),
    ((*AREA, "leak_coefficient"), float("-inf"), "leak_coefficient: the number is not finite", "-inf"),
    ((*AREA, "leak_coefficient"), 1e39, "leak_coefficient: the number does not fit float32", "1e+39"),
    ((*AREA, "anything", "else"), float("inf"), "anything.else: the number is not finite", "inf"),
    ((*AREA, "neuron_excitability"), [1], "neuron_excitability: wrong type", "a number"),
    ((*AREA, "refractory_period"), -1, "refractory_period: out of range", "0...4294967295"),
    ((*AREA, "mp_charge_accumulation"), "yes", "mp_charge_accumulation: wrong type", "true or false"),
    ((*AREA, "mp_driven_psp"), 2, "mp_driven_psp: wrong type", "true or false"),
    ((*AREA, "cortical_mapping_dst"), [], "cortical_mapping_dst: wrong type", "an object"),
    ((*AREA, "cortical_mapping_dst", "cA"), {}, "cortical_mapping_dst.cA: wrong type", "a list"),
    (
        (*AREA, "cortical_mapping_dst", "cZ"),
        [["own", 1, 1]],
        "cortical_mapping_dst.cZ[0]: a mapping leads",
        "Y1pfX19fX18=",
    ),
    ((*AREA, "cortical_mapping_dst", "no area at all"), [], "not an area id", "no area at all"),
    ((*AREA, "cortical_mapping_dst", "no\u0000"), [], "not an area id", "allowed"),
    (RULE, "own", "cA[0]: wrong type", "an object, or a list"),
    (RULE, ["own", [1, 1, 1]], "cA[0]: the rule is too short", "a list of 2"),
    (RULE, {}, "cA[0]: the rule lacks morphology_id", "an object with 0 keys"),
    ((*RULE, "morphology_id"), "nobody", "cA[0]: unknown morphology", "nobody"),
    ((*RULE, "morphology_id"), 5, "morphology_id: wrong type", "a string"),
    ((*RULE, "postSynapticCurrent_multiplier"), "1", "postSynapticCurrent_multiplier: wrong type", "a number"),
    ((*RULE, "synaptic_delay_bursts"), -1, "synaptic_delay_bursts: out of range", "got -1"),
    ((*RULE, "synapse_attractivity"), -5, "synapse_attractivity: a negative probability", "0...100 percent"),
    ((*RULE, "plasticity_flag"), "on", "plasticity_flag: wrong type", "true or false"),
    (("neuron_morphologies",), [], "neuron_morphologies: wrong type", "an object"),
    (("neuron_morphologies", "own"), [], "neuron_morphologies.own: wrong type", "an object"),
    (("neuron_morphologies", "own"), {}, "neuron_morphologies.own: the morphology lacks its type", "vectors"),
    (("neuron_morphologies", "own", "parameters"), {}, "own: the morphology lacks parameters.vectors", "a list"),
    ((*VECTORS, 0), [0, 0], "vectors[0]: wrong length", "a list of 2"),
    ((*VECTORS, 0, 1), "?", "vectors[0][1]: wrong type", "a whole number"),
    ((*VECTORS, 0, 1), 10**12, "vectors[0][1]: out of range", "1000000000000"),
    ((*PATTERNS, 0), [["*", "*", "*"]], "patterns[0]: wrong length", "source pattern, target pattern"),
    ((*PATTERNS, 0, 0), ["*", "*"], "patterns[0][0]: wrong length", "a list of 3"),
    ((*PATTERNS, 0, 1, 2), "all", "patterns[0][1][2]: unknown pattern symbol", "all"),
]


def changed(place, value):
    tree = copy.deepcopy(OBJECT)
    at = tree
    for key in place[:-1]:
        at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
    at[place[-1]] = value
    return json.dumps(tree).encode()


def refusal(data):
    with pytest.raises(GenomeError) as caught:
        parse_genome(data, "brain.json")
    return caught.value


def test_the_unchanged_case_is_accepted():
    assert len(parse_genome(json.dumps(OBJECT).encode(), "brain.json").areas) == 8


@pytest.mark.parametrize(("place", "value", "says", "shows"), WRONG, ids=[says for _, _, says, _ in WRONG])
def test_a_wrong_value_is_named_with_its_place(place, value, says, shows):
    error = refusal(changed(place, value))
    message = str(error)
    assert message.startswith("brain.json: ")
    assert says in message
    assert shows in message or shows in json.dumps(str(place))
    assert error.cure
    assert "\n" not in message
    assert error.exit_code is ExitCode.USAGE


TEXTS = [
    (b"", "line 1 column 1"),
    (b"{", "not valid JSON"),
    (b'{"blueprint": {"a": 1', "end of file"),
    (b"[]", "brain.json: wrong type"),
    (b"{}", "no blueprint"),
    (b'{"blueprint": {}} x', "Extra data"),
    (b'{"blueprint": {}, "a": \x00}', "line 1 column 24"),
    (b'{"blueprint": {"caf\xe9": 1}}', "not UTF-8 text at byte 19"),
    (b"\xef\xbb\xbf{}", "BOM"),
    ("{}".encode("utf-16"), "not UTF-8"),
    (b'{"blueprint": {}, "blueprint": {}}', "same key twice"),
    (b'{"blueprint": {"cA": {"firing_threshold": 1, "firing_threshold": 2}}}', "firing_threshold"),
    (b'{"blueprint": {}, "n": ' + b"9" * 5000 + b"}", "too many digits"),
    (b'{"blueprint": {}, "n": 1e999}', "n: the number is not finite"),
    (b'{"blueprint": {}, "n": "\\ud800"}', "surrogate"),
    (b'{"blueprint": {}, "\\udfff": 1}', "surrogate"),
    (b'{"blueprint": {}, "n": ' + b"[" * 70 + b"]" * 70 + b"}", "nested too deeply"),
    (b"[" * 200_000, "nested too deeply"),
    (b'{"a":' * 100_000, "nested too deeply"),
    (b'{"version": "3.0", "blueprint": {"_____10c-short": 1}}', "not a key of a flat blueprint"),
    (b'{"version": "3.0", "blueprint": {"_____10c-\xc3\xa4bcdef-cx-___bbx-i": 1}}', "not an area id"),
    (
        b'{"version": "3.0", "blueprint": {"_____10c-cX0000-cx-___bbx-i": 0}}',
        "_____10c-cX0000-cx-___bbx-i: out of range",
    ),
    (b'{"version": "3.0", "blueprint": {"_____10c-cX0000-cx-dstmap-d": {"cX": []}}}', "6 printable ASCII characters"),
    (b'{"version": "3.0", "blueprint": {"cA": {}, "cA______": {}}}', "blueprint.cA______: the area is defined twice"),
    (b'{"version": "3.0", "blueprint": {"": {}}}', "not an area id"),
    (b'{"version": "3.0", "blueprint": {"AAAAAAAAAAA=AAAA": {}}}', "not an area id"),
    (b'{"version": "3.0", "blueprint": {"!!!!!!!!!!!!": {}}}', "not an area id"),
    (gzip.compress(b'{"blueprint": {}}')[:-6], "gzip data cut short"),
    (gzip.compress(b'{"blueprint": {}}') + b"x", "bytes after the end"),
    (b"\x1f\x8b" + b"\xff" * 40, "damaged gzip data"),
    (gzip.compress(b" " * 10_000_000), "unpacks to far more"),
]


@pytest.mark.parametrize(("data", "says"), TEXTS, ids=[says.replace(" ", "_")[:30] for _, says in TEXTS])
def test_damaged_text_is_refused(data, says):
    message = str(refusal(data))
    assert message.startswith("brain.json")
    assert says in message
    assert len(message) < 500


def test_a_genome_cut_anywhere_is_refused(tmp_path):
    whole = (GENOMES / "barebones_genome.json").read_bytes().rstrip()
    path = tmp_path / "cut.json"
    for length in range(0, len(whole), 997):
        path.write_bytes(whole[:length])
        with pytest.raises(GenomeError, match=r"cut\.json: line \d+ column \d+: not valid JSON"):
            read_genome(path)


@pytest.mark.parametrize(
    "name",
    ["missing.json", "with\0nul.json", "x" * 5000, "new\nline.json"],
    ids=["missing", "with a NUL", "too long", "with a line break"],
)
def test_a_path_that_cannot_be_read(tmp_path, name):
    with pytest.raises(GenomeError) as caught:
        read_genome(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_folder_is_not_a_genome(tmp_path):
    with pytest.raises(GenomeError, match="not a regular file"):
        read_genome(tmp_path)


def test_an_unknown_function_is_refused_and_an_unknown_composite_grows_nothing():
    for kind, known in (("functions", False), ("gradient", False), ("composite", True)):
        tree = copy.deepcopy(OBJECT)
        tree["neuron_morphologies"]["own"] = {"type": kind, "parameters": {}}
        data = json.dumps(tree).encode()
        if known:
            assert len(parse_genome(data, "brain.json").areas) == 8
        else:
            assert "unknown morphology" in str(refusal(data))


def test_rules_that_go_through_too_many_patterns_are_refused_before_growing():
    tree = copy.deepcopy(OBJECT)
    tree["neuron_morphologies"]["own"]["parameters"]["vectors"] = [[9, 9, step] for step in range(401)]
    tree["blueprint"]["cA"]["cortical_mapping_dst"]["cA"] = [["own", 1, 1]] * 500
    genome = parse_genome(json.dumps(tree).encode(), "brain.json")
    with pytest.raises(GenomeError, match=r"brain.json: blueprint.*cA\[249\]: .*got 100250; allowed: 100000"):
        grow(genome)
