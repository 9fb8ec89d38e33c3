"""Text about the origin of a record: its seal, its judgings, changes in its checkout, how its invocations differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from reports.values import units
from reports.values.record import Environment, Invocation, RunRecord

ABSENT = "absent"


def provenance_lines(record: RunRecord) -> tuple[str, ...]:
    """What a reader has to know about the origin of a record before trusting its figures, a sentence each."""
    lines = []
    if not record.seal:
        lines.append("Not sealed: a record without digests, so nobody can tell whether it was changed.")
    if record.thinned_from:
        lines.append(f"Thinned and sealed anew; the whole record: {record.thinned_from}.")
    if record.environment.git_changes:
        lines.append(f"Changes in the checkout: {'; '.join(record.environment.git_changes)}.")
    if len(record.judged) > 1:
        last = record.judged[-1]
        by = f"commit {last.commit[:12] or 'none'}{' with local changes' if last.dirty else ''}"
        lines.append(f"Judged {len(record.judged)} times, last at {last.utc} by {by}.")
    return tuple(lines)


def facts(environment: Environment) -> dict[str, str]:
    """The facts of an environment by name: commit, Python, platform, each package, each variable."""
    commit = (environment.git_commit or "none") + (" with local changes" if environment.git_dirty else "")
    named = {"commit": commit, "python": environment.python, "platform": environment.platform}
    named |= {f"package {name}": version for name, version in environment.packages.items()}
    return named | {f"variable {name}": value for name, value in environment.variables.items()}


def stages_of(record: RunRecord, one: Invocation) -> tuple[str, ...]:
    """The stages that an invocation ran; a stage that others ran, too, with the number of cases of this one."""
    mine = set(one.cases)
    counts = Counter(case.stage for case in record.cases if case.case in mine)
    return tuple(f"{name} ({units.counted(counts[name], 'case')})" if counts[name] else name for name in one.stages)


def invocation_rows(record: RunRecord) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What differs between the invocations of a run: a row for each fact, with a text for each invocation.

    The first row has the stages that each ran. Empty if nothing differs.
    """
    found = [{"machine": one.machine, **facts(one.environment)} for one in record.invocations]
    rows = list(_differing(found))
    if not rows:
        return ()
    return (("stages", tuple(", ".join(stages_of(record, one)) for one in record.invocations)), *rows)


def _differing(found: list[dict[str, str]]) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name in dict.fromkeys(name for fact in found for name in fact):
        texts = tuple(fact.get(name, ABSENT) for fact in found)
        if len(set(texts)) > 1:
            yield name, texts
