"""A planted fault, what becomes of it, and the engines in which faults are planted."""

from __future__ import annotations

from dataclasses import dataclass

CPU, THREADS, SHARDS, WGPU, SIMULATOR, CUDA = "cpu", "cpu, 2 threads", "cpu, 2 shards", "wgpu", "cuda simulator", "cuda"
SHARED = "cpu, shared helpers"
SIMULATED_SHARDS = "cuda simulator, 2 shards"
FEATURES = "cpu, features"

PROBE = "float32 of this adapter is not exact"
"""In place of a check: the WGPU engine refuses, since its probe of the adapter runs the functions of the shader."""


@dataclass(frozen=True)
class Fault:
    """One edit of the source.

    Attributes
    ----------
    name : str
        What the engine does wrong.
    file : str
        Path in the package.
    old, new : str
        Text that stands there once, and what it becomes.
    caught_by : tuple of str
        Names of ``planted_check.checks``: the cases and mixes that fail on it.
    """

    name: str
    file: str
    old: str
    new: str
    caught_by: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: the ``problems`` that each check found, or why there was no answer."""

    fault: Fault
    problems: dict[str, list[str]]
    error: str = ""

    @property
    def caught(self) -> bool:
        """Whether every check that has to find the fault found it."""
        if self.fault.caught_by == (PROBE,):
            return PROBE in self.error
        return not self.error and all(self.problems[name] for name in self.fault.caught_by)

    def __str__(self) -> str:
        passed = ", ".join(name for name in self.fault.caught_by if not self.problems.get(name))
        return f"{self.fault.name} ({self.fault.file}): {self.error or f'not found by {passed}'}"
