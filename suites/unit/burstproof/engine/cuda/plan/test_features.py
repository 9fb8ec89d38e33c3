"""What features need on a device: bounds of sleep by class, and rows for bursts of each parity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.cuda.plan.block_size import FusedShape
from burstproof.engine.cuda.plan.features import CAN_TRAIN, CLASS_SHIFT, DRIVES, IN_TRAIN, FeaturePlan
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.plan.shard_variant import whole
from burstproof.engine.features.key import NO_KEY, ExtrasKey
from burstproof.engine.options import EngineOptions
from burstproof.network.features import AreaFeatures, Features, Modulator, ModulatorKind
from burstproof.network.model import Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-21")

SCALED, CERTAIN, NEGATIVE, PLAIN, DRIVER = 10, 11, 12, 13, 14
"""Areas: of excitabilities that are scaled, one of which is certain, one negative; not scaled; a driver."""


def plan_of(percent: float) -> FeaturePlan:
    """Two neurons in each area; the driver's firings scale the firing probability of three areas."""
    areas = np.repeat([SCALED, CERTAIN, NEGATIVE, PLAIN, DRIVER], 2)
    excitabilities = [0.2, 0.4, 0.2, 1.0, 0.2, -0.5, 0.3, 0.1, 1.0, 1.0]
    neurons = NeuronTable.build(10, excitabilities=excitabilities, cortical_areas=areas)
    modulator = Modulator("m", ModulatorKind.FIRING_PROBABILITY, DRIVER, percent)
    scaled = {area: AreaFeatures(modulators=(0,)) for area in (SCALED, CERTAIN, NEGATIVE)}
    return FeaturePlan.of(Network(neurons, SynapseTable.build([], []), features=Features((modulator,), scaled)), 10)


@pytest.mark.parametrize(
    ("key", "shape", "overlapped", "limit"),
    [
        (ExtrasKey(homeostats=True), FusedShape(512, 1), True, 32),
        (ExtrasKey(homeostats=True), FusedShape(512, 1), False, 40),
        (ExtrasKey(homeostats=True), FusedShape(256, 1, early=False), True, 40),
        (ExtrasKey(homeostats=True), FusedShape(512, 2), True, None),
        (ExtrasKey(modes=True), FusedShape(512, 1), True, None),
        (NO_KEY, FusedShape(512, 1), True, None),
    ],
)
def test_registers_have_a_limit_where_neurons_have_features(
    key: ExtrasKey, shape: FusedShape, overlapped: bool, limit: int | None
) -> None:
    variant = pack_network(Network(NeuronTable.build(2), SynapseTable.build([], [])), EngineOptions()).variant
    assert variant.fused is not None
    assert whole(replace(variant, extras=key, fused=shape, overlapped=overlapped)).registers == limit


def test_what_neurons_are_lies_in_one_word_of_class_and_bits() -> None:
    in_train = np.arange(10) == 3
    kinds = plan_of(50).kinds(in_train)
    assert (kinds >> CLASS_SHIFT).tolist() == [1, 1, 2, 2, 3, 3, 0, 0, 0, 0]
    assert np.flatnonzero(kinds & IN_TRAIN).tolist() == [3]
    assert np.flatnonzero(kinds & DRIVES).tolist() == [8, 9]
    assert not (kinds & CAN_TRAIN).any()


def test_a_shard_has_the_words_of_its_own_neurons() -> None:
    members = np.array([1, 4, 7, 9], np.uint32)
    whole, part = plan_of(50).kinds(np.zeros(10, np.bool_)), plan_of(50).taken(members)
    assert part.kinds(np.zeros(4, np.bool_)).tolist() == whole[members].tolist()


def bounds_of(plan: FeaturePlan, signal: float, *, since_load: bool = True) -> list[float]:
    """Bounds of the classes: none of their own, scaled, certain, negative."""
    found = dict(plan.factors(np.array([signal], np.float32), since_load))["sleep_bounds"]
    rows = found.reshape(2, -1)
    assert np.array_equal(*rows)
    return [float(bound) for bound in rows[0]]


@pytest.mark.parametrize(("signal", "expected"), [(0.0, 0.4), (-0.5, 0.2), (-2.0, 0.0), (0.5, 0.6), (9.0, np.inf)])
def test_a_bound_is_the_largest_excitability_in_force(signal: float, expected: float) -> None:
    """Scaled and within 0...1; from 0.999 on no draw decides, so nothing sleeps."""
    bounds = bounds_of(plan_of(50), signal)
    assert bounds[1] == pytest.approx(expected)


def test_no_neuron_sleeps_where_one_needs_no_draw_or_scaling_may_turn_the_order() -> None:
    bounds = bounds_of(plan_of(50), -0.5)
    assert bounds[2] == pytest.approx(0.5)
    assert bounds[3] == np.inf
    assert bounds[0] == np.inf


def test_before_the_first_burst_nothing_is_scaled() -> None:
    factors = dict(plan_of(50).factors(np.array([0.5], np.float32), since_load=False))
    assert np.isnan(factors["area_factors"]).all()
    assert factors["sleep_bounds"][1] == np.float32(0.4)
