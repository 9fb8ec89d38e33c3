"""Figures that no change of this project's code can move: the card's own limits, and other people's code.

Measured in both runs of a comparison, they tell how much of a difference is the machine's.
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase

from reports.values.measurement import Measurement


class Kind(Enum):
    """Whose figure it is."""

    OURS = "burstproof"
    LIMIT = "limits of the machine"
    PEER = "other people's code"


_LIMITS = ("roofline.*", "link.*", "topology.*", "gpu.*", "peer.*", "prerequisite.*")
_PEERS = (
    ("*_of_pytorch", "", ("*",)),
    ("all_reduce.*", "", ("*",)),
    ("*", "scope", ("PyTorch*",)),
    ("*", "backend", ("blas", "naive", "cpu blas", "numpy", "pytorch*")),
    ("kernel.matmul_throughput", "backend", ("cublas",)),
    ("kernel.launch_overhead", "way", ("driver alone", "cupy*")),
    ("pool.request_time", "way", ("driver",)),
)
"""Name, condition and its values; without a condition the name alone decides."""


def kind_of(measurement: Measurement) -> Kind:
    """Tell whose figure a measurement is."""
    name, conditions = measurement.name, measurement.conditions
    if any(fnmatchcase(name, pattern) for pattern in _LIMITS):
        return Kind.LIMIT
    for pattern, condition, values in _PEERS:
        found = str(conditions.get(condition, ""))
        if fnmatchcase(name, pattern) and any(fnmatchcase(found, value) for value in values):
            return Kind.PEER
    return Kind.OURS
