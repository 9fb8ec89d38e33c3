"""The device runs the next burst while the host updates the memories of the last one.

Memories reach neurons through synapses that the host keeps. What these carry into a burst is known as soon as the burst
before it has ended, so the device need not wait until synapses have learnt and memories were made and forgotten. The
kernel of a closed loop stays on the device (``cuda.closed_loop``); it reports who fired, but no potentials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from burstproof.engine.cuda.host.growing import E, Room
from burstproof.engine.features.growing import NO_AMOUNTS
from burstproof.engine.features.machine import Begun, added
from burstproof.engine.features.patterns import Fired
from burstproof.engine.sharded.growing import GrowingShards
from burstproof.engine.stimulus import PackedStimulus
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

FEWEST = 32
"""Bursts of a run for which a kernel is worth its launch."""

_NO_SIGNALS, _NOBODY = np.empty(0, np.float32), np.empty(0, np.uint32)
_NOTHING = Begun(_NOBODY, NO_AMOUNTS, _NOBODY, _NO_SIGNALS, _NOBODY, _NO_SIGNALS, 0)


class _Unsettled(NamedTuple):
    """A burst whose memories are not updated yet: what fired by area, and which areas inject ``early``."""

    burst: int
    fired: dict[int, Fired]
    early: Sequence[int]


class GrowingOnDevices(GrowingShards[Room[E]]):
    """Shards on devices, ``held``; if nothing is recorded, a burst starts before memories of the last are updated."""

    def __init__(self, network: Network, fixed_point: FixedPoint, held: Room[E]) -> None:
        super().__init__(network, fixed_point, held)
        self._unsettled: _Unsettled | None = None
        self._dtype = fixed_point.dtype
        self._untold = _NO_SIGNALS

    def runs_ahead(self, bursts: int) -> bool:
        """Whether ``bursts`` bursts of which nothing is recorded are run that way."""
        return bursts >= FEWEST and self._machine.gives_synapses_alone

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Bursts within may ``advance``; behind it the engine stands after the last one."""
        try:
            yield
            self.settle()
        finally:
            self._unsettled = None
            self.held.leave()

    def advance(self, number: int, stimulus: PackedStimulus | None, early: Sequence[int]) -> None:
        """Run burst ``number``."""
        last = self._unsettled
        if last is not None and self._machine.may_feed_twins(last.early):
            self.settle()
        if not self.is_short_of_room() and self._give(stimulus):
            self._arriving = NO_AMOUNTS, NO_AMOUNTS
            self.settle()
            self._hear(number, early)
        else:
            self.settle()
            self.step(number, stimulus, np.array(early, np.uint32))

    def settle(self) -> None:
        """Update the memories of the last burst; only twins add to what it carries into the next one."""
        last, self._unsettled = self._unsettled, None
        if last is not None:
            sums = [self._arriving] if len(self._arriving[0]) else []
            self._ended(self._machine.live_on(last.burst, last.fired, sums, _NO_SIGNALS, _NO_SIGNALS, last.early))

    def _give(self, stimulus: PackedStimulus | None) -> bool:
        """Begin a burst; ``False`` where it has to be a batch."""
        given = self._stimulus(_NOTHING, stimulus)
        if given is not None:
            given = replace(given, amounts=given.amounts.astype(self._dtype, copy=False))
        return self.held.give(given)

    def _hear(self, number: int, early: Sequence[int]) -> None:
        """Take what fired in the burst that was given."""
        self._machine.begin(number)
        ids = self.held.hear()
        if self._firings is not None:
            self._firings.add(ids)
        if len(ids) > len(self._untold):
            self._untold = np.zeros(2 * len(ids), np.float32)
        fired, sums = self._machine.take(ids, self._untold[: len(ids)], _NO_SIGNALS)
        self._arriving = added(sums)
        self._unsettled = _Unsettled(number, fired, early)
