"""What a comparison must not pass over: figures and cases that vanished, and figures that cannot be held together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.judge.direction import lower_is_better
from reports.judge.pairing import Figure, Key, titled, words
from reports.judge.verdict import case_verdict, worst
from reports.values import units
from reports.values.machine import Machine
from reports.values.measurement import Verdict
from reports.values.provenance import facts
from reports.values.record import RunRecord

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
        """Whether the verdict is a worse one, whatever that means for the code."""
        return worst((self.before, self.after)) is self.after


def find_all(
    base: Sequence[RunRecord], new: Sequence[RunRecord], old: Mapping[Key, Figure], fresh: Mapping[Key, Figure]
) -> tuple[Finding, ...]:
    """Everything to be named; ``old`` and ``fresh`` are the figures of the two sides.

    Cases and figures of a stage that the other side never asked for are none of it (:func:`stages_apart`).
    """
    for_old, for_new = stages_apart(base, new)
    apart, come = _cases_of(base, for_old), _cases_of(new, for_new)
    old = {key: figure for key, figure in old.items() if figure.case not in apart}
    fresh = {key: figure for key, figure in fresh.items() if figure.case not in come}
    return (*_cases(base, new, apart), *_unpaired(old, fresh), *_doubtful(old, fresh), *_targets(base, new))


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
    before, after = _verdicts(base), _verdicts(new)
    for case, verdict in before.items():
        if case not in after:
            if case not in apart:
                yield Finding("case disappeared", case)
        elif verdict in _GOOD and after[case] is Verdict.SKIPPED:
            yield Finding("PASS became SKIPPED", case)


def _unpaired(old: Mapping[Key, Figure], fresh: Mapping[Key, Figure]) -> Iterable[Finding]:
    """Figures of one side only. Figures of one case that differ in conditions only are one figure that changed."""
    gone, come = ([key for key in mine if key not in other] for mine, other in ((old, fresh), (fresh, old)))
    renamed: set[Key] = set()
    for key in gone:
        same = [other for other in come if other[0] == key[0] and fresh[other].case == old[key].case]
        twins = [other for other in gone if other[0] == key[0] and old[other].case == old[key].case]
        if len(same) == len(twins) == 1:
            renamed |= {key, same[0]}
            before, after = (words(sorted(set(a[1]) - set(b[1]))) for a, b in ((key, same[0]), (same[0], key)))
            yield Finding("conditions changed", f"{key[0]}: {before or 'none'} → {after or 'none'}")
    yield from (Finding("in the old run only", titled(key)) for key in gone if key not in renamed)
    yield from (Finding("in the new run only", titled(key)) for key in come if key not in renamed)


def _doubtful(old: Mapping[Key, Figure], fresh: Mapping[Key, Figure]) -> Iterable[Finding]:
    for key, figure in fresh.items():
        if not figure.measurement.is_among_samples(_ROUNDING):
            yield Finding("value and samples disagree", f"{titled(key)} of the new run")
        if key not in old:
            continue
        before, after = old[key].measurement, figure.measurement
        if not before.is_among_samples(_ROUNDING):
            yield Finding("value and samples disagree", f"{titled(key)} of the old run")
        if units.dimension(before.unit) != units.dimension(after.unit):
            yield Finding("unit changed", f"{titled(key)}: {before.unit} → {after.unit}")
        elif (old[key].centre == 0.0) is not (figure.centre == 0.0):
            texts = [units.readable(m.centre, m.measurement.unit) for m in (old[key], figure)]
            yield Finding("zero in one run", f"{titled(key)}: {texts[0]} → {texts[1]}")
        elif lower_is_better(before) is None and old[key].centre != figure.centre:
            yield Finding("no direction", f"{titled(key)} in {before.unit}: nothing says which way is better")


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
