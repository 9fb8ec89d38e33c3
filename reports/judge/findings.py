"""What a comparison must not pass over: figures and cases that vanished, and figures that cannot be held together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.judge.direction import lower_is_better
from reports.judge.pairing import Figure, Key, first_figures, is_counted, titled, words
from reports.judge.parts import Part, Parts, part_of, parts_of
from reports.judge.verdict import case_verdict, worst
from reports.values import units
from reports.values.machine import Machine
from reports.values.measurement import Verdict
from reports.values.provenance import facts
from reports.values.record import RunRecord

Runs = Sequence[Mapping[Key, Figure]]
"""The figures of each run of a side."""

_FROM_WORST = (Verdict.FAIL, Verdict.ERROR, Verdict.AMBIGUOUS, Verdict.SKIPPED, Verdict.MARGINAL, Verdict.PASS)
_BAD = (Verdict.FAIL, Verdict.ERROR)
_GOOD = (Verdict.PASS, Verdict.MARGINAL)
_ROUNDING = 1e-3
"""What a value may lie outside its samples by, as a fraction of the largest: samples are kept with rounding."""


@dataclass(frozen=True)
class Finding:
    """One thing found, and what kind it is of."""

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
        """Whether the verdict is a worse one; a case that is skipped now is worse, and no regression."""
        return _FROM_WORST.index(self.after) < _FROM_WORST.index(self.before)


def find_all(
    base: Sequence[RunRecord], new: Sequence[RunRecord], old: Runs, fresh: Runs, noise: float
) -> tuple[Finding, ...]:
    """Everything to be named; ``old`` and ``fresh`` are the figures of the two sides.

    Every run is looked at. Where runs of one side disagree it is said how many; where as many do on the other side,
    nothing changed. Cases and figures of a stage that the other side never asked for are none of it
    (:func:`stages_apart`).
    """
    for_old, for_new = stages_apart(base, new)
    apart, come = _cases_of(base, for_old), _cases_of(new, for_new)
    old, fresh = _without(old, apart), _without(fresh, come)
    found = *_unpaired(old, fresh), *_doubtful(old, fresh, noise)
    return (*_cases(base, new, apart | come), *found, *_targets(base, new))


def _without(runs: Runs, cases: set[str]) -> Runs:
    return [{key: figure for key, figure in run.items() if figure.case not in cases} for run in runs]


def stages_apart(base: Sequence[RunRecord], new: Sequence[RunRecord]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Stages with cases that only one side asked for: those of ``base``, and those of ``new``.

    A run that names no stage asks for all of them: what it lacks of another run's vanished.
    """
    return _not_asked(base, new), _not_asked(new, base)


def _not_asked(mine: Sequence[RunRecord], other: Sequence[RunRecord]) -> tuple[str, ...]:
    stages = dict.fromkeys(case.stage for record in mine for case in record.cases)
    return tuple(name for name in stages if all(record.asked and name not in record.asked for record in other))


def _cases_of(records: Sequence[RunRecord], stages: Sequence[str]) -> set[str]:
    return {case.case for record in records for case in record.cases if case.stage in stages}


def case_changes(base: Sequence[RunRecord], new: Sequence[RunRecord]) -> tuple[CaseChange, ...]:
    """Cases with another verdict: regressions first, then what is worse otherwise."""
    before, after = _verdicts(base), _verdicts(new)
    changed = [CaseChange(case, before[case], after[case]) for case in after if case in before]
    return tuple(sorted((c for c in changed if c.before is not c.after), key=lambda c: (not c.regression, not c.worse)))


def environment_differences(
    base: Sequence[RunRecord], new: Sequence[RunRecord], machine: Machine, other: Machine
) -> tuple[tuple[str, str, str], ...]:
    """What differs between the environments of the sides: the thing, and the text of each side."""
    before, after = _facts(base, machine), _facts(new, other)
    names = dict.fromkeys((*before, *after))
    rows = ((name, before.get(name, "absent"), after.get(name, "absent")) for name in names)
    return tuple(row for row in rows if row[1] != row[2])


def _verdicts(records: Sequence[RunRecord]) -> dict[str, Verdict]:
    found: dict[str, list[Verdict]] = {}
    for record in records:
        for case in record.cases:
            found.setdefault(case.case, []).append(case_verdict(case, record.judgements_of(case.case)))
    return {case: worst(verdicts) for case, verdicts in found.items()}


def _cases(base: Sequence[RunRecord], new: Sequence[RunRecord], apart: set[str]) -> Iterable[Finding]:
    before, after = ([_verdicts([record]) for record in side] for side in (base, new))
    for case in dict.fromkeys(name for run in (*before, *after) for name in run if name not in apart):
        old, fresh = ([run[case] for run in side if case in run] for side in (before, after))
        there = Parts(Part(len(old), len(base)), Part(len(fresh), len(new)))
        if not fresh:
            yield Finding("case disappeared", case)
        elif there.differ:
            yield Finding("case missing in some runs", f"{case}: there {there}")
        yield from _ends(case, old, fresh)


