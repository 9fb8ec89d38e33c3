"""Host memory still available to this process."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def available_host_bytes(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> int | None:
    """Available bytes of the system or the container, whichever is less; ``None`` if the system reports neither."""
    known = [found for found in (_system_bytes(meminfo), _container_bytes(cgroup)) if found is not None]
    return min(known, default=None)


def _system_bytes(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _container_bytes(cgroup: Path) -> int | None:
    """Bytes left under the memory limit of the control group; ``None`` without a limit."""
    try:
        limit = (cgroup / "memory.max").read_text("ascii").strip()
        used = (cgroup / "memory.current").read_text("ascii").strip()
    except OSError:
        return None
    return max(0, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else None
