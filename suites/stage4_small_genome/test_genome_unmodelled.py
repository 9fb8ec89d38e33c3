"""What the released engine acts on and nobody modelled, what nobody examined, and modulators that it rejects."""

from __future__ import annotations

import pytest

from burstproof.errors import ExitCode, GenomeError
from burstproof.network.files.connectome import read_connectome
from burstproof.network.grow.genome import GenomePolicy, read_genome
from burstproof.network.grow.growth import grow
from suites.support.networks.feature_genomes import FEATURES, LEARNING, MODULATORS, Keys, parse, tree_of
from suites.support.networks.growth_golden import GENOMES, GOLDEN, LENIENT, SHIPPED, genome_tree

pytestmark = pytest.mark.requirement("BE-19")

TWO_WAYS = {"morphology_id": "bi_directional_stdp", **LEARNING}


def test_a_rule_that_is_not_modelled_is_refused_by_name() -> None:
    tree = tree_of(rules=[{}, TWO_WAYS])
    with pytest.raises(GenomeError) as caught:
        parse(tree)
    message = str(caught.value)
    assert message.startswith("case.json: blueprint.cA.cortical_mapping_dst.cB[1]: the released engine acts on keys")
    said = 'mapping cA (first) -> cB, rule 1: morphology_id = "bi_directional_stdp"'
    assert said in message
    assert "--ignore-unmodelled" in caught.value.cure
    assert caught.value.exit_code is ExitCode.USAGE
    network = grow(parse(tree, LENIENT))
    assert network.provenance["unmodelled"] == said
    assert network.synapse_count == 1


def test_every_finding_is_listed_up_to_a_limit_and_the_others_are_counted() -> None:
    with pytest.raises(GenomeError) as caught:
        parse(tree_of(rules=[TWO_WAYS] * 20))
    message = str(caught.value)
    assert message.count("bi_directional_stdp") == 12
    assert "; and 8 more." in message
    assert "\n" not in message


def test_rules_that_are_never_made_add_nothing() -> None:
    tree = tree_of(rule={"synaptic_delay_bursts": 0, "modulators": ["gt"], **TWO_WAYS})
    genome = parse(tree, GenomePolicy(as_the_engine=True))
    assert "unmodelled" not in genome.notes
    assert not grow(genome).features
    tree = tree_of(rule={"modulators": ["gt"]})
    tree["blueprint"]["zA"] = {"degeneration": 1}
    tree["blueprint"]["cA"]["cortical_mapping_dst"]["zA"] = tree["blueprint"]["cA"]["cortical_mapping_dst"].pop("cB")
    assert parse(tree).notes == {"skipped_areas": "zA"}
    assert not grow(parse(tree)).features


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_genomes_hold_no_key_that_acts(name: str) -> None:
    assert set(read_genome(GENOMES / f"{name}_genome.json").notes) <= {"not_examined"}


def test_what_nobody_examined_is_accepted_and_said() -> None:
    tree = tree_of()
    tree |= {"classifiers": {"one": {}}, "physiology": {"sleep": {"a": 1}, "quantization_precision": "int8", "x": 1}}
    said = 'classifiers = {"one": {}}; physiology.sleep = {"a": 1}; physiology.quantization_precision = "int8"'
    assert parse(tree).notes == {"not_examined": said}
    tree |= {"classifiers": {}, "physiology": {"max_age": 3}}
    assert parse(tree).notes == {}
    flat = {"_____10c-cA0000-nx-snooze-f": 2, "_____10c-cB0000-nx-snooze-f": 0, "_____10c-cB0000-nx-snooze-i": 2}
    (said,) = parse({"version": "2.0", "blueprint": flat}).notes.values()
    assert said == "blueprint._____10c-cA0000-nx-snooze-f = 2"


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            tree_of(area={"is_mem_type": True}, rule=LEARNING),
            "mapping cA (first) -> cB, rule 0: a plastic rule of projector out of a memory area",
        ),
        (
            tree_of(area={"is_mem_type": True, "per_voxel_neuron_cnt": 2}),
            "memory area cA (first) with 2 neurons of its own, not 1",
        ),
        (
            tree_of(rule={"bi_directional_stdp": True}),
            "blueprint.cA.cortical_mapping_dst.cB[0].bi_directional_stdp = true",
        ),
    ],
    ids=["plastic rule out of a memory", "size of a memory area", "key of a rule"],
)
def test_what_nobody_examined_about_features_is_said(tree: Keys, said: str) -> None:
    assert parse(tree).notes == {"not_examined": said}


