"""Runs a plan stage by stage into one run folder, and continues an interrupted one (requirements RE-1, RE-2, RE-6)."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Collection as AnyCollection
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hardware.gates import Gate
from hardware.inventory import take_inventory
from reports.judge.judging import judging
from reports.judge.verdict import judge_cases
from reports.store import targets_of, write_run
from reports.values.machine import machine_in
from reports.values.measurement import CaseResult, Outcome
from reports.values.record import Environment, Invocation, RunRecord, StageRun
from reports.values.serialise import encode
from stages.collected import Collection, read_collection, unaccounted, uncollected
from stages.console import Console
from stages.contention import contention_between, read_times
from stages.environment import environment_since, take_environment, written_files
from stages.evidence import join_evidence
from stages.gating import Gatekeeper
from stages.plan import PLAN, Stage
from stages.progress import Progress, earlier_durations, keep_durations
from stages.provenance import environment_of, note_invocation, note_judging, read_invocations
from stages.pytest_command import MOST_WORKERS
from stages.results import CaseLines, read_lines
from stages.run_folder import NOT_RUN, RunFolder, RunPlan, utc_now, write_sealed
from stages.sittings import (
    FoundMachine,
    changed_since,
    cut_off_stage,
    finished_stage,
    go_on,
    kept_machine,
    note_end,
    refuse_to_mix,
)
from stages.suite_process import SuiteEnd, run_suites


@dataclass(frozen=True)
class Runner:
    """Carries out one plan.

    Attributes
    ----------
    root : Path
        The checkout.
    folder : RunFolder
        Holds the plan already.
    console : Console
        Says how the run goes on.
    plan : sequence of Stage
        What stages there are; the run's own plan names some of them.
    workers : int
        Most processes that cases of a stage run side by side in.
    lock : int or None
        The lock on the folder, as a file descriptor; it lasts as long as a process of a stage does.
    until_s : float
        On the monotonic clock, in seconds: no stage and no case begins at that time or later.
    how : tuple of str
        Options of this start, for the record.
    first : tuple of str
        What is in the names of the cases that a stage begins with.
    """

    root: Path
    folder: RunFolder
    console: Console
    plan: Sequence[Stage] = PLAN
    workers: int = MOST_WORKERS
    lock: int | None = None
    until_s: float = math.inf
    how: tuple[str, ...] = ()
    first: tuple[str, ...] = ()

    def run(self, only: Sequence[str] = ()) -> RunRecord:
        """Run the stages that have not ended yet, or only the named ones of them, and write the record.

        The record is written after an interruption too; it says that the run did not finish.

        Raises
        ------
        InputError
            A stage was cut off at another commit, or on another class of machine; the machine of a finished run is
            damaged.
        """
        asked = self.folder.read_plan()
        waiting = [stage for stage in self._planned(asked) if not self.folder.files(stage.name).done.is_file()]
        due = [stage for stage in waiting if not only or stage.name in only]
        # a finished run is of the machine that ran it
        machine = None if waiting else kept_machine(self.folder.machine, {stage.gate for stage in self._planned(asked)})
        if machine is None:
            machine = FoundMachine(take_inventory().to_dict(), Gatekeeper(gpu_free=asked.gpu_free).gates)
            environment = take_environment(self.root)
            for stage in due:
                refuse_to_mix(self.folder, stage.name, environment, machine, stage.gate)
            write_sealed(self.folder.machine, encode(machine))
        invocation = self._invocation(asked, machine, only)
        shutil.rmtree(self.folder.compiled, ignore_errors=True)  # of a run that was killed
        try:
            for stage in due:
                if time.monotonic() < self.until_s:
                    self._run_stage(stage, machine, invocation, asked)
        finally:
            shutil.rmtree(self.folder.compiled, ignore_errors=True)
            try:
                record = self._written(asked, machine)
            except KeyboardInterrupt:  # no second one comes: see end_in_order
                self._written(asked, machine)
                raise
        return record

    def stopped_in_order(self, record: RunRecord) -> bool:
        """Whether a stage of the run came to its time limit between two cases, so that another sitting goes on."""
        stopped = [stage.stage for stage in record.stages if cut_off_stage(self.folder, stage.stage) is not None]
        lines = [read_lines(self.folder.files(stage).results) for stage in stopped]
        return any(found.closed and not found.unfinished for found in lines)

    def unmatched(self) -> tuple[str, ...]:
        """Texts of ``first`` that the name of no case contains; none while a stage has not been collected."""
        files = [self.folder.files(stage.name) for stage in self._planned(self.folder.read_plan())]
        found = [read_collection(one.collected) for one in files]
        names = [case for one in found if one is not None for case in one.collected]
        return () if None in found else tuple(text for text in self.first if not any(text in name for name in names))

    def _written(self, asked: RunPlan, machine: FoundMachine) -> RunRecord:
        record = self._record(asked, machine)
        return write_run(self.folder.path, record, join_evidence(self.folder, record.stages))

    def _planned(self, asked: RunPlan) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.plan if stage.name in asked.stages)

    def _invocation(self, asked: RunPlan, machine: FoundMachine, only: Sequence[str]) -> Invocation:
        """This start of the runner; what it resumes is named without the folders above it."""
        begun = read_invocations(self.folder, asked.stages)
        resumed = ("python", "-m", "stages", "run", "--resume", self.folder.path.name, *self.how)
        command = (*(resumed if begun else asked.command), *(word for name in only for word in ("--only", name)))
        return Invocation(command, utc_now(), take_environment(self.root), (), machine_in(machine.hardware).label)

    def _run_stage(self, stage: Stage, machine: FoundMachine, invocation: Invocation, asked: RunPlan) -> None:
        files, gate = self.folder.files(stage.name), machine.gates[stage.gate]
        earlier = go_on(files)
        written, environment = written_files(self.root), take_environment(self.root)
        note_invocation(self.folder, stage.name, replace(invocation, environment=environment))
        write_sealed(files.machine, encode(machine))
        self.console.stage_begins(stage, gate)
        progress = Progress(
            files.results, files.collected, earlier_durations(stage.name, asked.plan), kept=earlier.cases
        )
        began, times, interruption = time.monotonic(), read_times(), None

        def tick() -> None:
            progress.look()
            self.console.stage_goes_on(progress, time.monotonic() - began)

        try:
            end = run_suites(
                replace(stage, side_by_side=stage.side_by_side or stage.times_gpus_only),
                self.root,
                files,
                gpu_free=asked.gpu_free,
                plan=asked.plan,
                tick=tick,
                workers=self.workers,
                lock=self.lock,
                until_s=self.until_s,
                first=self.first,
                later=stage.gate if stage.times_gpus_only and gate.is_open else "",
            )
        except KeyboardInterrupt as signal:
            interruption = signal
            end = SuiteEnd(-1, "it was interrupted", time.monotonic() - began, cut_off=True)
        finally:
            environment = environment_since(self.root, environment, written)
            note_invocation(self.folder, stage.name, replace(invocation, environment=environment))
        contention = contention_between(times, read_times())
        lines, collection = read_lines(files.results), read_collection(files.collected)
        run = StageRun(
            stage=stage.name,
            title=stage.title,
            gate_open=gate.is_open,
            gate_reason=gate.reason,
            requirements=stage.requirements,
            problem=end.problem
            or inconsistency(end, lines, collection, earlier.cases)
            or self._uncollected(stage, lines, collection),
            duration_s=end.duration_s,
            ended_utc="" if end.cut_off else utc_now(),
            collected=len(collection.collected) if collection is not None else 0,
            deselected=collection.deselected if collection is not None else (),
            plugins=collection.plugins if collection is not None else (),
            contention=contention,
        )
        run = earlier.added_to(run)
        if end.cut_off:
            in_vain = interruption is None and len(lines.cases) == len(earlier.cases)
            cure = "; no case ended within the time limit: allow more" if in_vain else ""
            run = replace(run, problem=f"{run.problem}: {unfinished(lines, run.collected)}{cure}")
        elif not run.problem:
            keep_durations(stage.name, asked.plan, {case.case: case.duration_s for case in lines.cases})
        note_end(files, run, cut_off=end.cut_off)
        if interruption is not None:
            raise interruption
        self.console.stage_ended(run, stage_cases(run, lines))

    def _uncollected(self, stage: Stage, lines: CaseLines, collection: Collection | None) -> str:
        """Name what the sources define and nobody collected."""
        assert collection is not None  # else it is an inconsistency
        missing = uncollected(self.root, stage.suites, collection, [case.case for case in lines.cases])
        return f"{len(missing)} test functions were not collected: {', '.join(missing[:3])}" if missing else ""

    def _record(self, asked: RunPlan, machine: FoundMachine) -> RunRecord:
        stages = tuple(self._stage_run(stage, machine.gates[stage.gate]) for stage in self._planned(asked))
        return assemble(self.folder, asked, stages, take_environment(self.root), machine.hardware)

    def _stage_run(self, stage: Stage, gate: Gate) -> StageRun:
        name = stage.name
        lines, found = (read_lines(self.folder.files(name).results), read_collection(self.folder.files(name).collected))
        begun = bool(lines.cases or lines.unfinished)
        collected = len(found.collected) if found else 0
        problem = f"it was interrupted: {unfinished(lines, collected)}" if begun else NOT_RUN
        known = name, stage.title, gate.is_open, gate.reason, stage.requirements
        waiting = StageRun(*known, problem, collected=collected if begun else 0)
        return finished_stage(self.folder, name) or cut_off_stage(self.folder, name) or waiting


def unfinished(lines: CaseLines, collected: int) -> str:
    """How far a stage without an end came, and the cure."""
    total = f" of {collected}" if collected else ""
    return f"{len(lines.cases)}{total} cases have a result; continue with --resume"


def assemble(
    folder: RunFolder,
    asked: RunPlan,
    stages: tuple[StageRun, ...],
    judge: Environment,
    hardware: Mapping[str, object],
) -> RunRecord:
    """The record of the run in ``folder``, judged by the checkout of ``judge``.

    A run whose stages have not all ended did not finish; one whose stages have ended when the last of them did,
    however often it is judged again.
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
    """The stage, with what became of its files after it ended well, or was cut off."""
    files = folder.files(run.stage)
    if run.problem or not files.done.is_file():
        changed = changed_since(files.cut_off)
        return replace(run, problem=f"{changed}; {run.problem}") if changed else run
    return replace(run, problem=damage(lines, read_collection(files.collected)) or changed_since(files.done))


