"""Random features for a random network (FEATURES sections 1 to 6), crossed with each other."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace

import numpy as np

from burstproof.network.features import AreaFeatures, Features, Homeostat, Modulator, ModulatorKind, RuleFeatures
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import UNLIMITED_FIRES

Rng = np.random.Generator

_MAGNITUDES = (-100.0, -100.0, -50.0, 25.0, 50.0, 100.0, 100.0, 200.0, 33.3, 0.0)
_FULL_SCALES = (None, None, None, 1.0, 0.5, 3.0, 100.0)
_LOSSES = (0.1, 0.25, 1.0, 1000.0)
_AREA_KINDS = (ModulatorKind.FIRING_THRESHOLD, ModulatorKind.LEAK, ModulatorKind.FIRING_PROBABILITY)
_KINDS = (
    *_AREA_KINDS,
    ModulatorKind.TRANSMISSION_GAIN,
    ModulatorKind.GATE,
    ModulatorKind.REWARD,
    ModulatorKind.LEARNING_RATE,
)


@dataclass(frozen=True)
class FeatureSwitches:
    """Which features a case has."""

    homeostats: bool = False
    modulators: bool = False
    trains: bool = False
    modes: bool = False
    degeneration: bool = False
    clamp_potentials: bool = False


def draw_feature_switches(rng: Rng) -> FeatureSwitches:
    """None in a third of the cases, each one in about half of the others."""
    if rng.random() < 1 / 3:
        return FeatureSwitches()
    chances = {"clamp_potentials": 0.2, "degeneration": 0.3}
    names = [item.name for item in dataclasses.fields(FeatureSwitches)]
    return FeatureSwitches(**{name: bool(rng.random() < chances.get(name, 0.5)) for name in names})


def with_features(switches: FeatureSwitches, rng: Rng, network: Network) -> Network:
    """``network`` with what ``switches`` say; its plastic mappings and finite limits are what modes and trains take."""
    present = np.unique(network.neurons.cortical_areas).tolist()
    modulators = _draw_modulators(rng, present) if switches.modulators else ()
    rules = tuple(_draw_rule(rng, modulators) for _ in range(rng.integers(1, 5))) if switches.modulators else ()
    areas = {index: _draw_area(switches, rng, modulators) for index in present if rng.random() < 0.7}
    features = Features(
        modulators,
        {index: area for index, area in areas.items() if area != AreaFeatures()},
        rules,
        clamp_potentials=switches.clamp_potentials,
    )
    mappings = network.plastic_mappings
    if switches.modes:
        mappings = tuple(_with_modes(rng, mapping, modulators) for mapping in mappings)
    neurons, synapses = network.neurons, network.synapses
    if switches.trains:
        limits = rng.choice([0, UNLIMITED_FIRES, 1, 2, 3, 5, 65534], network.neuron_count).astype(np.uint16)
        neurons = replace(neurons, consecutive_fire_limits=limits)
    if rules:
        synapses = replace(synapses, rules=rng.integers(0, len(rules) + 1, network.synapse_count).astype(np.uint16))
    return network.replace(neurons=neurons, synapses=synapses, features=features, plastic_mappings=mappings)


def _draw_modulators(rng: Rng, areas: list[int]) -> tuple[Modulator, ...]:
    kinds = [_KINDS[number] for number in rng.integers(0, len(_KINDS), rng.integers(1, 10))]
    return tuple(
        Modulator(
            f"m{number}",
            kind,
            int(rng.choice(areas)),
            float(rng.choice(_MAGNITUDES)),
            _FULL_SCALES[rng.integers(len(_FULL_SCALES))],
        )
        for number, kind in enumerate(kinds)
    )


def _listed(rng: Rng, modulators: tuple[Modulator, ...], kinds: tuple[ModulatorKind, ...]) -> tuple[int, ...]:
    """Some of the modulators of these kinds, in any order, one of them twice now and then."""
    suitable = [number for number, one in enumerate(modulators) if one.kind in kinds]
    count = int(rng.integers(0, min(len(suitable), 3) + 1))
    return tuple(int(number) for number in rng.choice(suitable, count)) if count else ()


def _draw_rule(rng: Rng, modulators: tuple[Modulator, ...]) -> RuleFeatures:
    gains = _listed(rng, modulators, (ModulatorKind.TRANSMISSION_GAIN,))
    return RuleFeatures(gains, _listed(rng, modulators, (ModulatorKind.GATE,)))


def _draw_area(switches: FeatureSwitches, rng: Rng, modulators: tuple[Modulator, ...]) -> AreaFeatures:
    return AreaFeatures(
        _draw_homeostat(rng) if switches.homeostats and rng.random() < 0.6 else None,
        _listed(rng, modulators, _AREA_KINDS),
        switches.trains and bool(rng.random() < 0.7),
        float(rng.choice(_LOSSES)) if switches.degeneration and rng.random() < 0.6 else 0.0,
    )


def _draw_homeostat(rng: Rng) -> Homeostat:
    if rng.random() < 0.2:
        return Homeostat()
    least, most = sorted(float(value) for value in rng.choice([0.0, 0.02, 0.1, 0.3, 0.5, 1.0], 2))
    return Homeostat(
        float(rng.choice([0.0, 0.1, 0.5, 1.0])),
        float(rng.choice([0.01, 1.0, 2.5, 50.0, 1e6])),
        float(rng.choice([0.0, 0.2, 1.0, 30.0])),
        least,
        most,
        int(rng.choice([1, 1, 2, 3, 7])),
    )


def _with_modes(rng: Rng, mapping: PlasticMapping, modulators: tuple[Modulator, ...]) -> PlasticMapping:
    rewarded = bool(rng.random() < 0.5)
    return replace(
        mapping,
        rewarded=rewarded,
        eligibility_decay=int(rng.choice([0, 1, 3, 8])) if rewarded else 0,
        eta=float(rng.choice([1.0, 1.0, 0.5, 0.1, 3.0])),
        max_weight=[None, None, 2.0, 2.5, 300.0][rng.integers(5)],
        frozen=bool(rng.random() < 0.1),
        rewards=_listed(rng, modulators, (ModulatorKind.REWARD,)),
        learning_rates=_listed(rng, modulators, (ModulatorKind.LEARNING_RATE,)),
    )