def _ends(case: str, old: Sequence[Verdict], fresh: Sequence[Verdict]) -> Iterable[Finding]:
    """A case that is skipped, or in more runs than before; one that failed and fails in more runs."""
    skipped, failed = (
        parts_of(*([one in kinds for one in side] for side in (old, fresh))) for kinds in ((Verdict.SKIPPED,), _BAD)
    )
    if set(fresh) == {Verdict.SKIPPED} and old and worst(old) in _GOOD:
        yield Finding("PASS became SKIPPED", case)
    elif fresh and skipped.differ:
        yield Finding("SKIPPED in some runs", f"{case}: {skipped}")
    if failed.old.count and failed.old.share < failed.new.share:
        yield Finding("fails in more runs", f"{case}: {failed}")


def _unpaired(old: Runs, fresh: Runs) -> Iterable[Finding]:
    """Figures of one side only, or of some runs only.

    Figures of one case that differ in conditions only are one figure that changed.
    """
    mine, theirs = first_figures(old), first_figures(fresh)
    there = {key: parts_of(*([key in run for run in side] for side in (old, fresh))) for key in mine | theirs}
    gone, come = ([key for key in one if key not in other] for one, other in ((mine, theirs), (theirs, mine)))
    renamed: set[Key] = set()
    for key in gone:
        same = [other for other in come if other[0] == key[0] and theirs[other].case == mine[key].case]
        twins = [other for other in gone if other[0] == key[0] and mine[other].case == mine[key].case]
        if len(same) == len(twins) == 1 and there[key].old.share == there[same[0]].new.share:
            renamed |= {key, same[0]}
            before, after = (words(sorted(set(a[1]) - set(b[1]))) for a, b in ((key, same[0]), (same[0], key)))
            yield Finding("conditions changed", f"{key[0]}: {before or 'none'} → {after or 'none'}")
    for side, keys in (("old", gone), ("new", come)):
        for key in (key for key in keys if key not in renamed):
            part = there[key].old if key in mine else there[key].new
            some = f" {part}" if part.is_some else ""
            yield Finding(f"in the {side} run only", titled(key) + some)
    for key in (key for key in mine if key in theirs and there[key].differ):
        yield Finding("missing in some runs", f"{titled(key)}: there {there[key]}")


def _doubtful(old: Runs, fresh: Runs, noise: float) -> Iterable[Finding]:
    for key in first_figures(fresh):
        mine, theirs = ([run[key] for run in side if key in run] for side in (old, fresh))
        yield from _contradicted(key, theirs, "new")
        if mine:
            yield from _contradicted(key, mine, "old")
            yield from _unlike(key, mine, theirs, noise)


def _contradicted(key: Key, found: Sequence[Figure], side: str) -> Iterable[Finding]:
    wrong = part_of(not figure.measurement.is_among_samples(_ROUNDING) for figure in found)
    if wrong.count:
        where = f"{side} run" if wrong.runs == 1 else f"{side} side {wrong}"
        yield Finding("value and samples disagree", f"{titled(key)} of the {where}")


def _unlike(key: Key, mine: Sequence[Figure], theirs: Sequence[Figure], noise: float) -> Iterable[Finding]:
    """What keeps the figures of two sides from being held together."""
    measurement = mine[0].measurement
    if len({units.dimension(figure.measurement.unit) for figure in (*mine, *theirs)}) > 1:
        yield Finding("unit changed", f"{titled(key)}: {_units(mine)} → {_units(theirs)}")
        return
    unit, lower = measurement.unit, lower_is_better(measurement)
    old, new = ([units.convert(one.centre, one.measurement.unit, unit) for one in side] for side in (mine, theirs))
    sizes = [[value if lower is False else abs(value) for value in side] for side in (old, new)]
    changed = sorted(sizes[0]) != sorted(sizes[1])
    low = parts_of(*([size <= 0.0 for size in side] for side in sizes))
    if changed and low.some:
        yield Finding("zero in some runs", f"{titled(key)}: {low}")
    elif changed and (old[0] == 0.0) is not (new[0] == 0.0):
        texts = [units.readable(values[0], unit) for values in (old, new)]
        yield Finding("zero in one run", f"{titled(key)}: {texts[0]} → {texts[1]}")
    elif lower is None and len({*old, *new}) > 1 and sorted(old) != sorted(new):
        yield Finding("no direction", f"{titled(key)} in {unit}: nothing says which way is better")
    for side, values in (("old", sizes[0]), ("new", sizes[1])):
        if changed and is_counted(measurement):
            yield from _varied(f"{titled(key)} of the {side} side", values, unit, noise)


def _units(found: Sequence[Figure]) -> str:
    """The unit of a side's figures, or in how many runs it is which."""
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
    """What the runs of a side say of their environment; where they differ, all of it."""
    found: dict[str, list[str]] = {}
    for record in records:
        for name, text in {"plan": record.plan, **facts(record.environment)}.items():
            found.setdefault(name, []).append(text)
    return _machine_facts(machine) | {name: " | ".join(dict.fromkeys(texts)) for name, texts in found.items()}


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
