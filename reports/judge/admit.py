"""Whether a record may be quoted (requirement RE-9): every reason why not, in words."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from burstproof.errors import InputError, shortened
from hardware.nvml_codes import THROTTLING, ClockReason, clock_reason_words
from reports.git import ask_git
from reports.judge.bases import settled
from reports.judge.judging import targets_sha256
from reports.judge.targets import Status, Target, load_targets, parse_targets
from reports.judge.verdict import FLOOR_CONDITION, judge_cases, summary_of
from reports.values import units
from reports.values.judgement import JudgedMeasurement, Judgement, ReasonCode
from reports.values.machine import machine_in
from reports.values.measurement import Measurement
from reports.values.record import NIGHTLY, THOROUGH, RunRecord, StageRun

_CHECKOUT = Path(__file__).parents[2]
_TARGETS = "reports/targets.toml"
_DIGEST = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
"""A full commit digest. Git takes other texts for options, or for names that may mean another commit tomorrow."""

_NAMED = 3
_HELD_BACK = set(clock_reason_words(THROTTLING & ~ClockReason.SW_POWER_CAP))
"""Clock reasons that spoil a figure. The power limit is not among them: dense work always runs at it."""

_NO_TIME = "is no time like 2026-11-20T22:14:03Z"
_SAMPLE_NOISE = 1e-6
"""How far a value may lie outside its samples, as a fraction of the largest: the mean of equal samples is rounded."""


def reasons_against(record: RunRecord, checkout: Path = _CHECKOUT) -> tuple[str, ...]:
    """Why ``record`` may not be quoted; empty if it may.

    Parameters
    ----------
    record : RunRecord
        As :func:`reports.store.load_run` read it, which refuses edited ones.
    checkout : Path
        A checkout that has the commit of the record. The record must have been judged with the targets of that commit.

    Returns
    -------
    tuple of str
        One sentence for each reason. A verdict is no reason: a FAIL may be quoted as a FAIL.
    """
    targets, problem = _targets_of(record, checkout)
    return (
        *_seal(record),
        *_summary(record),
        *_clock(record),
        *_commit(record),
        *_software(record),
        *_plan(record),
        *_machine(record),
        *_judging(record, targets, problem),
        *_samples(record),
        *_floors(record),
        *_throttling(record),
        *_judged_again(record, targets),
    )


def _seal(record: RunRecord) -> Iterator[str]:
    if not record.seal:
        yield "it has no digests: nobody can tell whether it was changed"


def _summary(record: RunRecord) -> Iterator[str]:
    found = summary_of(record)
    if record.seal and record.summary != found:
        said = _summary_words(record.summary)
        yield f"its summary says {said}; its stages, cases and judgements give {_summary_words(found)}"


def _summary_words(summary: Mapping[str, str | int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in summary.items()) or "nothing"


def _clock(record: RunRecord) -> Iterator[str]:
    began, finished = _moment(record.started_utc), _moment(record.finished_utc)
    if began is None:
        yield f"it does not say when it began: '{shortened(record.started_utc)}' {_NO_TIME}"
    if finished is None and record.finished_utc:
        yield f"it does not say when it finished: '{shortened(record.finished_utc)}' {_NO_TIME}"
    if began and finished and finished < began:
        yield f"it finished at {record.finished_utc}, before it began at {record.started_utc}: the clock was set"


def _moment(utc: str) -> datetime | None:
    try:
        return datetime.strptime(utc, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return None


def _commit(record: RunRecord) -> Iterator[str]:
    if not record.invocations:
        yield "it does not say which invocations contributed"
    commits = {one.environment.git_commit for one in record.invocations}
    if "" in commits:
        yield "it was run outside a checkout: no commit has its code"
    if len(commits) > 1:
        yield f"its stages were run at {len(commits)} commits: {_first([commit[:12] or 'none' for commit in commits])}"
    if record.environment.git_dirty or any(one.environment.git_dirty for one in record.invocations):
        yield f"the checkout had local changes: {_first(record.environment.git_changes) or 'which is not said'}"


def _software(record: RunRecord) -> Iterator[str]:
    """Different stages may have different environments; the sittings of one stage may not."""
    found: dict[str, set[object]] = {}
    for one in record.invocations:
        for stage in one.stages:
            found.setdefault(stage, set()).add((one.environment.python, frozenset(one.environment.packages.items())))
    mixed = [stage for stage, several in found.items() if len(several) > 1]
    if mixed:
        yield f"cases of one stage ran with other versions of Python or packages than the rest: {_first(mixed)}"


def _plan(record: RunRecord) -> Iterator[str]:
    if record.plan not in (THOROUGH, NIGHTLY):
        yield f"only the {record.plan} plan was run"
    if record.asked:
        yield f"only {', '.join(record.asked)} of the plan was asked for"
    if not record.finished_utc:
        yield "the run did not finish"
    listed = {stage.stage for stage in record.stages}
    named = [*(name for one in record.invocations for name in one.stages), *(case.stage for case in record.cases)]
    lost = [name for name in named if name not in listed]
    if lost:
        yield f"its plan lacks stages that its invocations or cases name: {_first(lost)}"
    for stage in record.stages:
        yield from _stage(record, stage)


def _stage(record: RunRecord, stage: StageRun) -> Iterator[str]:
    reported = len(record.cases_of(stage.stage))
    if stage.problem:
        yield f"{stage.stage} did not finish: {stage.problem}"
    if stage.deselected:
        cases = units.counted(len(stage.deselected), "case")
        yield f"{cases} of {stage.stage} left out: {_first(stage.deselected)}"
    if not stage.collected:
        yield f"{stage.stage} does not say how many cases it collected"
    elif stage.collected != reported + len(stage.deselected):
        yield f"{stage.stage} collected {stage.collected} cases and reports {reported}"


def _machine(record: RunRecord) -> Iterator[str]:
    machines = dict.fromkeys(one.machine for one in record.invocations)
    if "" in machines:
        yield "an invocation does not say which machine it ran on"
    if len(machines) > 1:
        yield f"it was run on {len(machines)} machines: {_first([name or 'unknown' for name in machines])}"
    inventory, named = machine_in(record.hardware).label, [name.replace(" x ", " × ") for name in machines if name]
    if named and inventory not in named:
        yield f"its hardware is that of {inventory}; its invocations ran on {_first(named)}"


def _targets_of(record: RunRecord, checkout: Path) -> tuple[Sequence[Target] | None, str]:
    """The targets of the record's commit, or ``None`` and why they cannot be read."""
    commit = record.environment.git_commit
    if not commit:
        return None, "there is no commit whose targets it could have been judged with"
    if not _DIGEST.fullmatch(commit):
        return None, f"its commit is {shortened(commit)!r}, no full digest of git: 40 or 64 digits of 0-9 and a-f"
    try:
        said = ask_git(checkout, "show", "--end-of-options", f"{commit}:{_TARGETS}", "--", timeout_s=30.0)
        if said.returncode == 0:
            return parse_targets(tomllib.loads(said.stdout.decode()), f"{commit[:12]}:{_TARGETS}"), ""
        why = said.stderr.decode(errors="replace").strip()
    except (OSError, subprocess.TimeoutExpired, ValueError, InputError) as error:
        why = str(error)
    return None, f"the targets of commit {commit[:12]} cannot be read here: {why}"


