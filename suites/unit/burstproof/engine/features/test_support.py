"""Refusals by name, and constants derived from a genome's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.features.support import EVERYTHING, NOTHING, ONE_BURST, Section, refuse_features, sections_of
from burstproof.engine.features.tables import decay_of
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.layout import build_layout
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_BETA
from burstproof.errors import NetworkError
from burstproof.network.features import AreaFeatures, Features, Homeostat, MemoryArea
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping

pytestmark = pytest.mark.requirement("BE-4")

HOMEOSTATIC = Features(areas={7: AreaFeatures(homeostat=Homeostat())})
REMEMBERING = Features(areas={7: AreaFeatures(memory=MemoryArea((7,)), degeneration=0.5)})


def network_of(features: Features, *mappings: PlasticMapping) -> Network:
    neurons = NeuronTable.build(1, cortical_areas=7)
    return Network(neurons, SynapseTable.build([0], [0]), plastic_mappings=mappings, features=features)


def test_an_engine_refuses_features_that_it_does_not_name() -> None:
    network, options = network_of(HOMEOSTATIC), EngineOptions()
    with pytest.raises(NetworkError, match="homeostatic leak"):
        build_layout(network, options, plan_fixed_point(network, options))


def test_only_what_is_missing_is_refused() -> None:
    with pytest.raises(NetworkError) as error:
        refuse_features(network_of(REMEMBERING), EngineOptions(), ONE_BURST)
    assert "(got 'memory areas';" in str(error.value)
    refuse_features(network_of(REMEMBERING), EngineOptions(), EVERYTHING)


def test_features_belong_to_one_profile() -> None:
    with pytest.raises(NetworkError, match="feagi-beta"):
        refuse_features(network_of(HOMEOSTATIC), EngineOptions(profile=FEAGI_BETA), EVERYTHING)


@pytest.mark.parametrize(
    "changed",
    [{"rewarded": True}, {"eta": 0.5}, {"max_weight": 3.0}, {"frozen": True}, {"learning_rates": (0,)}],
    ids=lambda changed: next(iter(changed)),
)
def test_parameters_of_plasticity_are_features(changed: dict[str, object]) -> None:
    mapping = PlasticMapping(np.array([0]), **changed)  # type: ignore[arg-type]
    assert sections_of(network_of(Features(), mapping)) == [Section.PLASTICITY]
    with pytest.raises(NetworkError, match=Section.PLASTICITY.value):
        refuse_features(network_of(Features(), mapping), EngineOptions(), NOTHING)


@pytest.mark.parametrize(("bursts", "expected"), [(1, 0.36787945), (2.5, 0.67032003), (50, 0.9801987), (1e-40, 0.0)])
def test_decay_is_the_nearest_float32(bursts: float, expected: float) -> None:
    assert decay_of(bursts) == np.float32(expected)
