"""Case results as JSON lines: what the plugin appends while the suites run, and the runner reads afterwards.

Each line holds its number, a checksum, and one of: a case that begins (so that a crash of the interpreter leaves its
name behind), the result of a case, the cases that begin again since the stage was cut off during them, the end of the
file, which another process may go on with. Lines that were lost or changed are found out.
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
    """What a file of result lines holds.

    Attributes
    ----------
    cases : tuple of CaseResult
        The finished cases.
    unfinished : tuple of str
        Cases that started and never finished.
    damage : str
        Which line is not what was written, in words; that line and those after it are not read. Empty: none.
    closed : bool
        Whether the last line says that it is the last.
    """

    cases: tuple[CaseResult, ...] = ()
    unfinished: tuple[str, ...] = ()
    damage: str = ""
    closed: bool = False


class ResultLines:
    """Appends lines to a file, each flushed at once; a file that a crashed process left is continued."""

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
        """Close the file without a last line: another process goes on with it."""
        self._file.close()

    def _append(self, content: Mapping[str, object]) -> None:
        self._number += 1
        self._file.write(numbered(self._number, content) + "\n")
        self._file.flush()


def reopen(path: Path, again: Sequence[str]) -> None:
    """Let another process append to a file, closed or not; the cases ``again``, which never ended, will begin again."""
    lines = ResultLines(path)
    lines.again(again)
    lines.let_go()


def numbered(number: int, content: Mapping[str, object]) -> str:
    """Return ``content`` as the line ``number`` (from 1) of a file, with its checksum, without a line end."""
    return json.dumps({"line": number, "crc32": _checksum(number, content), **content})


def read_lines(path: Path) -> CaseLines:
    """Read a file of result lines; a missing file holds none, a last line cut short by a crash is left out."""
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
    """What a line holds, or ``None`` if it is not the line that was written there."""
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
