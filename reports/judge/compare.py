"""Runs held against each other: faster, slower, same, or cannot tell (requirements RE-4 and RE-8)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import median as middle

from burstproof.errors import ExitCode, InputError
from reports.judge.difference import (
    EQUAL,
    LEAST_RUNS,
    NOISE,
    Change,
    Difference,
    are_interleaved,
    change_of,
    difference,
    discoveries,
    page_tails,
    runs_difference,
)
from reports.judge.direction import lower_is_better
from reports.judge.findings import (
    CaseChange,
    Finding,
    case_changes,
    environment_differences,
    find_all,
    stages_apart,
)
from reports.judge.pairing import Figure, Key, figures, first_figures, is_counted, samples_of, words
from reports.judge.thermometer import Kind, thermometer_kind
from reports.judge.variation import Variation, pair_difference, seen_variation
from reports.values import units
from reports.values.judgement import Interval
from reports.values.machine import Machine, machine_of
from reports.values.record import RunRecord

_RECIPROCAL = 1e-5
"""A time and a rate whose product is the same on both sides, to this, are one measurement."""

_NAMED_COMMITS = 3


class Relation(Enum):
    """How the machines of the two sides are related."""

    SAME = "one machine"
    CLASS = "machines of one class"
    OTHER = "different machines"


@dataclass(frozen=True)
class Side:
    """One side of a comparison: one run, or several, which should be of the same code on the same machine.

    ``machine`` is that of the first run, and says how many others there are.
    """

    runs: tuple[RunRecord, ...]
    figures: tuple[Mapping[Key, Figure], ...]
    machine: Machine

    @property
    def label(self) -> str:
        """The run, or how many there are, with their commits."""
        commits = dict.fromkeys(run.environment.git_commit[:8] for run in self.runs)
        named = units.first_of(list(filter(None, commits)), _NAMED_COMMITS)
        at = f" at {named}" if named else ""
        return f"{self.runs[0].run_id}{at}" if len(self.runs) == 1 else f"{len(self.runs)} runs{at}"

    @property
    def keys(self) -> dict[Key, Figure]:
        """Every figure that some run has, as its first run has it."""
        return first_figures(self.figures)


@dataclass(frozen=True)
class Row:
    """One measurement: old and new for people, the difference, and whether it is confirmed.

    ``shown_ratio`` is that of ``new`` to ``old``; the difference has one of its own, without the session's drift.
    ``also`` holds what else was derived from the same measurement: the rate that belongs to a time.
    """

    key: Key
    kind: Kind | None
    old: str
    new: str
    difference: Difference
    lower: bool | None
    confirmed: bool
    is_counted: bool
    unit: str
    shown_ratio: float
    also: tuple[str, ...] = ()

    @property
    def change(self) -> Change:
        """What is said of it."""
        return self.difference.change

    @property
    def size(self) -> float:
        """Size of the change, the same for a half and a double; infinite from or to zero."""
        ratio = self.difference.ratio
        return abs(math.log(ratio)) if 0.0 < ratio < math.inf else math.inf

    @property
    def name(self) -> str:
        """Name of the measurement."""
        return self.key[0]

    @property
    def conditions(self) -> str:
        """What it holds for."""
        return words(self.key[1])

    @property
    def word(self) -> str:
        """The verdict as people say it: an error is not slower, it is worse."""
        return self.change.word(self.unit)

    @property
    def gain(self) -> float:
        """By how much the new side is better: 2 is twice as fast."""
        return 1.0 / self.difference.ratio if self.lower and self.difference.ratio else self.difference.ratio


@dataclass(frozen=True)
class Comparison:
    """Two sides held against each other; ``rows`` are sorted by the size of their change, the largest first.

    ``confirms`` says whether the runs can confirm a change: several a side, in turns, on one machine. ``apart`` has the
    stages that only the old side, and only the new side, was asked for.
    """

    base: Side
    new: Side
    relation: Relation
    rows: tuple[Row, ...]
    thermometer: tuple[Row, ...]
    cases: tuple[CaseChange, ...]
    environment: tuple[tuple[str, str, str], ...]
    findings: tuple[Finding, ...]
    noise: float
    any_machine: bool
    confirms: bool
    apart: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def counts(self) -> bool:
        """Whether a change may be the code's: one machine, or the user says that the machine does not matter."""
        return self.relation is Relation.SAME or self.any_machine

    @property
    def slower(self) -> tuple[Row, ...]:
        """Figures that became worse, confirmed or not."""
        return tuple(row for row in self.rows if row.change is Change.SLOWER)

    @property
    def faster(self) -> tuple[Row, ...]:
        """Figures that became better, confirmed or not."""
        return tuple(row for row in self.rows if row.change is Change.FASTER)

    @property
    def regressions(self) -> tuple[Row, ...]:
        """Confirmed: several interleaved runs a side, or counted and not timed."""
        return tuple(row for row in self.slower if row.confirmed)

    @property
    def worse_cases(self) -> tuple[CaseChange, ...]:
        """Cases that passed and now fail; they count on one machine, as figures do."""
        return tuple(case for case in self.cases if case.regression)

    @property
    def undecided(self) -> tuple[Row, ...]:
        """Figures that may have become worse, and nobody can tell.

        Of runs that confirm, those that look worse by more than the noise; of one pair all that it leaves open.
        """
        open_ = (row for row in self.rows if row.change is Change.UNKNOWN)
        return tuple(row for row in open_ if not self.confirms or row.gain < 1.0 / (1.0 + self.noise))

    def exit_code(self, *, strict: bool = False) -> ExitCode:
        """FAIL on a confirmed regression, UNDECIDED without a pair.

        ``strict``: FAIL on whatever is slower or found, too, and UNDECIDED where a figure is undecided.
        """
        if self.counts and (self.regressions or self.worse_cases):
            return ExitCode.FAIL
        if strict and (self.findings or (self.counts and self.slower)):
            return ExitCode.FAIL
        left_open = strict and self.counts and self.undecided
        return ExitCode.PASS if (self.rows or self.thermometer) and not left_open else ExitCode.UNDECIDED


