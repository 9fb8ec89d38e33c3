"""The folder of a run while it grows: the plan, and beside it one folder of evidence per stage.

Importing this module needs nothing but the standard library, so that the noxfile can name a run.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_PLAN = "plan.json"
_STAGES = "stages"
_DONE = "stage.json"
_MACHINE = "machine.json"
_JUDGED = "judged.json"
_COMPILED = "compiled"
_SEAL = "sha256"

SCRATCH = "burstproof-"
"""Prefix of temporary folders in a stage's folder, which a process that is killed leaves behind."""
NOT_RUN = "it has not run yet; continue with --resume"
"""Problem of a planned stage without evidence."""


@dataclass(frozen=True)
class RunPlan:
    """What was asked for, so that a run can be continued after an interruption.

    ``asked`` has the stages named on the command line (empty: the whole plan), ``stages`` the stages of the plan,
    ``command`` the command line; ``plan`` is quick, thorough or nightly.
    """

    asked: tuple[str, ...]
    stages: tuple[str, ...]
    gpu_free: bool
    started_utc: str
    command: tuple[str, ...]
    plan: str = "quick"


@dataclass(frozen=True)
class StageFiles:
    """Paths of the evidence of one stage."""

    folder: Path

    @property
    def results(self) -> Path:
        """Results of the cases (:mod:`stages.results`)."""
        return self.folder / "results.jsonl"

    @property
    def collected(self) -> Path:
        """What pytest collected."""
        return self.folder / "collected.json"

    @property
    def begun(self) -> Path:
        """Cases, one a line, that had begun when a process of the stage ended and that do not run again."""
        return self.folder / "begun.txt"

    @property
    def junit(self) -> Path:
        """JUnit XML of pytest."""
        return self.folder / "junit.xml"

    @property
    def benchmark(self) -> Path:
        """JSON of pytest-benchmark."""
        return self.folder / "benchmark.json"

    @property
    def log(self) -> Path:
        """What pytest printed."""
        return self.folder / "pytest.log"

    @property
    def environment(self) -> Path:
        """The invocation that ran the stage, with its software environment."""
        return self.folder / "environment.json"

    @property
    def machine(self) -> Path:
        """Hardware and gates of the machine that ran the stage last."""
        return self.folder / "machine.json"

    @property
    def compiled(self) -> Path:
        """Bytecode that Python compiles for the stages of this run."""
        return self.folder.parents[1] / _COMPILED

    @property
    def done(self) -> Path:
        """How the stage ended; the file exists only after that."""
        return self.folder / _DONE

    @property
    def cut_off(self) -> Path:
        """How far a stage came that was cut off; the next sitting removes it."""
        return self.folder / "cut_off.json"

    def of_all_sittings(self, path: Path) -> tuple[Path, ...]:
        """All versions of one of these files, in the order of the sittings that wrote them."""
        earlier = self.folder.glob(f"{path.stem}.*{path.suffix}")
        numbered = sorted((one for one in earlier if _sitting(one)), key=_sitting)
        return (*numbered, *([path] if path.is_file() else []))

    def set_aside(self, path: Path) -> None:
        """Rename a file to a version with the number of its sitting, so that the next one can write it anew."""
        if path.is_file():
            number = 1 + max(map(_sitting, self.of_all_sittings(path)))
            path.rename(path.with_name(f"{path.stem}.{number}{path.suffix}"))


@dataclass(frozen=True)
class RunFolder:
    """A run folder on disk."""

    path: Path

    @property
    def exists(self) -> bool:
        """Whether a plan was written here."""
        return (self.path / _PLAN).is_file()

    @property
    def judged(self) -> Path:
        """Every judging of the finished run."""
        return self.path / _JUDGED

    @property
    def targets(self) -> Path:
        """A copy of the user's targets, if the run was given some."""
        from reports.values.record import TARGETS_NAME

        return self.path / TARGETS_NAME

    @property
    def compiled(self) -> Path:
        """Bytecode that Python compiles for the suites; the folder exists while they run."""
        return self.path / _COMPILED

    @property
    def machine(self) -> Path:
        """Hardware and gates as the run found them at its start."""
        return self.path / _MACHINE

    def files(self, stage: str) -> StageFiles:
        """Return where the evidence of a stage lies."""
        return StageFiles(self.path / _STAGES / stage)

    def write_plan(self, plan: RunPlan, targets: Path | None = None) -> None:
        """Create the folder with its plan, and with a copy of the user's ``targets``."""
        # The noxfile imports this module under nox's own Python, which has no package of ours.
        from burstproof.network.files.atomic import make_folder

        make_folder(self.path)
        if targets is not None:
            self.targets.write_bytes(targets.read_bytes())
        write_sealed(self.path / _PLAN, asdict(plan))

    def read_plan(self) -> RunPlan:
        """Read the plan that :meth:`write_plan` wrote.

        Raises
        ------
        InputError
            The file is damaged or was changed, or it has no stages.
        """
        from burstproof.errors import InputError
        from reports.values.record import PLAN_KINDS
        from reports.values.serialise import decode

        path = self.path / _PLAN
        plan = decode(RunPlan, read_sealed(path), str(path))
        if plan.plan not in PLAN_KINDS or not plan.stages:
            raise InputError("not the plan of a run", where=str(path), got=(plan.plan, *plan.stages))
        return plan

    def evidence(self, stages: Sequence[str]) -> tuple[str, ...]:
        """Return the user's targets and the files of the stages, relative to the folder, with forward slashes."""
        found = (path for stage in stages for path in sorted(self.files(stage).folder.glob("*")) if path.is_file())
        own = (self.targets,) if self.targets.is_file() else ()
        return tuple(path.relative_to(self.path).as_posix() for path in (*own, *found))


def _sitting(path: Path) -> int:
    """The number in ``junit.2.xml``; 0 where there is none."""
    number = path.stem.rpartition(".")[2]
    return int(number) if "." in path.stem and number.isdecimal() else 0


def new_run_path(runs: Path) -> Path:
    """Return the path of a new run: UTC time, so that names sort, and a short id that keeps two apart."""
    return runs / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"


def utc_now() -> str:
    """Return the time as ISO 8601 with ``Z``, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def read_sealed(path: Path) -> dict[str, object]:
    """Read what :func:`write_sealed` wrote.

    These files have checksums of their own, since the seal of the record is made anew whenever it is written from them.

    Raises
    ------
    InputError
        The file cannot be read, is damaged, or was changed after it was written.
    """
    from burstproof.errors import InputError

    try:
        document: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
        whole = isinstance(document, dict) and document.pop(_SEAL, None) == checksum(document)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"no JSON of a run: {error}", where=str(path)) from error
    if not whole:
        cure = "Put the file back as the run wrote it, or begin another run."
        raise InputError("changed after it was written, or written by another version", where=str(path), cure=cure)
    return document


def write_sealed(path: Path, value: Mapping[str, object]) -> None:
    """Write a JSON object with its checksum as :func:`write_json` does; it raises the same."""
    write_json(path, {**value, _SEAL: checksum(value)})


def checksum(value: Mapping[str, object]) -> str:
    """Return the checksum of a JSON object, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def write_json(path: Path, value: object) -> None:
    """Write JSON so that a reader sees the old file or the whole new one.

    Raises
    ------
    EnvironmentInvalidError
        The file system refused (full, read-only).
    """
    from burstproof.network.files.atomic import write_atomically

    write_atomically(path, f"{json.dumps(value, indent=1)}\n".encode())
