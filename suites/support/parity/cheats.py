"""Engines that cheat: each wraps a real engine of any backend, and answers without doing the work, or bends the clock.

The comparisons of the parity stage or the witness of the timing (``bench.witness``) must find every one of them.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from burstproof.engine.protocol import Engine, Progress
from burstproof.engine.recorder import recording_of
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan

_WARM_UP = 6


class Honest(Engine):
    """Hands everything on to ``inner``; ``burst_count`` is what it says it has done."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.backend, self.network, self.options = inner.backend, inner.network, inner.options
        self.fixed_point, self.burst_count = inner.fixed_point, inner.burst_count

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """One burst."""
        burst = self.inner.step(stimulus)
        self.burst_count = burst.number
        return burst

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Several bursts."""
        recording = self.inner.run(bursts, plan, record, progress)
        self.burst_count = self.inner.burst_count
        return recording

    def state(self) -> EngineState:
        """The state."""
        return replace(self.inner.state(), burst_count=self.burst_count)

    def restore(self, state: EngineState) -> None:
        """Go on from ``state``."""
        self.inner.restore(state)
        self.burst_count = state.burst_count

    def close(self) -> None:
        """Close ``inner``."""
        self.inner.close()


class _PerBurst(Honest):
    """A cheat that decides burst by burst; ``run`` is a loop of ``_burst``."""

    def _burst(self, stimulus: Stimulus, watched: bool) -> Burst:
        raise NotImplementedError

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        return self._burst(stimulus, False)

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        watched = record is Record.FIRED
        done = [self._burst(plan.get(self.burst_count + 1, NO_STIMULUS), watched) for _ in range(bursts)]
        return recording_of([] if record is Record.NONE else done, record)

    def _really(self, stimulus: Stimulus) -> Burst:
        """What the engine would do."""
        burst = super().step(stimulus)
        self.last = burst
        return burst

    def _as_before(self) -> Burst:
        """The answer of the burst before, under the next number."""
        self.burst_count += 1
        return replace(self.last, number=self.burst_count)


class Replays(_PerBurst):
    """Keeps the bursts that it has done, and gives them again from the first on whenever a run begins anew."""

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner)
        self._kept: list[tuple[Burst, EngineState]] = []
        self._place = 0

    def _burst(self, stimulus: Stimulus, watched: bool) -> Burst:
        if self._place == len(self._kept):
            burst = self._really(stimulus)
            self._kept.append((burst, self.inner.state()))
        burst, self._end = self._kept[self._place]
        self._place += 1
        self.burst_count += 1 if burst.number != self.burst_count else 0
        return replace(burst, number=self.burst_count)

    def state(self) -> EngineState:
        return replace(self._end, burst_count=self.burst_count) if self._place else super().state()

    def restore(self, state: EngineState) -> None:
        super().restore(state)
        self._place = 0


class LazyUntilAsked(Honest):
    """Does what is not recorded when the state, or a record, is asked for; of a single burst it says that of before."""

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner)
        self._left: list[Stimulus] = []
        self._last = Burst(0, np.empty(0, np.uint32), np.empty(0, np.float32), 0)

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        self._left.append(stimulus)
        self.burst_count += 1
        return replace(self._last, number=self.burst_count)

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        if record is Record.NONE:
            self._left += [plan.get(self.burst_count + 1 + i, NO_STIMULUS) for i in range(bursts)]
            self.burst_count += bursts
            return recording_of([], record)
        self._catch_up()
        return super().run(bursts, plan, record, progress)

    def _catch_up(self) -> None:
        for stimulus in self._left:
            self._last = self.inner.step(stimulus)
        self._left = []

    def state(self) -> EngineState:
        self._catch_up()
        return super().state()

    def restore(self, state: EngineState) -> None:
        self._left = []
        super().restore(state)


class SkipsEverySecond(_PerBurst):
    """Where no fired list is recorded, every second burst is the one before it again."""

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner)
        self._odd = False

    def _burst(self, stimulus: Stimulus, watched: bool) -> Burst:
        self._odd = not self._odd
        return self._really(stimulus) if watched or self._odd else self._as_before()

    def _really(self, stimulus: Stimulus) -> Burst:
        count = self.burst_count
        burst = super()._really(stimulus)
        self.burst_count = count + 1
        return replace(burst, number=count + 1)


class RecognisesWarmUp(_PerBurst):
    """Honest for the first bursts after its creation and after each restored state, then it repeats itself."""

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner)
        self._done = 0

    def _burst(self, stimulus: Stimulus, watched: bool) -> Burst:
        self._done += 1
        return self._really(stimulus) if self._done <= _WARM_UP else self._as_before()

    def restore(self, state: EngineState) -> None:
        super().restore(state)
        self._done = 0


class SlowsTheClock(Honest):
    """Replaces the process's clock by one that runs at a tenth of its speed."""

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner)
        self._clock = time.perf_counter
        clock = self._clock
        time.perf_counter = lambda: 0.1 * clock()  # type: ignore[assignment]

    def close(self) -> None:
        time.perf_counter = self._clock  # type: ignore[assignment]
        super().close()


class NanForAnything(Honest):
    """Says NaN where it has no number, in the hope that a comparison takes it for equal to everything."""

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        burst = super().step(stimulus)
        return replace(burst, fired_potentials=np.full_like(burst.fired_potentials, np.nan))

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        recording = super().run(bursts, plan, record, progress)
        return replace(recording, fired_potentials=np.full_like(recording.fired_potentials, np.nan))

    def state(self) -> EngineState:
        state = super().state()
        return replace(state, membrane_potentials=np.full_like(state.membrane_potentials, np.nan))


CHEATS: tuple[type[Honest], ...] = (
    Replays,
    LazyUntilAsked,
    SkipsEverySecond,
    RecognisesWarmUp,
    SlowsTheClock,
    NanForAnything,
)
