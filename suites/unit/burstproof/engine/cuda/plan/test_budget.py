"""What the plan of memory does without where the device has little."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from burstproof.engine.cuda.plan.budget import MemoryPlan, plan_memory
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.network.model import Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-9", "BE-12")

_NEURONS, _BUCKETS, _LISTS, _ROOM = 600, 4, 4, 1024


def planned(limit: int = 0) -> MemoryPlan:
    """The plan of a network with delays to 3 whose ring of slots is too large for the cache."""
    ids = np.arange(_NEURONS)
    synapses = SynapseTable.build(ids, np.roll(ids, 1), delay_bursts=ids % 3 + 1)
    with mock.patch("burstproof.engine.cuda.plan.sizing._RING_BYTES", 0):
        options = EngineOptions(cuda=CudaOptions(memory_limit_bytes=limit))
        return plan_memory(Network(NeuronTable.build(_NEURONS), synapses), options)


def kept(plan: MemoryPlan) -> tuple[int, int]:
    """Words of the calendar of ``plan``, and ids in the fired lists that it keeps; 1 stands for an unused buffer."""
    counts = {spec.name: spec.count for spec in plan.buffers}
    return counts["calendar_words"], counts["recalled_ids"]


def test_with_a_roomy_calendar_a_network_takes_half_of_the_memory_at_most() -> None:
    """A bucket has a word for every synapse; where that is too much, room for some, or no calendar at all."""
    free = planned()
    enough, less = planned(2 * free.total_bytes), planned(2 * free.total_bytes - 1)
    assert kept(free) == kept(enough) == (_BUCKETS * _NEURONS, 1)
    assert kept(less) == kept(planned(less.total_bytes)) == (_BUCKETS * _ROOM, 1)
    assert kept(planned(less.total_bytes - 1)) == (1, _LISTS * _NEURONS)
