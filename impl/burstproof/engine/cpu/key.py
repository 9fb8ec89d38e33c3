"""The key of the CPU kernels: everything that they are compiled for."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from burstproof.engine.features.key import NO_KEY, ExtrasKey
from burstproof.engine.rules import Features

CLAMPED, HISTORY = 0, 1
"""Indices of ``counters``, int64 (2,): the sticky clamp flag, and the number of past bursts with known firings."""


@dataclass(frozen=True)
class KernelKey:
    """Everything that the kernels are compiled for.

    Attributes
    ----------
    features : Features
    delayed : bool
        Some delay is above 1.
    static_clamps : bool
        Some static contribution was clamped.
    computed, plastic : bool
        There are computed rows, plastic mappings.
    round_mp_driven, plastic_all_window : bool
        Switches of the profile.
    restart_fired : bool
        Only the non-accumulating neurons of the last fired list restart (feagi-beta, large networks).
    shard : bool
        The neurons are those of a shard: they have local numbers and ids.
    extras : ExtrasKey
        Features of FEATURES.md.
    recalled : bool
        Contributions are recalled from past fired lists (``recall.py``).
    """

    features: Features
    delayed: bool
    static_clamps: bool
    computed: bool
    plastic: bool
    round_mp_driven: bool
    plastic_all_window: bool
    restart_fired: bool
    shard: bool
    extras: ExtrasKey = NO_KEY
    recalled: bool = False

    @property
    def learns_first(self) -> bool:
        """Whether plasticity precedes propagation: in feagi-beta, where propagation belongs to the next burst."""
        return self.plastic_all_window

    def general(self) -> KernelKey:
        """The key of the general kernels, which serve all networks under the same profile: nothing is compiled away."""
        return dataclasses.replace(
            self,
            features=self.features.general(),
            delayed=True,
            static_clamps=True,
            computed=True,
            plastic=True,
            extras=self.extras.general(),
        )
