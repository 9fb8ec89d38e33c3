"""Compares two sides, each of one or more runs, figure by figure (requirements RE-4 and RE-8).

A figure is faster, slower, the same, or nobody can tell. The statistics are in :mod:`reports.judge.difference`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
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
"""A rate is taken for derived from a time if the logarithm of their product varies by less than this between runs."""

_NAMED_COMMITS = 3


class Relation(Enum):
    """How the machines of all the runs are related."""

    SAME = "one machine"
    CLASS = "machines of one class"
    OTHER = "different machines"


@dataclass(frozen=True)
class Side:
    """One side of a comparison: one run, or several, which should be of the same code on the same machine.

    ``figures`` has those of each run. ``machine`` is that of the first run, and counts how many others there are.
    """

    runs: tuple[RunRecord, ...]
    figures: tuple[Mapping[Key, Figure], ...]
    machine: Machine

    @property
    def label(self) -> str:
        """The run's id, or the number of runs, with the commits."""
        commits = dict.fromkeys(run.environment.git_commit[:8] for run in self.runs)
        named = units.first_of(list(filter(None, commits)), _NAMED_COMMITS)
        at = f" at {named}" if named else ""
        return f"{self.runs[0].run_id}{at}" if len(self.runs) == 1 else f"{len(self.runs)} runs{at}"

    @cached_property
    def first(self) -> Mapping[Key, Figure]:
        """Every figure of the side; of several runs that have it, the first one's."""
        return first_figures(self.figures)


@dataclass(frozen=True)
class Row:
    """One figure of both sides, compared; ``kind`` is ``None`` for our own figures.

    ``old`` and ``new`` are the medians over the runs of each side, as text. ``shown_ratio`` is their ratio; that of
    ``difference`` may be another one, since a drift of the session is taken out of it. ``lower_is_better`` is ``None``
    if nothing says which way is better. ``confirmed``: counted, or shown by several runs a side. ``also`` names figures
    derived from the same measurement: the rate that belongs to a time.
    """

    key: Key
    kind: Kind | None
    old: str
    new: str
    difference: Difference
    lower_is_better: bool | None
    confirmed: bool
    is_counted: bool
    unit: str
    shown_ratio: float
    also: tuple[str, ...] = ()

    @property
    def change(self) -> Change:
        """The verdict."""
        return self.difference.change

    @property
    def size(self) -> float:
        """Size of the change as a logarithm, so that a half and a double are equal; infinite from or to zero."""
        ratio = self.difference.ratio
        return abs(math.log(ratio)) if 0.0 < ratio < math.inf else math.inf

    @property
    def name(self) -> str:
        """Name of the measurement."""
        return self.key[0]

    @property
    def conditions(self) -> str:
        """The conditions that the figure holds for, as text."""
        return words(self.key[1])

    @property
    def word(self) -> str:
        """The verdict in words that suit the unit: an error is not slower, it is worse."""
        return self.change.word(self.unit)

    @property
    def gain(self) -> float:
        """Factor by which the new side is better: 2 is twice as fast."""
        ratio = self.difference.ratio
        return 1.0 / ratio if self.lower_is_better and ratio else ratio


