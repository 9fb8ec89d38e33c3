"""Closed loops timed call by call: checked against a trusted engine before, and every timed burst done again after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.state import Record, Stimulus
from suites.support.bench.rows import Row
from suites.support.bench.steady import Rule, Timed, Watch, time_steadily
from suites.support.bench.timers import clock, waits
from suites.support.parity.large import slim

CALLS = 100_000
_BLOCK = 1000
"""Calls of which one sample of the stopping rule is the median."""
_RULE = Rule(warmup=2, min_samples=CALLS // _BLOCK, max_samples=CALLS // _BLOCK, max_seconds=600.0)
_STIMULI = 64
_REPLAYED = 5000
"""Bursts of a run that does the timed ones again at a time."""


@dataclass(frozen=True, eq=False)
class LoopResult:
    """Calls of a closed loop.

    Attributes
    ----------
    problems : tuple of str
        Where a trusted engine disagrees; nothing is timed if the first check finds any.
    timed : Timed or None
        Medians of blocks of calls, in us.
    latencies : float64 (calls,)
        Of every call, in us.
    firing_rate : float
        Mean over the timed bursts.
    waits : float64 (calls,)
        As many waits of the host as long as the median call, in us: what the machine adds to a call.
    """

    problems: tuple[str, ...]
    timed: Timed | None = None
    latencies: npt.NDArray[np.float64] | None = None
    firing_rate: float = 0.0
    waits: npt.NDArray[np.float64] | None = None


def stimuli_for(neurons: int, stimulated: int) -> list[Stimulus]:
    """Stimuli of ``stimulated`` neurons each, which calls take in turn."""
    rng = np.random.default_rng(stimulated)
    chosen = (np.sort(rng.choice(neurons, stimulated, replace=False)).astype(np.uint32) for _ in range(_STIMULI))
    return [Stimulus(ids, np.ones(stimulated, np.float32)) for ids in chosen]


def measure_loop(row: Row, stimulated: int, watch: Callable[[], Watch] | None) -> LoopResult:
    """Check, time ``CALLS`` calls with ``stimulated`` neurons each, and check."""
    from burstproof.engine.cuda.engine import CudaEngine

    network, stimuli = row.network(), stimuli_for(row.neurons, stimulated)
    with CudaEngine.create(network, EngineOptions()) as engine:
        engine.run(1, row.start)
        with CpuEngine.create(network, EngineOptions()) as judge:
            judge.restore(engine.state())
            problems = _differ(judge, engine, stimuli, row.checked_bursts)
        if problems:
            return LoopResult(problems)
        state, first = engine.state(), engine.burst_count
        timed, latencies, counts = _timed(engine, stimuli, watch)
        with CudaEngine.create(network, EngineOptions()) as again:
            again.restore(state)
            problems = _done_again(again, engine, stimuli, counts)
    assert engine.burst_count - first == len(counts)
    beside = waits(float(np.median(latencies)), CALLS)
    return LoopResult(problems, timed, latencies, float(np.mean(counts)) / row.neurons, beside)


def _differ(judge: Engine, engine: Engine, stimuli: Sequence[Stimulus], calls: int) -> tuple[str, ...]:
    """What differs in ``calls`` calls of a loop, and in the states after them."""
    found = []
    with engine.closed_loop() as loop:
        for place in range(calls):
            given = stimuli[place % len(stimuli)]
            if not np.array_equal(judge.step(given).fired_ids, loop.step(given.ids, given.amounts)):
                found.append(f"the list of call {place}")
    return (*found, *slim(judge.state()).differences(slim(engine.state())))


def _timed(
    engine: Engine, stimuli: Sequence[Stimulus], watch: Callable[[], Watch] | None
) -> tuple[Timed, npt.NDArray[np.float64], list[int]]:
    """Medians of blocks, the latencies of the blocks timed last, and what fired in every call from the first on."""
    pairs = [(given.ids, given.amounts) for given in stimuli]
    latencies: list[float] = []
    counts: list[int] = []
    with engine.closed_loop() as loop:

        def block() -> float:
            for _ in range(_BLOCK):
                ids, amounts = pairs[len(counts) % _STIMULI]
                start = clock()
                fired = loop.step(ids, amounts)
                latencies.append(1e6 * (clock() - start))
                counts.append(len(fired))
            return float(np.median(latencies[-_BLOCK:]))

        timed = time_steadily(block, _RULE, watch)
    return timed, np.array(latencies[-CALLS:]), counts


def _done_again(again: Engine, engine: Engine, stimuli: Sequence[Stimulus], counts: Sequence[int]) -> tuple[str, ...]:
    """The timed bursts as runs of another engine: what fired in each, and the state that they end in."""
    found, first, done = [], again.burst_count + 1, 0
    while done < len(counts):
        some = range(done, min(done + _REPLAYED, len(counts)))
        plan = {first + place: stimuli[place % _STIMULI] for place in some}
        fired = again.run(len(some), plan, Record.COUNTS).fired_counts
        if not np.array_equal(fired, counts[some.start : some.stop]):
            found.append(f"what fired in calls {some.start} to {some.stop - 1}")
        done = some.stop
    return (*found, *slim(again.state()).differences(slim(engine.state())))
