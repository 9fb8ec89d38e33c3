"""Growing networks on devices: the device runs the next burst while the host updates the memories of the last one.

Memory neurons reach other neurons through synapses that the host keeps. What these synapses carry into a burst is known
once the previous burst has ended, so the device need not wait until synapses have learnt and memories were made or
forgotten. The bursts run in the persistent kernel of a closed loop (``cuda.closed_loop``), which reports the fired ids.
No memory needs potentials in this mode; if they are recorded, they are fetched after the next burst was started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.host.growing import E, Room
from burstproof.engine.features.growing import NO_AMOUNTS
from burstproof.engine.features.machine import Begun, added
from burstproof.engine.features.patterns import Fired
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.recorder import FiredList, Recorder
from burstproof.engine.sharded.growing import GrowingShards
from burstproof.engine.state import EngineState, Record
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

FEWEST = 32
"""Shortest run for which the persistent kernel is launched, in bursts."""
PAYS = 1 << 16
"""Bursts of an engine after which the persistent kernel is compiled: it takes seconds and saves some 50 us a burst."""

_NO_SIGNALS, _NOBODY = np.empty(0, np.float32), np.empty(0, np.uint32)
_NOTHING = Begun(_NOBODY, NO_AMOUNTS, _NOBODY, _NO_SIGNALS, _NOBODY, _NO_SIGNALS, 0)


@dataclass(slots=True, eq=False)
class _Unsettled:
    """A burst whose memories are not updated yet.

    ``ids`` and ``candidates`` come from the device, ``begun`` from the memories; ``fired`` is what fired, by area, and
    ``early`` the areas that inject early.
    """

    burst: int
    ids: npt.NDArray[np.uint32]
    candidates: int
    begun: Begun
    fired: dict[int, Fired]
    early: Sequence[int]


class GrowingOnDevices(GrowingShards[Room[E]]):
    """A growing network whose shards, ``held``, are on devices; the device may run one burst ahead of the memories."""

    def __init__(self, network: Network, fixed_point: FixedPoint, held: Room[E]) -> None:
        super().__init__(network, fixed_point, held)
        self._asked = 0
        self._unsettled: _Unsettled | None = None
        self._recorder = Recorder(Record.NONE)
        self._dtype = fixed_point.dtype
        self._untold = _NO_SIGNALS

    def begin_run(self, bursts: int) -> bool:
        """Count ``bursts`` more bursts of this engine and return whether their run should use the persistent kernel."""
        self._asked += bursts
        return bursts >= FEWEST and self._asked >= PAYS and self._machine.gives_synapses_alone

    @contextmanager
    def ahead(self, record: Record) -> Iterator[Recorder]:
        """A ``with`` block in which ``advance`` may be called; its end updates the memories of the last burst.

        Yields the recorder of the bursts.
        """
        self._recorder = Recorder(record)
        try:
            yield self._recorder
            self.settle()
        finally:
            self._unsettled = None
            self.held.leave()

    def advance(self, number: int, stimulus: PackedStimulus | None, early: Sequence[int]) -> None:
        """Run burst ``number``, whose areas ``early`` inject early."""
        last = self._unsettled
        if last is not None and self._machine.may_feed_twins(last.early):
            self.settle()
        if not self.is_short_of_room() and self._give(stimulus):
            self._arriving = NO_AMOUNTS, NO_AMOUNTS
            self.settle()
            self._hear(number, early)
        else:
            self.settle()
            burst = self.step(number, stimulus, np.array(early, np.uint32))
            fired = burst.fired_ids, burst.fired_potentials
            self._recorder.add(number, len(burst.fired_ids), burst.candidates, fired)

    def settle(self) -> None:
        """Record the last burst and update its memories; only twins can still add input to the next burst."""
        last, self._unsettled = self._unsettled, None
        if last is None:
            return
        self._keep(last)
        sums = [self._arriving] if len(self._arriving[0]) else []
        self._ended(self._machine.live_on(last.burst, last.fired, sums, _NO_SIGNALS, _NO_SIGNALS, last.early))

    def state(self, burst_count: int) -> EngineState:
        """See ``Growth.state``."""
        self.settle()
        return super().state(burst_count)

    def _keep(self, last: _Unsettled) -> None:
        """Record a burst."""
        ids, begun, recorder = last.ids, last.begun, self._recorder
        lists: tuple[FiredList, ...] = ()
        if recorder.record is Record.FIRED:
            lists = (ids, self.held.potentials()), (begun.fired_ids, begun.fired_potentials)
        recorder.add(last.burst, len(ids) + len(begun.fired_ids), last.candidates + begun.candidates, *lists)

    def _give(self, stimulus: PackedStimulus | None) -> bool:
        """Start a burst in the persistent kernel; ``False`` if it has to be a batch."""
        given = self._stimulus(_NOTHING, stimulus)
        if given is not None:
            given = given._replace(amounts=given.amounts.astype(self._dtype, copy=False))
        return self.held.give(given, self._recorder.record is Record.FIRED)

    def _hear(self, number: int, early: Sequence[int]) -> None:
        """Fetch the ids that fired in the burst just started, and work out what the memories do in it."""
        begun = self._machine.begin(number)
        ids, candidates = self.held.hear()
        if self._firings is not None:
            self._firings.add(ids)
        if len(ids) > len(self._untold):
            self._untold = np.zeros(2 * len(ids), np.float32)
        fired, sums = self._machine.take(ids, self._untold[: len(ids)], _NO_SIGNALS)
        self._arriving = added(sums)
        self._unsettled = _Unsettled(number, ids, candidates, begun, fired, early)
