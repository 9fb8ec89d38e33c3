"""Why a run has no figure for a target: the machine lacks something, a stage did not run, or no case measures it."""

from __future__ import annotations

from collections.abc import Iterable

from reports.judge.targets import OWN, Target, mismatch
from reports.values.measurement import CaseResult
from reports.values.record import RunRecord, StageRun

_OF_MACHINE = ("device", "gpus", "cpu_ghz")
"""Conditions that depend on the machine alone, whatever is run on it."""

_FAMILIES = {
    "stage1": ("kernel.registers_over", "kernel.spills_over"),
    "stage5": ("accuracy.", "parity."),
    "stage7": ("shard.", "scaling.", "link.", "rank.", "capacity."),
}
"""By stage, the prefixes of the names of its measurements; all other measurements belong to stage 6.

A target for measurements of another prefix and another stage needs an entry here.
"""

_OF_SEVERAL_GPUS = ("shard.", "scaling.", "link.", "capacity.")


def unjudged(record: RunRecord, targets: Iterable[Target]) -> tuple[tuple[Target, str], ...]:
    """Targets that no measurement of the run was judged by, and why."""
    used = {judged.target for judged in record.judgements}
    return tuple((target, _why_unjudged(target, record)) for target in targets if target.id not in used)


def idle_lines(record: RunRecord, targets: Iterable[Target]) -> list[str]:
    """A line for each user target that judged nothing, since its name or a condition may be misspelt."""
    own = [target for target in targets if target.source == OWN]
    return [f"Your target {target.id} judged nothing: {why}." for target, why in unjudged(record, own)]


def _why_unjudged(target: Target, record: RunRecord) -> str:
    """Why no measurement matches: of several reasons, that of the measurement that met the most conditions."""
    if target.not_judged:
        return target.not_judged
    names = list(target.conditions)
    reasons = [mismatch(measurement, target) for measurement in record.measured(target.measurement)]
    if not reasons:
        return "nothing here measures it"

    def failed_condition(reason: str) -> int:
        return next((place for place, name in enumerate(names) if f"{name} " in reason), -1)

    return max(reasons, key=failed_condition)


def why_absent(target: Target, record: RunRecord) -> str:
    """Why the run has no figure for a goal; goals that lack the same thing get the same text."""
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
    """Whether the closed gate of the stage kept the target's cases from running."""
    of_gpu = target.conditions.get("backend") == "cuda"
    of_several = target.measurement.startswith(_OF_SEVERAL_GPUS)
    if stage.gate_open or not (of_gpu or of_several):
        return False
    measured = (measurement for case in cases for measurement in case.measurements)
    return of_several or not any(one.conditions.get("backend") == "cuda" for one in measured)
