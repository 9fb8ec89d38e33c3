"""Numbers of cores that this process may use, and of idle ones."""

from __future__ import annotations

import os
from pathlib import Path

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota: Path = CPU_QUOTA) -> int:
    """Cores that this process may use, at most the CPU quota of its container.

    Source: Linux, control groups version 2: ``cpu.max`` holds microseconds per period and the period, or ``max``.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        share, period = quota.read_text("ascii").split()
        return max(1, min(cores, int(share) // int(period)))
    except (OSError, ValueError, ZeroDivisionError):
        return cores


def idle_cores() -> int:
    """Usable cores that were idle in the last minute, from the load average; 0 if the system does not tell."""
    try:
        return max(0, usable_cores() - round(os.getloadavg()[0]))
    except (AttributeError, OSError):
        return 0
