"""Rules at which the released engine fails, and what is grown in spite of them (FEATURES section 4)."""

from __future__ import annotations

import json

import pytest

from burstproof.errors import ExitCode, GenomeError
from burstproof.network.grow.genome import GenomePolicy, parse_genome
from burstproof.network.grow.growth import grow

pytestmark = pytest.mark.requirement("BE-19")

AS_THE_ENGINE = GenomePolicy(as_the_engine=True)
LEARNING = {
    "plasticity_flag": True,
    "plasticity_window": 1,
    "plasticity_constant": 1,
    "ltp_multiplier": 1,
    "ltd_multiplier": 1,
}
MODULATORS = {
    name: {"type": kind, "magnitude_percent": 50, "effect_duration_bursts": 1, "driver_cortical_id": "cA"}
    for name, kind in (("rw", "synaptic.reward"), ("th", "neuro.leak"))
}


def parse(mappings, policy=None, others=None):
    """Areas cA...cD of one voxel, cA with the given mappings."""
    blueprint = {name: {} for name in ("cA", "cB", "cC", "cD")}
    blueprint["cA"] = {"cortical_mapping_dst": mappings}
    tree = {
        "version": "3.0",
        "genome_schema_version": 7,
        "modulators": MODULATORS,
        "blueprint": blueprint | (others or {}),
    }
    return parse_genome(json.dumps(tree).encode(), "case.json", policy or GenomePolicy())


def rule(**keys):
    return {"morphology_id": "all_to_all", **keys}


def learning(**changes):
    """A plastic rule; a change to ``...`` removes the key."""
    return {key: value for key, value in {**rule(**LEARNING), **changes}.items() if value is not ...}


FAILING = [
    (rule(synaptic_delay_bursts=0), "synaptic_delay_bursts is 0"),
    (learning(synaptic_delay_bursts=0), "synaptic_delay_bursts is 0"),
    (learning(plasticity_window=0), "plasticity_window is 0"),
    (learning(plasticity_window=...), "plasticity_window is missing"),
    (learning(plasticity_constant=...), "plasticity_constant is missing"),
    (learning(plasticity_constant=None), "plasticity_constant is not a number"),
    (learning(ltp_multiplier=...), "ltp_multiplier is missing"),
    (learning(ltd_multiplier=...), "ltd_multiplier is missing"),
    (learning(ltp_multiplier=127.5), "ltp_multiplier is outside"),
    (learning(ltp_multiplier=-129), "ltp_multiplier is outside"),
    (learning(ltd_multiplier=128), "ltd_multiplier is outside"),
    (learning(max_weight=0), "max_weight is not"),
    (learning(max_weight=-1.5), "max_weight is not"),
    (learning(max_weight="9"), "max_weight is not"),
    (learning(plasticity_eta=0), "plasticity_eta is not"),
    (learning(plasticity_eta=-0.1), "plasticity_eta is not"),
    (learning(plasticity_mode="off", max_weight=3), "max_weight or plasticity_eta is set"),
    (learning(plasticity_mode="OFF", plasticity_eta=1), "max_weight or plasticity_eta is set"),
    (learning(eligibility_decay_bursts=3), "eligibility_decay_bursts is set"),
    (learning(eligibility_decay_bursts=0), "eligibility_decay_bursts is set"),
    (learning(plasticity_mode="off", eligibility_decay_bursts=3), "eligibility_decay_bursts is set"),
    (learning(plasticity_mode="hebb"), "plasticity_mode 'hebb' is unknown"),
    (learning(plasticity_mode=""), "plasticity_mode '' is unknown"),
    (learning(modulators=["th"]), "no modulator that the plastic rule lists"),
    (learning(modulators=["nobody", 3]), "no modulator that the plastic rule lists"),
    (["all_to_all", 1, 1, True, 1, 1], "ltd_multiplier is missing"),
    (["all_to_all", 1, 1, True], "plasticity_constant is missing"),
    (["all_to_all", 1, 1, True, 1, 200, 1], "ltp_multiplier is outside"),
]

GROWN = [
    rule(plasticity_window=0),
    rule(**{**LEARNING, "plasticity_flag": False, "plasticity_window": 0, "ltp_multiplier": 500}),
    rule(plasticity_flag=False, plasticity_mode="hebb", max_weight=-1, plasticity_constant=None, modulators=["th"]),
    learning(),
    learning(plasticity_constant=-2.9, ltp_multiplier=-128, ltd_multiplier=127),
    learning(plasticity_constant=1e6, plasticity_window=255),
    learning(max_weight=None),
    learning(modulators=[]),
    learning(plasticity_mode=None),
    rule(synaptic_delay_bursts=300),
    ["all_to_all", 1, 1],
    ["all_to_all", 1, 1, False],
    ["all_to_all", 1, 1, True, 1, 1, 1, 0],
]