@dataclass(frozen=True)
class Comparison:
    """Two sides compared.

    ``rows`` are our figures, ``thermometer`` those that no change of our code moves, both with the largest change
    first, counts after times. ``environment`` lists what differs: name, old text, new text. ``confirms`` says whether
    the runs can confirm a change: several a side, in turns, on one machine. ``apart`` has the stages that only the old
    side was asked for, and those that only the new side was asked for.
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
        """Whether a change may come from the code: one machine, or the user says that the machine does not matter."""
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
        """Figures of which it is confirmed that they became worse."""
        return tuple(row for row in self.slower if row.confirmed)

    @property
    def worse_cases(self) -> tuple[CaseChange, ...]:
        """Cases that passed and now fail; they count on one machine, as figures do."""
        return tuple(case for case in self.cases if case.regression)

    @property
    def undecided(self) -> tuple[Row, ...]:
        """Figures that may have become worse although the verdict is *cannot tell*.

        If the runs can confirm a change, only figures that look worse by more than the noise are among them.
        """
        unknown = (row for row in self.rows if row.change is Change.UNKNOWN)
        return tuple(row for row in unknown if not self.confirms or row.gain < 1.0 / (1.0 + self.noise))

    def exit_code(self, *, strict: bool = False) -> ExitCode:
        """FAIL on a confirmed regression, UNDECIDED if no figure could be compared, else PASS.

        With ``strict`` also FAIL on anything slower or any finding, and UNDECIDED if a figure is undecided.
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
    """Compare the runs of one side with those of the other.

    Parameters
    ----------
    base, new : sequence of RunRecord
        One run or more a side. ``LEAST_RUNS`` or more a side, taken in turns on one machine, can confirm a change.
    noise : float
        Relative change that is ignored.
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
    judged = [judge.row(key) for key in before.first if key in after.first and judge.comparable(key)]
    rows = _folded(judged, before, after)
    ours = _corrected([row for row in rows if row.kind is None], judge.by_runs)
    return Comparison(
        base=before,
        new=after,
        relation=relation,
        rows=_largest_first(ours),
        thermometer=_largest_first(row for row in rows if row.kind is not None),
        cases=case_changes(base, new),
        environment=environment_differences(base, new, before.machine, after.machine),
        findings=find_all(base, new, before.figures, after.figures, noise),
        noise=noise,
        any_machine=any_machine,
        confirms=judge.confirms,
        apart=stages_apart(base, new),
    )


def _largest_first(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: (row.is_counted, -row.size)))


def _side(runs: Sequence[RunRecord]) -> Side:
    ordered = tuple(sorted(runs, key=lambda run: run.started_utc))
    machines = [*dict.fromkeys(map(machine_of, ordered))]
    others = machines[0].others + len(machines) - 1
    return Side(ordered, tuple(figures(run) for run in ordered), replace(machines[0], others=others))


def _relation(runs: Sequence[RunRecord]) -> Relation:
    first, *others = (machine_of(run) for run in runs)
    # A run compared with itself is on one machine even if its record does not name the host.
    if all(run == runs[0] for run in runs) or all(first.same_machine(other) for other in others):
        return Relation.SAME
    return Relation.CLASS if all(first.same_class(other) for other in others) else Relation.OTHER


def _variation(base: Side, new: Side, relation: Relation, history: Sequence[RunRecord]) -> Variation:
    """By how much runs of this machine, or of its class, differ: from ``history`` and from the sides themselves."""
    known = {run.origin: run for run in (*history, *base.runs, *new.runs)}.values()
    if relation is Relation.SAME:
        mine = [run for run in known if base.machine.same_machine(machine_of(run))]
        return seen_variation(mine, "this machine")
    of_class = [run for run in known if base.machine.same_class(machine_of(run))]
    whose = "this class" if relation is Relation.CLASS else "the old side's class"
    return seen_variation(of_class, f"machines of {whose}")


class _Judge:
    """Judges one figure after the other.

    ``by_runs`` says whether each side has enough runs, all on one machine, for :func:`runs_difference`; ``confirms``
    whether they were also taken in turns. A single pair is judged by how much runs of the machine have been seen to
    differ, since its samples do not show that. A count is compared as it is.
    """

    def __init__(
        self, base: Side, new: Side, relation: Relation, variation: Variation, noise: float, any_machine: bool
    ) -> None:
        self._base, self._new, self._noise = base, new, noise
        self._relation, self._variation = relation, variation
        self._one_machine = relation is Relation.SAME or any_machine
        # ISO 8601 in UTC: the texts sort as the times do.
        self._in_turns = are_interleaved(*([run.started_utc for run in side.runs] for side in (base, new)))
        self._fewest_runs = min(len(base.runs), len(new.runs))
        self.by_runs = self._one_machine and self._fewest_runs >= LEAST_RUNS
        self.confirms = self.by_runs and self._in_turns

    def comparable(self, key: Key) -> bool:
        """Whether all runs give the figure in units of one dimension."""
        runs = (run for side in (self._base, self._new) for run in side.figures if key in run)
        return len({units.dimension(run[key].measurement.unit) for run in runs}) == 1

    def row(self, key: Key) -> Row:
        measurement = self._base.first[key].measurement
        lower, counted = lower_is_better(measurement), is_counted(measurement)
        old, new = (self._centres(side, key, measurement.unit) for side in (self._base, self._new))
        found = self._difference(key, old, new, lower, counted)
        if lower is None and found.change in (Change.FASTER, Change.SLOWER):
            found = replace(found, change=Change.UNKNOWN, reason="changed; nothing says which way is better")
        return Row(
            key=key,
            kind=thermometer_kind(self._new.first[key].measurement),
            old=units.readable(middle(old), measurement.unit),
            new=units.readable(middle(new), measurement.unit),
            difference=found,
            lower_is_better=lower,
            confirmed=counted and self._one_machine,
            is_counted=counted,
            unit=measurement.unit,
            shown_ratio=middle(new) / middle(old) if middle(old) else math.nan,
        )

    def _centres(self, side: Side, key: Key, unit: str) -> list[float]:
        """The centre of each run of a side that has the figure, in ``unit``."""
        found = [run[key] for run in side.figures if key in run]
        return [units.convert(figure.centre, figure.measurement.unit, unit) for figure in found]

    def _difference(
        self, key: Key, old: list[float], new: list[float], lower: bool | None, counted: bool
    ) -> Difference:
        if lower is not False:  # it may be a signed error, whose size counts
            old, new = [abs(value) for value in old], [abs(value) for value in new]
        if len({*old, *new}) == 1:
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
        """The difference of several runs a side; ``old`` and ``new`` have a value for each run."""
        if not self._in_turns:
            ratio = middle(new) / middle(old)
            return Difference(Change.UNKNOWN, ratio, None, reason="the runs of the two sides were not taken in turns")
        sides = [
            [(run.started_utc, value) for run, value in zip(side.runs, values, strict=True)]
            for side, values in ((self._base, old), (self._new, new))
        ]
        found = runs_difference(*sides, tolerance=self._noise, lower_is_better=lower)
        return replace(found, reason=f"{len(old)} and {len(new)} runs in turns, a drift over the session taken out")

    def _of_one_pair(self, key: Key, ratio: float, lower: bool) -> Difference:
        known = self._variation.limit(key)
        if known is not None:
            return pair_difference(ratio, known, self._noise, lower)
        whose = "this machine" if self._relation is Relation.SAME else "such machines"
        few = f"{units.counted(self._fewest_runs, 'run')} a side, {LEAST_RUNS} in turns are needed"
        reason = f"{few}; nothing shows how much runs of {whose} vary"
        return Difference(Change.UNKNOWN, ratio, self._within_runs(key, ratio), reason=reason)

    def _within_runs(self, key: Key, ratio: float) -> Interval | None:
        """The interval that the samples of the first runs give, which leaves out what differs between runs.

        It is that of the shift between the two series, widened to contain ``ratio``: outliers can move the ratio of the
        centres further. ``None`` if there are too few samples.
        """
        old, new = self._base.first[key].measurement, self._new.first[key].measurement
        converted = [units.convert(sample, new.unit, old.unit) for sample in samples_of(new)]
        found = difference(samples_of(old), converted).interval
        return None if found is None else replace(found, low=min(found.low, ratio), high=max(found.high, ratio))


def _with_zero(old: float, new: float, lower: bool | None) -> Difference:
    """The difference of two medians, if a run of either side is not above zero, so that there is no ratio of means."""
    ratio = new / old if old > 0.0 else 1.0 if new == old else math.inf
    if new == old or min(old, new) > 0.0:
        return Difference(Change.UNKNOWN, ratio, None, reason="zero in some of the runs")
    grown = new > old
    change = Change.SLOWER if grown is (lower is True) else Change.FASTER
    return Difference(change, ratio, None, reason="from zero" if grown else "to zero")


def _folded(rows: list[Row], before: Side, after: Side) -> list[Row]:
    """Fold each rate, or share of a floor, into the row of the time that it was derived from.

    The row that stays is that of the time, or of the rate if the rate alone has samples.
    """
    runs = (*before.figures, *after.figures)
    times = [row for row in rows if units.dimension(row.unit) == "time"]
    also: dict[Key, list[str]] = {}
    dropped: set[Key] = set()
    for rate in rows:
        time = _time_of(rate, times, runs)
        if time is None:
            continue
        has_samples = [bool(before.first[row.key].measurement.samples) for row in (time, rate)]
        kept, other = (rate, time) if has_samples == [False, True] else (time, rate)
        if kept.key not in dropped and other.key not in also:
            also.setdefault(kept.key, []).append(f"{other.name.partition('.')[2]} {other.old} → {other.new}")
            dropped.add(other.key)
    return [replace(row, also=tuple(also.get(row.key, ()))) for row in rows if row.key not in dropped]


def _time_of(rate: Row, times: Sequence[Row], runs: Sequence[Mapping[Key, Figure]]) -> Row | None:
    """The time that ``rate`` was derived from: one whose name begins the rate's, before one whose product fits best."""
    if rate.lower_is_better is not False:
        return None
    spreads = [(not rate.name.startswith(time.name), _product_spread(time, rate, runs), time) for time in times]
    fitting = [found for found in spreads if found[1] < _RECIPROCAL]
    return min(fitting, key=lambda found: found[:2])[2] if fitting else None


