"""One network on several backends: each engine checked against the reference, then timed in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from burstproof.engine.ask_machine import ask_cuda, ask_wgpu
from burstproof.engine.machine import Obstacle
from burstproof.engine.options import EngineOptions
from burstproof.engine.registry import engine_factory
from burstproof.engine.state import Record
from hardware.host import take_host
from suites.support.bench.cpu_rows import checked
from suites.support.bench.rows import Row
from suites.support.bench.steady import Rule, Timed
from suites.support.bench.witness import Work, time_witnessed
from suites.support.parity.large import slim
from suites.support.parity.simulator_check import recordings_differ

STEP, BATCH = "launch to download", "batch of counts"
BATCH_BURSTS = 20
RULE = Rule(warmup=3, min_samples=20, max_samples=500, max_seconds=0.5, relative_noise=0.01)
_RATE_TOLERANCE = 0.5


@dataclass(frozen=True, eq=False)
class Column:
    """What a backend made of a network.

    Attributes
    ----------
    device : str
        Processor, card or adapter.
    problems : tuple of str
        Where it differs from the reference; nothing is timed then.
    timings : mapping of str to Timed
        By scope, in ms per burst.
    firing_rate : float
        While it was timed.
    """

    backend: str
    device: str
    problems: tuple[str, ...]
    timings: dict[str, Timed]
    firing_rate: float = 0.0


@cache
def column(backend: str, row: Row) -> Column:
    """Run, check and time ``row`` on ``backend``; the figures of one process are taken once."""
    want = checked(row)
    with engine_factory(backend)(want.network, EngineOptions()) as engine:
        found = recordings_differ(want.recording, engine.run(row.checked_bursts, row.start))
        found += want.state.differences(slim(engine.state()))
        device = device_of(backend)
        if found:
            return Column(backend, device, tuple(found), {})
        works = {
            STEP: Work(lambda: len(engine.step().fired_ids)),
            BATCH: Work(lambda: int(engine.run(BATCH_BURSTS, record=Record.COUNTS).fired_counts.sum()), BATCH_BURSTS),
        }
        witnessed = {scope: time_witnessed(engine, want.reference, work, RULE) for scope, work in works.items()}
        rate = sum(one.firings for one in witnessed.values()) / len(witnessed) / row.neurons
        off = abs(rate / row.firing_rate - 1.0) > _RATE_TOLERANCE
        problems = [problem for one in witnessed.values() for problem in one.problems]
        problems += [f"fired at {rate:.3%}"] if off else []
        return Column(backend, device, tuple(problems), {scope: one.timed for scope, one in witnessed.items()}, rate)


def device_of(backend: str) -> str:
    """What ``backend`` runs on."""
    if backend == "cpu":
        return take_host().cpu
    if backend == "wgpu":
        return adapter()[0]
    found = ask_cuda().found(0)
    assert not isinstance(found, Obstacle), found.why
    return ask_cuda().devices[0].name


def adapter() -> tuple[str, str]:
    """Name and kind of the adapter that WGPU takes."""
    from burstproof.engine.wgpu.adapters import chosen_adapter

    chosen = chosen_adapter(ask_wgpu(), None)
    return chosen.name, chosen.kind
