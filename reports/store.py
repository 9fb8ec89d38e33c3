"""Runs on disk: a folder with the record, the report and the attachments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from burstproof.errors import InputError
from reports import html, serialise
from reports.record import RECORD_NAME, REPORT_NAME, RunRecord, attach


def write_run(folder: Path, record: RunRecord, attachments: Sequence[str] = ()) -> RunRecord:
    """Write ``record.json`` and ``report.html`` into ``folder``, each in one atomic step.

    Parameters
    ----------
    folder : Path
        The run folder; created if need be.
    record : RunRecord
        What is written. Its attachments are replaced where ``attachments`` is given.
    attachments : sequence of str
        Files already in the folder, relative to it (``junit.xml``, ``benchmark.json``), hashed into the record.

    Returns
    -------
    RunRecord
        As written, with attachments.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if attachments:
        record = replace(record, attachments=tuple(attach(folder, name) for name in attachments))
    serialise.write_atomic(folder / RECORD_NAME, serialise.dumps(record))
    serialise.write_atomic(folder / REPORT_NAME, html.render(record))
    return record


def load_run(folder: Path) -> RunRecord:
    """Read the record of a run folder (or of a ``record.json`` given directly).

    Raises
    ------
    InputError
        If there is no record, it is no valid JSON, or it does not fit the schema version.
    """
    path = folder / RECORD_NAME if folder.is_dir() else folder
    if not path.is_file():
        raise InputError("no record of a run here", where=str(folder), cure=f"Give a folder with a {RECORD_NAME}.")
    return serialise.loads(path.read_text(encoding="utf-8"), where=str(path))
