"""Refractory countdowns of invalid neurons. They never tick: engines run with 0, and states show the network's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Countdowns = npt.NDArray[np.uint16]


def running_countdowns(countdowns: Countdowns, valid: npt.NDArray[np.bool_]) -> Countdowns:
    """``countdowns`` (N,) for an engine: 0 for neurons that are not ``valid``; a copy."""
    return np.where(valid, countdowns, np.uint16(0))


def shown_countdowns(countdowns: Countdowns, own: Countdowns, valid: npt.NDArray[np.bool_]) -> Countdowns:
    """An engine's ``countdowns`` (N,) for its state: invalid neurons get ``own``, the network's; a copy."""
    return np.where(valid, countdowns, own)
