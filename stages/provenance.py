"""The origin of a run, as its folder keeps it: the invocations of the runner that contributed, and the judgings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reports.values.record import Environment, Invocation, Judging
from reports.values.serialise import decode, encode
from stages.run_folder import RunFolder, read_sealed, write_sealed
from stages.sittings import sittings


@dataclass(frozen=True)
class _Judgings:
    judged: tuple[Judging, ...]


def note_invocation(folder: RunFolder, stage: str, invocation: Invocation) -> None:
    """Write down in the stage's folder which invocation runs the stage now, in place of the last one."""
    write_sealed(folder.files(stage).environment, encode(replace(invocation, stages=(stage,))))


def read_invocations(folder: RunFolder, stages: Iterable[str]) -> tuple[Invocation, ...]:
    """Every invocation that ran a stage, in order; one whose checkout changed between two stages is listed twice.

    If several invocations ran one stage, each has the cases that it ran of it.
    """
    found: dict[int, Invocation] = {}
    of_stages = [sittings(folder.files(stage)) for stage in stages]
    for one in (one if len(ran) > 1 else replace(one, cases=()) for ran in of_stages for one in ran):
        bare = replace(one, stages=(), cases=())
        same = next((key for key, other in found.items() if replace(other, stages=(), cases=()) == bare), len(found))
        before = found.get(same, bare)
        found[same] = replace(bare, stages=(*before.stages, *one.stages), cases=(*before.cases, *one.cases))
    return tuple(sorted(found.values(), key=lambda invocation: invocation.started_utc))


def environment_of(invocations: Sequence[Invocation]) -> Environment:
    """The environment of the last invocation; dirty if one of them was, or if their commits differ."""
    last = invocations[-1].environment
    changes = [*dict.fromkeys(change for one in invocations for change in one.environment.git_changes)]
    commits = dict.fromkeys(one.environment.git_commit for one in invocations)
    if len(commits) > 1:
        named = ", ".join(name[:12] or "none" for name in commits)
        changes.append(f"stages were run at {len(commits)} commits: {named}")
    dirty = any(one.environment.git_dirty for one in invocations) or len(commits) > 1
    return replace(last, git_dirty=dirty, git_changes=tuple(changes))


def note_judging(folder: RunFolder, judged: Judging, *, complete: bool) -> tuple[Judging, ...]:
    """Add a judging to those in the run's folder, and return all; of an unfinished run only this one, not kept."""
    if not complete:
        return (judged,)
    path = folder.judged
    earlier = decode(_Judgings, read_sealed(path), str(path)).judged if path.is_file() else ()
    write_sealed(path, encode(_Judgings((*earlier, judged))))
    return (*earlier, judged)
