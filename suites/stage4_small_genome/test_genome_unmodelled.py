"""Keys that the released engine acts on and that are not modelled: every line of FEATURES section 13, on both sides."""

from __future__ import annotations

import copy
import json

import pytest

from burstproof.errors import ExitCode, GenomeError
from burstproof.network.files.connectome import read_connectome
from burstproof.network.grow.genome import GenomePolicy, parse_genome, read_genome
from burstproof.network.grow.growth import grow
from suites.support.networks.growth_golden import GENOMES, GOLDEN, LENIENT, SHIPPED, genome_tree

pytestmark = pytest.mark.requirement("BE-19")

FEATURES = sorted((GOLDEN / "features").glob("*.genome.json.gz"))
MODULATORS = {
    name: {"type": kind, "magnitude_percent": 50, "effect_duration_bursts": 1, "driver_cortical_id": "g___"}
    for name, kind in {
        "th": "neuro.firing_threshold",
        "lk": "neuro.leak",
        "pr": "neuro.firing_probability",
        "mf": "memory.formation",
        "tg": "synaptic.transmission_gain",
        "gt": "synaptic.gate",
        "rw": "synaptic.reward",
        "lr": "synaptic.learning_rate",
    }.items()
}
LEARNING = {
    "plasticity_flag": True,
    "plasticity_window": 1,
    "plasticity_constant": 1,
    "ltp_multiplier": 1,
    "ltd_multiplier": 1,
}


def tree_of(area=None, rule=None, target=None, schema=7):
    """Areas cA -> cB with a driver, and the given keys."""
    rules = [{"morphology_id": "projector", **(rule or {})}]
    blueprint = {
        "cA": {**(area or {}), "cortical_name": "first", "cortical_mapping_dst": {"cB": rules}},
        "cB": target or {},
        "g___": {},
    }
    return {"version": "3.0", "genome_schema_version": schema, "modulators": MODULATORS, "blueprint": blueprint}


def short(keys):
    return json.dumps(keys)[:60]


def parse(tree, policy=None):
    data = json.dumps(tree).encode()
    return parse_genome(data, "case.json", policy or GenomePolicy())


def notes(tree):
    return parse(tree, LENIENT).notes.get("unmodelled", "")


def homeostat(**changes):
    return {"rate_modulated_leak": {"enabled": True, **changes}}


ACTING_AREAS = [
    homeostat(),
    homeostat(target_firing_per_burst=0),
    homeostat(target_firing_per_burst=1, rate_ema_tau_bursts=0.001, gain=0, leak_min=0, leak_max=1),
    homeostat(leak_min=0.5),
    homeostat(update_every_n_bursts=0, anything="else"),
    {"modulators": ["nobody", "th"]},
    {"modulators": ["lk"]},
    {"modulators": ["pr", 3]},
    {"spike_train": True, "consecutive_fire_cnt_max": 1},
    {"spike_train": True, "consecutive_fire_cnt_max": 65534},
    {"spike_train": True, "consecutive_fire_cnt_max": 70000},
    {"degeneration": 0.25},
    {"degeneration": 1},
    {"is_mem_type": True},
]

