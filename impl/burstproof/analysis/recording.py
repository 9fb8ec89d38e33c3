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
        chosen = np.isin(ids, self.network.ids_of(area))
        return bursts[chosen], ids[chosen]


def firings_in(recording: Recording, network: Network) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """Row of the burst and neuron id of each firing of a neuron of ``network``.

    Left out are those that the run added: memory neurons and twins of these (FEATURES section 7).
    """
    rows = np.repeat(np.arange(len(recording.bursts)), recording.fired_counts)
    own = recording.fired_ids < network.neuron_count
    return (rows, recording.fired_ids) if own.all() else (rows[own], recording.fired_ids[own])
