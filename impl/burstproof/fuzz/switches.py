"""What kinds of things a random network has; values are drawn afterwards (``draw.py``).

The switches decide which kernels an engine compiles. Cases of one family share them: many cases, few kernels.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from burstproof.network.schema import NEURONS

SIZES = {"one": (1, 1), "few": (2, 8), "some": (9, 60), "many": (61, 400), "batch": (10_000, 10_400)}
"""Least and largest number of neurons; only the last reaches the real engine's batch path."""

LATER_COLUMNS = tuple(column for column in NEURONS if column.since > 1 and not column.state)
"""Columns of neurons whose values are drawn from those that suit their dtype; each varies in half of the cases."""

_LATER_CHANCE = 0.5


def _odds(chances: dict[str, float]) -> Any:
    """A field that takes one of these values, by its chance."""
    return dataclasses.field(metadata={"odds": chances})


def _chance(chance: float) -> Any:
    """A field that is true with this chance."""
    return dataclasses.field(metadata={"chance": chance})


@dataclass(frozen=True)
class Switches:
    """One value or a yes or no for each kind of thing; the names say what they switch."""

    profile: str = _odds({"feagi-2.6": 0.85, "feagi-beta": 0.15})
    size: str = _odds({"one": 0.05, "few": 0.4, "some": 0.345, "many": 0.2, "batch": 0.005})
    topology: str = _odds({"uniform": 0.4, "hubs": 0.2, "chain": 0.15, "self": 0.15, "one target": 0.05, "none": 0.05})
    numbers: str = _odds(
        {"integers": 0.35, "eighths": 0.15, "fractions": 0.3, "large": 0.1, "wild": 0.04, "ties": 0.06}
    )
    inhibition: str = _odds({"none": 0.3, "some": 0.5, "most": 0.2})
    delays: str = _odds({"one": 0.55, "short": 0.35, "long": 0.1})
    flags: str = _odds({"none": 0.3, "some": 0.3, "all": 0.4})
    mp_charge_accumulation: str = _odds({"all": 0.2, "none": 0.15, "some": 0.65})
    start: str = _odds({"fresh": 0.25, "running": 0.55, "extreme": 0.2})
    consecutive_fire_limits: str = _odds({"none": 0.4, "some": 0.6})
    power: str = _odds({"none": 0.3, "one": 0.3, "other": 0.4})
    stimulus: str = _odds({"none": 0.3, "integers": 0.4, "fractions": 0.3})
    plasticity: str = _odds({"none": 0.65, "one": 0.15, "several": 0.2})
    sorted_rows: bool = _chance(0.4)
    negative: bool = _chance(0.35)
    mp_driven: bool = _chance(0.35)
    invalid_neurons: bool = _chance(0.35)
    invalid_synapses: bool = _chance(0.35)
    one_threshold: bool = _chance(0.15)
    threshold_limits: bool = _chance(0.4)
    leak_coefficients: bool = _chance(0.6)
    excitabilities: bool = _chance(0.45)
    refractory_periods: bool = _chance(0.6)
    snooze_periods: bool = _chance(0.5)
    forced: bool = _chance(0.5)
    emulate_batch_path: bool = _chance(0.1)
    later_columns: tuple[str, ...] = ()

    @property
    def beta(self) -> bool:
        """Whether weights and psps are bytes and delays 1."""
        return self.profile == "feagi-beta"


def draw_switches(rng: np.random.Generator) -> Switches:
    """Switches by their chances."""
    drawn: dict[str, Any] = {}
    for item in dataclasses.fields(Switches):
        if "odds" in item.metadata:
            odds = item.metadata["odds"]
            drawn[item.name] = str(rng.choice(list(odds), p=list(odds.values())))
        elif "chance" in item.metadata:
            drawn[item.name] = bool(rng.random() < item.metadata["chance"])
    if drawn["profile"] == "feagi-beta":
        drawn |= {"numbers": "integers", "delays": "one", "negative": False}
    if drawn["size"] == "batch":
        drawn |= {"stimulus": "integers", "delays": "one", "emulate_batch_path": True}
    if drawn["power"] == drawn["stimulus"] == "none":  # or nothing would ever fire
        drawn["forced"] = True
    later = tuple(column.name for column in LATER_COLUMNS if rng.random() < _LATER_CHANCE)
    return Switches(**drawn, later_columns=later)