def compare(
    base: Sequence[RunRecord],
    new: Sequence[RunRecord],
    *,
    noise: float = NOISE,
    history: Sequence[RunRecord] = (),
    any_machine: bool = False,
) -> Comparison:
    """Hold the runs of one side against those of the other.

    Parameters
    ----------
    base, new : sequence of RunRecord
        One run or more a side. Three or more a side, taken in turns on one machine, can confirm a change.
    noise : float
        Relative change that is of no account.
    history : sequence of RunRecord
        Earlier runs; those of the machine, or of its class, show how much one run differs from the next.
    any_machine : bool
        Judge as if all runs came from one machine.

    Raises
    ------
    InputError
        If a side has no run.
    """
    if not base or not new:
        raise InputError("a comparison takes a run or more on each side", got=(len(base), len(new)))
    before, after = _side(base), _side(new)
    relation = _relation((*base, *new))
    variation = _variation(before, after, relation, history)
    judge = _Judge(before, after, relation, variation, noise, any_machine)
    old, fresh = before.keys, after.keys
    rows = _folded([judge.row(key) for key in old if key in fresh and judge.comparable(key)], before, after)
    ours = _confirmed([row for row in rows if row.kind is None], judge.by_runs)
    return Comparison(
        before,
        after,
        relation,
        tuple(sorted(ours, key=lambda row: -row.size)),
        tuple(sorted((row for row in rows if row.kind is not None), key=lambda row: -row.size)),
        case_changes(base, new),
        environment_differences(base, new, before.machine, after.machine),
        find_all(base, new, before.figures, after.figures, noise),
        noise,
        any_machine,
        judge.confirms,
        stages_apart(base, new),
    )


def _side(runs: Sequence[RunRecord]) -> Side:
    ordered = tuple(sorted(runs, key=lambda run: run.started_utc))
    machines: list[Machine] = []
    for machine in map(machine_of, ordered):
        if machine not in machines:
            machines.append(machine)
    others = machines[0].others + len(machines) - 1
    return Side(ordered, tuple(figures(run) for run in ordered), replace(machines[0], others=others))


def _relation(runs: Sequence[RunRecord]) -> Relation:
    first, *others = (machine_of(run) for run in runs)
    if all(run == runs[0] for run in runs) or all(first.same_machine(other) for other in others):
        return Relation.SAME
    return Relation.CLASS if all(first.same_class(other) for other in others) else Relation.OTHER


