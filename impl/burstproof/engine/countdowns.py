"""Refractory countdowns of invalid neurons: they never tick, so engines run without them and show the network's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Countdowns = npt.NDArray[np.uint16]


def running_countdowns(countdowns: Countdowns, valid: npt.NDArray[np.bool_]) -> Countdowns:
    """``countdowns`` (N,) as an engine runs them: 0 where a neuron is not ``valid``; a copy."""
    return np.where(valid, countdowns, np.uint16(0))


def shown_countdowns(countdowns: Countdowns, own: Countdowns, valid: npt.NDArray[np.bool_]) -> Countdowns:
    """An engine's ``countdowns`` (N,) as the state shows them: invalid neurons have the network's ``own``; a copy."""
    return np.where(valid, countdowns, own)
