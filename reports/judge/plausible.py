"""Figures that are possible but misleading: a speed-up that is larger than the number of devices."""

from __future__ import annotations

from reports.judge.difference import NOISE
from reports.values.measurement import Measurement

_COUNTS = ("devices", "gpus", "threads", "ranks")
_MORE = "More than linear: the base is slow, not the many fast."


def more_than_linear(measurement: Measurement) -> str:
    """A sentence if an efficiency is above 100 %, or a speed-up above the number of devices, by more than ``NOISE``.

    Empty otherwise. It does not change the verdict, since it can be real: several devices have more cache.
    """
    share = _efficiency(measurement)
    return _MORE if share is not None and share > 1.0 + NOISE else ""


def _efficiency(measurement: Measurement) -> float | None:
    if measurement.name.endswith("efficiency"):
        return measurement.in_unit("1")
    if not measurement.name.endswith("speedup"):
        return None
    counts = [count for name in _COUNTS if (count := measurement.number(name)) is not None and count > 1.0]
    speedup = measurement.in_unit("x")
    return speedup / max(counts) if counts and speedup is not None else None
