"""Case results as JSON lines: what the plugin appends while the suites run, and the runner reads afterwards.

A line ``{"started": case}`` precedes each case, so that a crash of the interpreter leaves the name of its case behind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from reports.values.measurement import CaseResult
from reports.values.serialise import decode, encode


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

    def _append(self, value: Mapping[str, object]) -> None:
        self._file.write(json.dumps(value) + "\n")
        self._file.flush()


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
        cases.append(decode(CaseResult, value, path.name))
        started.pop(value["case"], None)
    return CaseLines(tuple(cases), tuple(started))
