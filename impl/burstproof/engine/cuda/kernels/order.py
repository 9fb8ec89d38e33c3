"""The order of the per-neuron parameters, which kernels, buffers and launches share."""

from __future__ import annotations

PARAMETERS = (
    "thresholds",
    "threshold_limits",
    "decays",
    "refractory_periods",
    "consecutive_fire_limits",
    "snooze_periods",
    "excitabilities",
)
"""Per-neuron parameters; parameter p has bit p in ``Variant.uniform``."""


def uniform_bits(uniform: frozenset[str]) -> int:
    """``Variant.uniform`` for the parameters that are one value for all neurons."""
    return sum(1 << bit for bit, name in enumerate(PARAMETERS) if name in uniform)
