"""The test plan: the only list of stages. To add a stage, add a row here and a folder under ``suites/``.

This module imports the standard library only, so that the noxfile can make a session for each stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

NO_GATE = "none"


@dataclass(frozen=True)
class Stage:
    """One step of the test plan.

    Attributes
    ----------
    name : str
        The name on the command line and in records.
    title : str
        One or two words: ``kernel parity``.
    gate : str
        What the whole stage needs from the hardware: a gate of :mod:`hardware.gates`.
    gpu_free : str
        What still runs if the gate is closed, in words.
    suites : tuple of str
        Folders with its cases and those of their subfolders, relative to the checkout, with forward slashes.
    proves : str
        What a pass means, in words.
    time_limit_s : float
        After this many seconds the stage is ended and recorded as an error.
    case_limit_s : float
        After this many seconds a case is ended and recorded as an error, unless its marker ``time_limit`` differs.
    side_by_side : bool
        Whether its cases may run in several processes at once. A stage that times something must not.
    times_gpus_only : bool
        Whether it times only cases that need its gate. These run last, one at a time; the others run side by side.
    extras : tuple of str
        Extras to install in an environment of its own; empty: it runs in the environment that suits the driver.
    """

    name: str
    title: str
    gate: str
    gpu_free: str
    suites: tuple[str, ...]
    proves: str
    time_limit_s: float = 3600.0
    case_limit_s: float = 600.0
    side_by_side: bool = False
    times_gpus_only: bool = False
    extras: tuple[str, ...] = ()

    @property
    def requirements(self) -> tuple[str, ...]:
        """Ids of the requirements that the stage has to prove, from ``reports/requirements.toml``."""
        from reports.values.requirements import load_requirements

        return tuple(row.id for row in load_requirements() if self.name in row.stages)


HARNESS = Stage(
    name="harness",
    title="proving ground",
    gate=NO_GATE,
    gpu_free="everything",
    suites=("suites/harness", "suites/unit"),
    proves="the proving ground, and each module that decides something, do what they say",
    side_by_side=True,
)

STAGES: tuple[Stage, ...] = (
    Stage(
        name="stage1",
        title="compile",
        gate=NO_GATE,
        gpu_free="everything",
        suites=("suites/stage1_compile",),
        proves="every kernel builds for every capability within its resource limits",
        side_by_side=True,
        extras=("compile",),
    ),
    Stage(
        name="stage2",
        title="detect",
        gate="nvml",
        gpu_free="inventory, prerequisites and gates on recorded machines",
        suites=("suites/stage2_detect",),
        proves="what GPUs, driver, memory and links are here, and whether they meet the prerequisites",
    ),
    Stage(
        name="stage3",
        title="create",
        gate="gpu",
        gpu_free="memory budgets, choice of backend, the CPU engine",
        suites=("suites/stage3_create",),
        proves="contexts, streams and buffers can be made; what fits is known, the rest is refused",
    ),
    Stage(
        name="stage4",
        title="small genome",
        gate="gpu",
        gpu_free="reading, growing and running on the CPU",
        suites=("suites/stage4_small_genome",),
        proves="1 K neurons and the shipped genomes go up, run and come back intact",
        side_by_side=True,
    ),
    Stage(
        name="stage5",
        title="kernel parity",
        gate="gpu",
        gpu_free="CPU engine and simulated kernels against the reference and the recorded traces",
        suites=("suites/stage5_parity",),
        proves="every backend gives the result of the reference and of the real engine, bit for bit",
        side_by_side=True,
    ),
    Stage(
        name="stage6",
        title="performance",
        gate="gpu",
        gpu_free="the rows of the CPU",
        suites=("suites/stage6_performance",),
        proves="latencies against their targets, of results that were checked first",
    ),
    Stage(
        name="stage7",
        title="multi-GPU",
        gate="multi_gpu",
        gpu_free="shards on the CPU in one process and over 1 to 4 MPI ranks, checkpoints",
        suites=("suites/stage7_multi_gpu",),
        proves="the same result on any number of GPUs, and how it scales",
        times_gpus_only=True,
    ),
)

PLAN: tuple[Stage, ...] = (HARNESS, *STAGES)


def stage_of(path: str) -> str | None:
    """The stage that ``path``, a node id or a file relative to the checkout, belongs to; ``None`` if to none."""
    return _stage_of_file(path.split("::", 1)[0])


@cache
def _stage_of_file(path: str) -> str | None:
    file = PurePosixPath(path)
    return next((s.name for s in PLAN if any(file.is_relative_to(folder) for folder in s.suites)), None)
