"""A raster as a file."""

from __future__ import annotations

import os
from pathlib import Path

from burstproof.analysis.raster import RasterGrid
from burstproof.analysis.raster_svg import raster_svg
from burstproof.analysis.recording import RunRecording
from burstproof.errors import InputError
from burstproof.network.files.atomic import write_atomically


def raster(recording: RunRecording, path: str | os.PathLike[str], *, title: str = "") -> Path:
    """Draw which neurons fired when, a band per cortical area, and the firings per burst below.

    Parameters
    ----------
    recording : RunRecording
        With fired lists.
    path : path
        ``.svg``. Replaced in one step.
    title : str, optional

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        Another extension, no bursts, or a recording without fired lists.
    EnvironmentInvalidError
        The file cannot be written.
    """
    target = Path(path)
    check_extension(target, "path")
    if not len(recording.bursts):
        cure = "Run some bursts with record='fired', the default"
        raise InputError("a recording of no bursts cannot be drawn", where="recording", cure=cure)
    recording.spikes()
    grid = RasterGrid(recording.network, len(recording.bursts), int(recording.bursts[0]))
    grid.add(recording)
    write_atomically(target, raster_svg(grid.raster(), title).encode())
    return target


def check_extension(path: Path, where: str) -> None:
    """Refuse a picture that could not be drawn at the end of a run.

    Raises
    ------
    InputError
        Another extension than that of an SVG.
    """
    if path.suffix.lower() != ".svg":
        raise InputError("unknown extension", where=where, got=str(path), allowed=".svg")
