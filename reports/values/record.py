"""The record of a run: frozen values, one folder a run (requirement RE-1)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from burstproof.errors import InputError
from reports.values.grouped import grouped
from reports.values.judgement import JudgedMeasurement
from reports.values.measurement import CaseResult, Measurement
from reports.values.seal import seal_of

SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, 2)
"""Records of version 1 have neither digests nor invocations; they are read as *not sealed*."""

QUICK, THOROUGH, NIGHTLY = PLAN_KINDS = ("quick", "thorough", "nightly")
"""How much of the test plan is run; each includes the one before."""

RECORD_NAME = "record.json"
BASELINE_NAME = "record.json.gz"
REPORT_NAME = "report.html"
TARGETS_NAME = "targets.toml"
"""In a run folder: the user's targets that the run is judged by, beside those of the checkout."""


@dataclass(frozen=True)
class StageRun:
    """One planned stage: its gate, and how its run ended.

    Attributes
    ----------
    stage : str
        Its name in the test plan; equals :attr:`~reports.values.measurement.CaseResult.stage`.
    title : str
        One or two words: ``kernel parity``.
    gate_open : bool
        Whether the hardware has what the whole stage needs. A closed gate may leave a GPU-free part that runs.
    gate_reason : str
        Why the gate is closed; what was found where it is open.
    requirements : tuple of str
        Ids the stage is there to prove.
    problem : str
        What kept the stage from finishing (crash, time-out, interruption); empty where it ran to its end.
    duration_s : float
        Wall time in seconds.
    collected : int
        Cases that pytest collected; 0 where the stage did not run, and in records of version 1.
    deselected : tuple of str
        Node ids that were collected and left out by something other than the plan.
    ended_utc : str
        When it ended, ISO 8601 with ``Z``; empty if it has not, and in records of version 1.
    plugins : tuple of str
        What pytest loaded besides itself and the plugin of the test plan: packages, and the checkout's conftest files.
    contention : mapping
        What else the machine did meanwhile: load, shares of stolen and of others' CPU time (fractions), CPU clock.
    """

    stage: str
    title: str
    gate_open: bool
    gate_reason: str
    requirements: tuple[str, ...] = ()
    problem: str = ""
    duration_s: float = 0.0
    collected: int = 0
    deselected: tuple[str, ...] = ()
    ended_utc: str = ""
    plugins: tuple[str, ...] = ()
    contention: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """The software that a run used. A comparison of two runs lists what differs.

    ``variables`` holds the environment variables that bear on results (``PYTHONPATH``, ``CUDA_*`` ...).
    ``git_commit`` is empty outside a checkout. ``git_dirty`` says that files were changed, or lie there untracked and
    not ignored; ``git_changes`` names the first of them as ``git status --porcelain`` does (``?? conftest.py``).
    """

    python: str
    platform: str
    packages: Mapping[str, str]
    git_commit: str = ""
    git_dirty: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    git_changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Invocation:
    """One start of the runner that contributed to a run, and the stages it ran (``--resume`` adds another).

    ``machine`` is the label of the machine that it ran on (:mod:`reports.values.machine`). ``cases`` are those that it
    ran of the stages that other invocations ran, too; a stage without a case there it ran whole.
    """

    command: tuple[str, ...]
    started_utc: str
    environment: Environment
    stages: tuple[str, ...]
    machine: str = ""
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judging:
    """When a run was judged, by which commit, and against which targets."""

    utc: str
    commit: str
    dirty: bool
    targets_sha256: str


