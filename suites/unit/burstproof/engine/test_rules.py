"""The scalar rules, run as plain Python, against the executable specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from burstproof.engine import reference
from burstproof.engine.layout import parameters_of
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_2_6, FEAGI_BETA
from burstproof.engine.reference import ReferenceEngine, draw
from burstproof.engine.rules import Compiled, Features, features_of, make_rules
from burstproof.engine.state import EngineState, Stimulus
from burstproof.network.features import AreaFeatures, Homeostat, Modulator, ModulatorKind
from burstproof.network.features import Features as NetworkFeatures
from burstproof.network.model import Network
from burstproof.network.schema import Parameters
from suites.support.parity.builder import network

pytestmark = pytest.mark.requirement("BE-4")

NEURONS = 400
VALUES = {
    "thresholds": [0.0, 0.5, 1.0],
    "threshold_limits": [1.0, 2.0, 3.4e38],
    "leak_coefficients": [0.0, 0.25],
    "refractory_periods": [0, 1, 3, 65535],
    "consecutive_fire_limits": [0, 1, 2, 65535],
    "snooze_periods": [0, 2, 65535],
    "excitabilities": [0.0, 0.3, 0.7, 0.999, 1.0],
    "mp_charge_accumulation": [False, True],
    "membrane_potentials": [0.0, 0.5, 1.0, 2.0],
    "refractory_countdowns": [0, 0, 1, 2],
    "consecutive_fire_counts": [0, 1, 2, 3, 65534, 65535],
}
"""Of each column, what a rule tells from its neighbours."""
CLAMPED = {
    "thresholds": [-1.0, 0.5, 254.0, 300.0],
    "leak_coefficients": [-0.25, 0.0, 0.25, 1.5],
    "consecutive_fire_limits": [0, 1, 2],
    "membrane_potentials": [-1.0, 0.0, 100.0, 254.5, 255.0, 300.0],
    "consecutive_fire_counts": [0, 1, 2],
    "mp_charge_accumulation": [False, True],
}
STATE = ("membrane_potentials", "consecutive_fire_counts")
COUNTED = (*STATE, "refractory_countdowns")
MIXES = {
    "everything": tuple(VALUES),
    "potentials": ("thresholds", *STATE),
    "limits of the window": ("threshold_limits", "leak_coefficients", *STATE),
    "excitability": ("excitabilities", *STATE),
    "pauses": ("refractory_periods", *COUNTED),
    "limits of fires": ("consecutive_fire_limits", *STATE),
    "limits and pauses": ("consecutive_fire_limits", "refractory_periods", *COUNTED),
    "snoozing": ("consecutive_fire_limits", "snooze_periods", *COUNTED),
    "restarts": ("mp_charge_accumulation", "thresholds", *STATE),
}
OPTIONS = {
    f"{profile.name}{', batch' if batch else ''}": EngineOptions(profile, emulate_batch_path=batch)
    for profile in (FEAGI_2_6, FEAGI_BETA)
    for batch in (False, True)
}


def drawn_network(columns: Mapping[str, list[Any]], seed: int) -> Network:
    generator = np.random.default_rng(seed)
    return network(NEURONS, **{name: generator.choice(values, NEURONS) for name, values in columns.items()})


def plain(function: Compiled) -> Compiled:
    return function


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("columns", MIXES.values(), ids=MIXES)
@pytest.mark.parametrize("general", [False, True], ids=["own features", "all features"])
def test_the_rules_are_those_of_the_specification(
    columns: tuple[str, ...], options: EngineOptions, general: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each neuron of a drawn network, for three bursts: who fires, potentials before and after, both counts."""
    monkeypatch.setattr(reference, "BATCH_PATH_CANDIDATES", 1)
    net = drawn_network({name: VALUES[name] for name in columns}, seed=len(columns))
    features = features_of(net, options)
    agree(net, options, features.general() if general else features, [-1.0, 0.0, 1.0, 2.0])


