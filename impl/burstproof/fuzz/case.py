"""A case of the fuzzer: a network, what is done to it, and how the run is cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import StimulusPlan
from burstproof.network.model import Network


@dataclass(frozen=True, eq=False)
class FuzzCase:
    """What both engines are given.

    Attributes
    ----------
    network, plan, options
        ``plan`` by absolute burst number.
    runs : tuple of int
        Lengths of the runs that follow each other; one of 1 is a ``step``. States are compared after each.
    handover : int or None
        Number of the run before which each engine is made anew and goes on from the other's state.
    """

    network: Network
    plan: StimulusPlan
    options: EngineOptions
    runs: tuple[int, ...]
    handover: int | None = None

    @property
    def bursts(self) -> int:
        """Bursts of all runs."""
        return sum(self.runs)

    @property
    def numbers(self) -> range:
        """Numbers of all bursts."""
        first = self.network.burst_count + 1
        return range(first, first + self.bursts)

    def __str__(self) -> str:
        counted = [
            (self.network.neuron_count, "neuron"),
            (self.network.synapse_count, "synapse"),
            (self.bursts, "burst"),
            (len(self.network.plastic_mappings), "plastic mapping"),
            (sum(len(s.ids) for s in self.plan.values()), "stimulus amount"),
            (sum(len(np.unique(s.forced)) for s in self.plan.values()), "forced firing"),
        ]
        parts = [f"{count} {name}{'' if count == 1 else 's'}" for count, name in counted if count]
        return f"{', '.join(parts)}, {self.options.profile.name}"
