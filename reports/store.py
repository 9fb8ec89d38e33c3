"""Reads and writes records, as JSON text and on disk: a run is a folder with record, report and attachments."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from burstproof.errors import InputError
from burstproof.network.files.atomic import make_folder, write_atomically
from reports import html
from reports.judge.admit import reasons_against
from reports.judge.history import History, history_of
from reports.judge.targets import Target, load_targets
from reports.judge.thinning import thin
from reports.judge.verdict import summary_of
from reports.standing import has_performance, standing
from reports.values import serialise
from reports.values.machine import Machine, machine_in, machine_of
from reports.values.record import (
    BASELINE_NAME,
    READABLE_VERSIONS,
    RECORD_NAME,
    REPORT_NAME,
    SCHEMA_VERSION,
    TARGETS_NAME,
    THOROUGH,
    RunRecord,
    attach,
)
from reports.values.seal import digests_of

BASELINES = Path(__file__).with_name("baselines")

_CURE = f"Give a folder with a {RECORD_NAME} or a {BASELINE_NAME}."

LARGEST_RECORD_BYTES = 64 << 20
"""A longer text is refused; records of whole runs have a few million bytes."""

LARGEST_RATIO = 200
"""Highest compression ratio that is accepted; real records have 7 to 31."""

_ANY_RATIO_BYTES = 1 << 20
"""Up to this size the ratio does not matter."""

MOST_DIGITS = 308
"""A longer integer is refused; float64 holds those up to this length."""

DEEPEST_HARDWARE = 16
"""Deepest nesting of an inventory that is accepted."""


class RecordChangedError(InputError):
    """A record, or a file of evidence beside it, was changed after it was written."""


def dumps(record: RunRecord) -> str:
    """Turn a record into sealed JSON text; ``summary`` (verdict, exit code) comes first, for programs."""
    summary = summary_of(record)
    written = replace(record, schema_version=SCHEMA_VERSION, summary=summary)
    document = {"summary": summary, **serialise.encode(written)}
    document["digests"] = digests_of(document)
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def loads(text: str, where: str = "record") -> RunRecord:
    """Read a record from JSON text.

    Raises
    ------
    InputError
        A field does not fit, the schema version is unknown, a part of a sealed record was changed after it was written,
        or a judgement is about a figure that its case does not have; the error names which.
    """
    return _record_of(_parsed(text, where), where)


def _parsed(text: str, where: str) -> dict[str, object]:
    try:
        document = json.loads(text, parse_int=_integer, parse_float=_finite, parse_constant=_finite)
        json.dumps(document, ensure_ascii=False).encode()  # fails for an escaped lone surrogate, which is no Unicode
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a record: {error}", where=where, cure=_CURE) from error
    if not isinstance(document, dict) or "schema_version" not in document:
        raise InputError("not a record, which is a JSON object with a schema_version", where=where, cure=_CURE)
    if document.get("schema_version") not in READABLE_VERSIONS:
        raise InputError(
            "a record of another schema version",
            where=where,
            got=document.get("schema_version"),
            allowed=" or ".join(map(str, READABLE_VERSIONS)),
            cure="Read it with the version of the checkout that wrote it.",
        )
    return document


def _record_of(document: dict[str, object], where: str) -> RunRecord:
    record = serialise.decode(RunRecord, document, where)
    _check_depth(record.hardware, f"{where}.hardware")
    if record.schema_version == 1:
        record = replace(_unsealed(record, where), plan=THOROUGH)
    else:
        _check_seal(document, record.digests, where)
    _check_judgements(record, where)
    return record


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits; {MOST_DIGITS} are allowed")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number that float64 holds")
    return value


def _check_depth(value: object, where: str) -> None:
    """Refuse values that are nested so deeply that recursive functions would exhaust the stack."""
    level = [value]
    for _ in range(DEEPEST_HARDWARE):
        level = [item for outer in level for item in _members(outer)]
        if not level:
            return
    raise InputError("nested too deeply", where=where, allowed=f"{DEEPEST_HARDWARE} levels")


def _members(value: object) -> Collection[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _unsealed(record: RunRecord, where: str) -> RunRecord:
    """Return ``record``, of version 1; refuse it if it has fields of version 2, since it was sealed once."""
    if record.invocations or record.judged or record.thinned_from or record.digests:
        raise RecordChangedError(
            "a record of version 1 with fields of version 2: it was changed after it was written", where=where
        )
    return record


def _check_seal(document: Mapping[str, object], digests: Mapping[str, str], where: str) -> None:
    found = digests_of(document)
    changed = [part for part in found if digests.get(part) != found[part]]
    if changed or set(digests) != set(found):
        raise RecordChangedError(
            "the record was changed after it was written: its digests do not agree",
            where=where,
            got=changed or sorted(digests),
            cure="Take the record as the run wrote it; figures are corrected by running again.",
        )


def _check_judgements(record: RunRecord, where: str) -> None:
    """Refuse judgements about figures that their case does not have; cases that the record lacks are not checked."""
    figures = {case.case: len(case.measurements) for case in record.cases}
    for place, judged in enumerate(record.judgements):
        count = figures.get(judged.case)
        if count is not None and not 0 <= judged.index < count:
            raise InputError(
                f"a judgement about a figure that the case {judged.case} does not have",
                where=f"{where}.judgements[{place}].index",
                got=judged.index,
                allowed=f"0 to {count - 1}" if count else "none: the case measured nothing",
                cure="Take the record as the run wrote it.",
            )


def write_run(folder: Path, record: RunRecord, attachments: Sequence[str] = ()) -> RunRecord:
    """Write ``record.json`` and ``report.html`` into ``folder``, each atomically.

    The old report is removed first and the new one is written last. A run that is killed in between has no report, but
    never the report of another record. The report carries the seal of its record.

    Parameters
    ----------
    folder : Path
        The run folder; created if need be.
    record : RunRecord
        Its attachments are replaced if ``attachments`` are given.
    attachments : sequence of str
        Files in the folder, relative to it (``junit.xml``, ``benchmark.json``), whose hashes go into the record.

    Returns
    -------
    RunRecord
        As it was written, with attachments and digests.
    """
    make_folder(folder)
    if attachments:
        record = replace(record, attachments=tuple(attach(folder, name) for name in attachments))
    text = dumps(record)
    record = loads(text)
    report = html.render(record, targets_of(folder), standing=standing_of(record))
    (folder / REPORT_NAME).unlink(missing_ok=True)
    write_text(folder / RECORD_NAME, text)
    write_text(folder / REPORT_NAME, report)
    return record


def targets_of(folder: Path) -> tuple[Target, ...]:
    """The targets that a run in ``folder`` is judged by: those of the checkout, and the user's if the run has some.

    Raises
    ------
    InputError
        If the user's file cannot be read; see :func:`~reports.judge.targets.load_targets`.
    """
    own = folder / TARGETS_NAME
    return load_targets(own if own.exists() else None)


def write_baseline(folder: Path, record: RunRecord) -> Path:
    """Write the thinned ``record`` atomically to ``folder``/record.json.gz and return the path.

    Equal records give equal bytes.
    """
    make_folder(folder)
    path = folder / BASELINE_NAME
    write_atomically(path, gzip.compress(dumps(thin(record)).encode(), mtime=0))
    return path


def load_run(path: Path) -> RunRecord:
    """Read the record of a run folder or a baseline, given as the folder or as the file.

    The ``run_id`` of a baseline is the name of its folder, which says more than that of the run.

    Raises
    ------
    InputError
        There is no record; it is damaged, no valid JSON, or does not fit the schema; or it, or a file of evidence
        beside it, was changed after it was written.
    """
    file, text = _read(path)
    return _run_of(file, _parsed(text, str(file)))


def _read(path: Path) -> tuple[Path, str]:
    """Find the file of the record at ``path`` and read it, unpacked."""
    files = [path / RECORD_NAME, path / BASELINE_NAME] if path.is_dir() else [path]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise InputError("no record of a run here", where=str(path), cure=_CURE)
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            limit = min(LARGEST_RECORD_BYTES, max(_ANY_RATIO_BYTES, LARGEST_RATIO * file.stat().st_size))
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise InputError("too large for a record", where=str(file), allowed=f"{limit} bytes, unpacked")
        return file, data.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"not a record: {error}", where=str(file), cure=_CURE) from error


def _run_of(file: Path, document: dict[str, object]) -> RunRecord:
    record = _record_of(document, str(file))
    _check_attachments(file.parent, record)
    folder = file.resolve().parent
    return replace(record, run_id=folder.name) if folder.parent.name == BASELINES.name else record


def missing_attachments(folder: Path, record: RunRecord) -> tuple[str, ...]:
    """Attachments that are not in ``folder``: a record may have been copied out of its run's folder."""
    return tuple(one.path for one in record.attachments if not (folder / one.path).is_file())


