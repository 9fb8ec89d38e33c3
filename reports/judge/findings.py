"""What a comparison has to name besides its figures: cases and figures that vanished, or that cannot be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.judge.direction import lower_is_better
from reports.judge.pairing import Figure, Key, first_figures, is_counted, titled, words
from reports.judge.parts import Part, Parts, part_of, parts_of
from reports.judge.verdict import case_verdict, worst
from reports.values import units
from reports.values.grouped import grouped
from reports.values.machine import Machine
from reports.values.measurement import Verdict
from reports.values.provenance import facts
from reports.values.record import RunRecord

Runs = Sequence[Mapping[Key, Figure]]
"""The figures of each run of one side."""

_FROM_WORST = (Verdict.FAIL, Verdict.ERROR, Verdict.AMBIGUOUS, Verdict.SKIPPED, Verdict.MARGINAL, Verdict.PASS)
_BAD = (Verdict.FAIL, Verdict.ERROR)
_GOOD = (Verdict.PASS, Verdict.MARGINAL)
_ROUNDING = 1e-3
"""How far a value may lie outside its samples, as a fraction of the largest: samples are kept with rounding."""


@dataclass(frozen=True)
class Finding:
    """One thing found: its kind, which the output groups by, and the text."""

    kind: str
    text: str


@dataclass(frozen=True)
class CaseChange:
    """A case whose verdict differs from the baseline's; of several runs a side, the worst counts."""

    case: str
    before: Verdict
    after: Verdict

    @property
    def regression(self) -> bool:
        """Whether what passed now fails or cannot be judged."""
        return self.before in _GOOD and self.after in _BAD

    @property
    def worse(self) -> bool:
        """Whether the verdict is a worse one. A case that is now skipped is worse, but no regression."""
        return _FROM_WORST.index(self.after) < _FROM_WORST.index(self.before)


def find_all(
    base: Sequence[RunRecord], new: Sequence[RunRecord], old_figures: Runs, new_figures: Runs, noise: float
) -> tuple[Finding, ...]:
    """Everything that has to be named.

    Every run is looked at. If the runs of one side disagree, the text counts them (*in 4 of 5 runs*); if the other side
    has the same share, nothing changed. Cases and figures of a stage that the other side was never asked for are left
    out (:func:`stages_apart`).
    """
    only_old, only_new = stages_apart(base, new)
    left_out_old, left_out_new = _cases_of(base, only_old), _cases_of(new, only_new)
    old_figures, new_figures = _without(old_figures, left_out_old), _without(new_figures, left_out_new)
    return (
        *_cases(base, new, left_out_old | left_out_new),
        *_unpaired(old_figures, new_figures),
        *_doubtful(old_figures, new_figures, noise),
        *_targets(base, new),
    )


def _without(runs: Runs, cases: set[str]) -> Runs:
    return [{key: figure for key, figure in run.items() if figure.case not in cases} for run in runs]


