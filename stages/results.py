"""Case results as JSON lines: what the plugin appends while the suites run, and the runner reads afterwards.

A line ``{"started": case}`` precedes each case, so that a crash of the interpreter leaves the name of its case behind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from reports.values.measurement import CaseResult, Measurement, Outcome


@dataclass(frozen=True)
class CaseLines:
    """What a file of result lines holds: the finished cases, and those that started and never finished."""

    cases: tuple[CaseResult, ...]
    unfinished: tuple[str, ...]


class ResultLines:
    """Appends lines to a file, each flushed at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("a", encoding="utf-8")

    def started(self, case: str) -> None:
        """Note that a case began."""
        self._append({"started": case})

    def finished(self, result: CaseResult) -> None:
        """Append the result of a case."""
        self._append(encode(result))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, value: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(value) + "\n")
        self._file.flush()


def encode(result: CaseResult) -> dict[str, Any]:
    """Return the result as JSON values; a NaN stays a NaN."""
    return asdict(result) | {"outcome": result.outcome.value}


def decode(value: Mapping[str, Any]) -> CaseResult:
    """Return the result that :func:`encode` was given."""
    fields = dict(value)
    fields["requirements"] = tuple(fields["requirements"])
    fields["outcome"] = Outcome(fields["outcome"])
    fields["measurements"] = tuple(measurement_from(item) for item in fields["measurements"])
    return CaseResult(**fields)


def measurement_from(value: Mapping[str, Any]) -> Measurement:
    """Return the measurement whose fields ``asdict`` gave."""
    fields = dict(value)
    fields["samples"] = tuple(fields["samples"])
    fields["requirements"] = tuple(fields["requirements"])
    return Measurement(**fields)


def read_lines(path: Path) -> CaseLines:
    """Read a file of result lines; a missing file holds none, a last line cut short by a crash is left out."""
    if not path.is_file():
        return CaseLines((), ())
    started: dict[str, None] = {}
    cases: list[CaseResult] = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        value = json.loads(line)
        if "started" in value:
            started[value["started"]] = None
            continue
        cases.append(decode(value))
        started.pop(value["case"], None)
    return CaseLines(tuple(cases), tuple(started))
