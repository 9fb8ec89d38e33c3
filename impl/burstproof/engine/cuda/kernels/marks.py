"""Bits of a neuron's marks, shared by the kernels and the state on the host."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

CANDIDATE_MARK = 1
"""The neuron does not accumulate and was a candidate in the burst just done."""
FIRED_MARK = 2
"""The neuron restarts in the next burst because it fired (``Restart.FIRED``)."""
RESTARTING_MARK = 4
"""The neuron does not accumulate: it restarts as ``Restart`` says. This bit never changes."""


def marks_of(accumulates: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Marks (N,): ``RESTARTING_MARK`` for neurons that do not accumulate, all other bits 0."""
    return np.where(accumulates, np.uint8(0), np.uint8(RESTARTING_MARK))
