"""The Engine protocol, which every backend keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

Progress = Callable[[int], None]
"""Called with the number of bursts just done; ``Engine.run`` says what becomes of what it raises."""


class Engine(Protocol):
    """One network being stepped on one backend; ``burst_count`` is the number of the last burst done."""

    backend: str
    burst_count: int
    network: Network
    options: EngineOptions
    fixed_point: FixedPoint

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst and return what it did.

        Raises
        ------
        StimulusError
            An id outside the network or not valid, an amount that is not finite, fractional or larger than declared.
        """
        ...

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Run ``bursts`` bursts with the stimulus planned for their numbers.

        Fewer than 0 are an ``InputError``.

        ``progress`` is called between bursts. What it raises ends the run and is passed on; the recording is lost. The
        engine then stands at the end of burst ``burst_count``, which may lie beyond those told: what is under way is
        taken in first. Its state is that of that burst, to the bit, and the next run goes on from there. Where several
        processes share an engine, the callback has to raise in all of them after the same burst, or in none.
        """
        ...

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        ...

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, taken from any backend over the same network and options.

        Raises
        ------
        NetworkError
            Sums of another scale.
        """
        ...

    def close(self) -> None:
        """Give back memory and devices; the engine cannot be used afterwards. Closing twice is allowed."""
        ...
