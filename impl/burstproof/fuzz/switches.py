"""What kinds of things a random network has; values are drawn afterwards (``draw.py``).

The switches decide which kernels an engine compiles. Cases of one family share them: many cases, few kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

SIZES = {"one": (1, 1), "few": (2, 8), "some": (9, 60), "many": (61, 400), "batch": (10_000, 10_400)}
"""Least and largest number of neurons; only the last reaches the real engine's batch path."""

_CHOICES: Mapping[str, Mapping[str, float]] = {
    "profile": {"feagi-2.6": 0.85, "feagi-beta": 0.15},
    "size": {"one": 0.05, "few": 0.4, "some": 0.345, "many": 0.2, "batch": 0.005},
    "topology": {"uniform": 0.4, "hubs": 0.2, "chain": 0.15, "self": 0.15, "one target": 0.05, "none": 0.05},
    "numbers": {"integers": 0.35, "eighths": 0.15, "fractions": 0.3, "large": 0.1, "wild": 0.04, "ties": 0.06},
    "inhibition": {"none": 0.3, "some": 0.5, "most": 0.2},
    "delays": {"one": 0.55, "short": 0.35, "long": 0.1},
    "flags": {"none": 0.3, "some": 0.3, "all": 0.4},
    "accumulation": {"all": 0.2, "none": 0.15, "some": 0.65},
    "start": {"fresh": 0.25, "running": 0.55, "extreme": 0.2},
    "fire_limits": {"none": 0.4, "some": 0.6},
    "power": {"none": 0.3, "one": 0.3, "other": 0.4},
    "stimulus": {"none": 0.3, "integers": 0.4, "fractions": 0.3},
    "plasticity": {"none": 0.65, "one": 0.15, "several": 0.2},
}
_CHANCES: Mapping[str, float] = {
    "sorted_rows": 0.4,
    "negative": 0.35,
    "mp_driven": 0.35,
    "invalid_neurons": 0.35,
    "invalid_synapses": 0.35,
    "one_threshold": 0.15,
    "threshold_limits": 0.4,
    "leak": 0.6,
    "excitability": 0.45,
    "refractory": 0.6,
    "snooze": 0.5,
    "forced": 0.5,
    "emulate_batch_path": 0.1,
}


@dataclass(frozen=True)
class Switches:
    """One value of ``_CHOICES`` or a yes or no for each kind of thing; the names say what they switch."""

    profile: str
    size: str
    topology: str
    numbers: str
    inhibition: str
    delays: str
    flags: str
    accumulation: str
    start: str
    fire_limits: str
    power: str
    stimulus: str
    plasticity: str
    sorted_rows: bool
    negative: bool
    mp_driven: bool
    invalid_neurons: bool
    invalid_synapses: bool
    one_threshold: bool
    threshold_limits: bool
    leak: bool
    excitability: bool
    refractory: bool
    snooze: bool
    forced: bool
    emulate_batch_path: bool

    @property
    def beta(self) -> bool:
        """Whether weights and psps are bytes and delays 1."""
        return self.profile == "feagi-beta"


def draw_switches(rng: np.random.Generator) -> Switches:
    """Switches by their chances."""
    chosen = {name: str(rng.choice(list(odds), p=list(odds.values()))) for name, odds in _CHOICES.items()}
    happens = {name: bool(rng.random() < chance) for name, chance in _CHANCES.items()}
    if chosen["profile"] == "feagi-beta":
        chosen |= {"numbers": "integers", "delays": "one"}
        happens["negative"] = False
    if chosen["size"] == "batch":
        chosen |= {"stimulus": "integers", "delays": "one"}
        happens["emulate_batch_path"] = True
    if chosen["power"] == chosen["stimulus"] == "none":  # or nothing would ever fire
        happens["forced"] = True
    return Switches(**chosen, **happens)  # type: ignore[arg-type]
