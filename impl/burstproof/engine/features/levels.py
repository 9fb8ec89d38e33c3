"""The precision ``feagi-int8``: potentials, thresholds and limits stay within 0...255 (FEATURES section 6)."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from burstproof.network.model import Network, NeuronTable
from burstproof.network.schema import NO_LIMIT

LEAST, MOST = np.float32(0), np.float32(255)


def clamped(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """``values`` within the range; a copy."""
    return np.clip(values, LEAST, MOST)


def clamped_levels(network: Network) -> NeuronTable:
    """The neurons of ``network`` with thresholds and limits as its precision keeps them; a limit of 255 is none."""
    neurons = network.neurons
    if not network.features.clamp_potentials:
        return neurons
    limits = np.where(neurons.threshold_limits >= MOST, NO_LIMIT, clamped(neurons.threshold_limits))
    return dataclasses.replace(
        neurons, thresholds=clamped(neurons.thresholds), threshold_limits=limits.astype(np.float32)
    )