@pytest.mark.parametrize("batch", [False, True], ids=["dense path", "batch path"])
def test_clamped_rules_are_those_of_the_specification(batch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Precision feagi-int8: below 0, above 255, beside and between; leaks that would leave the range."""
    monkeypatch.setattr(reference, "BATCH_PATH_CANDIDATES", 1)
    options = EngineOptions(emulate_batch_path=batch)
    net = drawn_network(CLAMPED, seed=1).replace(features=NetworkFeatures(clamp_potentials=True))
    agree(net, options, features_of(net, options), [-255.0, -1.0, 0.0, 1.0, 254.0, 255.0])


def agree(net: Network, options: EngineOptions, features: Features, given: list[float]) -> None:
    """Three bursts under amounts drawn from ``given``, neuron by neuron."""
    rules = make_rules(features, plain)
    engine = ReferenceEngine.create(net, options)
    own = parameters_of(engine.neurons)
    generator = np.random.default_rng(5)
    for _ in range(3):
        amounts = generator.choice(given, NEURONS).astype(np.float32)
        stimulated = np.flatnonzero(generator.random(NEURONS) < 0.8)
        before = engine.state()
        burst = engine.step(Stimulus(stimulated.astype(np.uint32), amounts[stimulated], np.empty(0, np.uint32)))
        after = engine.state()
        potentials = dict(zip(burst.fired_ids.tolist(), burst.fired_potentials.tolist(), strict=True))
        for neuron in range(NEURONS):
            v, rc, cc = restarted(net, options, before, neuron), before.refractory_countdowns[neuron], 0
            rc, cc = np.int32(rc), np.int32(before.consecutive_fire_counts[neuron])
            if cc == 65535 and not features.counts_decide:
                continue  # the engines look at such a count themselves, where a neuron fires
            candidate = neuron in stimulated
            fired, peak = False, v
            if rc > 0:
                if candidate or not options.profile.countdown_only_candidates:
                    rc, cc = rules.tick(rc, cc, int(own.consecutive_fire_limits[neuron]))
            elif candidate:
                mine = Parameters.of(lambda name, at=neuron: scalar(getattr(own, name)[at]))
                number, word = np.uint32(neuron), np.uint32(after.burst_count)
                with np.errstate(over="ignore"):
                    fired, peak, v, rc, cc = rules.candidate(
                        amounts[neuron], v, cc, mine, number, word, options.emulate_batch_path
                    )
            where = f"neuron {neuron}"
            assert fired == (neuron in potentials), where
            assert not fired or peak == potentials[neuron], where
            found = float(v).hex(), int(rc), int(cc)  # -0 is not 0
            assert found == (
                float(after.membrane_potentials[neuron]).hex(),
                int(after.refractory_countdowns[neuron]),
                int(after.consecutive_fire_counts[neuron]),
            ), where


def scalar(value: np.generic) -> object:
    return int(value) if value.dtype == np.uint16 else value


def restarted(net: Network, options: EngineOptions, state: EngineState, neuron: int) -> np.float32:
    """The potential at the start of a burst: the restart belongs to the engines, not to the rules."""
    if options.profile.restart_all:
        stays = net.neurons.mp_charge_accumulation[neuron]
    else:
        stays = not state.was_candidate[neuron] or state.refractory_countdowns[neuron] > 0
    return state.membrane_potentials[neuron] if stays else np.float32(0)


def test_the_draw_is_that_of_the_specification() -> None:
    rules = make_rules(features_of(network(1), EngineOptions()), plain)
    ids = np.array([0, 1, 2, 12345, 2**32 - 1], np.uint32)
    for burst in (0, 1, 77, 2**32 - 1):
        with np.errstate(over="ignore"):
            found = [rules.draw(neuron, np.uint32(burst)) for neuron in ids]
        assert np.array(found, np.float32).tobytes() == draw(ids, burst).tobytes()


def test_what_decides_a_draw() -> None:
    """From 0.999 on nothing is drawn; below, a draw equal to the excitability does not let a neuron fire."""
    ids = np.arange(5000)
    draws = draw(ids, 1)
    lucky, unlucky = int(np.flatnonzero(draws < 0.99)[0]), int(np.argmax(draws))
    assert draws[unlucky] > 0.9995
    limits = {unlucky: np.float32(0.999), lucky: draws[lucky], lucky + 1: np.nextafter(draws[lucky + 1], np.float32(2))}
    excitabilities = np.array([limits.get(neuron, 1.0) for neuron in ids], np.float32)
    net = network(5000, excitabilities=excitabilities)
    rules = make_rules(features_of(net, EngineOptions()), plain)
    fired = {}
    for neuron, own in limits.items():
        mine = Parameters.of(lambda name, at=neuron: scalar(getattr(parameters_of(net.neurons), name)[at]))
        one, zero = np.float32(1), np.float32(0)
        assert mine.excitabilities == own
        with np.errstate(over="ignore"):
            fired[neuron] = rules.candidate(one, zero, np.int32(0), mine, np.uint32(neuron), np.uint32(1), False)[0]
    assert fired == {unlucky: True, lucky: False, lucky + 1: draws[lucky + 1] < 0.999}


FLAGS = {item.name for item in fields(Features) if item.type == "bool"}
PROFILE_FLAGS = ("countdown_only_candidates", "negative_sum_lowers", "restart_all", "batch_ignores_limit_and_zeroes")


@pytest.mark.parametrize(
    ("columns", "used"),
    [
        ({}, set()),
        ({"threshold_limits": 2.0}, {"threshold_limits"}),
        ({"leak_coefficients": 0.5}, {"decays"}),
        ({"refractory_periods": 1}, {"refractory_periods"}),
        ({"refractory_countdowns": 1}, {"refractory_periods"}),
        ({"consecutive_fire_limits": 1}, {"consecutive_fire_limits"}),
        ({"consecutive_fire_limits": 0}, set()),
        ({"snooze_periods": 1}, set()),
        ({"consecutive_fire_limits": 0, "snooze_periods": 1}, set()),
        (
            {"consecutive_fire_limits": 1, "snooze_periods": 1},
            {"consecutive_fire_limits", "snooze_periods", "refractory_periods"},
        ),
        ({"excitabilities": np.float32(0.999)}, set()),
        ({"excitabilities": 0.998}, {"excitabilities"}),
        ({"mp_charge_accumulation": False}, {"restarts"}),
    ],
)
def test_features_are_what_some_neuron_uses(columns: dict[str, float], used: set[str]) -> None:
    """One neuron of two uses it; the profile adds its own switches, and nothing else does."""
    plain_network = network(2)
    given = {name: [value, getattr(plain_network.neurons, name)[1]] for name, value in columns.items()}
    features = features_of(network(2, **given), EngineOptions())
    assert {name for name in FLAGS if getattr(features, name)} == used
    beta = features_of(network(2, **given), EngineOptions(FEAGI_BETA, emulate_batch_path=True))
    assert {name for name in FLAGS if getattr(beta, name)} == {*used, *PROFILE_FLAGS, "emulate_batch_path"}
    assert features.counts_decide is bool(used & {"consecutive_fire_limits", "excitabilities"})


@pytest.mark.parametrize(
    ("added", "used"),
    [
        (AreaFeatures(homeostat=Homeostat()), {"decays"}),
        (AreaFeatures(spike_train=True), {"refractory_periods"}),
        (AreaFeatures(modulators=(0,)), {"decays"}),
        (AreaFeatures(modulators=(1,)), {"excitabilities"}),
        (AreaFeatures(modulators=(2,)), set()),
        (AreaFeatures(degeneration=1.0), set()),
    ],
)
def test_features_of_areas_need_the_rules_that_they_change(added: AreaFeatures, used: set[str]) -> None:
    kinds = (ModulatorKind.LEAK, ModulatorKind.FIRING_PROBABILITY, ModulatorKind.FIRING_THRESHOLD)
    modulators = tuple(Modulator(kind.value, kind, 7, 50.0) for kind in kinds)
    net = network(2).replace(features=NetworkFeatures(modulators, {7: added, 9: AreaFeatures()}))
    features = features_of(net, EngineOptions())
    assert {name for name in FLAGS if getattr(features, name)} == used


def test_a_count_of_65535_grows_no_further() -> None:
    """Where counts do not decide the engines look at it after the rules."""
    rules = make_rules(features_of(network(1), EngineOptions()), plain)
    own = Parameters.of(lambda name: scalar(getattr(parameters_of(network(1).neurons), name)[0]))
    one, zero, word = np.float32(1), np.float32(0), np.uint32(0)
    for count in (65534, 65535):
        assert rules.candidate(one, zero, np.int32(count), own, word, word, False)[0::4] == (True, 65535)


def test_general_kernels_serve_every_network_of_a_profile() -> None:
    for profile in (FEAGI_2_6, FEAGI_BETA):
        options = EngineOptions(profile)
        general = features_of(network(1), options).general()
        assert general == features_of(drawn_network(VALUES, 1), replace(options, emulate_batch_path=True))
