"""Kinds of networks over several GPUs: each against one GPU that does what one of them has to do."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from burstproof.config import MultiGpu
from burstproof.device.open import open_device
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from suites.support.bench.cuda_bench import RESIDENT, RowResult, measure_row
from suites.support.bench.rows import PLASTIC, UNIFORM, Row
from suites.support.bench.steady import to_us

KINDS = (UNIFORM, "weights", "inhibition", "parameters", "fractions", "delays", "everything")
HELD = (PLASTIC, "power-law")
"""Kinds of which the host holds the synapses."""
SMALL_KINDS = ("areas", *HELD)
"""Kinds that the goal table has up to 1 M neurons only."""
SMALL, LARGE = 1_000_000, 20_000_000
_RATE = 0.01


def kind_row(kind: str, neurons: int) -> Row:
    """The row of ``neurons`` neurons; the devices make the synapses themselves, but where a host has to."""
    return Row(neurons, _RATE, 12 if neurons <= SMALL else 2, generated=kind not in HELD, kind=kind)


def share_of(row: Row, devices: int) -> Row:
    """What one of ``devices`` devices has of ``row``: its neurons, and as many contributions."""
    return replace(row, neurons=row.neurons // devices)


@lru_cache(maxsize=8)
def measured(row: Row, devices: int) -> RowResult:
    """The row on the first ``devices`` devices, split as a configuration file does that says nothing about it."""
    runtime = open_device(0)
    choice = ShardingChoice(tuple(range(devices)), MultiGpu().sharding_strategy) if devices > 1 else None
    try:
        return measure_row(row, runtime, None, (RESIDENT,), choice)
    finally:
        runtime.close()


def scaled_us(result: RowResult) -> float:
    """Microseconds of a burst as if it had exactly its nominal contributions."""
    return to_us(result.timings[RESIDENT].samples.estimate) * result.row.events / result.events
