"""Other work on the machine while a stage ran (Linux): load, stolen time, CPU time of other processes, CPU clock."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_MHZ = re.compile(r"^cpu MHz\s*:\s*([0-9.]+)", re.MULTILINE)
_IDLE = (3, 4)  # idle, iowait: columns of /proc/stat, proc(5)
_STEAL = 7
_COUNTED = 8  # guest time, which follows, is in user time already


@dataclass(frozen=True)
class CpuTimes:
    """CPU time of all cores since the machine started, in seconds; ``own_s`` is that of this run."""

    total_s: float
    idle_s: float
    steal_s: float
    own_s: float


def read_times(proc: Path = _PROC) -> CpuTimes | None:
    """Read the CPU times; ``None`` on systems without ``/proc``.

    This process and its children that have ended count as ``own_s``; a child that still runs counts as another process.
    """
    try:
        fields = (proc / "stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    except OSError:
        return None
    tick = os.sysconf("SC_CLK_TCK")
    times = [int(one) / tick for one in fields[:_COUNTED]]
    own = os.times()
    mine = own.user + own.system + own.children_user + own.children_system
    return CpuTimes(sum(times), sum(times[one] for one in _IDLE), times[_STEAL], mine)


def contention_between(before: CpuTimes | None, after: CpuTimes | None, proc: Path = _PROC) -> Mapping[str, float]:
    """What other processes used between two readings; empty if nothing could be read.

    Returns
    -------
    mapping
        ``others`` and ``steal`` as shares of the CPU time of all cores (0 to 1), ``load`` (one-minute average of
        runnable processes), ``clock_mhz`` (mean of the cores, if the system reports it).
    """
    if before is None or after is None or after.total_s <= before.total_s:
        return {}
    total = after.total_s - before.total_s
    steal = after.steal_s - before.steal_s
    busy = total - (after.idle_s - before.idle_s) - steal
    others = max(0.0, busy - (after.own_s - before.own_s))
    found = {"others": others / total, "steal": max(0.0, steal) / total, "load": os.getloadavg()[0]}
    clocks = [float(one) for one in _MHZ.findall(_text(proc / "cpuinfo"))]
    return {**found, "clock_mhz": sum(clocks) / len(clocks)} if clocks else found


def worst_of(one: Mapping[str, float], other: Mapping[str, float]) -> Mapping[str, float]:
    """The worse values of two results of :func:`contention_between`: the lower clock, and the higher of all else."""
    both = {name: (one.get(name, value), other.get(name, value)) for name, value in {**one, **other}.items()}
    return {name: min(pair) if name == "clock_mhz" else max(pair) for name, pair in both.items()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