def _variation(base: Side, new: Side, relation: Relation, history: Sequence[RunRecord]) -> Variation:
    """What the runs of the machine, or of its class, have been seen to vary by; without ``history``, nothing."""
    known = {run.origin: run for run in (*history, *base.runs, *new.runs)}.values()
    if relation is Relation.SAME:
        mine = [run for run in known if base.machine.same_machine(machine_of(run))]
        return seen_variation(mine, "this machine")
    of_class = [run for run in known if base.machine.same_class(machine_of(run))]
    whose = "this class" if relation is Relation.CLASS else "the old side's class"
    return seen_variation(of_class, f"machines of {whose}")


class _Judge:
    """Judges each figure that both sides have."""

    def __init__(
        self, base: Side, new: Side, relation: Relation, variation: Variation, noise: float, any_machine: bool
    ) -> None:
        self._base, self._new, self._noise = base, new, noise
        self._relation, self._variation = relation, variation
        one_machine = relation is Relation.SAME or any_machine
        self.by_runs = one_machine and min(len(base.runs), len(new.runs)) >= LEAST_RUNS
        self._in_turns = are_interleaved(*([_when(run) for run in side.runs] for side in (base, new)))
        self.confirms = self.by_runs and self._in_turns
        self._one_machine = one_machine

    def comparable(self, key: Key) -> bool:
        runs = (run for side in (self._base, self._new) for run in side.figures if key in run)
        return len({units.dimension(run[key].measurement.unit) for run in runs}) == 1

    def row(self, key: Key) -> Row:
        old, new = self._base.keys[key], self._new.keys[key]
        lower = lower_is_better(old.measurement)
        unit = old.measurement.unit
        counted = is_counted(old.measurement)
        found = self._difference(key, lower, counted)
        if lower is None and found.change in (Change.FASTER, Change.SLOWER):
            found = replace(found, change=Change.UNKNOWN, reason="changed; nothing says which way is better")
        centres = [self._centres(side, key, unit) for side in (self._base, self._new)]
        middles = [middle(values) for values in centres]
        before, after = (units.readable(value, unit) for value in middles)
        shown = middles[1] / middles[0] if middles[0] else math.nan
        confirmed = counted and self._one_machine
        kind = thermometer_kind(new.measurement)
        return Row(key, kind, before, after, found, lower, confirmed, counted, unit, shown)

    def _centres(self, side: Side, key: Key, unit: str) -> list[float]:
        found = [run[key] for run in side.figures if key in run]
        return [units.convert(figure.centre, figure.measurement.unit, unit) for figure in found]

    def _difference(self, key: Key, lower: bool | None, counted: bool) -> Difference:
        unit = self._base.keys[key].measurement.unit
        old, new = (self._centres(side, key, unit) for side in (self._base, self._new))
        if lower is not False:  # a signed error: its size is what counts
            old, new = [abs(value) for value in old], [abs(value) for value in new]
        if len(set(old)) == len(set(new)) == 1 and old[0] == new[0]:
            return Difference(Change.SAME, 1.0, None, reason=EQUAL)
        if min(*old, *new) <= 0.0:
            return _with_zero(middle(old), middle(new), lower)
        ratio = math.exp(sum(map(math.log, new)) / len(new) - sum(map(math.log, old)) / len(old))
        if counted:
            change = change_of(ratio, Interval(ratio, ratio, 1.0), self._noise, lower is True)
            return Difference(change, ratio, None, reason="counted, not timed")
        if self.by_runs and len(old) == len(self._base.runs) and len(new) == len(self._new.runs):
            return self._of_runs(old, new, lower is True)
        return self._of_one_pair(key, ratio, lower is True)

    def _of_runs(self, old: Sequence[float], new: Sequence[float], lower: bool) -> Difference:
        sides = [
            [(_when(run), value) for run, value in zip(side.runs, values, strict=True)]
            for side, values in ((self._base, old), (self._new, new))
        ]
        if not self._in_turns:
            ratio = middle(new) / middle(old)
            return Difference(Change.UNKNOWN, ratio, None, reason="the runs of the two sides were not taken in turns")
        found = runs_difference(*sides, tolerance=self._noise, lower_is_better=lower)
        return replace(found, reason=f"{len(old)} and {len(new)} runs in turns, a drift over the session taken out")

    def _of_one_pair(self, key: Key, ratio: float, lower: bool) -> Difference:
        known = self._variation.limit(key)
        inside = self._inside(key, ratio)
        if known is None:
            whose = "this machine" if self._relation is Relation.SAME else "such machines"
            reason = f"{self._how_many}; nothing shows how much runs of {whose} vary"
            return Difference(Change.UNKNOWN, ratio, inside, reason=reason)
        return pair_difference(ratio, known, self._noise, lower)

    def _inside(self, key: Key, ratio: float) -> Interval | None:
        """Interval by the samples alone, which knows nothing of what differs between runs; ``None`` for too few.

        It is that of the shift between the series. Outliers can move their centres further, so it takes in ``ratio``,
        that of the centres.
        """
        old, new = self._base.keys[key].measurement, self._new.keys[key].measurement
        fresh = [units.convert(sample, new.unit, old.unit) for sample in samples_of(new)]
        found = difference(samples_of(old), fresh).interval
        return None if found is None else replace(found, low=min(found.low, ratio), high=max(found.high, ratio))

    @property
    def _how_many(self) -> str:
        fewest = min(len(self._base.runs), len(self._new.runs))
        return f"{units.counted(fewest, 'run')} a side, {LEAST_RUNS} in turns are needed"


