"""A raster as PNG, drawn by matplotlib where it is installed."""

from __future__ import annotations

import importlib.util
import io

import numpy as np

from burstproof.analysis.raster import Raster
from burstproof.errors import EnvironmentInvalidError


def check_png_possible(where: str) -> None:
    """Refuse a PNG before the run if matplotlib is missing.

    Raises
    ------
    EnvironmentInvalidError
        matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise EnvironmentInvalidError(
            "a PNG needs matplotlib, which is not installed",
            where=where,
            cure="Name a file ending in .svg, or pip install matplotlib",
        )


def raster_png(raster: Raster, title: str) -> bytes:
    """The picture as the bytes of a PNG file; any cell with a firing is visible."""
    from matplotlib.figure import Figure

    heights = np.repeat([b.row_height for b in raster.bands], [b.rows for b in raster.bands])
    tops = np.concatenate([[0.0], np.cumsum(heights)])
    figure = Figure(figsize=(11, max(4.0, tops[-1] / 80 + 2)), layout="constrained")
    cells, bars = figure.subplots(2, 1, sharex=True, height_ratios=(max(tops[-1], 120.0), 80.0))
    edges = np.concatenate([[0], np.cumsum(raster.bursts_per_column)]) + raster.first_burst - 0.5
    shade = np.where(raster.filled > 0, 0.4 + 0.6 * np.sqrt(raster.filled), 0.0)
    cells.pcolormesh(edges, tops, shade, cmap="Blues", vmin=0.0, vmax=1.0)
    cells.invert_yaxis()
    named = [band for band in raster.bands if band.labelled]
    cells.set_yticks(
        [tops[band.first_row] + band.height / 2 for band in named],
        [f"{band.label} ({band.neurons})" for band in named],
        fontsize=7,
        parse_math=False,
    )
    cells.set_title(title, parse_math=False)
    bars.stairs(raster.fired / np.maximum(raster.bursts_per_column, 1), edges, fill=True)
    bars.set_ylabel("firings\nper burst")
    bars.set_xlabel("burst")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
