"""A measured row as measurements: the latency of each scope with its floor, and how near it comes."""

from __future__ import annotations

from stages.measuring import Measure
from suites.support.bench.cuda_bench import RESIDENT, STEP, RowResult
from suites.support.bench.rows import CardLimits, burst_floor_us, download_floor_us
from suites.support.bench.steady import Timed, to_us

_HOW = {
    RESIDENT: "wall clock of run({train} bursts) without results, per burst: trains replayed from graphs",
    STEP: "wall clock of one burst, its report awaited, fired list left on the device",
}


def put_latency(result: RowResult, scope: str, timed: Timed, limits: CardLimits, measure: Measure) -> None:
    """Attach the latency of one scope and its fraction of the floor."""
    row = result.row
    downloads = scope not in (RESIDENT, STEP)
    floor_us = download_floor_us(row, limits) if downloads else burst_floor_us(row, limits)
    conditions = {
        "backend": "cuda",
        "gpus": 1,
        "device": limits.device,
        "scope": scope,
        "graphs": True,
        "cold_l2": "cold" in scope,
        **row.conditions,
    }
    how = _HOW.get(scope, "wall clock of engine.step, fired list on the host").format(train=result.train)
    note = f"{how}; {result.checked}; fired at {result.firing_rate:.3%}"
    latency = timed.put(measure, "burst.latency", "us", {**conditions, "floor": floor_us}, note, to_us)
    measure(
        "burst.fraction_of_floor",
        floor_us / latency,
        "1",
        conditions=conditions,
        note=f"the floor of {floor_us:.2f} us follows from the card's limits measured in this run; 1 is the floor",
    )
