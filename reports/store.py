"""Records as JSON text, and runs on disk: a folder with the record, the report and the attachments."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from burstproof.errors import InputError
from burstproof.network.files.atomic import make_folder, write_atomically
from reports import html
from reports.judge.history import History, history_of
from reports.judge.thinning import thin
from reports.judge.verdict import exit_code, run_verdict
from reports.values import serialise
from reports.values.record import BASELINE_NAME, RECORD_NAME, REPORT_NAME, SCHEMA_VERSION, RunRecord, attach

LARGEST_RECORD_BYTES = 256 << 20
"""Largest text that is taken for a record; those of whole runs have a few million bytes."""


def dumps(record: RunRecord) -> str:
    """Write a record as JSON text, with a ``summary`` (verdict, exit code) for programs that read no further."""
    summary = {"verdict": run_verdict(record).value, "exit_code": int(exit_code(record))}
    document = {"summary": summary, **serialise.encode(record)}
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def loads(text: str, where: str = "record") -> RunRecord:
    """Read a record from JSON text.

    Raises
    ------
    InputError
        Naming the field that does not fit, or the schema version that this version cannot read.
    """
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"not a record: {error}", where=where) from error
    if not isinstance(document, dict):
        raise InputError("a record is a JSON object", where=where, got=type(document).__name__)
    if document.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            "a record of another schema version",
            where=where,
            got=document.get("schema_version"),
            allowed=str(SCHEMA_VERSION),
            cure="Read it with the version of the checkout that wrote it.",
        )
    document.pop("summary", None)
    return serialise.decode(RunRecord, document, where)


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
    make_folder(folder)
    if attachments:
        record = replace(record, attachments=tuple(attach(folder, name) for name in attachments))
    write_text(folder / RECORD_NAME, dumps(record))
    write_text(folder / REPORT_NAME, html.render(record))
    return record


def write_baseline(folder: Path, record: RunRecord) -> Path:
    """Write the thinned ``record`` as ``folder``/record.json.gz in one atomic step; return its path.

    The same record gives the same bytes.
    """
    make_folder(folder)
    path = folder / BASELINE_NAME
    write_atomically(path, gzip.compress(dumps(thin(record)).encode(), mtime=0))
    return path


def load_run(path: Path) -> RunRecord:
    """Read the record of a run folder or a baseline, given as the folder or as the file.

    Raises
    ------
    InputError
        If there is no record, or it is damaged, no valid JSON, or does not fit the schema version.
    """
    files = [path / RECORD_NAME, path / BASELINE_NAME] if path.is_dir() else [path]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        cure = f"Give a folder with a {RECORD_NAME} or a {BASELINE_NAME}."
        raise InputError("no record of a run here", where=str(path), cure=cure)
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            data = stream.read(LARGEST_RECORD_BYTES + 1)
        if len(data) > LARGEST_RECORD_BYTES:
            raise InputError(
                "too large for a record", where=str(file), allowed=f"{LARGEST_RECORD_BYTES} bytes, unpacked"
            )
        text = data.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"not a record: {error}", where=str(file)) from error
    return loads(text, where=str(file))


def load_history(folder: Path) -> History:
    """Read every run folder below ``folder``.

    Raises
    ------
    InputError
        If the folder does not exist or holds no readable run.
    """
    if not folder.is_dir():
        raise InputError("no such folder", where=str(folder), cure="Give the folder that holds run folders.")
    records, unreadable = [], []
    for path in sorted({file.parent for name in (RECORD_NAME, BASELINE_NAME) for file in folder.rglob(name)}):
        try:
            records.append(load_run(path))
        except InputError as error:
            unreadable.append((str(path.relative_to(folder)), str(error)))
    if not records:
        raise InputError("no readable run here", where=str(folder), got=[name for name, _ in unreadable] or None)
    return history_of(records, unreadable)


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the whole new one."""
    write_atomically(path, text.encode())
