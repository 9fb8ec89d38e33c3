"""Synapses of a network along which the host sends in place of a device, on which nothing learns then."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.synapses import degeneration, transmitting
from burstproof.network.model import Network

MOST_ROWS = 4096
"""Synapses that the host sends along at most."""

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def can_be_sent(network: Network, rows: Ids) -> bool:
    """Whether ``rows`` are few, and contribute weight times psp to the burst after a firing."""
    synapses, sources = network.synapses, network.synapses.source_neurons[rows]
    if not len(rows):
        return True
    if len(rows) > MOST_ROWS or (synapses.delay_bursts[rows] != 1).any() or not network.neurons.valid_mask.all():
        return False
    if network.flags_registered:
        uniform, mp_driven = (
            network.area_flag(name)[sources] for name in ("psp_uniform_distribution", "mp_driven_psp")
        )
        if mp_driven.any() or not uniform.all():
            return False
    losses, factors = degeneration(network), transmitting(network)
    return (losses is None or not losses[sources].any()) and (factors is None or not factors[rows].any())


class SentRows:
    """Rows (K,) of a network's synapse table, found by source."""

    def __init__(self, network: Network, rows: Ids) -> None:
        synapses = network.synapses
        self._targets = synapses.target_neurons[rows].astype(np.int64)
        self._psps = synapses.postsynaptic_potentials[rows]
        self._signs = np.where(synapses.types[rows] == 0, 1, -1)
        self._places: dict[int, list[int]] = {}
        for place, source in enumerate(synapses.source_neurons[rows].tolist()):
            self._places.setdefault(source, []).append(place)

    def places(self, fired: list[int]) -> list[int]:
        """Places of the rows out of what ``fired``."""
        found = self._places
        return [place for source in fired if source in found for place in found[source]]

    def contributions(self, places: list[int], weights: Floats) -> tuple[Ids, Floats, Ids]:
        """Targets, weight times psp, and signs of the rows at ``places``, of all rows' ``weights`` (K,)."""
        return self._targets[places], weights[places] * self._psps[places], self._signs[places]