def _product_spread(time: Row, rate: Row, runs: Sequence[Mapping[Key, Figure]]) -> float:
    """Logarithm of the largest over the smallest product of a time and a rate; 0 if one follows from the other."""
    if time.name.rpartition(".")[0] != rate.name.rpartition(".")[0] or time.key[1] != rate.key[1]:
        return math.inf
    products = [
        (run[time.key].measurement.figure or 0.0) * (run[rate.key].measurement.figure or 0.0)
        for run in runs
        if time.key in run and rate.key in run
    ]
    return math.log(max(products) / min(products)) if products and min(products) > 0.0 else math.inf


def _corrected(rows: list[Row], by_runs: bool) -> list[Row]:
    """Correct for many tests: a change shown by runs is confirmed if Benjamini and Hochberg's procedure keeps it."""
    if not by_runs:
        return rows
    tested = [row for row in rows if row.difference.freedom]
    tails = page_tails([row.difference for row in tested])
    decided: dict[Key, Row] = {}
    for worse in (True, False):
        claimed = Change.SLOWER if worse else Change.FASTER
        p_values = [p[0] if bool(row.lower_is_better) is worse else p[1] for row, p in zip(tested, tails, strict=True)]
        for row, p, stands in zip(tested, p_values, discoveries(p_values), strict=True):
            if row.change is claimed:
                decided[row.key] = _decided(row, stands, p, len(tested))
    return [decided.get(row.key, row) for row in rows]


def _decided(row: Row, stands: bool, p: float, count: int) -> Row:
    if stands:
        return replace(row, confirmed=True)
    reason = f"p = {p:.2g}: not enough among {units.counted(count, 'figure')}; take more runs"
    return replace(row, difference=replace(row.difference, change=Change.UNKNOWN, reason=reason))