def _check_attachments(folder: Path, record: RunRecord) -> None:
    try:
        missing = missing_attachments(folder, record)
        there = [one for one in record.attachments if one.path not in missing]
        changed = [one.path for one in there if attach(folder, one.path) != one]
    except OSError as error:
        raise InputError(f"files beside the record cannot be read: {error}", where=str(folder)) from error
    if changed:
        raise RecordChangedError(
            "files beside the record were changed after it was written",
            where=str(folder),
            got=changed,
            cure=f"If the run was killed while it wrote them: python -m stages record {folder}",
        )


def reasons_against_run(path: Path) -> tuple[str, ...]:
    """Why the record at ``path`` may not be quoted, also for what its folder lacks; empty if it may.

    Raises
    ------
    InputError
        If there is no record, or none that can be read.
    """
    try:
        record = load_run(path)
    except RecordChangedError as error:
        return (str(error),)
    folder = path if path.is_dir() else path.parent
    missing = missing_attachments(folder, record)
    lost = [f"files of the run are not there: {', '.join(missing)}"] if missing else []
    report = folder / REPORT_NAME
    if report.is_file() and record.seal not in report.read_text(encoding="utf-8", errors="replace"):
        lost.append(f"{REPORT_NAME} was drawn from another record; draw it again with: python -m reports render")
    return (*reasons_against(record), *lost)


