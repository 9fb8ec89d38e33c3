"""Explains how pytest ended, from its exit status and its log."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from stages.run_folder import StageFiles

USAGE_ERROR, NOTHING_RAN = 4, 5
"""Exit statuses of pytest."""

_FATAL = re.compile(r"Fatal Python error: (?P<what>[^\n]+)")
_WATCHDOG = re.compile(r"Timeout \([\d:.]+\)!\nThread 0x")
_HEADING = re.compile(r"^=+ (?P<name>.+?) =+$", re.MULTILINE)
_PROBLEMS = {
    2: "pytest was interrupted",
    3: "pytest had an internal error",
    USAGE_ERROR: "pytest refused to start",
    NOTHING_RAN: "no case was collected",
}


def describe_status(status: int, files: StageFiles) -> str:
    """What went wrong according to exit status and log; empty for 0 (passed) and 1 (failed) with a clean log.

    A process that died after it wrote its JUnit file had run all its cases. The exit statuses of workers are not known
    here, so their deaths are found by what the interpreter left in the log.
    """
    if not files.log.is_file():
        return f"{files.log.name} was removed while the stage ran"
    if status in (0, 1):
        return _death_in(files.log)
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = "unknown"
        when = " after its last case, with every result kept" if files.junit.is_file() else ""
        return f"pytest died of signal {-status} ({name}){when}"
    problem = _PROBLEMS.get(status, f"pytest ended with exit status {status}")
    return f"{problem}: {_last_words(files.log)}" if status in (3, USAGE_ERROR) else problem


def _death_in(log: Path) -> str:
    """The death of a worker according to the log, without the sections in which pytest repeats output of cases."""
    text = _said(log)
    headings = list(_HEADING.finditer(text))
    reports = [heading for heading in headings if heading["name"] in ("FAILURES", "ERRORS")]
    if reports:
        text = text[: reports[0].start()] + text[headings[-1].end() :]
    if _WATCHDOG.search(text):
        return f"a case overran its time limit and could not be interrupted; its stack is in {log.name}"
    found = _FATAL.search(text)
    return f"a process that ran cases died: {found['what']}; its stack is in {log.name}" if found else ""


def _said(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in _said(log).splitlines()]
    said = [line for line in lines if line.startswith(("ERROR:", "INTERNALERROR>"))] or [line for line in lines if line]
    said = [line.removeprefix("INTERNALERROR>").strip() for line in said]
    return " ".join(said[-3:])[:500] or "it printed nothing"
