"""The results file of a stage: JSON lines that the plugin appends while the suites run, and the runner reads.

Each line has its number and a checksum, so that lost or changed lines are noticed, and one of these contents:

- a case begins, so that its name is known if the interpreter crashes;
- the result of a case;
- cases during which the stage was cut off, and which will begin again;
- the end of the file; another process may continue it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from reports.values.measurement import CaseResult
from reports.values.serialise import decode, encode

_STARTED, _CASE, _AGAIN, _END = "started", "case", "again", "end"


@dataclass(frozen=True)
class CaseLines:
    """The content of a results file.

    Attributes
    ----------
    cases : tuple of CaseResult
        The finished cases.
    unfinished : tuple of str
        Cases that began and did not end.
    damage : str
        A sentence about the first damaged line, from which on nothing is read; empty if there is none.
    closed : bool
        Whether the file ends with the line that closes it.
    """

    cases: tuple[CaseResult, ...] = ()
    unfinished: tuple[str, ...] = ()
    damage: str = ""
    closed: bool = False


class ResultLines:
    """Appends lines to a file and flushes each at once; the file of a crashed process is continued."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = _whole_lines(path)
        self._number = len(whole)
        self._file: TextIO = path.open("a", encoding="utf-8")
        self._file.truncate(len("".join(whole).encode()))

    def started(self, case: str) -> None:
        """Note that a case began."""
        self._append({_STARTED: case})

    def finished(self, result: CaseResult) -> None:
        """Append the result of a case."""
        self._append(encode(result))

    def again(self, cases: Sequence[str]) -> None:
        """Note that these cases began, were cut off, and will begin again."""
        self._append({_AGAIN: list(cases)})

    def close(self) -> None:
        """Write the last line and close the file."""
        self._append({_END: self._number})
        self.let_go()

    def let_go(self) -> None:
        """Close the file without the closing line, for another process to continue."""
        self._file.close()

    def _append(self, content: Mapping[str, object]) -> None:
        self._number += 1
        self._file.write(numbered(self._number, content) + "\n")
        self._file.flush()


def reopen(path: Path, again: Sequence[str]) -> None:
    """Let another process append to a file, closed or not; the cases ``again``, which did not end, will begin again."""
    lines = ResultLines(path)
    lines.again(again)
    lines.let_go()


def numbered(number: int, content: Mapping[str, object]) -> str:
    """Return ``content`` as line ``number`` (from 1), with its checksum and without a line end."""
    return json.dumps({"line": number, "crc32": _checksum(number, content), **content})


def read_lines(path: Path) -> CaseLines:
    """Read a results file. A missing file has no lines; a last line that a crash cut short is left out."""
    started: dict[str, None] = {}
    cases: list[CaseResult] = []
    closed = False
    for number, line in enumerate(_whole_lines(path), 1):
        content = _content(number, line)
        if content is None or (closed and _AGAIN not in content):
            damage = f"{path.name} is damaged: line {number} is not what was written; {len(cases)} cases precede it"
            return CaseLines(tuple(cases), tuple(started), damage)
        if _STARTED in content:
            started[str(content[_STARTED])] = None
        elif _AGAIN in content:
            closed = False
            for case in _again(content):
                started.pop(case, None)
        elif _END in content:
            closed = True
        elif _CASE in content:
            cases.append(decode(CaseResult, content, path.name))
            started.pop(cases[-1].case, None)
    return CaseLines(tuple(cases), tuple(started), closed=closed)


def _whole_lines(path: Path) -> list[str]:
    if not path.is_file():
        return []
    lines = path.read_bytes().decode("utf-8", errors="replace").split("\n")
    return [f"{line}\n" for line in lines[:-1]]


def _content(number: int, line: str) -> dict[str, object] | None:
    """The content of a line; ``None`` if it is damaged or another line was written there."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.pop("line", None) != number:
        return None
    found = value.pop("crc32", None)
    return value if found == _checksum(number, value) else None


def _again(content: Mapping[str, object]) -> list[str]:
    cases = content[_AGAIN]
    return [str(case) for case in cases] if isinstance(cases, list) else []


def _checksum(number: int, content: Mapping[str, object]) -> str:
    return f"{zlib.crc32(json.dumps([number, content]).encode()):08x}"