def load_history(folder: Path) -> History:
    """Read every run folder below ``folder``.

    Raises
    ------
    InputError
        If the folder does not exist or holds no readable run.
    """
    records, unreadable = load_records(folder)
    if not records:
        got, cure = [name for name, _ in unreadable] or None, "Name a folder that has folders of runs below it"
        raise InputError("no readable run here", where=str(folder), got=got, cure=cure)
    return history_of(records, unreadable)


def load_records(folder: Path, machines: Collection[Machine] = ()) -> tuple[list[RunRecord], list[tuple[str, str]]]:
    """Read every record below ``folder``; the second list has the folders that could not be read, and why.

    If ``machines`` are given, records of other classes of machine are left out, unchecked.

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
            file, text = _read(path)
            document = _parsed(text, str(file))
            if not machines or _may_be_of(document, machines):
                records.append(_run_of(file, document))
        except InputError as error:
            unreadable.append((_printable(path.relative_to(folder)), _printable(error)))
    return records, unreadable


def standing_of(record: RunRecord) -> str:
    """``record`` compared with the committed baseline of its machine or class, in a sentence; empty without figures."""
    return standing(record, _baselines(machine_of(record))) if has_performance(record) else ""


def _may_be_of(document: Mapping[str, object], machines: Collection[Machine]) -> bool:
    """Whether a record is of the class of one of ``machines``, or its inventory cannot be read."""
    hardware = document.get("hardware")
    return not isinstance(hardware, dict) or any(map(machine_in(hardware).same_class, machines))


@cache
def _baselines(machine: Machine) -> tuple[RunRecord, ...]:
    return tuple(load_records(BASELINES, [machine])[0])


def _printable(value: object) -> str:
    """Text that can be encoded: a file name need not be Unicode."""
    return str(value).encode(errors="backslashreplace").decode()


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the whole new one."""
    write_atomically(path, text.encode())
