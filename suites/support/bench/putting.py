"""A measured row as measurements: the latency of each scope with its floor, how near it comes, and its energy."""

from __future__ import annotations

from stages.measuring import Measure
from suites.support.bench.cuda_bench import RESIDENT, STEP, RowResult
from suites.support.bench.floors import CardLimits, burst_floor, download_floor
from suites.support.bench.steady import Timed, to_us

_HOW = {
    RESIDENT: "wall clock of run({train} bursts) without results, per burst: trains replayed from graphs",
    STEP: "wall clock of one burst, its report awaited, fired list left on the device",
}


def conditions_of(result: RowResult, scope: str, device: str) -> dict[str, object]:
    """Conditions of the figures of a row on one GPU."""
    where = {"backend": "cuda", "gpus": 1, "device": device, "scope": scope}
    return {**where, "graphs": True, "cold_l2": "cold" in scope, **result.row.conditions}


def put_latency(result: RowResult, scope: str, timed: Timed, limits: CardLimits, measure: Measure) -> float:
    """Attach the latency of one scope and its fraction of the floor; return it in us."""
    row = result.row
    floor = burst_floor(row, limits) if scope in (RESIDENT, STEP) else download_floor(row, limits)
    conditions = conditions_of(result, scope, limits.device)
    how = _HOW.get(scope, "wall clock of engine.step, fired list on the host").format(train=result.train)
    note = f"{how}; {result.checked}; fired at {result.firing_rate:.3%}"
    with_floor = {**conditions, "floor": floor.us, "floor_way": floor.way}
    latency = timed.put(measure, "burst.latency", "us", with_floor, note, to_us)
    measure(
        "burst.fraction_of_floor",
        floor.us / latency,
        "1",
        conditions=conditions,
        note=f"the floor of {floor.us:.2f} us, by {floor.way}, follows from the card's limits measured in this run",
    )
    if scope == RESIDENT and result.energy is not None:
        result.energy.put(measure, result.events, conditions)
    return latency


def put_scaled(result: RowResult, timed: Timed, limits: CardLimits, measure: Measure) -> None:
    """Attach the latency as if the row had exactly its nominal contributions: all of it in proportion to them."""
    row = result.row
    factor = row.events / result.events
    floor = burst_floor(row, limits)
    conditions = conditions_of(result, RESIDENT, limits.device) | {"floor": floor.us, "floor_way": floor.way}
    note = (
        f"{result.events:.0f} contributions a burst as measured, scaled to {row.events:.0f}; "
        f"fired at {result.firing_rate:.4%}; {result.checked}; floor by {floor.way}"
    )
    timed.put(measure, "burst.scaled", "us", conditions, note, lambda ms: factor * to_us(ms))
