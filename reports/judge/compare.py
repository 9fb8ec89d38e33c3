"""Two or more runs held against each other: faster, slower, same, or cannot tell (requirement RE-4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from burstproof.errors import ExitCode, InputError
from reports.judge.statistics import Change, Difference, difference, median
from reports.judge.verdict import case_verdict
from reports.values import units
from reports.values.measurement import SPAN, Measurement, Verdict
from reports.values.record import RunRecord

MACHINE_CONDITIONS = frozenset({"device", "cpu_ghz", "floor", "found", "single_gpu_ms"})
"""Conditions that name the machine and not the work: figures are paired across them."""
_BAD = (Verdict.FAIL, Verdict.ERROR)
_NOISE = 0.03

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class ComparedRow:
    """One measurement of the baseline and what each candidate makes of it; ``None`` where a candidate lacks it."""

    name: str
    conditions: str
    baseline: str
    candidates: tuple[tuple[str, Difference] | None, ...]


@dataclass(frozen=True)
class CaseChange:
    """A case whose verdict differs from the baseline's."""

    case: str
    candidate: str
    before: Verdict
    after: Verdict

    @property
    def regression(self) -> bool:
        """Whether what passed now fails or cannot be judged."""
        return self.before in (Verdict.PASS, Verdict.MARGINAL) and self.after in _BAD


@dataclass(frozen=True)
class Comparison:
    """The comparison of runs: ``runs[0]`` is the baseline."""

    runs: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    cases: tuple[CaseChange, ...]
    environment: tuple[tuple[str, tuple[str, ...]], ...]
    unpaired: tuple[str, ...]

    @property
    def regressions(self) -> tuple[str, ...]:
        """Confirmed regressions in words: figures whose interval lies beyond the noise, cases that now fail."""
        slower = [
            f"{row.name} ({row.conditions}) in {run}"
            for row in self.rows
            for run, pair in zip(self.runs[1:], row.candidates, strict=True)
            if pair and pair[1].change is Change.SLOWER
        ]
        worse = [f"{change.case} in {change.candidate}" for change in self.cases if change.regression]
        return (*slower, *worse)

    @property
    def exit_code(self) -> ExitCode:
        """FAIL on a confirmed regression, UNDECIDED where nothing could be paired."""
        if self.regressions:
            return ExitCode.FAIL
        return ExitCode.PASS if self.rows else ExitCode.UNDECIDED


def compare(records: Sequence[RunRecord], *, across: Sequence[str] = (), noise: float = _NOISE) -> Comparison:
    """Compare runs with the first.

    Parameters
    ----------
    records : sequence of RunRecord
        Baseline first, then one or more candidates.
    across : sequence of str
        Conditions that may differ within a pair besides the machine's: ``backend`` pairs CPU with CUDA figures.
    noise : float
        Relative difference of medians that is of no account.

    Raises
    ------
    InputError
        If there are fewer than two runs.
    """
    if len(records) < 2:
        raise InputError("a comparison takes two runs or more", got=len(records))
    dropped = MACHINE_CONDITIONS | set(across)
    base, *others = [figures(record, dropped) for record in records]
    rows = tuple(_row(key, base[key], others, noise) for key in base if any(key in other for other in others))
    unpaired = [key for key in base if all(key not in other for other in others)]
    unpaired += [key for other in others for key in other if key not in base]
    return Comparison(
        runs=tuple(record.run_id for record in records),
        rows=rows,
        cases=tuple(change for record in records[1:] for change in _case_changes(records[0], record)),
        environment=_environment(records),
        unpaired=tuple(dict.fromkeys(f"{name} ({words(conditions)})" for name, conditions in unpaired)),
    )


def figure_key(measurement: Measurement, dropped: frozenset[str]) -> Key:
    """What makes two figures the same measurement."""
    kept = ((name, units.scalar_text(value)) for name, value in measurement.conditions.items() if name not in dropped)
    return measurement.name, tuple(sorted(kept))


