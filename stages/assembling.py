"""Puts the record of a run together from its folder, and finds out whether the results of a stage are whole."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from reports.judge.judging import judging
from reports.judge.verdict import judge_cases
from reports.store import targets_of
from reports.values.measurement import CaseResult, Outcome
from reports.values.record import Environment, RunRecord, StageRun
from stages.collected import Collection, read_collection, unaccounted
from stages.provenance import environment_of, note_judging, read_invocations
from stages.results import CaseLines, read_lines
from stages.run_folder import RunFolder, RunPlan, utc_now
from stages.sittings import changed_since
from stages.suite_process import SuiteEnd


def assemble(
    folder: RunFolder,
    asked: RunPlan,
    stages: tuple[StageRun, ...],
    judge: Environment,
    hardware: Mapping[str, object],
) -> RunRecord:
    """The record of the run in ``folder``, judged by the checkout that ``judge`` describes.

    The run finished when the last of its stages ended, however often it is judged again; it did not finish if a stage
    has not ended.
    """
    targets = targets_of(folder.path)
    invocations = read_invocations(folder, asked.stages)
    lines = [read_lines(folder.files(run.stage).results) for run in stages]
    stages = tuple(_with_damage(folder, run, found) for run, found in zip(stages, lines, strict=True))
    cases = tuple(case for run, found in zip(stages, lines, strict=True) for case in stage_cases(run, found))
    complete = all(folder.files(run.stage).done.is_file() for run in stages)
    return RunRecord(
        run_id=folder.path.name,
        started_utc=asked.started_utc,
        finished_utc=(max(run.ended_utc for run in stages) or utc_now()) if complete else "",
        command=asked.command,
        asked=asked.asked,
        stages=stages,
        environment=environment_of(invocations) if invocations else judge,
        hardware=hardware,
        cases=cases,
        judgements=judge_cases(cases, targets),
        plan=asked.plan,
        invocations=invocations,
        judged=note_judging(folder, judging(utc_now(), judge, targets), complete=complete),
    )


def _with_damage(folder: RunFolder, run: StageRun, lines: CaseLines) -> StageRun:
    """``run`` with a problem if files of the stage were damaged or changed after it ended or was cut off."""
    files = folder.files(run.stage)
    ended_well = not run.problem and files.done.is_file()
    if ended_well:
        return replace(run, problem=damage(lines, read_collection(files.collected)) or changed_since(files.done))
    changed = changed_since(files.cut_off)
    return replace(run, problem=f"{changed}; {run.problem}") if changed else run


def stage_cases(run: StageRun, lines: CaseLines) -> tuple[CaseResult, ...]:
    """The results of a stage; a case that began and never ended is an ERROR that names the cause.

    A module that could not be collected has a result in each sitting, of which the last one counts.
    """
    modules = {case.case: case for case in lines.cases if "::" not in case.case}
    cases = [case for case in lines.cases if case.case not in modules]
    reason = f"it began and never ended: {run.problem or 'the process ended during it'}"
    cut_short = [
        CaseResult(case, run.stage, (), Outcome.ERROR, reason, title=case.rpartition("::")[2])
        for case in lines.unfinished
    ]
    return (*(replace(case, stage=run.stage) for case in (*modules.values(), *cases)), *cut_short)


def inconsistency(end: SuiteEnd, lines: CaseLines, collection: Collection | None, earlier: Container[str]) -> str:
    """Why the exit status of pytest and the results contradict each other; empty if they do not.

    Cases of ``earlier`` sittings do not count: the status says nothing about them.
    """
    if lines.unfinished:
        return f"pytest ended during {lines.unfinished[0]} with exit status {end.status}"
    if not lines.cases:
        return "pytest ended without a result"
    own = (case for case in lines.cases if case.case not in earlier)
    bad = any(case.outcome in (Outcome.FAILED, Outcome.ERROR) for case in own)
    if bad != (end.status == 1):
        return f"pytest ended with exit status {end.status}, which its results contradict"
    return damage(lines, collection)


def damage(lines: CaseLines, collection: Collection | None) -> str:
    """Why the results or the collection of a stage that ended are incomplete; empty if they are whole."""
    if lines.damage:
        return lines.damage
    if not lines.closed:
        return f"the results are cut short after {len(lines.cases)} cases: the line that ends them is missing"
    if collection is None:
        return "what was collected is not known: collected.json is missing or was changed"
    return unaccounted(collection, [case.case for case in lines.cases])


def unfinished(lines: CaseLines, collected: int) -> str:
    """How many cases of a stage that did not end have a result, and the cure."""
    total = f" of {collected}" if collected else ""
    return f"{len(lines.cases)}{total} cases have a result; continue with --resume"
