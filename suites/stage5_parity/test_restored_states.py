"""A restored state on every backend: its sums under way meet what comes later, its weights are those that count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.parity import backends
from suites.support.parity.batch_checks import recordings_differ, second_state_differs

pytestmark = pytest.mark.requirement("BE-4", "BE-17", "ST-5")

NEURONS = 5


@pytest.mark.parametrize("backend", backends.FEATURED)
def test_a_negative_sum_that_an_arrival_cancels_leaves_a_candidate(backend: backends.Backend) -> None:
    """Without inhibition a network needs no marks beside its sums; with this state it does."""
    ids, options = np.arange(NEURONS), EngineOptions()
    delays = np.where(ids == 0, 2, 3)
    synapses = SynapseTable.build(ids, np.roll(ids, -1), delay_bursts=delays)
    network = Network(NeuronTable.build(NEURONS, thresholds=9000.0), synapses)
    reference = ReferenceEngine.create(network, options)
    reference.step()
    start = reference.state()
    plan = {2: Stimulus(forced=np.array([0], np.uint32))}
    reference.run(1, plan)
    arriving = reference.state().pending[1, 1]
    pending, candidates = start.pending.copy(), start.pending_candidate.copy()
    pending[2, 1], candidates[2, 1] = -arriving, True
    state = replace(start, pending=pending, pending_candidate=candidates)
    reference.restore(state)
    with backend.create(network, options) as engine:
        engine.restore(state)
        expected = reference.run(4, plan)
        assert expected.candidate_counts.tolist() == [0, 0, 1, 0]
        assert recordings_differ(expected, engine.run(4, plan)) == []
        assert engine.state().differences(reference.state()) == ()


@pytest.mark.parametrize("backend", backends.FEATURED)
def test_weights_are_those_of_the_last_state(backend: backends.Backend) -> None:
    """A weight that two states in a row change alike does not go back to the network's own."""
    assert second_state_differs(backend.create) == []