def stages_apart(base: Sequence[RunRecord], new: Sequence[RunRecord]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Stages with cases in ``base`` that ``new`` was not asked for, and the other way round.

    A run that names no stage was asked for all of them. What it lacks has vanished.
    """
    return _not_asked(base, new), _not_asked(new, base)


def _not_asked(side: Sequence[RunRecord], other: Sequence[RunRecord]) -> tuple[str, ...]:
    stages = dict.fromkeys(case.stage for record in side for case in record.cases)
    return tuple(name for name in stages if all(record.asked and name not in record.asked for record in other))


def _cases_of(records: Sequence[RunRecord], stages: Sequence[str]) -> set[str]:
    return {case.case for record in records for case in record.cases if case.stage in stages}


def case_changes(base: Sequence[RunRecord], new: Sequence[RunRecord]) -> tuple[CaseChange, ...]:
    """Cases whose verdict changed: regressions first, then the others that became worse."""
    before, after = _verdicts(base), _verdicts(new)
    changed = [CaseChange(case, before[case], after[case]) for case in after if case in before]
    return tuple(sorted((c for c in changed if c.before is not c.after), key=lambda c: (not c.regression, not c.worse)))


def environment_differences(
    base: Sequence[RunRecord], new: Sequence[RunRecord], machine: Machine, other: Machine
) -> tuple[tuple[str, str, str], ...]:
    """What differs between the environments of the sides: its name, and the text of each side."""
    before, after = _facts(base, machine), _facts(new, other)
    names = dict.fromkeys((*before, *after))
    rows = ((name, before.get(name, "absent"), after.get(name, "absent")) for name in names)
    return tuple(row for row in rows if row[1] != row[2])


def _verdicts(records: Sequence[RunRecord]) -> dict[str, Verdict]:
    every = [(case, record.judgements_of(case.case)) for record in records for case in record.cases]
    by_case = grouped(every, lambda one: one[0].case)
    return {name: worst(case_verdict(*one) for one in found) for name, found in by_case.items()}


def _cases(base: Sequence[RunRecord], new: Sequence[RunRecord], left_out: set[str]) -> Iterable[Finding]:
    old_runs, new_runs = ([_verdicts([record]) for record in side] for side in (base, new))
    for case in dict.fromkeys(name for run in (*old_runs, *new_runs) for name in run if name not in left_out):
        before, after = ([run[case] for run in side if case in run] for side in (old_runs, new_runs))
        there = Parts(Part(len(before), len(base)), Part(len(after), len(new)))
        if not after:
            yield Finding("case disappeared", case)
        elif there.differ:
            yield Finding("case missing in some runs", f"{case}: there {there}")
        yield from _ends(case, before, after)


def _ends(case: str, old: Sequence[Verdict], new: Sequence[Verdict]) -> Iterable[Finding]:
    """A case that passed and is skipped, that is skipped in some runs, or that failed and fails in more runs."""
    skipped = parts_of(old, new, lambda verdict: verdict is Verdict.SKIPPED)
    failed = parts_of(old, new, lambda verdict: verdict in _BAD)
    if set(new) == {Verdict.SKIPPED} and old and worst(old) in _GOOD:
        yield Finding("PASS became SKIPPED", case)
    elif new and skipped.differ:
        yield Finding("SKIPPED in some runs", f"{case}: {skipped}")
    if failed.old.count and failed.old.share < failed.new.share:
        yield Finding("fails in more runs", f"{case}: {failed}")


def _unpaired(old: Runs, new: Runs) -> Iterable[Finding]:
    """Figures that only one side has, or only some of its runs.

    One figure that is gone and one that has come, of one name and one case, are one figure whose conditions changed.
    """
    before, after = first_figures(old), first_figures(new)
    there = {key: _there(key, old, new) for key in before | after}
    gone = [key for key in before if key not in after]
    come = [key for key in after if key not in before]
    renamed: set[Key] = set()
    for key in gone:
        case = before[key].case
        twins = [other for other in gone if other[0] == key[0] and before[other].case == case]
        heirs = [other for other in come if other[0] == key[0] and after[other].case == case]
        if len(twins) == len(heirs) == 1 and there[key].old.share == there[heirs[0]].new.share:
            renamed |= {key, heirs[0]}
            yield Finding("conditions changed", _conditions_changed(key, heirs[0]))
    for side, keys in (("old", gone), ("new", come)):
        for key in (key for key in keys if key not in renamed):
            part = there[key].old if side == "old" else there[key].new
            some = f" {part}" if part.is_some else ""
            yield Finding(f"in the {side} run only", titled(key) + some)
    for key in (key for key in before if key in after and there[key].differ):
        yield Finding("missing in some runs", f"{titled(key)}: there {there[key]}")


def _there(key: Key, old: Runs, new: Runs) -> Parts:
    """In how many runs of each side the figure is."""
    return parts_of(old, new, lambda run: key in run)


def _conditions_changed(old: Key, new: Key) -> str:
    gone, come = (words(sorted(set(one[1]) - set(other[1]))) for one, other in ((old, new), (new, old)))
    return f"{old[0]}: {gone or 'none'} → {come or 'none'}"


def _doubtful(old: Runs, new: Runs, noise: float) -> Iterable[Finding]:
    """Values that their samples contradict, and pairs that cannot be compared."""
    for key in first_figures(new):
        before, after = ([run[key] for run in side if key in run] for side in (old, new))
        yield from _contradicted(key, after, "new")
        if before:
            yield from _contradicted(key, before, "old")
            yield from _incomparable(key, before, after, noise)


def _contradicted(key: Key, found: Sequence[Figure], side: str) -> Iterable[Finding]:
    wrong = part_of(not figure.measurement.is_among_samples(_ROUNDING) for figure in found)
    if wrong.count:
        where = f"{side} run" if wrong.runs == 1 else f"{side} side {wrong}"
        yield Finding("value and samples disagree", f"{titled(key)} of the {where}")


def _incomparable(key: Key, before: Sequence[Figure], after: Sequence[Figure], noise: float) -> Iterable[Finding]:
    """Why a figure of both sides cannot be compared: its unit, zeros, no direction, counts that differ on one side."""
    measurement = before[0].measurement
    if len({units.dimension(figure.measurement.unit) for figure in (*before, *after)}) > 1:
        yield Finding("unit changed", f"{titled(key)}: {_units(before)} → {_units(after)}")
        return
    unit, lower = measurement.unit, lower_is_better(measurement)
    old, new = ([units.convert(one.centre, one.measurement.unit, unit) for one in side] for side in (before, after))
    old_sizes, new_sizes = ([value if lower is False else abs(value) for value in side] for side in (old, new))
    changed = sorted(old_sizes) != sorted(new_sizes)
    zeros = parts_of(old_sizes, new_sizes, lambda size: size <= 0.0)
    if changed and zeros.some:
        yield Finding("zero in some runs", f"{titled(key)}: {zeros}")
    elif changed and (old[0] == 0.0) is not (new[0] == 0.0):
        texts = [units.readable(values[0], unit) for values in (old, new)]
        yield Finding("zero in one run", f"{titled(key)}: {texts[0]} → {texts[1]}")
    elif lower is None and len({*old, *new}) > 1 and sorted(old) != sorted(new):
        yield Finding("no direction", f"{titled(key)} in {unit}: nothing says which way is better")
    if changed and is_counted(measurement):
        for side, sizes in (("old", old_sizes), ("new", new_sizes)):
            yield from _varied(f"{titled(key)} of the {side} side", sizes, unit, noise)


def _units(found: Sequence[Figure]) -> str:
    """The unit of a side's figures; if there are several, each with the number of its runs."""
    seen = Counter(figure.measurement.unit for figure in found)
    parts = [f"{unit} {Part(count, len(found))}" for unit, count in seen.items()]
    return units.listed(parts if len(parts) > 1 else [*seen])


def _varied(which: str, values: Sequence[float], unit: str, noise: float) -> Iterable[Finding]:
    """A count that differs between the runs of one side: it has no noise."""
    least, most = (units.readable(end(values), unit) for end in (min, max))
    more = part_of(value > (1.0 + noise) * min(values) for value in values)
    if more.count:
        yield Finding("counts of a side differ", f"{which}: {least}, up to {most} {more}")


def _targets(base: Sequence[RunRecord], new: Sequence[RunRecord]) -> Iterable[Finding]:
    before, after = ({run.judged[-1].targets_sha256 for run in side if run.judged} for side in (base, new))
    if before and after and before != after:
        texts = [" and ".join(sorted(digest[:12] for digest in side)) for side in (before, after)]
        yield Finding("targets changed", f"judged by targets {texts[0]}, then by {texts[1]}")


def _facts(records: Sequence[RunRecord], machine: Machine) -> dict[str, str]:
    """What the runs of a side say of their environment; texts that differ are all named."""
    every = [fact for one in records for fact in {"plan": one.plan, **facts(one.environment)}.items()]
    by_name = grouped(dict.fromkeys(every), lambda fact: fact[0])
    return _machine_facts(machine) | {name: " | ".join(text for _, text in found) for name, found in by_name.items()}


def _machine_facts(machine: Machine) -> dict[str, str]:
    clocks = ("/".join(str(clock) for clock in pair) for pair in machine.gpu_clocks_mhz)
    return {
        "GPUs": ", ".join(machine.gpu_names) or "none",
        "GPU UUIDs": ", ".join(machine.gpu_uuids) or "none",
        "GPU memory": ", ".join(f"{size} GiB" for size in machine.gpu_memory_gib) or "none",
        "GPU clocks, MHz": ", ".join(clocks) or "none",
        "driver": machine.driver or "none",
        "host": machine.host or "not recorded",
        "CPU": f"{machine.cpu or 'unknown'}, {machine.cores} cores",
        "CPU clock, MHz": str(machine.cpu_clock_mhz or "not recorded"),
    }
