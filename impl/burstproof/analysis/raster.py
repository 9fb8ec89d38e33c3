"""A raster of a run: which neurons fired when, added up in cells as fine as a picture can show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from burstproof.analysis.recording import firings_in
from burstproof.analysis.text import printable
from burstproof.engine.state import Recording
from burstproof.network.model import Network

MOST_COLUMNS = 600
"""Cells along time; longer runs put several bursts into one."""

BAND_ROWS_LEAST = 6
"""Rows of the smallest area, unless it has fewer neurons."""

ROWS_SHARED = 240
"""Rows that the areas share by the square root of their sizes, besides the least ones."""

ROW_HEIGHT = 2.0
"""Height of a row in a picture, in pixels."""

LABEL_HEIGHT = 12.0
"""Height that a band needs to carry its label, in pixels."""

MOST_LABELLED_BANDS = 80
"""With more bands than this the thin ones stay thin and carry no label."""


@dataclass(frozen=True)
class Band:
    """Rows ``first_row`` ... ``first_row + rows - 1`` of one cortical area of ``neurons`` neurons.

    ``row_height`` is the height of each row in a picture, in pixels.
    """

    label: str
    neurons: int
    first_row: int
    rows: int
    row_height: float

    @property
    def height(self) -> float:
        """Height of the band in pixels."""
        return self.rows * self.row_height

    @property
    def neurons_per_row(self) -> int:
        """Neurons in a row; some rows hold one less."""
        return -(-self.neurons // self.rows)

    @property
    def labelled(self) -> bool:
        """Whether the band is high enough for its label."""
        return self.height >= LABEL_HEIGHT


@dataclass(frozen=True, eq=False)
class Raster:
    """A finished raster of R rows and C columns.

    Attributes
    ----------
    first_burst, last_burst : int
    bands : tuple of Band
        From the first row on, by area index.
    filled : float64 (R, C)
        Firings in a cell as a fraction of what it could hold, 0...1.
    fired : int64 (C,)
        Firings of all neurons per column.
    bursts_per_column : int64 (C,)
    """

    first_burst: int
    last_burst: int
    bands: tuple[Band, ...]
    filled: npt.NDArray[np.float64]
    fired: npt.NDArray[np.int64]
    bursts_per_column: npt.NDArray[np.int64]


class RasterGrid:
    """Adds the recordings of a run of ``bursts`` bursts into cells; by default the network's first ones."""

    def __init__(self, network: Network, bursts: int, first: int | None = None) -> None:
        self._first = network.burst_count + 1 if first is None else first
        self._bursts = bursts
        self._network = network
        self._columns = min(bursts, MOST_COLUMNS)
        self._bands, self._row_of_neuron = _layout(network)
        self._rows = sum(band.rows for band in self._bands)
        self._counts = np.zeros(self._rows * self._columns, np.int64)

    def add(self, recording: Recording) -> None:
        """Count a recording that holds fired lists."""
        rows, ids = firings_in(recording, self._network)
        burst = recording.bursts[rows] - self._first
        cells = self._row_of_neuron[ids] * self._columns + burst * self._columns // self._bursts
        self._counts += np.bincount(cells, minlength=len(self._counts))

    def raster(self) -> Raster:
        """The raster of what was added."""
        counts = self._counts.reshape(self._rows, self._columns)
        columns = np.arange(self._bursts) * self._columns // self._bursts
        bursts = np.bincount(columns, minlength=self._columns)
        neurons = np.bincount(self._row_of_neuron, minlength=self._rows)
        return Raster(
            self._first,
            self._first + self._bursts - 1,
            self._bands,
            counts / (neurons[:, None] * bursts[None, :]),
            counts.sum(axis=0),
            bursts,
        )


def _layout(network: Network) -> tuple[tuple[Band, ...], npt.NDArray[np.int64]]:
    """The bands, and the row of each neuron."""
    neurons = network.neurons
    indexes, inverse, sizes = np.unique(neurons.cortical_areas, return_inverse=True, return_counts=True)
    share = np.sqrt(sizes) / max(float(np.sqrt(sizes).sum()), 1.0)
    rows = np.minimum(sizes, BAND_ROWS_LEAST + (ROWS_SHARED * share).astype(np.int64))
    first_rows = np.cumsum(rows) - rows
    order = np.argsort(inverse, kind="stable")
    rank = np.empty(network.neuron_count, np.int64)
    rank[order] = np.arange(network.neuron_count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    names = {area.index: area.name or area.cortical_id for area in network.areas}
    least = LABEL_HEIGHT if len(sizes) <= MOST_LABELLED_BANDS else 0.0
    bands = tuple(
        Band(
            label=printable(names.get(index, str(index)), 24),
            neurons=size,
            first_row=first,
            rows=count,
            row_height=max(ROW_HEIGHT, least / count),
        )
        for index, size, first, count in zip(
            indexes.tolist(), sizes.tolist(), first_rows.tolist(), rows.tolist(), strict=True
        )
    )
    return bands, first_rows[inverse] + rank * rows[inverse] // sizes[inverse]
