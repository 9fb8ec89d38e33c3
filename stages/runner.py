"""Runs a plan, stage by stage, into one run folder, and continues an interrupted run (RE-1, RE-2, RE-6).

What has run is on disk after every case, so the record is always put together from the folder
(:mod:`stages.assembling`).
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hardware.gates import Gate
from hardware.inventory import take_inventory
from reports.store import write_run
from reports.values.machine import machine_in
from reports.values.record import Invocation, RunRecord, StageRun
from reports.values.serialise import encode
from stages.assembling import assemble, inconsistency, stage_cases, unfinished
from stages.collected import Collection, read_collection, uncollected
from stages.console import Console
from stages.contention import contention_between, read_times
from stages.environment import environment_since, take_environment, written_files
from stages.evidence import join_evidence
from stages.gating import Gatekeeper
from stages.plan import PLAN, Stage
from stages.progress import Progress, earlier_durations, keep_durations
from stages.provenance import note_invocation, read_invocations
from stages.pytest_command import MOST_WORKERS
from stages.results import CaseLines, read_lines
from stages.run_folder import NOT_RUN, RunFolder, RunPlan, StageFiles, utc_now, write_sealed
from stages.sittings import (
    Earlier,
    FoundMachine,
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
        The run's folder, in which the plan has been written.
    console : Console
        Prints the progress.
    plan : sequence of Stage
        All stages that there are; the plan of the run names some of them.
    workers : int
        Most processes in which the cases of a stage run side by side.
    lock : int or None
        File descriptor of the lock on the folder, which the processes of a stage keep open.
    until_s : float
        On the monotonic clock, in seconds: no stage and no case begins at that time or later.
    how : tuple of str
        Options of this start of the runner, for the record.
    first : tuple of str
        Cases whose names contain one of these texts run first.
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
        planned = self._planned(asked)
        waiting = [stage for stage in planned if not self.folder.files(stage.name).done.is_file()]
        due = [stage for stage in waiting if not only or stage.name in only]
        # The record of a finished run, judged again, keeps the machine that ran it.
        machine = None if waiting else kept_machine(self.folder.machine, {stage.gate for stage in planned})
        if machine is None:
            machine = FoundMachine(take_inventory().to_dict(), Gatekeeper(gpu_free=asked.gpu_free).gates)
            environment = take_environment(self.root)
            for stage in due:
                refuse_to_mix(self.folder, stage.name, environment, machine, stage.gate)
            write_sealed(self.folder.machine, encode(machine))
        invocation = self._invocation(asked, machine, only)
        shutil.rmtree(self.folder.compiled, ignore_errors=True)  # left by a run that was killed
        try:
            for stage in due:
                if time.monotonic() < self.until_s:
                    self._run_stage(stage, machine, invocation, asked)
        finally:
            shutil.rmtree(self.folder.compiled, ignore_errors=True)
            try:
                record = self._write_record(asked, machine)
            except KeyboardInterrupt:  # written again: end_in_order lets no second one come
                self._write_record(asked, machine)
                raise
        return record

    def stopped_in_order(self, record: RunRecord) -> bool:
        """Whether a time limit ended a stage between two cases, so that another sitting can go on with it."""
        stopped = [stage.stage for stage in record.stages if cut_off_stage(self.folder, stage.stage) is not None]
        lines = [read_lines(self.folder.files(stage).results) for stage in stopped]
        return any(found.closed and not found.unfinished for found in lines)

    def unmatched(self, stages: Iterable[str]) -> tuple[str, ...]:
        """Texts of ``first`` that no case of ``stages`` has in its name; empty until all of them were collected."""
        names: list[str] = []
        for stage in stages:
            collection = read_collection(self.folder.files(stage).collected)
            if collection is None:
                return ()
            names += collection.collected
        return tuple(text for text in self.first if not any(text in name for name in names))

    def _write_record(self, asked: RunPlan, machine: FoundMachine) -> RunRecord:
        stages = tuple(self._recorded(stage, machine.gates[stage.gate]) for stage in self._planned(asked))
        record = assemble(self.folder, asked, stages, take_environment(self.root), machine.hardware)
        return write_run(self.folder.path, record, join_evidence(self.folder, record.stages))

    def _planned(self, asked: RunPlan) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.plan if stage.name in asked.stages)

    def _invocation(self, asked: RunPlan, machine: FoundMachine, only: Sequence[str]) -> Invocation:
        """This start of the runner. A resumed run is named without the folders above it."""
        begun = read_invocations(self.folder, asked.stages)
        resumed = ("python", "-m", "stages", "run", "--resume", self.folder.path.name, *self.how)
        command = (*(resumed if begun else asked.command), *(word for name in only for word in ("--only", name)))
        return Invocation(command, utc_now(), take_environment(self.root), (), machine_in(machine.hardware).label)

    def _run_stage(self, stage: Stage, machine: FoundMachine, invocation: Invocation, asked: RunPlan) -> None:
        """Run what is left of a stage and keep how it ended; an interruption is raised after that."""
        files, gate = self.folder.files(stage.name), machine.gates[stage.gate]
        earlier = go_on(files)
        written, environment = written_files(self.root), take_environment(self.root)
        note_invocation(self.folder, stage.name, replace(invocation, environment=environment))
        write_sealed(files.machine, encode(machine))
        self.console.stage_begins(stage, gate)
        times = read_times()
        try:
            end, interruption = self._run_suites(stage, files, gate, asked, earlier)
        finally:
            environment = environment_since(self.root, environment, written)
            note_invocation(self.folder, stage.name, replace(invocation, environment=environment))
        contention = contention_between(times, read_times())
        lines = read_lines(files.results)
        run = earlier.added_to(replace(self._stage_run(stage, gate, end, lines, earlier), contention=contention))
        if end.cut_off:
            in_vain = interruption is None and run.collected and len(lines.cases) == len(earlier.cases)
            cure = "; no case ended within the time limit: allow more" if in_vain else ""
            run = replace(run, problem=f"{run.problem}: {unfinished(lines, run.collected)}{cure}")
        elif not run.problem:
            keep_durations(stage.name, asked.plan, {case.case: case.duration_s for case in lines.cases})
        note_end(files, run, cut_off=end.cut_off)
        if interruption is not None:
            raise interruption
        self.console.stage_ended(run, stage_cases(run, lines))

    def _run_suites(
        self, stage: Stage, files: StageFiles, gate: Gate, asked: RunPlan, earlier: Earlier
    ) -> tuple[SuiteEnd, KeyboardInterrupt | None]:
        """Run the suites of a stage; return how they ended, and the interruption that ended them, if one did."""
        durations = earlier_durations(stage.name, asked.plan)
        progress = Progress(files.results, files.collected, durations, kept=earlier.cases)
        began = time.monotonic()

        def tick() -> None:
            waiting = not progress.collected
            progress.look()
            if waiting and progress.collected:
                self.console.no_case_first(stage, self.unmatched([stage.name]))
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
        except KeyboardInterrupt as interruption:
            return SuiteEnd(-1, "it was interrupted", time.monotonic() - began, cut_off=True), interruption
        return end, None

    def _stage_run(self, stage: Stage, gate: Gate, end: SuiteEnd, lines: CaseLines, earlier: Earlier) -> StageRun:
        """How this sitting of a stage ended."""
        collection = read_collection(self.folder.files(stage.name).collected)
        problem = end.problem or inconsistency(end, lines, collection, earlier.cases)
        return StageRun(
            stage=stage.name,
            title=stage.title,
            gate_open=gate.is_open,
            gate_reason=gate.reason,
            requirements=stage.requirements,
            problem=problem or self._uncollected(stage, lines, collection),
            duration_s=end.duration_s,
            ended_utc="" if end.cut_off else utc_now(),
            collected=len(collection.collected) if collection is not None else 0,
            deselected=collection.deselected if collection is not None else (),
            plugins=collection.plugins if collection is not None else (),
        )

    def _uncollected(self, stage: Stage, lines: CaseLines, collection: Collection | None) -> str:
        """Which test functions the sources of a stage define and pytest did not collect; empty if none."""
        assert collection is not None  # else it is an inconsistency
        missing = uncollected(self.root, stage.suites, collection, [case.case for case in lines.cases])
        return f"{len(missing)} test functions were not collected: {', '.join(missing[:3])}" if missing else ""

    def _recorded(self, stage: Stage, gate: Gate) -> StageRun:
        """How a stage ended, or how far it came, as its folder says."""
        kept = finished_stage(self.folder, stage.name) or cut_off_stage(self.folder, stage.name)
        if kept is not None:
            return kept
        files = self.folder.files(stage.name)
        lines, collection = read_lines(files.results), read_collection(files.collected)
        about = stage.name, stage.title, gate.is_open, gate.reason, stage.requirements
        if not (lines.cases or lines.unfinished):
            return StageRun(*about, NOT_RUN)
        collected = len(collection.collected) if collection is not None else 0
        return StageRun(*about, f"it was interrupted: {unfinished(lines, collected)}", collected=collected)
