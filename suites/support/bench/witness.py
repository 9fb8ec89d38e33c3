"""Timing an engine that may cheat: what was timed has to leave the evidence that the work was done.

The bursts that are timed begin at a burst number drawn at random, on which excitability draws depend, so that no
earlier answer fits. Afterwards the engine does the same bursts again from the same state and reports what fired; both
runs must end in the same state, and agree in every count that the timed one reported. At a place drawn at random in
their second half a trusted engine takes over the state and checks a few bursts. Two clocks, taken when the modules were
imported, measure every sample.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol

import numpy as np
import numpy.typing as npt

from burstproof.engine.protocol import Engine
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, EngineState, Record, Recording, Stimulus, StimulusPlan
from suites.support.bench.steady import Rule, Timed, Watch, time_steadily
from suites.support.bench.timers import clock
from suites.support.parity.large import slim

_LATEST_BURST = 1 << 40
_CLOCKS_AGREE = 0.2
"""Largest relative difference of the medians of two clocks."""

_LATE_SHARE = 0.5
"""Work that the state takes longer to come than when it is asked for again, as a share of what was timed."""

_TRIES = 3

_other_clock_ns: Callable[[], int] = time.monotonic_ns


class Judge(Protocol):
    """A trusted engine over the same network."""

    def run(self, bursts: int, plan: StimulusPlan = ..., record: Record = ...) -> Recording: ...

    def state(self) -> EngineState: ...

    def restore(self, state: EngineState) -> None: ...


@dataclass(frozen=True)
class Work:
    """One call that is timed.

    ``do`` does ``bursts`` bursts with ``stimulus`` each, and says how many fired, if known; ``prepare`` is not timed.
    """

    do: Callable[[], int | None]
    bursts: int = 1
    stimulus: Stimulus = NO_STIMULUS
    prepare: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Witnessed:
    """What was timed, in ms per burst, and what speaks against it; no problem, no doubt.

    ``bursts`` were timed, of which ``judged`` were done by the trusted engine, too. ``firings`` per burst are those of
    the bursts that were timed.
    """

    timed: Timed
    problems: tuple[str, ...]
    bursts: int
    judged: int
    firings: float

    @property
    def how(self) -> str:
        """What was checked, in one clause."""
        return f"the {self.bursts} timed bursts done again with equal result, {self.judged} of them judged"


class _Calls:
    """Times calls of the work by two clocks, and keeps what they said."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.fired: list[int | None] = []
        self.ms: list[float] = []
        self.other_ms: list[float] = []

    def __call__(self) -> float:
        self.work.prepare()
        other, start = _other_clock_ns(), clock()
        self.fired.append(self.work.do())
        elapsed = 1e3 * (clock() - start)
        self.other_ms.append((_other_clock_ns() - other) / 1e6)
        self.ms.append(elapsed)
        return elapsed / self.work.bursts

    @property
    def bursts(self) -> int:
        """Bursts that were asked for."""
        return self.work.bursts * len(self.ms)

    def clock_problems(self) -> list[str]:
        """Whether the two clocks say something else."""
        one, other = median(self.ms), median(self.other_ms)
        agree = abs(one - other) <= _CLOCKS_AGREE * max(one, other)
        return [] if agree else [f"two clocks disagree: {one:.4g} ms and {other:.4g} ms a call"]


