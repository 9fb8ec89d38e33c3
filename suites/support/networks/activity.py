"""Networks that have areas and no synapses, and recordings of what fired in them."""

from __future__ import annotations

import numpy as np

from burstproof.engine.state import Recording
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable


def network(areas: list[int], names: dict[int, str] | None = None, burst_count: int = 0) -> Network:
    """Neurons in the given areas, without synapses."""
    known = tuple(Area(index, f"id{index}", name) for index, name in (names or {}).items())
    table_of_neurons = NeuronTable.build(len(areas), cortical_areas=np.array(areas))
    return Network(table_of_neurons, SynapseTable.build([], []), known, burst_count)


def recording(first: int, fired: list[list[int]]) -> Recording:
    """A recording of what fired, burst by burst."""
    counts = np.array([len(ids) for ids in fired], np.int64)
    ids = np.array([i for burst in fired for i in burst], np.uint32)
    return Recording(np.arange(first, first + len(fired)), counts, counts, ids, np.zeros(len(ids), np.float32))