def _when(run: RunRecord) -> str:
    return run.started_utc  # ISO 8601 in UTC: the texts sort as the times do


def _with_zero(old: float, new: float, lower: bool | None) -> Difference:
    """What the middles of two sides say of which some run is not above zero."""
    ratio = new / old if old > 0.0 else 1.0 if new == old else math.inf
    if new == old or min(old, new) > 0.0:
        return Difference(Change.UNKNOWN, ratio, None, reason="zero in some of the runs")
    grown = new > old
    change = Change.SLOWER if grown is (lower is True) else Change.FASTER
    return Difference(change, ratio, None, reason="from zero" if grown else "to zero")


def _folded(rows: list[Row], before: Side, after: Side) -> list[Row]:
    """Rows with each rate, or share of a floor, at the time of the same measurement; the one with samples leads."""
    base, runs = before.keys, (*before.figures, *after.figures)
    times = [row for row in rows if units.dimension(base[row.key].measurement.unit) == "time"]
    also: dict[Key, list[str]] = {}
    follows: set[Key] = set()
    for row in rows:
        found = [(time, _apart(time, row, runs)) for time in times if row.lower is False]
        partners = [(not row.name.startswith(time.name), gap, time) for time, gap in found if gap < _RECIPROCAL]
        if not partners:
            continue
        time = min(partners, key=lambda partner: partner[:2])[2]
        sampled = [bool(base[one.key].measurement.samples) for one in (time, row)]
        lead, other = (row, time) if sampled == [False, True] else (time, row)
        if lead.key not in follows and other.key not in also:
            also.setdefault(lead.key, []).append(f"{other.name.partition('.')[2]} {other.old} → {other.new}")
            follows.add(other.key)
    return [replace(row, also=tuple(also.get(row.key, ()))) for row in rows if row.key not in follows]


def _apart(time: Row, rate: Row, runs: Sequence[Mapping[Key, Figure]]) -> float:
    """How far the product of a time and a rate moved between the runs: not at all, if one follows from the other."""
    if time.name.rpartition(".")[0] != rate.name.rpartition(".")[0] or time.key[1] != rate.key[1]:
        return math.inf
    products = [
        (run[time.key].measurement.figure or 0.0) * (run[rate.key].measurement.figure or 0.0)
        for run in runs
        if time.key in run and rate.key in run
    ]
    return math.log(max(products) / min(products)) if products and min(products) > 0.0 else math.inf


def _confirmed(rows: list[Row], by_runs: bool) -> list[Row]:
    """Correct for many figures: a claim from runs stands only if Benjamini and Hochberg's procedure keeps it."""
    if not by_runs:
        return rows
    tested = [row for row in rows if row.difference.freedom]
    tails = page_tails([row.difference for row in tested])
    kept: dict[Key, tuple[bool, float]] = {}
    for worse in (True, False):
        ways = [p[0] if bool(row.lower) is worse else p[1] for row, p in zip(tested, tails, strict=True)]
        wanted = Change.SLOWER if worse else Change.FASTER
        for row, p, stands in zip(tested, ways, discoveries(ways) if ways else (), strict=True):
            if row.change is wanted:
                kept[row.key] = stands, p
    return [_settled(row, *kept[row.key], len(tested)) if row.key in kept else row for row in rows]


def _settled(row: Row, stands: bool, p: float, count: int) -> Row:
    if stands:
        return replace(row, confirmed=True)
    reason = f"p = {p:.2g}: not enough among {units.counted(count, 'figure')}; take more runs"
    return replace(row, difference=replace(row.difference, change=Change.UNKNOWN, reason=reason))
