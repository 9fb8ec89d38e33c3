"""The output of the runner: what cannot run here, a line for each stage, then a summary and the path of the report."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import get_terminal_size
from typing import TextIO

from burstproof.errors import ExitCode, visible
from hardware.gates import Gate
from reports.judge.absent import idle_lines
from reports.judge.contention import busy
from reports.judge.decided import decided_targets, stage_counts, told
from reports.judge.goals import goal_lines, goal_rows
from reports.judge.summary import first_line
from reports.judge.trace import Status, trace
from reports.judge.verdict import case_verdict, exit_code, stage_verdict
from reports.store import standing_of, targets_of
from reports.values import units
from reports.values.grouped import grouped
from reports.values.measurement import CaseResult, Outcome, Verdict
from reports.values.record import NIGHTLY, QUICK, REPORT_NAME, THOROUGH, RunRecord, StageRun
from stages.gating import GPU_FREE_REASON
from stages.plan import Stage
from stages.progress import Progress
from stages.run_folder import NOT_RUN

_SHOWN = 20
_BAD = (Verdict.FAIL, Verdict.ERROR, Verdict.AMBIGUOUS)


@dataclass
class Console:
    """Prints the progress of a run: on a terminal in one line that is rewritten, elsewhere in a line now and then.

    Attributes
    ----------
    out : text file
        By default standard output.
    every_s : float
        Seconds between lines if ``out`` is no terminal.
    """

    out: TextIO = field(default_factory=lambda: sys.stdout)
    every_s: float = 30.0
    _said_s: float = 0.0
    _in_line: bool = False

    def say(self, *lines: str) -> None:
        """Print lines at once; control characters in names of cases and folders are made visible."""
        clear, self._in_line = "\r\x1b[K" if self._in_line else "", False
        print(clear, end="", file=self.out)
        print(*map(visible, lines), sep="\n", file=self.out, flush=True)

    def stage_begins(self, stage: Stage, gate: Gate) -> None:
        """Print the name of the stage, and what still runs if its gate is closed."""
        self._said_s = 0.0
        closed = "" if gate.is_open else f"; gate {gate.name} is closed, what runs: {stage.gpu_free}"
        self.say(f"{stage.name} {stage.title} ...{closed}")

    def no_case_first(self, stage: Stage, texts: Sequence[str]) -> None:
        """Print the texts of ``--first`` that no case of the stage has in its name."""
        if texts:
            self.say(f"  --first: no case of {stage.name} has this in its name: {', '.join(texts)}")

    def stage_goes_on(self, progress: Progress, elapsed_s: float) -> None:
        """Print the progress of the stage."""
        if self.out.isatty():
            width = get_terminal_size().columns - 1
            shown = visible(f"  {progress.line(elapsed_s, width - 2)}")[:width]
            self._in_line = True
            print(f"\r{shown}\x1b[K", end="", file=self.out, flush=True)
        elif elapsed_s - self._said_s >= self.every_s:
            self._said_s = elapsed_s
            self.say(f"  {progress.line(elapsed_s)}")

    def stage_ended(self, run: StageRun, cases: Sequence[CaseResult]) -> None:
        """Print how the cases of the stage ended."""
        self.say("; ".join(filter(None, (f"  {counted(cases)} in {run.duration_s:.0f} s", busy(run), run.problem))))


def counted(cases: Sequence[CaseResult]) -> str:
    """Return ``12 passed, 3 skipped``."""
    counts = Counter(case.outcome for case in cases)
    return ", ".join(f"{counts[one]} {one.value}" for one in Outcome if counts[one]) or "no case"


def opening(stages: Sequence[Stage], gates: Mapping[str, Gate]) -> str:
    """The first line of a run: stages whose gate is closed here, and why."""
    closed = [stage for stage in stages if not gates[stage.gate].is_open]
    if not closed:
        return "Every gate of this plan is open."
    by_reason = grouped(closed, lambda stage: gates[stage.gate].reason)
    parts = [f"{', '.join(stage.name for stage in found)} ({reason})" for reason, found in by_reason.items()]
    return f"Only their GPU-free part runs here: {'; '.join(parts)}"


def plan_line(plan: str) -> str:
    """A line about the plan, and the option for a larger one."""
    return {
        QUICK: "Quick plan: what takes long is left out, and named in the report; --thorough runs it.",
        THOROUGH: "Thorough plan: all cases but those of the nightly plan (--nightly).",
        NIGHTLY: "Nightly plan: all cases.",
    }[plan]


def closing(record: RunRecord, folder: Path) -> list[str]:
    """Return the summary of a run."""
    return [
        "",
        first_line(record),
        *_section("Not proven:", _not_proven(record)),
        *_section("Not passed:", _not_passed(record)),
        "",
        *_table(record),
        *_goals(record, folder),
        *filter(None, [standing_of(record)]),
        "",
        f"Report: {folder / REPORT_NAME}",
        *_why_not_0(record),
    ]


def _why_not_0(record: RunRecord) -> list[str]:
    """A line that explains exit code 3; none for other exit codes."""
    if exit_code(record) is not ExitCode.INVALID_ENVIRONMENT:
        return []
    closed = [stage for stage in record.stages if stage.stage in record.asked and not stage.gate_open]
    names = ", ".join(stage.stage for stage in closed)
    why = f"asked for by name, and the gate is closed: {names}" if closed else "nothing ran"
    if closed and all(stage.gate_reason == GPU_FREE_REASON for stage in closed):
        why = f"of {names} only the GPU-free part was asked for, and ran"
    return [f"Exit code {ExitCode.INVALID_ENVIRONMENT:d}: {why}."]


def closing_part(record: RunRecord, folder: Path) -> list[str]:
    """The summary of a run that is not complete: what did not pass, and what is still to run."""
    waiting = [stage.stage for stage in record.stages if not stage.ended_utc]
    return [
        *_section("Not passed:", _not_passed(record)),
        *_section("Cut off:", [f"  {stage.stage}: {stage.problem}" for stage in record.stages if _was_cut_off(stage)]),
        "",
        f"A part of the run; still to run: {', '.join(waiting)}. Continue with --resume {folder}",
    ]


def _was_cut_off(stage: StageRun) -> bool:
    return bool(not stage.ended_utc and stage.problem) and stage.problem != NOT_RUN


def explanation(stages: Sequence[Stage], gates: Mapping[str, Gate], plan: str) -> list[str]:
    """What would run here, stage by stage, and why the rest would not."""
    lines = [opening(stages, gates), plan_line(plan)]
    for stage in stages:
        gate = gates[stage.gate]
        lines += ["", f"{stage.name} {stage.title}: {stage.proves}", f"  requirements: {', '.join(stage.requirements)}"]
        if gate.is_open:
            lines.append(f"  would run, but for cases that need more (gate {gate.name}: {gate.reason})")
        else:
            lines += [f"  would run: {stage.gpu_free}", f"  not the rest: gate {gate.name} is closed: {gate.reason}"]
    other = {name: gate for name, gate in gates.items() if not gate.is_open}
    if other:
        lines += ["", "Single cases are skipped where their own gate is closed:"]
        lines += [f"  {name}: {gate.reason}" for name, gate in other.items()]
    return lines


def listing(stages: Sequence[Stage]) -> list[str]:
    """Return the plan as a table."""
    return [f"{one.name:8} {one.title:14} gate {one.gate:10} {one.proves}" for one in stages]


def _section(title: str, lines: list[str]) -> list[str]:
    if len(lines) > _SHOWN:
        lines = [*lines[:_SHOWN], f"  and {len(lines) - _SHOWN} more in the report"]
    return ["", title, *lines] if lines else []


def _goals(record: RunRecord, folder: Path) -> list[str]:
    """The table of goals, if one was measured, and a line for each user target that judged nothing."""
    targets = targets_of(folder)
    rows = goal_rows(record, targets)
    lines = [f"  {line}" for line in goal_lines(rows)] if any(row.is_measured for row in rows) else []
    table = ["", "Goals, and the floors that this hardware has:", *lines] if lines else []
    return [*table, *idle_lines(record, targets)]


def _not_proven(record: RunRecord) -> list[str]:
    """Requirements that are not proven: a line for each reason, with their ids."""
    planned = {name for stage in record.stages for name in stage.requirements}
    rows = [row for row in trace(record) if row.status is Status.NOT_PROVEN]
    own = [row for row in rows if row.requirement.id in planned]
    by_reason = grouped(own, lambda row: row.reason)
    lines = [f"  {', '.join(row.requirement.id for row in found)}: {reason}" for reason, found in by_reason.items()]
    others = len(rows) - len(own)
    if others:
        lines.append(f"  {units.counted(others, 'requirement')} of other stages: see the report")
    return lines


def _not_passed(record: RunRecord) -> list[str]:
    """Cases that did not pass: a line for each reason, with the first of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for case in record.cases:
        verdict = case_verdict(case, record.judgements_of(case.case))
        if verdict in _BAD:
            bad = [one for one in record.judgements_of(case.case) if one.judgement.verdict in _BAD]
            texts = [f"{one.measurement}: {told(one.judgement)}" for one in bad]
            why = "; ".join(filter(None, [case.reason[:300], *texts]))
            found.setdefault((verdict.value, why), []).append(case.case)
    return [f"  {verdict} {units.first_of(cases, 1)}: {why}" for (verdict, why), cases in found.items()]


def _table(record: RunRecord) -> list[str]:
    rows = [f"{'stage':8} {'':14} {'verdict':10} cases; goals"]
    decided = decided_targets(record)
    for stage in record.stages:
        verdict = stage_verdict(record, stage).value
        ended, figures = stage_counts(record, stage.stage, decided)
        cases, goals = (", ".join(text for _, text in counts) for counts in (ended, figures))
        said = "; ".join(filter(None, (cases or "no case", goals, stage.problem)))
        rows.append(f"{stage.stage:8} {stage.title:14} {verdict:10} {said}")
    return rows
