"""Why a run has no figure for a target: what the machine lacks, what did not run, what nothing measures."""

from __future__ import annotations

from collections.abc import Iterable

from reports.judge.targets import OWN, Target, mismatch
from reports.values.measurement import CaseResult
from reports.values.record import RunRecord, StageRun

_OF_MACHINE = ("device", "gpus", "cpu_ghz")
"""Conditions that the machine does not meet, whatever is run on it."""

_FAMILIES = {
    "stage1": ("kernel.registers_over", "kernel.spills_over"),
    "stage5": ("accuracy.", "parity."),
    "stage7": ("shard.", "scaling.", "link.", "rank.", "capacity."),
}
"""Stages by how their measurements are named; the others are those of stage 6."""

_OF_SEVERAL_GPUS = ("shard.", "scaling.", "link.", "capacity.")


def unjudged(record: RunRecord, targets: Iterable[Target]) -> tuple[tuple[Target, str], ...]:
    """Targets that no measurement of the run was held against, and why."""
    used = {judged.target for judged in record.judgements}
    return tuple((target, _why_unjudged(target, record)) for target in targets if target.id not in used)


def idle_lines(record: RunRecord, targets: Iterable[Target]) -> list[str]:
    """A line for each target of a user that judged nothing: its name or a condition may be misspelt."""
    own = [target for target in targets if target.source == OWN]
    return [f"Your target {target.id} judged nothing: {why}." for target, why in unjudged(record, own)]


def _why_unjudged(target: Target, record: RunRecord) -> str:
    """The reason given by the measurement that came closest to the target's conditions."""
    if target.not_judged:
        return target.not_judged
    names = list(target.conditions)
    reasons = [mismatch(measurement, target) for measurement in record.measured(target.measurement)]
    if not reasons:
        return "nothing here measures it"
    return max(reasons, key=lambda reason: next((i for i, name in enumerate(names) if f"{name} " in reason), -1))


def why_absent(target: Target, record: RunRecord) -> str:
    """Why the run has no figure for a goal: one reason for all that lack the same."""
    if target.not_judged or target.source == OWN:
        return _why_unjudged(target, record)
    name = stage_of_target(target)
    stage = next((one for one in record.stages if one.stage == name), None)
    if stage is None:
        return f"{name} is not in this run"
    of_stage = record.cases_of(name)
    if _is_shut_out(target, stage, of_stage):
        return stage.gate_reason.removesuffix(".")
    reason = _why_unjudged(target, record)
    if any(reason.startswith(f"{condition} ") for condition in _OF_MACHINE):
        return reason
    if stage.problem:
        return f"{name} {'did not finish' if of_stage else 'did not run'}"
    return reason if reason.startswith("devices ") else f"no case of this {record.plan} run measures it"


def stage_of_target(target: Target) -> str:
    """The stage whose cases measure what ``target`` judges."""
    families = (stage for stage, names in _FAMILIES.items() if target.measurement.startswith(names))
    return next(families, "stage6")


def _is_shut_out(target: Target, stage: StageRun, cases: Iterable[CaseResult]) -> bool:
    """Whether the gate of the stage is what the target's cases failed to pass."""
    of_gpu = target.conditions.get("backend") == "cuda"
    of_several = target.measurement.startswith(_OF_SEVERAL_GPUS)
    if stage.gate_open or not (of_gpu or of_several):
        return False
    measured = (measurement for case in cases for measurement in case.measurements)
    return of_several or not any(one.conditions.get("backend") == "cuda" for one in measured)
