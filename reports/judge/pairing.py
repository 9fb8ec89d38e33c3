"""Pairs the figures of runs: two are the same measurement if name and conditions of the work are equal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.judge.difference import centre
from reports.values import units
from reports.values.measurement import SPAN, Measurement
from reports.values.record import RunRecord

MACHINE_CONDITIONS = frozenset({"device", "cpu_ghz", "floor", "floor_way", "found", "single_gpu_ms"})
"""Conditions that describe the machine and not the work; figures are paired whatever they are."""

QUOTIENTS = frozenset(
    {
        "burst.fraction_of_floor",
        "burst.speedup",
        "burst.thread_speedup",
        "burst.against_uniform",
        "elementwise.speedup",
        "kernel.speedup",
        "matmul.speedup",
        "precision.speedup",
        "rank.recorded_ratio",
        "scaling.speedup",
        "scaling.efficiency",
        "shard.speedup",
        "shard.slow_speedup",
        "shard.strong_efficiency",
        "shard.weak_efficiency",
    }
)
"""Quotients of a figure and a floor, or another figure of ours. They are not compared: what gets faster is compared
itself, and makes the quotient worse if it is the other figure."""

Key = tuple[str, tuple[tuple[str, str], ...]]

_COUNTED = frozenset({"bytes", "bursts", "neurons", "synapses"})


@dataclass(frozen=True)
class Figure:
    """A measurement of a run, its case, and the centre of its samples, in its unit."""

    case: str
    measurement: Measurement
    centre: float


def figure_key(measurement: Measurement, dropped: frozenset[str] = MACHINE_CONDITIONS) -> Key:
    """Name and conditions of a measurement: equal for figures that are paired."""
    kept = ((name, units.scalar_text(value)) for name, value in measurement.conditions.items() if name not in dropped)
    return measurement.name, tuple(sorted(kept))


def samples_of(measurement: Measurement) -> tuple[float, ...]:
    """The samples, or the value if there are none; empty if one of them is not finite, or there is no value."""
    samples = measurement.samples or (() if measurement.value is None else (measurement.value,))
    return samples if all(math.isfinite(sample) for sample in samples) else ()


def figures(record: RunRecord, dropped: frozenset[str] = MACHINE_CONDITIONS) -> dict[Key, Figure]:
    """Every figure of a run, without ``QUOTIENTS`` and spans; repeated keys get a number as another condition."""
    found: dict[Key, Figure] = {}
    for case in record.cases:
        for measurement in case.measurements:
            usable = samples_of(measurement)
            if measurement.name == SPAN or measurement.name in QUOTIENTS or not usable:
                continue
            name, conditions = key = figure_key(measurement, dropped)
            number = 1
            while key in found:
                number += 1
                key = (name, (*conditions, ("repetition", str(number))))
            found[key] = Figure(case.case, measurement, centre(usable))
    return found


def first_figures(runs: Sequence[Mapping[Key, Figure]]) -> dict[Key, Figure]:
    """Every figure of a side; of several runs that have it, the first one's."""
    return {key: figure for run in reversed(runs) for key, figure in run.items()}


def is_counted(measurement: Measurement) -> bool:
    """Whether a figure is a count, which has no noise: of bytes, bursts, neurons or synapses, without samples."""
    return units.dimension(measurement.unit) in _COUNTED and not measurement.samples


def words(conditions: Sequence[tuple[str, str]]) -> str:
    """Conditions as text."""
    return ", ".join(f"{name} {value}" for name, value in conditions)


def titled(key: Key) -> str:
    """A figure in one line: its name, and its conditions in brackets."""
    return f"{key[0]} ({words(key[1])})" if key[1] else key[0]
