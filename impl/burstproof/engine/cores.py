"""How many cores a process may use, and how many are idle."""

from __future__ import annotations

import os
from pathlib import Path

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota: Path = CPU_QUOTA) -> int:
    """Cores that this process may use, no more than a container's share of processor time.

    Source: Linux, control groups version 2: ``cpu.max`` holds microseconds per period and the period, or ``max``.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        share, period = quota.read_text("ascii").split()
        return max(1, min(cores, int(share) // int(period)))
    except (OSError, ValueError, ZeroDivisionError):
        return cores


def idle_cores() -> int:
    """Usable cores that no process has needed in the last minute; 0 where the system does not say."""
    try:
        return max(0, usable_cores() - round(os.getloadavg()[0]))
    except (AttributeError, OSError):
        return 0
