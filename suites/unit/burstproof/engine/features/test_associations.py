"""Which rule governs a pair of areas where associative mappings are among them, and degrees that change."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.features.associations import Degrees, governed
from burstproof.errors import NetworkError
from burstproof.network.features import AssociativeMapping, Features
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping

pytestmark = pytest.mark.requirement("BE-4")

NONE = np.empty(0, np.int64)


def network_of(mappings: tuple[PlasticMapping, ...], plastic: int) -> Network:
    """Two synapses from area 7 to 8, one back; an association of 7 and 8 has the parameters of mapping ``plastic``."""
    neurons = NeuronTable.build(4, cortical_areas=[7, 7, 8, 8])
    features = Features(associative=(AssociativeMapping(7, 8, plastic),))
    return Network(neurons, SynapseTable.build([0, 1, 2], [2, 3, 0]), plastic_mappings=mappings, features=features)


def test_an_association_without_synapses_governs_those_of_earlier_rules() -> None:
    rules = governed(network_of((PlasticMapping(np.array([0])), PlasticMapping(NONE, window=3)), 1))
    assert [(position, rows.tolist()) for position, rows in rules.associative] == [(0, [0, 1])]
    assert [(mapping.window, len(mapping.synapses)) for mapping in rules.mappings] == [(3, 0)]
    assert rules.features.associative[0].plastic == 0


def test_a_later_plastic_rule_takes_the_pair_from_an_association() -> None:
    rules = governed(network_of((PlasticMapping(NONE), PlasticMapping(np.array([1]))), 0))
    assert rules.associative == ()
    assert [mapping.synapses.tolist() for mapping in rules.mappings] == [[], [0, 1]]


def test_other_pairs_keep_their_rules() -> None:
    rules = governed(network_of((PlasticMapping(np.array([2])), PlasticMapping(NONE)), 1))
    assert [mapping.synapses.tolist() for mapping in rules.mappings] == [[2], []]


def test_divisors_count_synapses_that_appear_and_go() -> None:
    degrees = Degrees(network_of((PlasticMapping(NONE),), 0))
    ends = np.array([0, 0, 3]), np.array([2, 3, 3])
    degrees.change(*ends, 1)
    assert degrees.outgoing([0, 1, 3]).tolist() == [3.0, 1.0, 1.0]
    degrees.change(*ends, -1)
    assert degrees.outgoing([0, 1, 3]).tolist() == [1.0, 1.0, 1.0]


def test_more_synapses_onto_a_neuron_than_its_sums_hold_are_refused() -> None:
    degrees = Degrees(network_of((PlasticMapping(NONE),), 0))
    sources = np.arange(1 << 16)
    degrees.change(sources, np.full(1 << 16, 3), 1)
    with pytest.raises(NetworkError, match="neuron 3"):
        degrees.change(np.array([0]), np.array([3]), 1)
