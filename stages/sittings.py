"""Sittings: a stage that was cut off goes on in another start of the runner, which runs the cases without a result.

The record says which sitting ran each case, with commit and machine. All sittings of a stage have to be at one commit
and on one class of machine; otherwise the runner refuses to go on.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from burstproof.errors import InputError
from hardware.gates import Gate
from reports.values.machine import machine_in
from reports.values.record import Environment, Invocation, StageRun
from reports.values.serialise import decode, encode
from stages.contention import worst_of
from stages.results import read_lines, reopen
from stages.run_folder import SCRATCH, RunFolder, StageFiles, read_sealed, write_sealed

_DIGESTS = "digests"


@dataclass(frozen=True)
class FoundMachine:
    """Inventory and gates at the start of a run, kept on disk for later sittings and for a record written elsewhere."""

    hardware: Mapping[str, object]
    gates: Mapping[str, Gate] = field(default_factory=dict)


@dataclass(frozen=True)
class Earlier:
    """What earlier sittings of a stage have done.

    Attributes
    ----------
    cases : frozenset of str
        The cases that have a result.
    duration_s : float
        Wall time of the sittings in seconds, without those that were killed before they could note it.
    contention : mapping
        The worst values of the sittings, as :attr:`~reports.values.record.StageRun.contention`.
    """

    cases: frozenset[str] = frozenset()
    duration_s: float = 0.0
    contention: Mapping[str, float] = field(default_factory=dict)

    def added_to(self, run: StageRun) -> StageRun:
        """``run`` with the time and the contention of all sittings."""
        contention = worst_of(self.contention, run.contention)
        return replace(run, duration_s=self.duration_s + run.duration_s, contention=contention)


def kept_machine(path: Path, gates: Set[str] = frozenset()) -> FoundMachine | None:
    """Read what a start of the runner found, from the file ``path``; ``None`` without the file.

    Raises
    ------
    InputError
        The file is damaged, was changed, or lacks one of ``gates``.
    """
    if not path.is_file():
        return None
    machine = decode(FoundMachine, read_sealed(path), str(path))
    missing = ", ".join(sorted(gates - machine.gates.keys()))
    if missing:
        cure = "Put the file back as the run wrote it, or begin another run."
        raise InputError(f"gate {missing} is not among those that the run found", where=str(path), cure=cure)
    return machine


def finished_stage(folder: RunFolder, stage: str) -> StageRun | None:
    """How a stage ended; ``None`` if it has not."""
    return _stage_run(folder.files(stage).done)


def cut_off_stage(folder: RunFolder, stage: str) -> StageRun | None:
    """How far a stage came that was cut off; ``None`` if it was not."""
    return _stage_run(folder.files(stage).cut_off)


def note_end(files: StageFiles, run: StageRun, *, cut_off: bool) -> None:
    """Write down how a stage ended, or how far it came, with the digests of its evidence.

    The collection of a stage that was cut off is not among that: the next sitting collects anew.
    """
    evidence = (files.results,) if cut_off else (files.results, files.collected)
    digests = {path.name: _sha256(path) for path in evidence}
    write_sealed(files.cut_off if cut_off else files.done, {**encode(run), _DIGESTS: digests})


def changed_since(end: Path) -> str:
    """Which files changed since :func:`note_end` wrote the file ``end``, in words; empty if none did."""
    noted = read_sealed(end).get(_DIGESTS) if end.is_file() else None
    digests = noted if isinstance(noted, dict) else {}
    changed = [name for name, digest in digests.items() if _sha256(end.parent / name) != digest]
    return f"{' and '.join(changed)} changed after the stage ended or was cut off" if changed else ""


def refuse_to_mix(folder: RunFolder, stage: str, environment: Environment, machine: FoundMachine, gate: str) -> None:
    """Refuse to go on with a stage that was cut off if its cases would then be of two commits or two machines.

    Raises
    ------
    InputError
        Cases with a result were run at another commit, on another class of machine, or with the gate in another state.
    """
    files = folder.files(stage)
    earlier = sittings(files)
    if not earlier or not _kept(files):
        return
    cure = f"or delete {files.folder} to run the stage anew."
    commit = earlier[-1].environment.git_commit
    if commit != environment.git_commit:
        raise InputError(
            f"{stage} was cut off at another commit; its cases cannot be of two",
            where="--resume",
            got=environment.git_commit or "no commit",
            allowed=commit or "no commit",
            cure=f"Check {commit[:12] or 'it'} out, {cure}",
        )
    before = kept_machine(files.machine)
    if before is None:
        return
    was, found = machine_in(before.hardware), machine_in(machine.hardware)
    was_open, is_open = (gates[gate].is_open if gate in gates else None for gates in (before.gates, machine.gates))
    if not was.same_class(found) or was_open != is_open:
        raise InputError(
            f"{stage} was cut off on a machine of another class; its cases cannot be of two",
            where="--resume",
            got=f"{found.label} (gate {gate} {'open' if is_open else 'closed'})",
            allowed=f"{was.label} (gate {gate} {'open' if was_open else 'closed'})",
            cure=f"Go on with a machine of that class, {cure}",
        )


def go_on(files: StageFiles) -> Earlier:
    """Prepare the folder of a stage for another sitting, and return what earlier ones have done.

    Damaged results are dropped. Cases that were under way when a sitting was cut off run again; cases in which a
    process died (``files.begun``) do not, and count as errors.

    Raises
    ------
    InputError
        The results were changed after the last sitting.
    """
    for scratch in files.folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(scratch)
    kept = _kept(files)
    if not kept:
        _clear(files)
        return Earlier()
    lines = read_lines(files.results)
    begun = set(files.begun.read_text(encoding="utf-8").splitlines()) if files.begun.is_file() else set()
    before = _stage_run(files.cut_off)
    found = sittings(files)
    ran_nothing = len(found) < len(files.of_all_sittings(files.environment))
    if ran_nothing:
        files.environment.unlink()
    elif files.environment.is_file():
        write_sealed(files.environment, encode(found[-1]))
    files.cut_off.unlink(missing_ok=True)
    reopen(files.results, [case for case in lines.unfinished if case not in begun])
    files.begun.write_text("\n".join(sorted(kept | begun)), encoding="utf-8")
    for path in (files.environment, files.junit, files.benchmark):
        files.set_aside(path)
    return Earlier(kept) if before is None else Earlier(kept, before.duration_s, before.contention)


def sittings(files: StageFiles) -> tuple[Invocation, ...]:
    """Every invocation that ran cases of a stage, in order, with its cases.

    The last invocation has not noted its cases yet: they are those of the results that no earlier one ran. If there are
    none although earlier ones ran some, it is left out.
    """
    paths = files.of_all_sittings(files.environment)
    found = [decode(Invocation, read_sealed(path), str(path)) for path in paths]
    if not found or paths[-1] != files.environment:
        return tuple(found)
    *earlier, last = found
    done = {case for one in earlier for case in one.cases}
    own = tuple(case.case for case in read_lines(files.results).cases if case.case not in done)
    return (*earlier, replace(last, cases=own)) if own or not done else tuple(earlier)


def _kept(files: StageFiles) -> frozenset[str]:
    """Cases of a stage that have a result; none if the results are damaged."""
    lines = read_lines(files.results)
    changed = changed_since(files.cut_off)
    if changed:
        cure = f"Put it back as the run wrote it, or delete {files.folder} to run the stage anew."
        raise InputError(changed, where=str(files.results), cure=cure)
    return frozenset() if lines.damage else frozenset(case.case for case in lines.cases)


def _stage_run(path: Path) -> StageRun | None:
    if not path.is_file():
        return None
    document = {name: value for name, value in read_sealed(path).items() if name != _DIGESTS}
    return decode(StageRun, document, str(path))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _clear(files: StageFiles) -> None:
    """Make the stage's folder, or empty it."""
    files.folder.mkdir(parents=True, exist_ok=True)
    for path in files.folder.iterdir():
        path.unlink()
