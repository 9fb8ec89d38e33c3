"""Features of a genome: every key of FEATURES section 13 as values for the engines, on both sides of its bounds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from burstproof.engine.trace import read_trace
from burstproof.errors import GenomeError, NetworkError
from burstproof.network.features import (
    NO_FEATURES,
    AreaFeatures,
    AssociativeMapping,
    Features,
    Homeostat,
    MemoryArea,
    MemoryChange,
    Modulator,
    ModulatorKind,
    RuleFeatures,
)
from burstproof.network.grow.genome import read_genome
from burstproof.network.grow.genome_features import with_features
from burstproof.network.grow.growth import grow
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from suites.support.networks.feature_genomes import (
    FEATURES,
    LEARNING,
    MODULATORS,
    Keys,
    first_area,
    grown,
    parse,
    short,
    tree_of,
)
from suites.support.networks.growth_golden import GENOMES, SHIPPED

pytestmark = pytest.mark.requirement("BE-19")


def homeostat(**changes: Any) -> Keys:
    return {"rate_modulated_leak": {"enabled": True, **changes}}


SLOW = {"rate_ema_tau_bursts": 0.001, "target_firing_per_burst": 1, "gain": 0, "leak_min": 0, "leak_max": 1}
AREAS: list[tuple[Keys, AreaFeatures]] = [
    (homeostat(), AreaFeatures(homeostat=Homeostat(0.1, 50.0, 0.2, 0.02, 0.5, 1))),
    (homeostat(target_firing_per_burst=0), AreaFeatures(homeostat=Homeostat(target=0.0))),
    (homeostat(**SLOW), AreaFeatures(homeostat=Homeostat(1.0, 0.001, 0.0, 0.0, 1.0))),
    (homeostat(leak_min=0.5), AreaFeatures(homeostat=Homeostat(leak_min=0.5))),
    (homeostat(update_every_n_bursts=0, anything="else"), AreaFeatures(homeostat=Homeostat())),
    (homeostat(update_every_n_bursts=7), AreaFeatures(homeostat=Homeostat(update_every=7))),
    (homeostat(update_every_n_bursts=10**30), AreaFeatures(homeostat=Homeostat(update_every=2**32 - 1))),
    ({"modulators": ["nobody", "th"]}, AreaFeatures(modulators=(0,))),
    ({"modulators": ["pr", 3, "lk", "pr", "rw", "mf"]}, AreaFeatures(modulators=(1, 0, 1))),
    ({"spike_train": True, "consecutive_fire_cnt_max": 1}, AreaFeatures(spike_train=True)),
    ({"spike_train": True, "consecutive_fire_cnt_max": 65534}, AreaFeatures(spike_train=True)),
    ({"spike_train": True, "consecutive_fire_cnt_max": 70000}, AreaFeatures(spike_train=True)),
    ({"degeneration": 0.25}, AreaFeatures(degeneration=0.25)),
    ({"degeneration": 1}, AreaFeatures(degeneration=1.0)),
    ({"is_mem_type": True}, AreaFeatures(memory=MemoryArea())),
    ({"is_mem_type": True, "modulators": ["mf", "th"]}, AreaFeatures(modulators=(1, 0), memory=MemoryArea())),
]

IDLE_AREAS: list[Keys] = [
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
    {"is_mem_type": False, "temporal_depth": "deep", "init_lifespan": 2, "memory_neuron_cap": 5},
    {"memory_twin_areas": {"cB": "cB"}},
    {"memory_twin_of": "cB"},
]


@pytest.mark.parametrize(("keys", "expected"), AREAS, ids=lambda case: short(case) if isinstance(case, dict) else "")
def test_what_a_key_of_an_area_adds(keys: Keys, expected: AreaFeatures) -> None:
    assert first_area(keys) == expected


@pytest.mark.parametrize("keys", IDLE_AREAS, ids=short)
def test_an_area_key_that_does_not_act_adds_nothing(keys: Keys) -> None:
    network = grown(tree_of(area=keys))
    assert network.features == NO_FEATURES
    assert not network.features


def test_a_modulator_is_its_name_kind_driver_magnitude_and_full_scale() -> None:
    tree = tree_of(area={"modulators": ["th"]})
    tree["modulators"]["th"] |= {"magnitude_percent": -100, "graded": True, "full_scale_potential": 0.5}
    assert grown(tree).features.modulators == (Modulator("th", ModulatorKind.FIRING_THRESHOLD, 9, -100.0, 0.5),)
    tree["modulators"]["th"] |= {"graded": False, "driver_cortical_id": "___pleas"}
    assert grown(tree).features.modulators == (Modulator("th", ModulatorKind.FIRING_THRESHOLD, 4, -100.0),)


def test_modulators_that_nothing_subscribes_to_are_left_out_and_the_others_keep_the_order_of_the_file() -> None:
    features = grown(tree_of(area={"modulators": ["pr", "th"]}, rule={"modulators": ["gt"]})).features
    assert [one.name for one in features.modulators] == ["th", "pr", "gt"]
    assert features.areas[7].modulators == (1, 0)
    assert features.rules == (RuleFeatures(gates=(2,)),)


MEMORY = {"is_mem_type": True}


def test_every_parameter_of_a_memory_area() -> None:
    keys = {
        "temporal_depth": 3,
        "init_lifespan": 0,
        "lifespan_growth_rate": 2.9,
        "longterm_mem_threshold": 7,
        "memory_neuron_cap": 5,
        "ltm_eviction": "none",
        "mp_learning_enabled": True,
        "mp_change_mode": "mp_ratio",
        "mp_delta_quantization": 2.5,
        "mp_ratio_quantization": 60,
    }
    expected = MemoryArea((), 3, 0, 2, 7, 5, False, True, MemoryChange.RATIO, 2.5, 60.0)
    assert first_area(MEMORY | keys).memory == expected
    assert first_area(MEMORY | {"lifespan_growth_rate": -2}).memory == MemoryArea(lifespan_growth=0)
    assert first_area(MEMORY | dict.fromkeys(keys)).memory == MemoryArea()
    assert first_area(MEMORY | {"mp_change_mode": "mp_differential"}).memory == MemoryArea(
        change=MemoryChange.DIFFERENTIAL
    )


@pytest.mark.parametrize(
    "keys",
    [
        {"temporal_depth": 0},
        {"temporal_depth": "2"},
        {"init_lifespan": -1},
        {"longterm_mem_threshold": 1.5},
        {"lifespan_growth_rate": "1"},
        {"memory_neuron_cap": -1},
        {"ltm_eviction": "fifo"},
        {"mp_learning_enabled": "yes"},
        {"mp_change_mode": "mp_sum"},
        {"mp_delta_quantization": 0},
        {"mp_ratio_quantization": -1.0},
    ],
    ids=short,
)
def test_a_parameter_that_a_memory_area_cannot_have_is_refused_by_name(keys: Keys) -> None:
    with pytest.raises(GenomeError) as caught:
        first_area(MEMORY | keys)
    assert f"blueprint.cA.{next(iter(keys))}" in str(caught.value)


def test_upstream_areas_ascend_and_need_the_core_morphology() -> None:
    tree = tree_of(area=MEMORY)
    episodic = [{"morphology_id": "episodic_memory"}]
    tree["blueprint"]["cZ"] = {"cortical_mapping_dst": {"cA": episodic, "cB": episodic}}
    tree["blueprint"]["cB"] = {"cortical_mapping_dst": {"cA": [*episodic, *episodic]}}
    features = grown(tree).features
    assert features.areas[7].memory == MemoryArea(upstream=(8, 10))
    assert set(features.areas) == {7}
    tree["neuron_morphologies"] = {"episodic_memory": {"type": "vectors", "parameters": {"vectors": [[0, 0, 0]]}}}
    assert grown(tree).features.areas[7].memory == MemoryArea()


def replaying(regions: Keys | None = None) -> Keys:
    """A memory cA of cB, whose replays go to cT."""
    tree = tree_of(area={**MEMORY, "memory_twin_areas": {"cB": "cT"}})
    tree["blueprint"]["cA"]["cortical_mapping_dst"] = {"cT": [{"morphology_id": "memory_replay"}]}
    tree["blueprint"]["cB"] = {"cortical_mapping_dst": {"cA": [{"morphology_id": "episodic_memory"}]}}
    tree["blueprint"]["cT"] = {"memory_twin_of": "cB"}
    below = {"parent_region_id": "top", "cortical_areas": ["cA", "cB", "cT"]}
    tree["brain_regions"] = {"top": {"cortical_areas": ["g___"]}, "sub": below} if regions is None else regions
    return tree


def test_a_twin_acts_where_memory_twin_and_rule_say_so() -> None:
    assert grown(replaying()).features.areas[7].memory == MemoryArea(upstream=(8,), twins={8: 10})
    for area, key in (("cT", "memory_twin_of"), ("cA", "memory_twin_areas"), ("cA", "cortical_mapping_dst")):
        tree = replaying()
        del tree["blueprint"][area][key]
        assert grown(tree).features.areas[7].memory == MemoryArea(upstream=(8,))
    tree = replaying()
    tree["blueprint"]["cT"]["memory_twin_of"] = "cA"
    assert grown(tree).features.areas[7].memory == MemoryArea(upstream=(8,))


@pytest.mark.parametrize(
    "regions",
    [
        {},
        {"top": {"cortical_areas": ["cA", "cB", "cT"]}},
        {"top": {}, "sub": {"parent_region_id": "top", "cortical_areas": ["cA", "cB"]}},
        {"top": {}, "sub": {"parent_region_id": "top", "cortical_areas": ["cT", "cB"]}},
    ],
    ids=["no regions", "all in the root", "twin in the root", "memory in the root"],
)
def test_replay_in_the_root_region_is_refused(regions: Keys) -> None:
    with pytest.raises(GenomeError, match="replays no memories in the root region"):
        grown(replaying(regions))


def test_the_root_region_is_the_one_that_the_genome_names() -> None:
    tree = replaying({"one": {"cortical_areas": ["cA", "cB", "cT"]}, "two": {}})
    with pytest.raises(GenomeError, match="root region"):
        grown(tree)
    tree["brain_regions_root"] = "two"
    assert grown(tree).features.areas[7].memory is not None


def rules_between(network: Network, source: int, target: int) -> list[int]:
    """The column ``rules`` of the synapses between two areas."""
    areas, synapses = network.neurons.cortical_areas, network.synapses
    rows = (areas[synapses.source_neurons] == source) & (areas[synapses.target_neurons] == target)
    return synapses.rules[rows].tolist()


def test_gains_and_gates_belong_to_the_synapses_of_their_rule() -> None:
    rules: list[Keys] = [
        {"modulators": ["tg", "nobody", "th", "gt", "tg"]},
        {},
        {"modulators": ["gt"], "postSynapticCurrent_multiplier": -2},
        {"modulators": ["rw", "lr"]},
        {"modulators": ["gt"]},
    ]
    network = grown(tree_of(rules=rules))
    assert network.features.rules == (RuleFeatures((0, 0), (1,)), RuleFeatures((), (1,)))
    assert rules_between(network, 7, 8) == [1, 0, 2, 0, 2]
    assert [one.name for one in network.features.modulators] == ["tg", "gt"]


def test_a_table_without_the_column_gets_the_first_rule_of_equal_weight_and_type() -> None:
    rules: list[Keys] = [
        {"postSynapticCurrent_multiplier": 2, "modulators": ["tg"]},
        {"postSynapticCurrent_multiplier": -2, "modulators": ["gt"]},
        {"postSynapticCurrent_multiplier": 2, "modulators": ["gt"]},
        {"postSynapticCurrent_multiplier": 3},
        {"postSynapticCurrent_multiplier": 3, "modulators": ["gt"]},
        {"postSynapticCurrent_multiplier": 0.1, "modulators": ["gt"]},
    ]
    tree = tree_of(rules=rules)
    network = grown(tree)
    assert rules_between(network, 7, 8) == [1, 2, 2, 0, 2, 2]
    bare = network.replace(synapses=dataclasses.replace(network.synapses, rules=np.zeros(6, np.uint16)))
    assert rules_between(with_features(bare, parse(tree)), 7, 8) == [1, 2, 1, 0, 0, 2]
    assert rules_between(with_features(network, parse(tree)), 7, 8) == [1, 2, 2, 0, 2, 2]


def test_a_genome_of_another_network_is_refused() -> None:
    network = grown(tree_of())
    lacking = network.replace(areas=tuple(area for area in network.areas if area.index != 7))
    assert with_features(lacking, parse(tree_of())).features == NO_FEATURES
    with pytest.raises(NetworkError, match="belongs to another network"):
        with_features(lacking, parse(tree_of(area={"degeneration": 1})))


def plastic(*rules: Keys) -> tuple[PlasticMapping, ...]:
    return grown(tree_of(rules=list(rules))).plastic_mappings


def parameters(mapping: PlasticMapping) -> Keys:
    """What differs from an ordinary plastic rule."""
    fields = ((one.name, one.default) for one in dataclasses.fields(mapping) if one.name != "synapses")
    return {name: getattr(mapping, name) for name, default in fields if getattr(mapping, name) != default}


PLASTIC: list[tuple[Keys, Keys]] = [
    ({}, {}),
    *(({"plasticity_mode": mode}, {}) for mode in ("stdp", "STDP", None, 3, ["rstdp"])),
    *(({"plasticity_mode": mode}, {"rewarded": True}) for mode in ("rstdp", "r-stdp", "R-STDP", "RStdp")),
    ({"plasticity_mode": "rstdp", "modulators": ["rw", "lr", "rw"]}, {"rewarded": True, "rewards": (0, 0)}),
    ({"modulators": ["lr", "rw"]}, {"learning_rates": (0,)}),
    ({"max_weight": 7.5}, {"max_weight": 7.5}),
    ({"max_weight": None}, {}),
    ({"plasticity_eta": 0.5}, {"eta": 0.5}),
    ({"plasticity_eta": 1}, {}),
    ({"plasticity_frozen": True}, {"frozen": True}),
    ({"plasticity_frozen": False}, {}),
    ({"plasticity_mode": "rstdp", "eligibility_decay_bursts": 3}, {"rewarded": True, "eligibility_decay": 3}),
    ({"plasticity_mode": "rstdp", "eligibility_decay_bursts": None}, {"rewarded": True}),
]


@pytest.mark.parametrize(("keys", "expected"), PLASTIC, ids=lambda case: short(str(case)))
def test_what_a_key_of_a_plastic_rule_adds(keys: Keys, expected: Keys) -> None:
    (mapping,) = plastic({**LEARNING, **keys})
    learning_rates = {"learning_rates": (1,)} if "rewards" in expected else {}
    assert parameters(mapping) == {**expected, **learning_rates}
    assert mapping.synapses.tolist() == [0]


def test_a_rule_without_the_flag_has_no_mode() -> None:
    keys = {"plasticity_mode": "rstdp", "max_weight": 3, "plasticity_eta": 2, "plasticity_frozen": True}
    assert plastic(keys) == ()
    assert plastic({"plasticity_mode": "nonsense", "eligibility_decay_bursts": 3}) == ()


def test_the_last_plastic_rule_of_a_pair_governs_all_its_synapses() -> None:
    first = {**LEARNING, "plasticity_mode": "rstdp", "modulators": ["rw"]}
    (mapping,) = plastic(first, {**LEARNING, "max_weight": 4}, {})
    assert parameters(mapping) == {"max_weight": 4.0}
    assert mapping.synapses.tolist() == [0, 1, 2]
    for mode in ("off", "OFF"):
        assert plastic(first, {**LEARNING, "plasticity_mode": mode}, {}) == ()
    (mapping,) = plastic({**LEARNING, "plasticity_mode": "off"}, first)
    assert parameters(mapping) == {"rewarded": True, "rewards": (0,)}


ASSOCIATING = {**LEARNING, "morphology_id": "associative_memory"}


def test_an_associative_rule_has_parameters_and_no_synapse() -> None:
    rule = {**ASSOCIATING, "postSynapticCurrent_multiplier": -3, "plasticity_window": 4, "modulators": ["tg", "lr"]}
    network = grown(tree_of(area={"postsynaptic_current": 0.5}, rules=[rule]))
    assert network.synapse_count == 0
    assert network.features.associative == (AssociativeMapping(7, 8, 0, 0.5, True, 1),)
    (mapping,) = network.plastic_mappings
    assert (mapping.window, mapping.synapses.tolist(), mapping.learning_rates) == (4, [], (1,))
    assert network.features.rules == (RuleFeatures(gains=(0,)),)


@pytest.mark.parametrize("keys", [{"plasticity_flag": False}, {"plasticity_mode": "off"}], ids=short)
def test_an_associative_rule_that_does_not_learn_does_nothing(keys: Keys) -> None:
    network = grown(tree_of(rules=[{**ASSOCIATING, **keys}]))
    assert (network.features, network.plastic_mappings) == (NO_FEATURES, ())


def test_a_pair_is_associative_where_its_last_plastic_rule_is() -> None:
    network = grown(tree_of(rules=[ASSOCIATING, {**LEARNING, "plasticity_window": 2}]))
    assert network.features == NO_FEATURES
    network = grown(tree_of(rules=[{**LEARNING, "plasticity_window": 2}, ASSOCIATING]))
    assert network.features.associative == (AssociativeMapping(7, 8, 0, 1.0),)
    assert network.plastic_mappings[0].synapses.tolist() == [0]


def test_growth_makes_one_placeholder_between_two_memory_areas() -> None:
    rules = [{**ASSOCIATING, "postSynapticCurrent_multiplier": -3}]
    network = grown(tree_of(area={**MEMORY, "postsynaptic_current": 0.25}, target=MEMORY, rules=rules))
    synapses = network.synapses
    assert (network.synapse_count, synapses.weights[0], synapses.postsynaptic_potentials[0]) == (1, 3, 0.25)
    assert (synapses.types[0], synapses.edge_flags[0], synapses.delay_bursts[0]) == (1, 1, 1)
    assert network.plastic_mappings[0].synapses.tolist() == [0]
    for area, target in ((MEMORY, {}), ({}, MEMORY)):
        assert grown(tree_of(area=area, target=target, rules=rules)).synapse_count == 0


def test_an_ordinary_rule_out_of_a_memory_area_starts_at_its_placeholder() -> None:
    tree = tree_of(area=MEMORY, target={"cortical_dimensions": {"width": 2, "height": 1, "depth": 1}})
    tree["blueprint"]["cA"]["cortical_mapping_dst"]["cB"][0]["morphology_id"] = "all_to_all"
    network = grown(tree)
    assert network.synapses.source_neurons.tolist() == [7, 7]
    assert network.synapses.target_neurons.tolist() == [8, 9]


FLAT_KEYS: dict[str, tuple[str, Any]] = {
    "rate_modulated_leak": ("cx-hmlk-d", {"enabled": True, "gain": 0.5}),
    "modulators": ("cx-modls-d", ["th", "lk"]),
    "spike_train": ("cx-spktrn-b", True),
    "consecutive_fire_cnt_max": ("nx-c_fr_c-i", 3),
    "degeneration": ("cx-de_gen-f", 0.5),
    "is_mem_type": ("cx-memory-b", True),
    "temporal_depth": ("cx-tmpdpt-i", 2),
    "init_lifespan": ("cx-mem_ls-i", 4),
    "lifespan_growth_rate": ("cx-mem_gr-i", 3),
    "longterm_mem_threshold": ("cx-mem__t-i", 12),
    "memory_neuron_cap": ("cx-memcap-i", 6),
    "ltm_eviction": ("cx-ltmevc-t", "none"),
    "mp_learning_enabled": ("cx-mplrn-b", True),
}


def test_the_flat_form_says_the_same() -> None:
    """Areas of six characters in the flat form; the driver is the power area in both, since the forms pad ids apart."""
    own = {key: value for key, (_, value) in FLAT_KEYS.items()}
    modulators = {name: {**one, "driver_cortical_id": "___power"} for name, one in MODULATORS.items()}
    rule = {"morphology_id": "associative_memory", **LEARNING, "modulators": ["gt", "lr"]}
    listed = ["projector", 1, 2.5, True, 3, 2, 1]
    tree = {"version": "3.0", "modulators": modulators, "blueprint": {}}
    tree["blueprint"] = {
        "cA0000__": {**own, "cortical_mapping_dst": {"cB0000__": [rule], "cA0000__": [listed]}},
        "cB0000__": {"cortical_mapping_dst": {"cA0000__": [{"morphology_id": "episodic_memory"}]}},
    }
    flat: Keys = {f"_____10c-cA0000-{key}": value for key, value in FLAT_KEYS.values()}
    flat["_____10c-cA0000-cx-dstmap-d"] = {"cB0000": [rule], "cA0000": [listed]}
    flat["_____10c-cB0000-cx-dstmap-d"] = {"cA0000": [["episodic_memory", 1, 1]]}
    flat_modulators = {name: {**one, "driver_cortical_id": "_power"} for name, one in modulators.items()}
    other = {"version": "2.0", "genome_schema_version": 7, "modulators": flat_modulators, "blueprint": flat}
    one, two = grown(tree), grown(other)
    assert one.features == two.features
    assert one.features.areas[7].memory == MemoryArea((8,), 2, 4, 3, 12, 6, False, True)
    assert [parameters(mapping) for mapping in one.plastic_mappings] == [
        parameters(mapping) for mapping in two.plastic_mappings
    ]
    assert len(one.plastic_mappings) == 2


def renamed(features: Features, network: Network) -> tuple[object, ...]:
    """Features with base64 ids in place of cortical indices, in an order that does not depend on these."""
    ids = {area.index: area.cortical_id for area in network.areas}
    areas = {}
    for index, area in features.areas.items():
        memory = area.memory
        if memory is not None:
            upstream = tuple(sorted(memory.upstream, key=lambda one: ids[one]))
            named = (tuple(ids[one] for one in upstream), {ids[one]: ids[twin] for one, twin in memory.twins.items()})
            areas[ids[index]] = (
                dataclasses.replace(area, memory=None),
                named,
                dataclasses.replace(memory, upstream=(), twins={}),
            )
        else:
            areas[ids[index]] = (area, None, None)
    drivers = tuple((one.name, ids[one.driver]) for one in features.modulators)
    pairs = [(ids[one.source], ids[one.target], one.psp, one.inhibitory, one.rule) for one in features.associative]
    return areas, drivers, features.rules, sorted(pairs)


def synapses_by_place(network: Network) -> list[tuple[object, ...]]:
    """Ends by area and voxel, weight, type and rule of every synapse."""
    ids = {area.index: area.cortical_id for area in network.areas}
    neurons, synapses = network.neurons, network.synapses
    places = [
        (ids[area], *voxel)
        for area, voxel in zip(neurons.cortical_areas.tolist(), neurons.coordinates.tolist(), strict=True)
    ]
    columns = (synapses.source_neurons, synapses.target_neurons, synapses.weights, synapses.types, synapses.rules)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return sorted((places[source], places[target], *rest) for source, target, *rest in rows)


@pytest.mark.parametrize("path", FEATURES, ids=lambda path: path.name.removesuffix(".genome.json.gz"))
def test_the_genome_of_a_recording_grows_the_network_that_the_recording_starts_from(path: Any) -> None:
    """Features, rules of the synapses and plastic mappings: by growth, and beside the tables of the recording."""
    mine = grow(read_genome(path))
    recorded = read_trace(path.with_name(path.name.removesuffix(".genome.json.gz"))).network
    assert renamed(mine.features, mine) == renamed(recorded.features, recorded)
    assert synapses_by_place(mine) == synapses_by_place(recorded)
    figures = [
        sorted((len(mapping.synapses), repr(parameters(mapping))) for mapping in network.plastic_mappings)
        for network in (mine, recorded)
    ]
    assert figures[0] == figures[1]
    assert mine.provenance.keys() & {"unmodelled", "as_the_engine"} == set()
    assert bool(mine.features) == (not path.name.startswith("int8"))


def test_the_recordings_of_features_are_there() -> None:
    assert len(FEATURES) == 39


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_genomes_add_nothing(name: str) -> None:
    network = grow(read_genome(GENOMES / f"{name}_genome.json"))
    assert network.features == NO_FEATURES
    assert not network.synapses.rules.any()
