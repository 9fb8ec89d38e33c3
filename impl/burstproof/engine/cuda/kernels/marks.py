"""Bits of a neuron's marks, which kernels and the state on the host share."""

from __future__ import annotations

CANDIDATE_MARK = 1
"""The neuron does not accumulate and was a candidate in the burst just done."""
FIRED_MARK = 2
"""The neuron restarts in the next burst because it fired (``Restart.FIRED``)."""
