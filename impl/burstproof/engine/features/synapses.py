"""Which synapses have a contribution that features change while the network runs (FEATURES sections 2.3 and 5)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.network.features import Features
from burstproof.network.model import Network


def transmitting_rules(features: Features) -> npt.NDArray[np.bool_]:
    """Whether a value of the synapse column ``rules`` stands for gains or gates, (R + 1,)."""
    return np.array([False, *(bool(rule.gains or rule.gates) for rule in features.rules)])


def transmitting(network: Network) -> npt.NDArray[np.bool_] | None:
    """Synapses whose contribution has a transmission factor, (S,), or ``None`` where there is none."""
    chosen = transmitting_rules(network.features)
    if not chosen.any():
        return None
    found: npt.NDArray[np.bool_] = chosen[network.synapses.rules]
    return found if bool((found & network.synapses.valid_mask).any()) else None


def degeneration(network: Network) -> npt.NDArray[np.float32] | None:
    """What each neuron's firing takes from the psp of its synapses, (N,), or ``None`` where nothing degenerates."""
    areas = network.features.areas
    losses = {index: area.degeneration for index, area in areas.items() if area.degeneration > 0}
    if not losses:
        return None
    own = network.neurons.cortical_areas
    found = np.zeros(network.neuron_count, np.float32)
    for index, loss in losses.items():
        found[own == index] = np.float32(loss)
    synapses = network.synapses
    return found if bool((found[synapses.source_neurons[synapses.valid_mask]] > 0).any()) else None


def associated(network: Network) -> npt.NDArray[np.bool_] | None:
    """Synapses that associative mappings change, (S,), or ``None``: those between the two areas of one learn from the
    areas' activity, and those of a source whose divisor counts the synapses that a mapping makes."""
    mappings = network.features.associative
    if not mappings:
        return None
    areas = network.neurons.cortical_areas
    sources, targets = areas[network.synapses.source_neurons], areas[network.synapses.target_neurons]
    dividing = (
        ~network.area_flag("psp_uniform_distribution") if network.flags_registered else np.zeros_like(areas, bool)
    )
    found = np.isin(sources, [one.source for one in mappings]) & dividing[network.synapses.source_neurons]
    for one in mappings:
        found |= (sources == one.source) & (targets == one.target)
    chosen: npt.NDArray[np.bool_] = found & network.synapses.valid_mask
    return chosen
