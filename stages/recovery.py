"""Writes the record of a run whose runner, and perhaps whose machine, is gone, from the run's folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from burstproof.errors import InputError
from hardware.gates import Gate
from reports.store import load_run, write_run
from reports.values.record import RunRecord, StageRun
from stages.assembling import assemble
from stages.environment import take_environment
from stages.evidence import join_evidence
from stages.plan import Stage
from stages.provenance import read_invocations
from stages.results import CaseLines, read_lines
from stages.run_folder import RunFolder
from stages.sittings import FoundMachine, cut_off_stage, finished_stage, kept_machine

_CLOSED = "is closed"
_NOT_KEPT = "The hardware was not kept: the machine was gone before the record was written."


def recover(folder: RunFolder, plan: Sequence[Stage], root: Path) -> RunRecord:
    """Write the record of a run from its folder, and return it; nothing runs.

    It replaces a record of an unfinished run, and one that cannot be read or no longer agrees with its folder. A stage
    that had not ended says so and has the cases that had ended. Hardware and gates are those that the run found at its
    start.

    Raises
    ------
    InputError
        The run has finished and has its record, or no stage of it began.
    """
    if _has_its_record(folder.path):
        cure = "To judge it again: run --resume; to draw its report again: python -m reports render"
        raise InputError("this run has its record", where="record", got=str(folder.path), cure=cure)
    asked = folder.read_plan()
    planned = [stage for stage in plan if stage.name in asked.stages]
    machine = kept_machine(folder.machine) or FoundMachine({"problem": _NOT_KEPT})
    stages = tuple(_stage_run(folder, stage, machine.gates) for stage in planned)
    if not read_invocations(folder, asked.stages):
        cure = "Run it with --resume."
        raise InputError("no stage of this run began", where="record", got=str(folder.path), cure=cure)
    shutil.rmtree(folder.compiled, ignore_errors=True)
    record = assemble(folder, asked, stages, take_environment(root), machine.hardware)
    return write_run(folder.path, record, join_evidence(folder, stages))


def _has_its_record(folder: Path) -> bool:
    try:
        return bool(load_run(folder).finished_utc)
    except InputError:
        return False


def _stage_run(folder: RunFolder, stage: Stage, gates: Mapping[str, Gate]) -> StageRun:
    ended = finished_stage(folder, stage.name) or cut_off_stage(folder, stage.name)
    if ended is not None:
        return ended
    lines = read_lines(folder.files(stage.name).results)
    is_open, reason = _gate(stage, gates, lines)
    begun = len(lines.cases) + len(lines.unfinished)
    how_far = f"of {begun} cases that had begun, {len(lines.cases)} had ended"
    problem = f"the runner ended before the stage did; {how_far}" if begun else "the runner ended before it began"
    return StageRun(stage.name, stage.title, is_open, reason, stage.requirements, problem)


def _gate(stage: Stage, gates: Mapping[str, Gate], lines: CaseLines) -> tuple[bool, str]:
    """Whether the gate was open, and the reason, as the run found it; if that was not kept, as its cases say."""
    if stage.gate in gates:
        return gates[stage.gate].is_open, gates[stage.gate].reason
    closed = [case.reason for case in lines.cases if f"gate {stage.gate} {_CLOSED}" in case.reason]
    if closed or not lines.cases:
        return False, closed[0] if closed else _NOT_KEPT
    return True, "no case that ran was skipped for it"