def stage_cases(run: StageRun, lines: CaseLines) -> tuple[CaseResult, ...]:
    """Return the cases of a stage; one that began and never ended is an error that names what ended it."""
    reason = f"it began and never ended: {run.problem or 'the process ended during it'}"
    cut_short = (CaseResult(case, run.stage, (), Outcome.ERROR, reason, title=_name(case)) for case in lines.unfinished)
    modules = {case.case: case for case in lines.cases if "::" not in case.case}  # each sitting collects anew
    ended = (*modules.values(), *(case for case in lines.cases if case.case not in modules))
    return (*(replace(case, stage=run.stage) for case in ended), *cut_short)


def _name(case: str) -> str:
    return case.rpartition("::")[2]


def inconsistency(
    end: SuiteEnd, lines: CaseLines, collection: Collection | None, earlier: AnyCollection[str] = ()
) -> str:
    """Return why an exit status of 0 or 1 cannot be believed, or the empty string; it says nothing of ``earlier``."""
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
    """Return why results and collection of a stage that ended are not whole, or the empty string."""
    if lines.damage:
        return lines.damage
    if not lines.closed:
        return f"the results are cut short after {len(lines.cases)} cases: the line that ends them is missing"
    if collection is None:
        return "what was collected is not known: collected.json is missing or was changed"
    return unaccounted(collection, [case.case for case in lines.cases])
