"""Firing statistics per cortical area: of a recording, or added up while a run goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from burstproof.analysis.recording import RunRecording, firings_in
from burstproof.analysis.text import printable, table
from burstproof.engine.state import Recording
from burstproof.errors import InputError
from burstproof.network.cortical_ids import readable_id
from burstproof.network.model import Network

TABLE_WIDTH = 80
"""Columns of a terminal that the table of areas fits."""


@dataclass(frozen=True)
class AreaActivity:
    """What one cortical area did in a run.

    Attributes
    ----------
    index, cortical_id, name
        The area.
    neurons : int
        Valid neurons in it.
    active : int
        Neurons that fired at least once.
    firings : int
        Firings of all its neurons in all bursts.
    rate : float
        Firings per neuron and burst, 0...1.
    peak : int
        Most firings in one burst.
    """

    index: int
    cortical_id: str
    name: str
    neurons: int
    active: int
    firings: int
    rate: float
    peak: int


@dataclass(frozen=True)
class Statistics:
    """What the areas of a network did in a run; ``print`` shows a table of those that fired.

    Attributes
    ----------
    bursts, firings : int
    areas : tuple of AreaActivity
        By area index; ``statistics["name"]`` is the one of that name or cortical id, else an ``InputError``.
    """

    bursts: int
    firings: int
    areas: tuple[AreaActivity, ...]

    def __getitem__(self, area: str) -> AreaActivity:
        found = [one for one in self.areas if area in (one.name, one.cortical_id) and area]
        if len(found) != 1:
            raise InputError(
                "several areas of this name" if found else "no area of this name that has neurons",
                where="statistics",
                got=area,
                allowed=", ".join(one.name or one.cortical_id for one in self.areas),
                cure="Take the cortical id of one of them" if found else None,
            )
        return found[0]

    def __str__(self) -> str:
        return activity_table(self.areas)


def statistics(recording: RunRecording) -> Statistics:
    """Neurons, firings, rate and peak of every area that has neurons.

    Raises
    ------
    InputError
        No bursts, as with ``record="none"``, or a recording without fired lists.
    """
    if not len(recording.bursts):
        cure = "Run some bursts with record='fired', the default"
        raise InputError("a recording of no bursts has no statistics", where="recording", cure=cure)
    recording.spikes()
    counter = ActivityCounter(recording.network)
    counter.add(recording)
    return Statistics(counter.bursts, counter.firings, counter.areas())


class ActivityCounter:
    """Adds up the firings of a network by neuron and by area.

    ``bursts`` are those counted, ``added`` the firings of neurons that the run added: memory neurons and their twins.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._areas, self._row_of_neuron = np.unique(network.neurons.cortical_areas, return_inverse=True)
        self._firings = np.zeros(network.neuron_count, np.int64)
        self._peaks = np.zeros(len(self._areas), np.int64)
        self.bursts = 0
        self.added = 0

    def add(self, recording: Recording) -> None:
        """Count a recording that holds fired lists."""
        self.bursts += len(recording.bursts)
        burst, ids = firings_in(recording, self._network)
        self.added += len(recording.fired_ids) - len(ids)
        self._firings += np.bincount(ids, minlength=len(self._firings))
        areas = len(self._areas)
        cells = burst * areas + self._row_of_neuron[ids]
        counts = np.bincount(cells, minlength=len(recording.bursts) * areas).reshape(-1, areas)
        self._peaks = np.maximum(self._peaks, counts.max(axis=0, initial=0))

    @property
    def firings(self) -> int:
        """Firings of all neurons in all bursts, added ones among them."""
        return int(self._firings.sum()) + self.added

    @property
    def rates(self) -> npt.NDArray[np.float64]:
        """Firings of each neuron per burst, (N,) float64, 0...1."""
        return self._firings / max(self.bursts, 1)

    def areas(self) -> tuple[AreaActivity, ...]:
        """One row per area that has neurons, by area index."""
        rows = len(self._areas)
        valid = self._network.neurons.valid_mask
        neurons = np.bincount(self._row_of_neuron[valid], minlength=rows)
        active = np.bincount(self._row_of_neuron[self._firings > 0], minlength=rows)
        firings = np.bincount(self._row_of_neuron, self._firings, rows)  # in float64, exact below 2^53
        known = {area.index: area for area in self._network.areas}
        found = []
        for row, index in enumerate(self._areas.tolist()):
            area = known.get(index)
            chances = int(neurons[row]) * self.bursts
            found.append(
                AreaActivity(
                    index=index,
                    cortical_id=area.cortical_id if area else "",
                    name=area.name if area else "",
                    neurons=int(neurons[row]),
                    active=int(active[row]),
                    firings=int(firings[row]),
                    rate=int(firings[row]) / chances if chances else 0.0,
                    peak=int(self._peaks[row]),
                )
            )
        return tuple(found)


def activity_table(areas: tuple[AreaActivity, ...], *, every_area: bool = False) -> str:
    """The areas that fired, or ``every_area``, as lines of text that fit a terminal of 80 columns."""
    shown = [area for area in areas if every_area or area.firings]
    header = ("area", "id", "neurons", "active", "firings", "rate", "peak")
    figures = [
        (
            printable(area.cortical_id, 12),
            str(area.neurons),
            str(area.active),
            str(area.firings),
            f"{100 * area.rate:.3f} %",
            str(area.peak),
        )
        for area in shown
    ]
    taken = sum(max(map(len, column)) + 2 for column in zip(header[1:], *figures, strict=True))
    labels = (area.name or readable_id(area.cortical_id) or str(area.index) for area in shown)
    names = (printable(label, max(8, TABLE_WIDTH - taken)) for label in labels)
    text = table(header, [(name, *rest) for name, rest in zip(names, figures, strict=True)], left=2)
    silent = len(areas) - len(shown)
    return f"{text}\n{silent} more area{'s' if silent != 1 else ''} did not fire" if silent else text