BAD_INSTANCES = [
    ({"type": "neuro.mood"}, "th.type: unknown type of modulator"),
    ({"type": 3}, "th.type: wrong type"),
    ({"magnitude_percent": -100.5}, "th.magnitude_percent: out of range"),
    ({"magnitude_percent": "50"}, "th.magnitude_percent: wrong type"),
    ({"effect_duration_bursts": 0}, "th.effect_duration_bursts: out of range"),
    ({"effect_duration_bursts": 65536}, "th.effect_duration_bursts: out of range"),
    ({"rest_bursts": 65536}, "th.rest_bursts: out of range"),
    ({"graded": True}, "th: the modulator lacks full_scale_potential"),
    ({"graded": True, "full_scale_potential": 0}, "th.full_scale_potential: out of range"),
    ({"driver_cortical_id": "cZ"}, "th.driver_cortical_id: the modulator's driver is no area"),
]


@pytest.mark.parametrize(("changes", "says"), BAD_INSTANCES, ids=[says for _, says in BAD_INSTANCES])
def test_a_modulator_that_the_engine_rejects_is_an_error_under_every_policy(changes: Keys, says: str) -> None:
    tree = tree_of()
    tree["modulators"] = {"th": {**MODULATORS["th"], **changes}}
    for policy in (GenomePolicy(), LENIENT):
        with pytest.raises(GenomeError) as caught:
            parse(tree, policy)
        assert says in str(caught.value)


@pytest.mark.parametrize("key", ["type", "magnitude_percent", "effect_duration_bursts", "driver_cortical_id"])
def test_a_modulator_without_a_required_key_is_an_error(key: str) -> None:
    tree = tree_of()
    del tree["modulators"]["th"][key]
    with pytest.raises(GenomeError, match=f"modulators.th: the modulator lacks {key}"):
        parse(tree)


def test_modulators_at_the_ends_of_their_ranges_are_taken() -> None:
    ends = {"magnitude_percent": -100, "effect_duration_bursts": 65535, "rest_bursts": 65535, "graded": True}
    tree = tree_of()
    tree["modulators"] = {"th": {**MODULATORS["th"], **ends, "full_scale_potential": 0.5}}
    assert parse(tree).notes == {}
    for driver in ("X19fcG93ZXI=", "___pleas"):
        tree["modulators"] = {"th": {**MODULATORS["th"], "driver_cortical_id": driver}}
        assert parse(tree).notes == {}


def test_a_connectome_takes_the_features_of_its_genome_with_the_flags() -> None:
    """Without the flags nothing of the genome applies, as after an import into the released engine."""
    path = GOLDEN / "features" / "rstdp_11.connectome"
    bare = read_connectome(path).network
    assert (bool(bare.features), bare.plastic_mappings, bare.synapses.rules.any()) == (False, (), False)
    network = read_connectome(path, apply_flags=True).network
    assert network.flags_registered
    assert len(network.features.modulators) == 5
    assert [len(mapping.synapses) for mapping in network.plastic_mappings] == [6] * 5
    assert int(network.synapses.rules.sum()) == 6


def test_the_tree_of_the_cases_is_itself_accepted() -> None:
    assert parse(tree_of()).notes == {}
    assert genome_tree(FEATURES[0])["genome_schema_version"] == 7