IDLE_AREAS = [
    {"rate_modulated_leak": None},
    {"rate_modulated_leak": {}},
    {"rate_modulated_leak": {"gain": 0.5}},
    {"rate_modulated_leak": [True]},
    homeostat(enabled=False),
    homeostat(enabled=1),
    homeostat(target_firing_per_burst=1.01),
    homeostat(target_firing_per_burst=-0.01),
    homeostat(rate_ema_tau_bursts=0),
    homeostat(rate_ema_tau_bursts="50"),
    homeostat(gain=-0.1),
    homeostat(gain=True),
    homeostat(leak_min=0.6),
    homeostat(leak_max=0.01),
    homeostat(leak_max=1.01),
    homeostat(leak_min=-0.01),
    homeostat(update_every_n_bursts=2.0),
    homeostat(update_every_n_bursts=-1),
    {"modulators": []},
    {"modulators": ["nobody", 7, None]},
    {"modulators": ["rw", "gt", "mf"]},
    {"modulators": "th"},
    {"spike_train": True},
    {"spike_train": True, "consecutive_fire_cnt_max": 65535},
    {"spike_train": True, "consecutive_fire_cnt_max": 65536},
    {"spike_train": False, "consecutive_fire_cnt_max": 3},
    {"spike_train": 1, "consecutive_fire_cnt_max": 3},
    {"degeneration": 0},
    {"degeneration": -0.5},
    {"degeneration": "much"},
    {"degeneration": 1e-60},
    {"is_mem_type": False, "temporal_depth": 3, "init_lifespan": 2, "memory_neuron_cap": 5},
    {"memory_twin_areas": {"cB": "cB"}},
    {"memory_twin_of": "cB"},
]


@pytest.mark.parametrize("keys", ACTING_AREAS, ids=short)
def test_an_area_key_that_acts_is_refused_by_name(keys):
    tree = tree_of(area=keys)
    key = next(iter(keys))
    with pytest.raises(GenomeError) as caught:
        parse(tree)
    message = str(caught.value)
    assert message.startswith(f"case.json: blueprint.cA.{key}: the released engine acts on keys")
    assert f"area cA (first): {key} = {json.dumps(keys[key])[:50]}" in message
    assert "--ignore-unmodelled" in caught.value.cure
    assert caught.value.exit_code is ExitCode.USAGE
    assert notes(tree).startswith(f"area cA (first): {key} = ")


@pytest.mark.parametrize("keys", IDLE_AREAS, ids=short)
def test_an_area_key_that_does_not_act_is_accepted(keys):
    assert parse(tree_of(area=keys)).notes == {}


def test_memory_formation_acts_on_memory_areas_only():
    assert "modulators" in notes(tree_of(area={"is_mem_type": True, "modulators": ["mf"]}))
    assert "modulators" not in notes(tree_of(area={"is_mem_type": True, "modulators": ["tg"]}))


def test_twin_areas_act_with_a_replay_rule():
    keys = {"memory_twin_areas": {"cB": "cB"}}
    found = notes(tree_of(area=keys, target={"memory_twin_of": "cA"}, rule={"morphology_id": "memory_replay"}))
    for part in ("cA (first): memory_twin_areas = ", 'cB: memory_twin_of = "cA"', 'morphology_id = "memory_replay"'):
        assert part in found


ACTING_RULES = [
    {"modulators": ["nobody", "gt"]},
    *({"modulators": [name]} for name in ("tg", "rw", "lr")),
    {"modulators": ["rw"], **LEARNING},
    {"morphology_id": "episodic_memory"},
    {"morphology_id": "memory_replay"},
    {"morphology_id": "associative_memory", **LEARNING},
    *({"plasticity_mode": mode, **LEARNING} for mode in ("rstdp", "r-stdp", "R-STDP", "off", "OFF")),
    {"max_weight": 7.5, **LEARNING},
    {"plasticity_eta": 0.5, **LEARNING},
    {"plasticity_frozen": True, **LEARNING},
    {"eligibility_decay_bursts": 3, "plasticity_mode": "rstdp", **LEARNING},
]

IDLE_RULES = [
    {"modulators": []},
    {"modulators": ["nobody"]},
    {"modulators": ["th", "mf"]},
    {"modulators": "gt"},
    {"morphology_id": "episodic_scan"},
    {"morphology_id": "associative_memory"},
    {"morphology_id": "associative_memory", **LEARNING, "plasticity_flag": False},
    *({"plasticity_mode": mode, **LEARNING} for mode in ("stdp", "STDP", None, 3, ["rstdp"])),
    {"plasticity_mode": "rstdp", "max_weight": 3, "plasticity_eta": 2, "plasticity_frozen": True},
    {"plasticity_mode": "nonsense", "eligibility_decay_bursts": 3},
    {"max_weight": None, **LEARNING},
    {"plasticity_eta": 1.0, **LEARNING},
    {"plasticity_eta": 1, **LEARNING},
    {"plasticity_frozen": False, **LEARNING},
    {"gate_source_area": "cB", "reward_source_area": "cB", "punishment_source_area": "cB"},
]


