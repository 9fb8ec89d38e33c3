"""State that features add to a burst (FEATURES.md): canonical, equal on every backend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FeatureState:
    """What the next burst depends on beyond leaky integrate-and-fire; N neurons, S synapses, M modulators.

    Columns that no feature of the network changes hold what the network's tables hold.

    Attributes
    ----------
    thresholds, leak_coefficients, excitabilities : float32 (N,)
        In force in the next burst: base values, or what homeostats and modulators made of them.
    firing_rates : float32 (N,)
        The homeostat's average r; 0 outside homeostatic areas.
    homeostat_leaks : float32 (N,)
        The homeostat's leak g before modulation; 0 outside homeostatic areas.
    trains : bool (N,)
        Neurons whose spike train forces them to fire in the next burst.
    held_potentials : float32 (N,)
        Potential that these firings carry; 0 for others.
    signals : float32 (M,)
        Signals of the burst just done, which act in the next one; 0 before the first burst after a load.
    bursts_since_load : int
        0 or 1: whether a burst has ended since the network was loaded; until then factors are 1, reward and gate 0.
    postsynaptic_potentials : float32 (S,)
        psp after degeneration.
    """

    thresholds: Floats
    leak_coefficients: Floats
    excitabilities: Floats
    firing_rates: Floats
    homeostat_leaks: Floats
    trains: npt.NDArray[np.bool_]
    held_potentials: Floats
    signals: Floats
    bursts_since_load: int
    postsynaptic_potentials: Floats