def time_witnessed(
    engine: Engine,
    judge: Judge,
    work: Work,
    rule: Rule,
    watch: Callable[[], Watch] | None = None,
    *,
    judged: int = 4,
) -> Witnessed:
    """Time ``work`` of ``engine`` until steady, and look for evidence that it was done.

    ``judge`` does ``judged`` of the bursts. Both engines are left at the end of some burst of that run.

    Raises
    ------
    ThrottledError, ReplacedClockError
        See ``time_steadily``.
    NetworkError
        The engine does not take back what it says is its state.
    """
    start = _at_another_burst(engine.state())
    engine.restore(start)
    calls = _Calls(work)
    timed = time_steadily(calls, rule, watch)
    end, late_ms = _state_and_its_delay(engine)
    problems = calls.clock_problems()
    if late_ms > _LATE_SHARE * sum(calls.ms) and all(
        _is_late(engine, start, work, len(calls.ms)) for _ in range(_TRIES)
    ):
        problems.append(f"work was left until the state was asked for: {late_ms:.4g} ms of {sum(calls.ms):.4g} ms")
    if end.burst_count != start.burst_count + calls.bursts:
        problems.append(f"{calls.bursts} bursts were asked for, {end.burst_count - start.burst_count} are done")
    if np.isnan(end.membrane_potentials).any():
        problems.append("potentials are NaN")
    counts, found, checked = _again(engine, judge, start, end, calls, min(judged, calls.bursts))
    problems += found
    return Witnessed(timed, tuple(problems), calls.bursts, checked, float(counts.mean()))


def _at_another_burst(state: EngineState) -> EngineState:
    """``state`` as if it were that of another burst, drawn at random."""
    moved = 1 + secrets.randbelow(_LATEST_BURST)
    last_fired = np.where(state.last_fired > 0, state.last_fired - state.burst_count + moved, 0)
    return replace(state, burst_count=moved, last_fired=last_fired)


def _state_and_its_delay(engine: Engine) -> tuple[EngineState, float]:
    """The state, and by how many ms it came later than when it is asked for again."""
    start = clock()
    state = engine.state()
    first = clock()
    engine.state()
    return state, 1e3 * ((first - start) - (clock() - first))


def _is_late(engine: Engine, start: EngineState, work: Work, calls: int) -> bool:
    """Whether the state comes late once more: a busy machine delays it now and then, work put off always."""
    engine.restore(start)
    begun = clock()
    for _ in range(calls):
        work.do()
    worked_ms = 1e3 * (clock() - begun)
    return _state_and_its_delay(engine)[1] > _LATE_SHARE * worked_ms


def _again(
    engine: Engine, judge: Judge, start: EngineState, end: EngineState, calls: _Calls, judged: int
) -> tuple[npt.NDArray[np.int64], list[str], int]:
    """Firings of the timed bursts, by a run that records them; what disagrees; how many bursts were judged."""
    work, problems = calls.work, []
    first, last = start.burst_count + 1, start.burst_count + calls.bursts
    plan = dict.fromkeys(range(first, last + 1), work.stimulus) if work.stimulus is not NO_STIMULUS else NO_PLAN
    engine.restore(start)
    counts = engine.run(calls.bursts, plan, Record.COUNTS).fired_counts
    differs = end.differences(engine.state())
    if differs:
        problems.append(f"the timed bursts do not end as the same bursts do when recorded: {', '.join(differs)}")
    told = [fired for fired in calls.fired if fired is not None]
    if told and told != counts.reshape(-1, work.bursts).sum(axis=1).tolist():
        problems.append("the timed bursts do not fire as the same bursts do when recorded")
    half = (calls.bursts - judged) // 2
    before = half + secrets.randbelow(calls.bursts - judged - half + 1)
    engine.restore(start)
    engine.run(before, plan, Record.NONE)
    judge.restore(engine.state())
    expected = judge.run(judged, plan, Record.FIRED)
    if expected.fired_counts.tolist() != counts[before : before + judged].tolist():
        problems.append(
            f"bursts {before + 1} to {before + judged} of those timed do not fire as the trusted engine's do"
        )
    got = engine.run(judged, plan, Record.FIRED)
    names = ("bursts", "fired_counts", "candidate_counts", "fired_ids", "fired_potentials")
    differs = tuple(name for name in names if getattr(expected, name).tobytes() != getattr(got, name).tobytes())
    differs += slim(judge.state()).differences(slim(engine.state()))
    if differs:
        problems.append(f"the trusted engine disagrees at burst {before + judged} of those timed: {', '.join(differs)}")
    return counts, problems, judged