@pytest.mark.parametrize("keys", ACTING_RULES, ids=short)
def test_a_rule_key_that_acts_is_refused_by_name(keys):
    key = next(iter(keys))
    with pytest.raises(GenomeError) as caught:
        parse(tree_of(rule=keys))
    message = str(caught.value)
    assert message.startswith(f"case.json: blueprint.cA.cortical_mapping_dst.cB[0].{key if 'elig' not in key else ''}")
    assert f"mapping cA (first) -> cB, rule 0: {key} = {json.dumps(keys[key])}" in message
    assert grow(parse(tree_of(rule=keys), LENIENT)).provenance["unmodelled"] == notes(tree_of(rule=keys))


@pytest.mark.parametrize("keys", IDLE_RULES, ids=short)
def test_a_rule_key_that_does_not_act_is_accepted(keys):
    assert parse(tree_of(rule=keys)).notes == {}


@pytest.mark.parametrize("schema", range(2, 8))
@pytest.mark.parametrize(
    ("key", "last"), [("reward_source_area", 3), ("punishment_source_area", 3), ("gate_source_area", 6)]
)
def test_keys_that_the_engine_migrates_act_up_to_their_schema(key, last, schema):
    found = notes(tree_of(rule={key: "cB"}, schema=schema))
    assert found == (f'mapping cA (first) -> cB, rule 0: {key} = "cB"' if schema <= last else "")
    assert notes(tree_of(rule={key: None}, schema=schema)) == ""


def test_flat_keys_and_list_rules_act_alike():
    own = "_____10c-cA0000-"
    values = {
        "cx-hmlk-d": {"enabled": True},
        "cx-modls-d": ["th"],
        "cx-spktrn-b": True,
        "nx-c_fr_c-i": 3,
        "cx-de_gen-f": 0.5,
        "cx-memory-b": True,
        "cx-dstmap-d": {"cA0000": [["memory_replay", 1, 1], ["associative_memory", 1, 1, True, 1, 1, 1]]},
        "cx-twinrf-t": "cA0000",
    }
    instance = {**MODULATORS["th"], "driver_cortical_id": "cA0000"}
    tree = {"version": "2.0", "genome_schema_version": 7, "modulators": {"th": instance}}
    found = notes({**tree, "blueprint": {own + key: value for key, value in values.items()}})
    keys = ("rate_modulated_leak", "modulators", "spike_train", "degeneration", "is_mem_type", "memory_twin_of")
    assert [part.split(": ")[1].split(" = ")[0] for part in found.split("; ")] == [
        *keys,
        "morphology_id",
        "morphology_id",
    ]


def test_every_finding_is_listed_up_to_a_limit_and_the_others_are_counted():
    tree = tree_of()
    tree["blueprint"] |= {f"c{number:03}": {"degeneration": 1} for number in range(20)}
    with pytest.raises(GenomeError) as caught:
        parse(tree)
    message = str(caught.value)
    assert message.count("degeneration = 1") == 12
    assert "area c000: degeneration = 1; area c001" in message
    assert "; and 8 more." in message
    assert "\n" not in message


def test_rules_that_are_never_made_do_not_act():
    tree = tree_of(rule={"synaptic_delay_bursts": 0, "modulators": ["gt"]})
    assert "unmodelled" not in parse(tree, GenomePolicy(as_the_engine=True)).notes
    tree = tree_of(rule={"modulators": ["gt"]})
    tree["blueprint"]["zA"] = {"degeneration": 1}
    tree["blueprint"]["cA"]["cortical_mapping_dst"]["zA"] = tree["blueprint"]["cA"]["cortical_mapping_dst"].pop("cB")
    assert parse(tree).notes == {"skipped_areas": "zA"}


