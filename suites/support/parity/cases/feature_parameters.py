"""Cases for parameters that features change: FEATURES.md sections 1 (homeostat), 2 (modulators) and 6 (8-bit range)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from burstproof.network.features import AreaFeatures, Features, Homeostat, Modulator, ModulatorKind, RuleFeatures
from burstproof.network.model import Network
from suites.support.parity.builder import Case, flags, network, stimulate, synapse

QUICK = Homeostat(target=0.5, tau=0.01, gain=0.5, leak_min=0.0, leak_max=1.0)
"""The average r is the last burst alone: exp(-100) is lost in float32. A firing adds 0.25 to the leak."""

THRESHOLD, LEAK, PROBABILITY = (
    ModulatorKind.FIRING_THRESHOLD,
    ModulatorKind.LEAK,
    ModulatorKind.FIRING_PROBABILITY,
)
GAIN, GATE = ModulatorKind.TRANSMISSION_GAIN, ModulatorKind.GATE


def modulator(kind: ModulatorKind, percent: float, full: float | None = None, driver: int = 8) -> Modulator:
    """A modulator driven by area 8."""
    return Modulator(f"{kind.value} {percent}", kind, driver, percent, full)


def featured(base: Network, areas: Mapping[int, AreaFeatures] | None = None, **others: Any) -> Network:
    """``base`` with features."""
    return base.replace(features=Features(areas=areas or {}, **others))


def parameter_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _homeostats()
    yield from _areas()
    yield from _signals()
    yield from _rules()
    yield from _range()


def _homeostats() -> Iterator[Case]:
    two = network(2, cortical_areas=8, thresholds=10, leak_coefficients=0.5)
    yield Case(
        "homeostat: a leak holds from the next burst on, and forced firings count",
        featured(two, {8: AreaFeatures(QUICK)}),
        plan={1: stimulate({0: 8}, 1), 2: stimulate({0: 5, 1: 4}), 3: stimulate({1: 8})},
        fired=[[1], [], []],
        states={
            1: {
                "features.firing_rates": [0, 1],
                "features.homeostat_leaks": [0.25, 0.75],
                "features.leak_coefficients": [0.25, 0.75],
                "membrane_potentials": [4, 0],
            },
            2: {"membrane_potentials": [6.75, 1]},
        },
    )
    kept = np.float32(np.exp(-1.0))
    rate = kept * (np.float32(1) - kept)
    leak = np.float32(0.5) + (np.float32(0) - np.float32(0.3))
    later = leak + (rate - np.float32(0.3))
    slow = Homeostat(target=0.3, tau=1, gain=1, leak_min=0, leak_max=1, update_every=2)
    yield Case(
        "homeostat: the leak moves in every second burst, counted from 0, the average in every one",
        featured(
            network(1, cortical_areas=8, thresholds=10, leak_coefficients=0.5, burst_count=1), {8: AreaFeatures(slow)}
        ),
        plan={2: stimulate({}, 0), 4: stimulate({0: 9}), 5: stimulate({0: 2})},
        fired=[[], [0], [], [], []],
        states={
            1: {"features.leak_coefficients": [leak]},
            2: {"features.firing_rates": [np.float32(1) - kept], "features.leak_coefficients": [leak]},
            3: {"features.firing_rates": [rate], "features.leak_coefficients": [later]},
        },
    )
    bounded = replace(QUICK, leak_max=0.9, update_every=3)
    yield Case(
        "homeostat: until its first update a neuron keeps its raw leak, then the leak is within its bounds",
        featured(network(1, cortical_areas=8, thresholds=50, leak_coefficients=10), {8: AreaFeatures(bounded)}),
        plan={b: stimulate({0: a}) for b, a in ((1, 1), (2, 1), (3, 1), (4, 10))},
        fired=[[], [], {0: 73}, []],
        states={
            0: {"features.homeostat_leaks": [1], "features.leak_coefficients": [10]},
            1: {"membrane_potentials": [-9], "features.homeostat_leaks": [1]},
            3: {"features.leak_coefficients": [0.9]},
            4: {"membrane_potentials": [np.float32(10) * (np.float32(1) - np.float32(0.9))]},
        },
    )
    every_second = replace(QUICK, update_every=2)
    yield Case(
        "homeostat: updates fall on burst numbers that are multiples, whatever the burst of the load",
        featured(
            network(1, cortical_areas=8, thresholds=10, leak_coefficients=0.5, burst_count=1),
            {8: AreaFeatures(every_second)},
        ),
        plan={2: stimulate({0: 8}), 3: stimulate({0: 4})},
        fired=[[], [], {0: 10}],
    )
    floor = Homeostat(target=1, tau=0.01, gain=0.5, leak_min=0.25, leak_max=1)
    yield Case(
        "homeostat: a leak does not fall below its lower bound",
        featured(network(1, cortical_areas=8, thresholds=10, leak_coefficients=0.5), {8: AreaFeatures(floor)}),
        plan={2: stimulate({0: 8}), 3: stimulate({0: 3})},
        fired=[[], [], []],
        states={1: {"features.leak_coefficients": [0.25], "features.homeostat_leaks": [0.25]}},
    )


def _areas() -> Iterator[Case]:
    def driven(*kinds: Modulator, **columns: Any) -> Network:
        base = network(2, cortical_areas=[8, 9], **columns)
        return featured(base, {9: AreaFeatures(modulators=tuple(range(len(kinds))))}, modulators=kinds)

    yield Case(
        "modulators: a threshold is scaled in the burst after its driver fired, and in that one alone",
        driven(modulator(THRESHOLD, -50), thresholds=[1, 4]),
        plan={1: stimulate({1: 2}, 0), 2: stimulate({1: 1}), 3: stimulate({1: 3})},
        fired=[[0], {1: 3}, []],
        states={1: {"features.thresholds": [1, 2], "features.signals": [-0.5]}, 2: {"features.thresholds": [1, 4]}},
    )
    yield Case(
        "modulators: factors of a kind are multiplied",
        driven(modulator(THRESHOLD, 100), modulator(THRESHOLD, 50), thresholds=[1, 2]),
        plan={1: stimulate({}, 0), 2: stimulate({1: 5})},
        fired=[[0], []],
        states={1: {"features.thresholds": [1, 6]}},
    )
    twice = network(2, cortical_areas=[8, 9], thresholds=[1, 8])
    yield Case(
        "modulators: an id listed twice counts twice",
        featured(twice, {9: AreaFeatures(modulators=(0, 0))}, modulators=(modulator(THRESHOLD, -50),)),
        plan={1: stimulate({}, 0), 2: stimulate({1: 2})},
        fired=[[0], [1]],
    )
    yield Case(
        "modulators: at -100 % the threshold is 0, and a sum of 0 reaches it",
        driven(modulator(THRESHOLD, -100), thresholds=[1, 4]),
        plan={1: stimulate({1: 0}, 0), 2: stimulate({1: 0}), 3: stimulate({1: 0})},
        fired=[[0], {1: 0}, []],
    )
    columns = {"thresholds": -2, "leak_coefficients": 10, "excitabilities": 5, "mp_charge_accumulation": False}
    three = modulator(THRESHOLD, 10), modulator(LEAK, 10), modulator(PROBABILITY, 10), modulator(GAIN, 10)
    yield Case(
        "modulators: parameters are written after the first burst even where no driver fired, by kind",
        featured(
            network(3, cortical_areas=[8, 9, 10], **columns),
            {9: AreaFeatures(modulators=(0, 1, 2)), 10: AreaFeatures(modulators=(3,))},
            modulators=three,
        ),
        plan={b: stimulate({1: -1, 2: -1}) for b in (1, 2)},
        fired=[[1, 2], [2]],
        states={
            0: {"features.thresholds": [-2, -2, -2], "features.excitabilities": [5, 5, 5]},
            1: {
                "features.thresholds": [-2, 0, -2],
                "features.leak_coefficients": [10, 1, 10],
                "features.excitabilities": [5, 1, 5],
            },
        },
    )
    yield Case(
        "modulators: threshold limits are not scaled",
        driven(modulator(THRESHOLD, 100), thresholds=[1, 4], threshold_limits=5),
        plan={1: stimulate({}, 0), 2: stimulate({1: 9})},
        fired=[[0], []],
    )
    yield Case(
        "modulators: a probability of 0 keeps a neuron from firing",
        driven(modulator(PROBABILITY, -100)),
        plan={1: stimulate({}, 0), 2: stimulate({1: 1}), 3: stimulate({1: 1})},
        fired=[[0], [], {1: 2}],
    )
    steady = replace(QUICK, gain=0.2)
    leaking = network(2, cortical_areas=[8, 9], thresholds=[1, 8], leak_coefficients=[0, 0.5])
    yield Case(
        "modulators: a leak under a homeostat is scaled from g, and the homeostat goes on from the unscaled g",
        featured(leaking, {9: AreaFeatures(steady, (0,))}, modulators=(modulator(LEAK, 100),)),
        plan={1: stimulate({}, 0), 2: stimulate({1: 5}), 3: stimulate({1: 5}), 4: stimulate({1: 4})},
        fired=[[0], [], [], [1]],
        states={1: {"features.leak_coefficients": {1: np.float32(0.4) * 2}, "features.homeostat_leaks": {1: 0.4}}},
    )


def _signals() -> Iterator[Case]:
    graded = (modulator(THRESHOLD, 100, full=4),)
    area = {9: AreaFeatures(modulators=(0,))}
    yield Case(
        "signals: a graded one follows the potential, and is 1 beyond the full scale; forced firings carry 100",
        featured(network(2, cortical_areas=[8, 9], thresholds=[1, 8]), area, modulators=graded),
        plan={1: stimulate({0: 2}), 2: stimulate({1: 12}, 0), 3: stimulate({1: 16})},
        fired=[{0: 2}, {0: 100, 1: 12}, {1: 16}],
        states={1: {"features.signals": [0.5]}, 2: {"features.signals": [1]}, 3: {"features.signals": [0]}},
    )
    yield Case(
        "signals: the first listed firing of a driver area decides",
        featured(network(3, cortical_areas=[8, 8, 9], thresholds=[1, 1, 8]), area, modulators=graded),
        plan={1: stimulate({0: 1, 1: 4}), 2: stimulate({2: 10})},
        fired=[[0, 1], {2: 10}],
    )


def _rules() -> Iterator[Case]:
    def chain(rule: RuleFeatures, *kinds: Modulator, thresholds: float = 99, **values: Any) -> Network:
        """Driver 0; source 1 with a synapse of the rule onto 2, and one of no rule onto 3."""
        both = [synapse(1, 2, rule=1, **values), synapse(1, 3, **values)]
        base = network(4, both, cortical_areas=[8, 9, 10, 10], thresholds=[1, 1, thresholds, thresholds])
        return featured(base, rules=(rule,), modulators=kinds)

    gained, gated = RuleFeatures(gains=(0,)), RuleFeatures(gates=(0,))
    yield Case(
        "transmission: a gain acts on synapses of its rule, on what fires in the burst after its driver",
        chain(gained, modulator(GAIN, 100), thresholds=5, psp=2),
        plan={1: stimulate({}, 0, 1), 2: stimulate({}, 1)},
        fired=[[0, 1], [1], {2: 6}],
        states={2: {"membrane_potentials": {2: 2, 3: 2}}, 3: {"membrane_potentials": {2: 0, 3: 4}}},
    )
    yield Case(
        "transmission: the factor is that of the burst in which the source fired, whatever the delay",
        chain(gained, modulator(GAIN, 100), thresholds=4, psp=2, delay=3),
        plan={1: stimulate({}, 0), 2: stimulate({}, 1)},
        fired=[[0], [1], [], [], {2: 4}],
    )
    closed = chain(gated, modulator(GATE, 100), psp=2)
    leaking = replace(
        closed.neurons,
        membrane_potentials=np.array([0, 0, 4, 4], np.float32),
        leak_coefficients=np.full(4, 0.5, np.float32),
    )
    yield Case(
        "transmission: behind a closed gate the target is still a candidate; the first burst finds it closed",
        closed.replace(neurons=leaking),
        plan={1: stimulate({}, 0, 1), 2: stimulate({}, 1)},
        fired=[[0, 1], [1], []],
        states={2: {"membrane_potentials": {2: 2, 3: 3}}, 3: {"membrane_potentials": {2: 2, 3: 2.5}}},
    )
    yield Case(
        "transmission: a gate is closed in the first burst after a load",
        chain(gated, modulator(GATE, 100), thresholds=2, psp=2),
        plan={1: stimulate({}, 1)},
        fired=[[1], [3]],
    )
    strongest = np.float32(10) * (np.float32(0.5) * np.float32(0.75))
    yield Case(
        "transmission: of several gates the strongest counts, and gains multiply it",
        chain(
            RuleFeatures((0,), (1, 2)),
            modulator(GAIN, -50),
            modulator(GATE, 50),
            modulator(GATE, 75),
            psp=10,
            thresholds=5,
        ),
        plan={1: stimulate({}, 0), 2: stimulate({}, 1)},
        fired=[[0], [1], [3]],
        states={3: {"membrane_potentials": {2: strongest}}},
    )
    yield Case(
        "transmission: an open gate of negative strength stays closed",
        chain(gated, modulator(GATE, -50), psp=10, type=1, thresholds=3),
        plan={1: stimulate({}, 0), 2: stimulate({}, 1)},
        fired=[[0], [1], []],
        states={3: {"membrane_potentials": {2: 0, 3: 0}}},
    )
    fan = [synapse(1, target, rule=1, weight=5) for target in (2, 3, 4)]
    factor = np.float32(1) + np.float32(30) / np.float32(100)
    last, first = np.float32(5) / np.float32(3) * factor, np.float32(5) * factor / np.float32(3)
    assert last < first
    divided = network(5, fan, cortical_areas=[8, 9, 10, 10, 10], thresholds=first, areas=(flags(9, uniform=False),))
    yield Case(
        "transmission: the factor comes last, after the division",
        featured(divided, rules=(gained,), modulators=(modulator(GAIN, 30),)),
        plan={1: stimulate({}, 0), 2: stimulate({}, 1)},
        fired=[[0], [1], []],
        states={3: {"membrane_potentials": {2: last}}},
    )
    inhibiting = [synapse(1, 2, rule=1, psp=2, type=1)]
    falling = network(3, inhibiting, cortical_areas=[8, 9, 10], thresholds=99, mp_charge_accumulation=False)
    yield Case(
        "transmission: inhibition is scaled too",
        featured(falling, rules=(gained,), modulators=(modulator(GAIN, 100),)),
        plan={1: stimulate({}, 0), 2: stimulate({}, 1)},
        fired=[[0], [1], []],
        states={3: {"membrane_potentials": {2: -4}}},
    )


def _range() -> Iterator[Case]:
    def bytes_of(count: int, **columns: Any) -> Network:
        return featured(network(count, **columns), clamp_potentials=True)

    yield Case(
        "8-bit range: potentials and thresholds end at 255, and a limit of 300 is none",
        bytes_of(3, thresholds=[260, -3, 260], threshold_limits=300),
        plan={1: stimulate({0: 200, 1: 0, 2: 255}), 2: stimulate({0: 100})},
        fired=[{1: 0, 2: 255}, {0: 255}],
        states={0: {"features.thresholds": [255, 0, 255]}, 1: {"membrane_potentials": [200, 0, 0]}},
    )
    yield Case(
        "8-bit range: a negative sum ends at 0 before the test",
        bytes_of(1, thresholds=0, mp_charge_accumulation=False),
        plan={1: stimulate({0: -5})},
        fired=[{0: 0}],
    )
    yield Case(
        "8-bit range: after the leak a potential is at least 0, and fractions stay",
        bytes_of(2, thresholds=9.25, leak_coefficients=[10, 0.25]),
        plan={1: stimulate({0: 1, 1: 3}), 2: stimulate({0: 9, 1: 7})},
        fired=[[], {1: 9.25}],
        states={1: {"membrane_potentials": [0, 2.25]}},
    )
    scaled = network(2, cortical_areas=[8, 9], thresholds=[1, 200])
    yield Case(
        "8-bit range: a modulated threshold is within it",
        featured(
            scaled, {9: AreaFeatures(modulators=(0,))}, modulators=(modulator(THRESHOLD, 100),), clamp_potentials=True
        ),
        plan={1: stimulate({1: 199}, 0), 2: stimulate({1: 199})},
        fired=[[0], {1: 255}],
        states={1: {"features.thresholds": [1, 255]}},
    )
