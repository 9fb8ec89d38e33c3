"""Genomes of schema 2...6: areas that reward, punish or open a gate become modulators (FEATURES section 10)."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.reference import ReferenceEngine
from burstproof.errors import GenomeError
from burstproof.network.cortical_ids import encode_id
from burstproof.network.features import AreaFeatures, Modulator, ModulatorKind, RuleFeatures
from burstproof.network.model import Network
from burstproof.network.schema import UNLIMITED_FIRES
from suites.support.networks.feature_genomes import LEARNING, MODULATORS, Keys, grown, parse, tree_of

pytestmark = pytest.mark.requirement("BE-19")

REWARDED = {**LEARNING, "plasticity_mode": "rstdp"}
KEYS = {
    "reward_source_area": (3, ModulatorKind.REWARD, 100.0, "reward cB"),
    "punishment_source_area": (3, ModulatorKind.REWARD, -100.0, "punishment cB"),
    "gate_source_area": (6, ModulatorKind.GATE, 100.0, "gate cB"),
}


def subscribed(network: Network) -> tuple[int, ...]:
    """What the one rule is subscribed to."""
    gates = network.features.rules[0].gates if network.features.rules else ()
    return (*gates, *network.plastic_mappings[0].rewards)


@pytest.mark.parametrize("schema", range(2, 8))
@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_migrated_up_to_its_schema(key: str, schema: int) -> None:
    last, kind, magnitude, name = KEYS[key]
    network = grown(tree_of(rule={**REWARDED, key: "cB"}, schema=schema))
    if schema > last:
        assert (network.features.modulators, len(network.areas), subscribed(network)) == ((), 10, ())
        return
    assert network.features.modulators == (Modulator(name, kind, 10, magnitude),)
    assert subscribed(network) == (0,)
    assert network.areas[10].cortical_id == encode_id(b"g___\0\0\0\0")
    assert network.features.areas == {10: AreaFeatures(spike_train=True)}
    assert grown(tree_of(rule={**REWARDED, key: None}, schema=schema)).features.modulators == ()


def test_the_driver_has_the_parameters_of_the_migration_and_is_fed_by_a_projector() -> None:
    network = grown(tree_of(rule={**REWARDED, "gate_source_area": "cB"}, schema=6))
    neurons, synapses = network.neurons, network.synapses
    driver = int(np.flatnonzero(neurons.cortical_areas == 10)[0])
    limit = int(neurons.consecutive_fire_limits[driver])
    assert (neurons.thresholds[driver], neurons.leak_coefficients[driver], limit) == (1, 0, 1)
    assert (neurons.snooze_periods[driver], neurons.refractory_periods[driver]) == (0, 0)
    assert not neurons.mp_charge_accumulation[driver]
    assert limit != UNLIMITED_FIRES
    (row,) = np.flatnonzero(synapses.target_neurons == driver)
    assert neurons.cortical_areas[synapses.source_neurons[row]] == 8
    assert (synapses.weights[row], synapses.delay_bursts[row], synapses.rules[row]) == (1, 1, 0)


def test_each_area_gets_one_driver_for_each_of_its_parts() -> None:
    rules: list[Keys] = [
        {**REWARDED, "reward_source_area": "cB", "punishment_source_area": "cA", "gate_source_area": "cB"},
        {"gate_source_area": "cB", "modulators": ["tg"]},
        {"gate_source_area": "cA"},
    ]
    network = grown(tree_of(rules=rules, schema=2))
    names = [one.name for one in network.features.modulators]
    assert names == ["tg", "reward cB", "punishment cA", "gate cB", "gate cA"]
    assert [one.driver for one in network.features.modulators] == [9, 10, 11, 12, 13]
    assert network.features.rules == (RuleFeatures((), (3,)), RuleFeatures((0,), (3,)), RuleFeatures((), (4,)))
    assert network.plastic_mappings[0].rewards == (1, 2)
    expected = [encode_id(b"g___" + index.to_bytes(4, "little")) for index in range(4)]
    assert [area.cortical_id for area in network.areas[10:]] == expected


def test_ids_and_names_that_are_taken_are_passed_over() -> None:
    tree = tree_of(rule={"gate_source_area": "cB"}, schema=6)
    tree["blueprint"][encode_id(b"g___\0\0\0\0")] = {}
    tree["modulators"]["gate cB"] = {**MODULATORS["gt"]}
    network = grown(tree)
    assert network.features.modulators[0].name == "gate cB 2"
    assert network.areas[-1].cortical_id == encode_id(b"g___\1\0\0\0")


def test_a_source_that_does_not_exist_is_refused() -> None:
    with pytest.raises(GenomeError, match="gate_source_area names an area that does not exist"):
        parse(tree_of(rule={"gate_source_area": "cZ"}, schema=6))
    assert parse(tree_of(rule={"gate_source_area": "cZ"}, schema=7)).schema == 7


def test_migration_gives_a_plastic_rule_the_synaptic_modulator_that_it_lacks() -> None:
    rule = {**REWARDED, "modulators": ["nobody"], "reward_source_area": "cB"}
    assert grown(tree_of(rule=rule, schema=3)).plastic_mappings[0].rewards == (0,)
    with pytest.raises(GenomeError, match="no modulator that the plastic rule lists is a synaptic one"):
        grown(tree_of(rule=rule, schema=4))


@pytest.mark.requirement("BE-1")
def test_a_gate_opens_two_bursts_after_its_area_and_with_a_steady_one_in_every_second_burst() -> None:
    """cB fires in every burst and opens the gate between cA, which fires likewise, and cC."""
    powered = [{"morphology_id": "projector", "postSynapticCurrent_multiplier": 1}]
    gated = [{"morphology_id": "projector", "gate_source_area": "cB"}]
    fires = {"firing_threshold": 1, "psp_uniform_distribution": True, "postsynaptic_current": 1}
    blueprint: Keys = {
        "___power": {"firing_threshold": 1, "cortical_mapping_dst": {"cA": powered, "cB": powered}},
        "cA": {**fires, "cortical_mapping_dst": {"cC": gated}},
        "cB": fires,
        "cC": fires,
    }
    network = grown({"version": "3.0", "genome_schema_version": 6, "blueprint": blueprint})
    ids = {area.index: int(network.ids_of(area.cortical_id)[0]) for area in network.areas[7:]}
    with ReferenceEngine.create(network) as engine:
        fired = [set(engine.step().fired_ids.tolist()) for _ in range(12)]
    bursts = {area: [number for number, ones in enumerate(fired, 1) if one in ones] for area, one in ids.items()}
    assert bursts[7] == bursts[8] == list(range(2, 13))
    assert bursts[10] == [3, 5, 7, 9, 11]
    assert bursts[9] == [5, 7, 9, 11]
