"""Where a run comes from: the starts of the runner that contributed, and its judgings, as its folder keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reports.values.record import Environment, Invocation, Judging
from reports.values.serialise import decode, encode
from stages.run_folder import RunFolder, read_json, write_json


@dataclass(frozen=True)
class _Judgings:
    judged: tuple[Judging, ...]


def note_invocation(folder: RunFolder, stage: str, invocation: Invocation) -> None:
    """Keep in the stage's folder which invocation runs it; a stage that runs again belongs to the last one."""
    write_json(folder.files(stage).environment, encode(replace(invocation, stages=(stage,))))


def read_invocations(folder: RunFolder, stages: Iterable[str]) -> tuple[Invocation, ...]:
    """Every invocation that ran a stage, in order; one whose checkout changed between two stages is listed twice."""
    found: list[Invocation] = []
    for stage in stages:
        path = folder.files(stage).environment
        if not path.is_file():
            continue
        one = decode(Invocation, read_json(path), str(path))
        same = next((index for index, other in enumerate(found) if replace(other, stages=one.stages) == one), None)
        if same is None:
            found.append(one)
        else:
            found[same] = replace(one, stages=(*found[same].stages, *one.stages))
    return tuple(sorted(found, key=lambda invocation: invocation.started_utc))


def environment_of(invocations: Sequence[Invocation]) -> Environment:
    """The environment of the last invocation; dirty if any was, or if they are not of one commit."""
    last = invocations[-1].environment
    changes = dict.fromkeys(change for one in invocations for change in one.environment.git_changes)
    commits = dict.fromkeys(one.environment.git_commit for one in invocations)
    if len(commits) > 1:
        changes[f"stages were run at {len(commits)} commits: {', '.join(name[:12] or 'none' for name in commits)}"] = (
            None
        )
    dirty = any(one.environment.git_dirty for one in invocations) or len(commits) > 1
    return replace(last, git_dirty=dirty, git_changes=tuple(changes))


def note_judging(folder: RunFolder, judged: Judging, *, complete: bool) -> tuple[Judging, ...]:
    """Every judging of the run with this one, kept in its folder; of a run that goes on, only this one counts."""
    if not complete:
        return (judged,)
    path = folder.judged
    earlier = decode(_Judgings, read_json(path), str(path)).judged if path.is_file() else ()
    write_json(path, encode(_Judgings((*earlier, judged))))
    return (*earlier, judged)