@dataclass(frozen=True)
class Attachment:
    """A file of the run folder, named relative to it, with its digest and size when the record was written."""

    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class RunRecord:
    """All results of a run; the report is drawn from this value alone.

    Attributes
    ----------
    run_id : str
        Name of the run, usually that of its folder.
    started_utc, finished_utc : str
        ISO 8601 with ``Z``; ``finished_utc`` is empty while the run goes on or if it was interrupted.
    command : tuple of str
        The command line as typed.
    asked : tuple of str
        Stages asked for by name; empty where the whole plan was asked for.
    stages : tuple of StageRun
        The plan, in the order of the stages.
    environment : Environment
    hardware : mapping
        The inventory as JSON values; ``cpu``, ``gpus`` (list of mappings with ``name``), ``driver`` ... as found.
    cases : tuple of CaseResult
    judgements : tuple of JudgedMeasurement
        From :func:`reports.judge.verdict.judge_cases`.
    attachments : tuple of Attachment
    schema_version : int
    plan : str
        One of ``PLAN_KINDS``; records of version 1 are read as thorough, since there was no lesser plan.
    invocations : tuple of Invocation
        Every start of the runner that contributed, in order.
    judged : tuple of Judging
        Every judging, in order; more than one means judged again.
    thinned_from : str
        The seal of the whole record, or a text that it had none; empty unless the record is thinned.
    digests : mapping
        SHA-256 of each part of the record; empty in a record of version 1, which is *not sealed*.
    summary : mapping
        Verdict and exit code as the file states them; computed anew whenever a record is written.
    """

    run_id: str
    started_utc: str
    finished_utc: str
    command: tuple[str, ...]
    asked: tuple[str, ...]
    stages: tuple[StageRun, ...]
    environment: Environment
    hardware: Mapping[str, object] = field(default_factory=dict)
    cases: tuple[CaseResult, ...] = ()
    judgements: tuple[JudgedMeasurement, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    schema_version: int = SCHEMA_VERSION
    plan: str = QUICK
    invocations: tuple[Invocation, ...] = ()
    judged: tuple[Judging, ...] = ()
    thinned_from: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    summary: Mapping[str, str | int] = field(default_factory=dict, compare=False)

    @property
    def seal(self) -> str:
        """One SHA-256 over all digests, by which the report names its record; empty in a record without digests."""
        return seal_of(self.digests) if self.digests else ""

    @property
    def origin(self) -> tuple[str, str]:
        """Start time and GPUs: equal for a run and the baseline made from it, and for no other run."""
        return self.started_utc, str(self.hardware.get("gpus", ""))

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """Every measurement, in the order of the cases."""
        return tuple(measurement for case in self.cases for measurement in case.measurements)

    def measured(self, name: str) -> Sequence[Measurement]:
        """Measurements called ``name``, in the order of the cases."""
        return self._by_name.get(name, ())

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Measurement]]:
        return grouped(self.measurements, lambda measurement: measurement.name)

    @cached_property
    def by_place(self) -> Mapping[tuple[str, int], Measurement]:
        """Every measurement by case and index, as judgements refer to it."""
        return {(case.case, i): measurement for case in self.cases for i, measurement in enumerate(case.measurements)}

    def cases_of(self, stage: str) -> Sequence[CaseResult]:
        """Cases of a stage, in their order."""
        return self._cases_by_stage.get(stage, ())

    @cached_property
    def _cases_by_stage(self) -> Mapping[str, Sequence[CaseResult]]:
        return grouped(self.cases, lambda case: case.stage)

    def judgements_of(self, case: str) -> Sequence[JudgedMeasurement]:
        """Judgements about the figures of a case, in their order."""
        return self._judgements_by_case.get(case, ())

    @cached_property
    def _judgements_by_case(self) -> Mapping[str, Sequence[JudgedMeasurement]]:
        return grouped(self.judgements, lambda judged: judged.case)


def attach(folder: Path, name: str) -> Attachment:
    """Hash ``folder / name``.

    Raises
    ------
    InputError
        If the file is missing or lies outside the folder.
    """
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError("an attachment must lie in the run folder", where=str(folder), got=name)
    if not path.is_file():
        raise InputError("attachment not found", where=str(folder), got=name, cure="Write it before the record.")
    data = path.read_bytes()
    return Attachment(name, hashlib.sha256(data).hexdigest(), len(data))
