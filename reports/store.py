"""Records as JSON text, and runs on disk: a folder with the record, the report and the attachments."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from burstproof.errors import InputError
from burstproof.network.files.atomic import make_folder, write_atomically
from reports import html
from reports.judge.history import History, history_of
from reports.judge.thinning import thin
from reports.judge.verdict import exit_code, run_verdict
from reports.values import serialise
from reports.values.record import (
    BASELINE_NAME,
    READABLE_VERSIONS,
    RECORD_NAME,
    REPORT_NAME,
    SCHEMA_VERSION,
    THOROUGH,
    RunRecord,
    attach,
)
from reports.values.seal import digests_of

LARGEST_RECORD_BYTES = 256 << 20
"""Largest text that is taken for a record; those of whole runs have a few million bytes."""


def dumps(record: RunRecord) -> str:
    """Write a record as sealed JSON text; its ``summary`` (verdict, exit code) is for programs that read no further."""
    summary = {"verdict": run_verdict(record).value, "exit_code": int(exit_code(record))}
    document = {"summary": summary, **serialise.encode(replace(record, schema_version=SCHEMA_VERSION))}
    document["digests"] = digests_of(document)
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def loads(text: str, where: str = "record") -> RunRecord:
    """Read a record from JSON text.

    Raises
    ------
    InputError
        Naming the field that does not fit, the schema version that this version cannot read, or the part of a sealed
        record that was changed after it was written.
    """
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"not a record: {error}", where=where) from error
    if not isinstance(document, dict):
        raise InputError("a record is a JSON object", where=where, got=type(document).__name__)
    if document.get("schema_version") not in READABLE_VERSIONS:
        raise InputError(
            "a record of another schema version",
            where=where,
            got=document.get("schema_version"),
            allowed=" or ".join(map(str, READABLE_VERSIONS)),
            cure="Read it with the version of the checkout that wrote it.",
        )
    record = serialise.decode(RunRecord, {key: document[key] for key in document if key != "summary"}, where)
    if record.schema_version == 1:
        return replace(_unsealed(record, where), plan=THOROUGH)
    _check_seal(document, record.digests, where)
    return record


def _unsealed(record: RunRecord, where: str) -> RunRecord:
    """``record``, of version 1, if it has nothing that only a sealed one has: else it was sealed before."""
    if record.invocations or record.judged or record.thinned_from or record.digests:
        raise InputError(
            "a record of version 1 with fields of version 2: it was changed after it was written", where=where
        )
    return record


def _check_seal(document: Mapping[str, object], digests: Mapping[str, str], where: str) -> None:
    found = digests_of(document)
    changed = [part for part in found if digests.get(part) != found[part]]
    if changed or set(digests) != set(found):
        raise InputError(
            "the record was changed after it was written: its digests do not agree",
            where=where,
            got=changed or sorted(digests),
            cure="Take the record as the run wrote it; figures are corrected by running again.",
        )


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
    records, unreadable = load_records(folder)
    if not records:
        raise InputError("no readable run here", where=str(folder), got=[name for name, _ in unreadable] or None)
    return history_of(records, unreadable)


def load_records(folder: Path) -> tuple[list[RunRecord], list[tuple[str, str]]]:
    """Read every record below ``folder``; the second list names the folders that could not be read, and why.

    Raises
    ------
    InputError
        If the folder does not exist.
    """
    if not folder.is_dir():
        raise InputError("no such folder", where=str(folder), cure="Give the folder that holds run folders.")
    records, unreadable = [], []
    for path in sorted({file.parent for name in (RECORD_NAME, BASELINE_NAME) for file in folder.rglob(name)}):
        try:
            records.append(load_run(path))
        except InputError as error:
            unreadable.append((str(path.relative_to(folder)), str(error)))
    return records, unreadable


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the whole new one."""
    write_atomically(path, text.encode())
