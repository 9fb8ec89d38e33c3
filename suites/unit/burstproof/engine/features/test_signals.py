"""Signals, factors and parameters in force on the host are those of the reference (FEATURES sections 1 and 2)."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.features.signals import factors_of, levels_in_force, signals_of
from burstproof.engine.features.support import ONE_BURST
from burstproof.engine.features.tables import feature_tables
from burstproof.engine.reference_features import Homeostats, Modulators
from burstproof.engine.reference_plasticity import factor_of
from burstproof.fuzz.draw import draw_case
from burstproof.network.model import Network

pytestmark = pytest.mark.requirement("BE-4")

SEEDS = [seed for seed in range(60) if draw_case(seed, modelled=ONE_BURST).network.features.modulators]


def drawn(seed: int) -> Network:
    return draw_case(seed, modelled=ONE_BURST).network


def test_there_are_enough_networks_with_modulators() -> None:
    assert len(SEEDS) > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fired_list_makes_the_signals_and_factors_of_the_reference(seed: int) -> None:
    network, rng = drawn(seed), np.random.default_rng(seed)
    tables, reference = feature_tables(network), Modulators(network.features, network.neurons)
    for share in (0.0, 0.1, 0.9):
        ids = np.flatnonzero(rng.random(network.neuron_count) < share)
        potentials = rng.choice(np.array([0.5, 2, 100, -3], np.float32), len(ids))
        reference.measure(potentials, network.neurons.cortical_areas[ids])
        signals = signals_of(tables, ids, potentials)
        assert np.array_equal(signals, reference.signals)
        factors = factors_of(tables.modulators, signals)
        assert np.array_equal(factors.transmission, reference.transmission())
        taught = [factor_of(pair, reference) for pair in network.plastic_pairs]
        assert np.array_equal(factors.learning, np.array(taught, np.float32))


@pytest.mark.parametrize("seed", SEEDS)
def test_parameters_in_force_are_those_of_the_reference(seed: int) -> None:
    network, rng = drawn(seed), np.random.default_rng(seed)
    neurons, tables = network.neurons, feature_tables(network)
    homeostats, modulators = Homeostats(network.features, neurons), Modulators(network.features, neurons)
    homeostats.leaks = np.where(homeostats.leaks > 0, rng.random(len(neurons)), 0).astype(np.float32)
    modulators.signals = rng.choice(np.array([-1, -0.5, 0, 0.3], np.float32), len(modulators.signals))
    with np.errstate(over="ignore"):
        wanted = modulators.after(neurons, homeostats)
    factors = factors_of(tables.modulators, modulators.signals)
    none = np.zeros(len(tables.areas.homeostatic), np.bool_)
    got = levels_in_force(neurons, tables, homeostats.leaks, none, factors, clamps=False)
    for name, column in zip(("thresholds", "leak_coefficients", "excitabilities"), got, strict=True):
        assert np.array_equal(column, getattr(wanted, name), equal_nan=True)
    before = levels_in_force(neurons, tables, homeostats.leaks, none, None, clamps=False)
    assert np.array_equal(before[0], neurons.thresholds)