def _judging(record: RunRecord, targets: Sequence[Target] | None, problem: str) -> Iterator[str]:
    if problem:
        yield problem
    if not record.judged:
        yield "it does not say what it was judged with"
        return
    last = record.judged[-1]
    if last.commit != record.environment.git_commit or last.dirty:
        changes = " with local changes" if last.dirty else ""
        yield f"it was judged by commit {last.commit[:12] or 'none'}{changes}, not by the one that was run"
    if targets is not None and last.targets_sha256 != targets_sha256(targets):
        yield "it was judged with other targets than those of its commit"


def _samples(record: RunRecord) -> Iterator[str]:
    if record.thinned_from:
        yield f"its samples were thinned; quote the whole record: {record.thinned_from}"
    apart = [m.name for m in record.measurements if not m.is_among_samples(_SAMPLE_NOISE)]
    if apart:
        yield f"{units.counted(len(apart), 'value')} outside the range of the samples: {_first(apart)}"


def _floors(record: RunRecord) -> Iterator[str]:
    better = [one.measurement for one in record.judgements if one.judgement.reason_code is ReasonCode.FASTER_THAN_FLOOR]
    if better:
        yield f"{units.counted(len(better), 'figure')} better than what the hardware can do: {_first(better)}"
    goals = {target.id for target in load_targets() if target.status is Status.GOAL}
    places = record.by_place
    judged = [(places.get((one.case, one.index)), one.judgement) for one in record.judgements if one.target in goals]
    bare = [measurement.name for measurement, given in judged if measurement and _lacks_floor(measurement, given)]
    if bare:
        yield f"{units.counted(len(bare), 'latency figure')} of a GPU judged without a floor: {_first(bare)}"


