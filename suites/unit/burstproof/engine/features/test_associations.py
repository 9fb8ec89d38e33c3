"""Which rule governs a pair of areas where associative mappings are among them, and degrees that change."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.features.associations import Association, Degrees, governed
from burstproof.engine.fixed_point import MOST_NEW_SYNAPSES
from burstproof.errors import NetworkError
from burstproof.network.features import FIRST_MEMORY_ID, AssociativeMapping, Features
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


def association() -> Association:
    """One from area 7 to 8."""
    return Association(network_of((PlasticMapping(NONE),), 0), 0, NONE)


def test_divisors_count_synapses_that_appear_and_go() -> None:
    one = association()
    degrees = Degrees(network_of((PlasticMapping(NONE),), 0), [one])
    one.made.add_missing([0, 3], np.array([2, FIRST_MEMORY_ID]), np.float32(1), np.float32(1))
    assert [degrees.divisor(source) for source in (0, 1, 3, FIRST_MEMORY_ID)] == [3, 1, 2, 1]
    one.remove([FIRST_MEMORY_ID])
    assert [degrees.divisor(source) for source in (0, 1, 3)] == [2, 1, 1]


def test_more_synapses_onto_a_neuron_than_its_sums_hold_are_refused() -> None:
    """Counted only once more were made than one neuron has room for."""
    one = association()
    degrees, most = Degrees(network_of((PlasticMapping(NONE),), 0), [one]), MOST_NEW_SYNAPSES
    for target, sources in ((2, most), (3, most)):
        made = one.made.add_missing(range(sources), np.array([target]), np.float32(1), np.float32(1))
        degrees.grew(sum(made.values()))
    with pytest.raises(NetworkError, match="neuron 3"):
        degrees.grew(sum(one.made.add_missing([most], np.array([3]), np.float32(1), np.float32(1)).values()))
