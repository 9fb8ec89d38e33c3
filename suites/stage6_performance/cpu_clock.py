"""The clock of the processor that the CPU rows ran on."""

from __future__ import annotations

import re
from pathlib import Path

_FREQUENCIES = Path("/proc/cpuinfo")
_HIGHEST = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")


def cpu_ghz(frequencies: Path = _FREQUENCIES, highest: Path = _HIGHEST) -> float | None:
    """Highest clock of core 0 as the system states it, else the fastest core's clock now; ``None`` if it says neither.

    Source: Linux, cpufreq in kHz and ``/proc/cpuinfo`` in MHz.
    """
    try:
        return int(highest.read_text(encoding="ascii")) / 1e6
    except (OSError, ValueError):
        pass
    try:
        text = frequencies.read_text(encoding="utf-8")
    except OSError:
        return None
    found = [float(value) for value in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.MULTILINE)]
    return max(found) / 1e3 if found else None