@pytest.mark.parametrize("path", FEATURES, ids=lambda path: path.name.removesuffix(".genome.json.gz"))
def test_genomes_of_the_recordings_of_features(path):
    """All hold keys that act, but those of the two recordings that the server's own precision makes."""
    if path.name.startswith("int8"):
        assert "unmodelled" not in read_genome(path).notes
        return
    with pytest.raises(GenomeError, match="the released engine acts on keys"):
        read_genome(path)
    network = grow(read_genome(path, GenomePolicy(ignore_unmodelled=True)))
    assert network.provenance["unmodelled"]
    assert network.neuron_count > 7


def test_the_recordings_of_features_are_there():
    assert len(FEATURES) == 39


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_genomes_hold_no_key_that_acts(name):
    assert set(read_genome(GENOMES / f"{name}_genome.json").notes) <= {"not_examined"}


def test_what_nobody_examined_is_accepted_and_said():
    tree = tree_of()
    tree |= {"classifiers": {"one": {}}, "physiology": {"sleep": {"a": 1}, "quantization_precision": "int8", "x": 1}}
    said = 'classifiers = {"one": {}}; physiology.sleep = {"a": 1}; physiology.quantization_precision = "int8"'
    assert parse(tree).notes == {"not_examined": said}
    tree |= {"classifiers": {}, "physiology": {"max_age": 3}}
    assert parse(tree).notes == {}
    flat = {"_____10c-cA0000-nx-snooze-f": 2, "_____10c-cB0000-nx-snooze-f": 0, "_____10c-cB0000-nx-snooze-i": 2}
    (said,) = parse({"version": "2.0", "blueprint": flat}).notes.values()
    assert said == "blueprint._____10c-cA0000-nx-snooze-f = 2"


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
def test_a_modulator_that_the_engine_rejects_is_an_error_under_every_policy(changes, says):
    tree = tree_of()
    tree["modulators"] = {"th": {**MODULATORS["th"], **changes}}
    for policy in (GenomePolicy(), LENIENT):
        with pytest.raises(GenomeError) as caught:
            parse(tree, policy)
        assert says in str(caught.value)


@pytest.mark.parametrize("key", ["type", "magnitude_percent", "effect_duration_bursts", "driver_cortical_id"])
def test_a_modulator_without_a_required_key_is_an_error(key):
    tree = copy.deepcopy(tree_of())
    del tree["modulators"]["th"][key]
    with pytest.raises(GenomeError, match=f"modulators.th: the modulator lacks {key}"):
        parse(tree)


def test_modulators_at_the_ends_of_their_ranges_are_taken():
    ends = {"magnitude_percent": -100, "effect_duration_bursts": 65535, "rest_bursts": 65535, "graded": True}
    tree = tree_of()
    tree["modulators"] = {"th": {**MODULATORS["th"], **ends, "full_scale_potential": 0.5}}
    assert parse(tree).notes == {}
    for driver in ("X19fcG93ZXI=", "___pleas"):
        tree["modulators"] = {"th": {**MODULATORS["th"], "driver_cortical_id": driver}}
        assert parse(tree).notes == {}


def test_a_connectome_says_that_its_genome_holds_keys_that_act():
    """Tables win: nothing is grown, so that it is a note and no error."""
    path = GOLDEN / "features" / "degen_11.connectome"
    assert "unmodelled" not in read_connectome(path).network.provenance
    network = read_connectome(path, apply_flags=True).network
    assert "area cA: degeneration = " in network.provenance["unmodelled"]
    assert network.flags_registered


def test_the_tree_of_the_cases_is_itself_accepted():
    assert parse(tree_of()).notes == {}
    assert genome_tree(FEATURES[0])["genome_schema_version"] == 7