@pytest.mark.parametrize(("bad", "why"), FAILING, ids=[f"{why}-{number}" for number, (_, why) in enumerate(FAILING)])
def test_a_rule_that_fails_in_the_engine_is_an_error_that_names_it(bad, why):
    with pytest.raises(GenomeError) as caught:
        parse({"cB": [rule(), bad]})
    message = str(caught.value)
    assert message.startswith("case.json: blueprint.cA.cortical_mapping_dst.cB[1]: ")
    assert why in message
    assert "--as-the-engine" in caught.value.cure
    assert caught.value.exit_code is ExitCode.USAGE
    with pytest.raises(GenomeError, match="as-the-engine"):
        parse({"cB": [rule(), bad]}, GenomePolicy(ignore_unmodelled=True))
    network = grow(parse({"cB": [rule(), bad]}, AS_THE_ENGINE))
    assert network.synapse_count == 1
    assert why in network.provenance["as_the_engine"]
    assert "unmodelled" not in network.provenance


@pytest.mark.parametrize("good", GROWN, ids=map(str, range(len(GROWN))))
def test_a_rule_that_the_engine_takes_is_grown(good):
    network = grow(parse({"cB": [good]}))
    assert network.synapse_count == 1
    assert "as_the_engine" not in network.provenance


def grown_pairs(genome):
    """(source, target) of the synapses by the letters of their areas."""
    network = grow(genome)
    letters = dict(enumerate("_______ABCDEFGH"))
    areas = network.neurons.cortical_areas
    ends = (areas[getattr(network.synapses, f"{side}_neurons")].tolist() for side in ("source", "target"))
    return sorted(letters[source] + letters[target] for source, target in zip(*ends, strict=True))


def test_a_failing_rule_ends_the_growth_of_its_source_area_only():
    fails = rule(synaptic_delay_bursts=0)
    mappings = {"cD": [rule()], "cC": [rule(), fails, rule(), rule()], "cA": [rule()], "cB": [rule()]}
    others = {"cB": {"cortical_mapping_dst": {"cD": [rule()]}}}
    genome = parse(mappings, AS_THE_ENGINE, others)
    assert grown_pairs(genome) == ["AA", "AB", "AC", "BD"]
    said = "area cA: synaptic_delay_bursts is 0 (blueprint.cA.cortical_mapping_dst.cC[1]), 4 rules make no synapse"
    assert genome.notes == {"as_the_engine": said}


def test_targets_are_taken_in_the_order_of_the_text_that_the_genome_writes():
    """The text of base64 sorts unlike the bytes behind it: digits come last in its alphabet, and first in text."""
    fails = rule(synaptic_delay_bursts=0)
    long = {"cA": "Y0FfX19fX18=", "cb": "Y2JfX19fX18=", "c0": "YzBfX19fX18=", "cB": "Y0JfX19fX18="}
    assert sorted(long, key=long.__getitem__) == ["cA", "cB", "cb", "c0"]
    assert sorted(long) == ["c0", "cA", "cB", "cb"]
    blueprint = {long["cA"]: {"cortical_mapping_dst": {long[name]: [rule()] for name in ("c0", "cA", "cB")}}}
    blueprint[long["cA"]]["cortical_mapping_dst"][long["cb"]] = [fails]
    tree = {"version": "3.0", "blueprint": blueprint | {long[name]: {} for name in ("cb", "c0", "cB")}}
    genome = parse_genome(json.dumps(tree).encode(), "case.json", AS_THE_ENGINE)
    assert grow(genome).synapse_count == 2, "to cA and cB, not to c0, whose text comes after that of cb"


def test_a_rule_that_failed_does_not_govern_its_pair():
    rules = [learning(plasticity_window=4), learning(plasticity_window=0), learning(plasticity_window=2)]
    (mapping,) = grow(parse({"cB": rules}, AS_THE_ENGINE)).plastic_mappings
    assert (mapping.window, len(mapping.synapses)) == (4, 1)


def test_the_error_counts_the_other_areas_and_the_note_names_them():
    fails = {"cortical_mapping_dst": {"cA": [rule(synaptic_delay_bursts=0)]}}
    with pytest.raises(GenomeError, match="2 more areas have a rule that fails"):
        parse({"cB": [learning(plasticity_window=0)]}, None, {"cB": fails, "cC": fails})
    said = parse({"cB": [learning(plasticity_window=0)]}, AS_THE_ENGINE, {"cB": fails}).notes["as_the_engine"]
    assert said.startswith("area cA: plasticity_window is 0 ")
    assert "; area cB: synaptic_delay_bursts is 0 " in said


def test_a_failing_rule_to_an_area_that_is_skipped_does_not_fail():
    genome = parse({"zA": [rule(synaptic_delay_bursts=0)], "cB": [rule()]}, None, {"zA": {}})
    assert genome.notes == {"skipped_areas": "zA"}
    assert grown_pairs(genome) == ["AB"]