def _lacks_floor(measurement: Measurement, judgement: Judgement) -> bool:
    if measurement.conditions.get("backend") != "cuda" or units.dimension(measurement.unit) != "time":
        return False
    floors = [judgement.limits.floor if judgement.limits else None, measurement.number(FLOOR_CONDITION)]
    return not any(floor is not None and floor > 0.0 for floor in floors)


def _throttling(record: RunRecord) -> Iterator[str]:
    slowed: dict[str, str] = {}
    for measurement in record.measurements:
        found = str(measurement.telemetry.get("clock_reasons", ""))
        if measurement.telemetry.get("throttled") is True and (not found or _HELD_BACK & set(found.split(", "))):
            slowed[measurement.name] = f"{measurement.name} ({found or 'no reason given'})"
    if slowed:
        yield f"the GPU was throttled during {units.counted(len(slowed), 'measurement')}: {_first([*slowed.values()])}"


def _judged_again(record: RunRecord, targets: Sequence[Target] | None) -> Iterator[str]:
    """Figures for which judging the samples again gives another judgement than the record has."""
    if targets is None:
        return
    thinned = bool(record.thinned_from)
    said = {_place(one): one.judgement for one in settled(record).judgements}
    again = {_place(one): one.judgement for one in judge_cases(record.cases, targets)}
    differing = [
        f"{place[2]} [{place[3]}]"
        for place in {**said, **again}
        if not _same(said.get(place), again.get(place), thinned=thinned)
    ]
    if differing:
        count = units.counted(len(differing), "figure")
        yield f"judging the samples again gives another result for {count}: {_first(differing)}"


def _place(judged: JudgedMeasurement) -> tuple[str, int, str, str]:
    return judged.case, judged.index, judged.measurement, judged.target


def _same(said: Judgement | None, again: Judgement | None, *, thinned: bool) -> bool:
    """Whether two judgements agree: figures to nine digits, and limits if they are stated; the wording may differ.

    A thinned record has fewer samples, of five digits, than its intervals were computed from. Its intervals are not
    compared, and whether one of them straddles the limit may differ.
    """
    if said is None or again is None or (said.limits is not None and said.limits != again.limits):
        return False
    if thinned and ReasonCode.INTERVAL_STRADDLES_LIMIT in (said.reason_code, again.reason_code):
        return _figures(said, thinned=True) == _figures(again, thinned=True)
    return _decided(said, thinned=thinned) == _decided(again, thinned=thinned)


def _decided(judgement: Judgement, *, thinned: bool) -> tuple[object, ...]:
    return judgement.verdict, judgement.reason_code, *_figures(judgement, thinned=thinned)


def _figures(judgement: Judgement, *, thinned: bool) -> tuple[str | None, ...]:
    interval = None if thinned else judgement.interval
    figures = [judgement.value, *((interval.low, interval.high) if interval else ())]
    return judgement.unit, *(None if figure is None else f"{figure:.9g}" for figure in figures)


def _first(texts: Sequence[str]) -> str:
    return units.first_of(tuple(dict.fromkeys(texts)), _NAMED)
