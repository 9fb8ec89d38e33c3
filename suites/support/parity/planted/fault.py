"""A planted fault, what becomes of it, and the engines in which faults are planted."""

from __future__ import annotations

from dataclasses import dataclass

from suites.support.parity.planted.names import FAN

CPU, THREADS, SHARDS, WGPU, SIMULATOR, CUDA = "cpu", "cpu, 2 threads", "cpu, 2 shards", "wgpu", "cuda simulator", "cuda"
SHARED = "cpu, shared helpers"
SIMULATED_SHARDS = "cuda simulator, 2 shards"
FEATURES = "cpu, features"
LISTS, LISTS_OF_THREADS = "cpu, fired lists", "cpu, fired lists of 2 threads"

ON_CPU = (CPU, FEATURES, SHARED, THREADS, SHARDS, LISTS, LISTS_OF_THREADS)
"""Their kernels are those of the CPU engine."""
IN_FORKS = (*ON_CPU, SIMULATOR, SIMULATED_SHARDS)
"""Their faults are tried in forks of one process; a device that a process has asked for is of no use in its forks."""

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
        Text that stands there once, and what it becomes; in Python, in one function (``forks.py`` exchanges its code).
    caught_by : tuple of str
        Names of ``planted_check.checks``: the cases and mixes that fail on it.
    """

    name: str
    file: str
    old: str
    new: str
    caught_by: tuple[str, ...]

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that run under the fault."""
        return (FAN,) if self.caught_by == (PROBE,) else self.caught_by

    @property
    def module(self) -> str | None:
        """The module that the edit changes; ``None`` if that is no module but a shader."""
        return f"burstproof.{self.file[:-3].replace('/', '.')}" if self.file.endswith(".py") else None

    def edited(self, text: str) -> str:
        """``text`` of the file with the fault.

        Raises
        ------
        ValueError
            The text to be edited does not stand in the file exactly once.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} holds the text {text.count(self.old)} times: {self.old!r}")
        return text.replace(self.old, self.new)


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
