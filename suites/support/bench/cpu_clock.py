"""The clock of the processor that the CPU rows ran on."""

from __future__ import annotations

import re
from pathlib import Path

_FREQUENCIES = Path("/proc/cpuinfo")
_HIGHEST = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")


def cpu_ghz(frequencies: Path = _FREQUENCIES, highest: Path = _HIGHEST) -> float | None:
    """Highest clock of core 0 as the system states it, else the fastest core's clock now, to 0.1 GHz.

    ``None`` if the system says neither. A condition of figures has to be the same in the next run.

    Source: Linux, cpufreq in kHz and ``/proc/cpuinfo`` in MHz.
    """
    try:
        return round(int(highest.read_text(encoding="ascii")) / 1e6, 1)
    except (OSError, ValueError):
        pass
    try:
        text = frequencies.read_text(encoding="utf-8")
    except OSError:
        return None
    found = [float(value) for value in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.MULTILINE)]
    return round(max(found) / 1e3, 1) if found else None