def samples_of(measurement: Measurement) -> tuple[float, ...]:
    """The finite samples, or the value alone where none were taken; empty where there is no figure."""
    samples = measurement.samples or (() if measurement.value is None else (measurement.value,))
    return samples if all(math.isfinite(sample) for sample in samples) else ()


def figures(record: RunRecord, dropped: frozenset[str]) -> dict[Key, Measurement]:
    """Every time and rate of a run; a second figure under the same key is told apart by its number."""
    found: dict[Key, Measurement] = {}
    for measurement in record.measurements:
        usable = samples_of(measurement)
        comparable = units.lower_is_better(measurement.unit) is not None and measurement.name != SPAN
        if not comparable or not usable or median(usable) <= 0.0:
            continue
        name, conditions = key = figure_key(measurement, dropped)
        number = 1
        while key in found:
            number += 1
            key = (name, (*conditions, ("repetition", str(number))))
        found[key] = measurement
    return found


def _row(key: Key, baseline: Measurement, others: Sequence[Mapping[Key, Measurement]], noise: float) -> ComparedRow:
    pairs = tuple(_pair(baseline, other.get(key), noise) for other in others)
    return ComparedRow(key[0], words(key[1]), _value(baseline), pairs)


def _pair(baseline: Measurement, candidate: Measurement | None, noise: float) -> tuple[str, Difference] | None:
    if candidate is None or units.dimension(baseline.unit) != units.dimension(candidate.unit):
        return None
    converted = [units.convert(sample, candidate.unit, baseline.unit) for sample in samples_of(candidate)]
    lower = units.lower_is_better(baseline.unit) is True
    found = difference(samples_of(baseline), converted, tolerance=noise, lower_is_better=lower)
    return _value(candidate), found


def _value(measurement: Measurement) -> str:
    return units.readable(median(samples_of(measurement)), measurement.unit)


def words(conditions: Sequence[tuple[str, str]]) -> str:
    """Conditions for people."""
    return ", ".join(f"{name} {value}" for name, value in conditions)


def _case_changes(baseline: RunRecord, candidate: RunRecord) -> list[CaseChange]:
    before = {case.case: case_verdict(case, baseline.judgements) for case in baseline.cases}
    changes = []
    for case in candidate.cases:
        after = case_verdict(case, candidate.judgements)
        if case.case in before and before[case.case] is not after:
            changes.append(CaseChange(case.case, candidate.run_id, before[case.case], after))
    return sorted(changes, key=lambda change: not change.regression)


def _environment(records: Sequence[RunRecord]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What differs between the environments of the runs, one row per thing, one text per run."""
    facts = [_facts(record) for record in records]
    names = dict.fromkeys(name for fact in facts for name in fact)
    rows = ((name, tuple(fact.get(name, "absent") for fact in facts)) for name in names)
    return tuple((name, texts) for name, texts in rows if len(set(texts)) > 1)


def _facts(record: RunRecord) -> dict[str, str]:
    environment, hardware = record.environment, record.hardware
    gpus, host = hardware.get("gpus"), hardware.get("host")
    named = [str(gpu.get("name")) for gpu in gpus if isinstance(gpu, Mapping)] if isinstance(gpus, list | tuple) else []
    absent = "none" if isinstance(host, Mapping) else "not recorded"
    facts = {"GPUs": ", ".join(named) or absent, "driver": str(hardware.get("driver_version") or absent)}
    if isinstance(host, Mapping):
        facts["CPU"] = f"{host.get('cpu')}, {host.get('usable_cores')} cores"
    facts |= {"python": environment.python, "platform": environment.platform}
    facts["commit"] = environment.git_commit + (" with local changes" if environment.git_dirty else "")
    facts |= {f"package {name}": version for name, version in environment.packages.items()}
    facts |= {f"variable {name}": value for name, value in environment.variables.items()}
    return facts
