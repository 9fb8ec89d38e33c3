"""Compares a run with the newest older baseline of its machine or class, in one sentence (ST-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reports.compared import change_text
from reports.judge.compare import Relation, compare
from reports.judge.difference import Change
from reports.values import units
from reports.values.machine import machine_of
from reports.values.measurement import Outcome
from reports.values.record import RunRecord

STAGE = "stage6"


def has_performance(record: RunRecord) -> bool:
    """Whether stage 6 measured anything."""
    return bool(_of_stage(record).measurements)


def standing(record: RunRecord, baselines: Sequence[RunRecord]) -> str:
    """Say whether the figures of stage 6 are slower than those of a baseline; empty if the run has none.

    The baseline is the newest one of the same machine that is older than the run and shares a figure with it; without
    one, the newest of the class. One run a side confirms nothing: *slower* means beyond the variation that A/A runs of
    the machine, or of its class, show.
    """
    mine = _of_stage(record)
    if not mine.measurements:
        return ""
    machine = machine_of(record)
    known = [_of_stage(run) for run in sorted(baselines, key=lambda run: run.started_utc, reverse=True)]
    known = [run for run in known if run.started_utc < record.started_utc and run.measurements]
    own = [run for run in known if machine.same_machine(machine_of(run))]
    of_class = [run for run in known if machine.same_class(machine_of(run))]
    for base in (*own, *of_class):
        comparison = compare([base], [mine], history=baselines)
        if comparison.rows:
            break
    else:
        unknown = "no older baseline of this machine or its class, so nothing says whether it is slower"
        return f"Performance: {unknown} ({machine.label})."
    whose = "this machine" if comparison.relation is Relation.SAME else "another machine of this class"
    slower = comparison.slower
    told = sum(row.change is not Change.UNKNOWN for row in comparison.rows)
    word = "not slower" if told else "cannot tell"
    if slower:
        word = f"{units.counted(len(slower), 'figure')} slower, most {slower[0].name} ({change_text(slower[0])})"
    figures = f"{told} of {units.counted(len(comparison.rows), 'figure')} could be told"
    return f"Performance against {comparison.base.label}, of {whose}: {word}; {figures}."


def _of_stage(record: RunRecord) -> RunRecord:
    cases = tuple(case for case in record.cases if case.stage == STAGE and case.outcome is not Outcome.SKIPPED)
    return replace(record, cases=cases, judgements=())
