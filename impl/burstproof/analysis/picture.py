"""A raster as a file; its form follows from the extension."""

from __future__ import annotations

import os
from pathlib import Path

from burstproof.analysis.raster import Raster, RasterGrid
from burstproof.analysis.raster_png import check_png_possible, raster_png
from burstproof.analysis.raster_svg import raster_svg
from burstproof.analysis.recording import RunRecording
from burstproof.errors import InputError
from burstproof.network.files.atomic import write_atomically

EXTENSIONS = (".svg", ".png")


def raster(recording: RunRecording, path: str | os.PathLike[str], *, title: str = "") -> Path:
    """Draw which neurons fired when, a band per cortical area, and the firings per burst below.

    Parameters
    ----------
    recording : RunRecording
        With fired lists.
    path : path
        ``.svg``, which needs nothing, or ``.png``, which needs matplotlib. Replaced in one step.
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
        matplotlib is missing, or the file cannot be written.
    """
    target = Path(path)
    check_extension(target, "path")
    if not len(recording.bursts):
        raise InputError("a recording of no bursts cannot be drawn", where="recording", cure="Run some bursts")
    recording.spikes()
    grid = RasterGrid(recording.network, len(recording.bursts), int(recording.bursts[0]))
    grid.add(recording)
    write_raster(target, grid.raster(), title)
    return target


def check_extension(path: Path, where: str) -> None:
    """Refuse a picture that could not be drawn at the end of a run.

    Raises
    ------
    InputError
        No extension of a picture.
    EnvironmentInvalidError
        A PNG without matplotlib.
    """
    extension = path.suffix.lower()
    if extension not in EXTENSIONS:
        raise InputError("unknown ending", where=where, got=str(path), allowed=", ".join(EXTENSIONS))
    if extension == ".png":
        check_png_possible(where)


def write_raster(path: Path, drawn: Raster, title: str) -> None:
    """Write ``drawn`` as the extension of ``path`` says.

    Raises
    ------
    EnvironmentInvalidError
        The file system refused.
    """
    png = path.suffix.lower() == ".png"
    content = raster_png(drawn, title) if png else raster_svg(drawn, title).encode()
    write_atomically(path, content)
