"""A recording that knows its network, and what was watched besides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from burstproof.engine.state import Recording
from burstproof.network.model import Network


@dataclass(frozen=True, eq=False, repr=False)
class RunRecording(Recording):
    """What ``Session.run`` returns: the arrays of ``Recording`` for B bursts with K firings, and more.

    Attributes
    ----------
    network : Network
    watched_ids : uint32 (W,)
        The neurons whose potentials were sampled, in the order asked for.
    watched_potentials : float32 (B, W)
        Their membrane potentials after each burst: a neuron that fired in it stands at 0; what it had before the reset
        is in ``fired_potentials``. (0, 0) if nothing was watched.
    """

    network: Network
    watched_ids: npt.NDArray[np.uint32]
    watched_potentials: npt.NDArray[np.float32]

    def spikes(self, area: str | None = None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
        """One row per firing, of all neurons or of those of ``area``: burst numbers int64 and neuron ids uint32.

        Raises
        ------
        InputError
            The run did not record fired lists.
        NetworkError
            No such area.
        """
        bursts, ids = super().spikes()
        if area is None:
            return bursts, ids
        member = np.zeros(self.network.neuron_count, np.bool_)
        member[self.network.ids_of(area)] = True
        return bursts[member[ids]], ids[member[ids]]
