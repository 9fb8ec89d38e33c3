"""The bursts of a CUDA engine: one by one, or in batches of which two are under way at a time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.host.devices import NOTHING, BatchReport, Behind, Devices, FiredList
from burstproof.engine.cuda.host.stimulus_table import StimulusTable
from burstproof.engine.cuda.plan.buffers import SETS
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.protocol import PackedPlan, Progress
from burstproof.engine.recorder import joined, tell
from burstproof.engine.state import EngineState, Record, Recording


class BatchEngine(Protocol):
    """What the batches ask of their engine."""

    burst_count: int

    @property
    def devices(self) -> Devices:
        """The network on its devices, if the engine can go on."""


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch under way: the set it runs on, and the stimulus of each shard."""

    number: int
    tables: tuple[StimulusTable, ...]

    @property
    def bursts(self) -> int:
        return self.tables[0].bursts


class Batches:
    """Which set of buffers the next bursts run on, and what the last one left; the engine is given with each call.

    Attributes
    ----------
    clamped : bool
        Whether an input was clamped since the state was loaded.
    settled : bool
        Whether the host knows of every burst that the devices did; not while some are under way.
    """

    def __init__(self) -> None:
        self._turn = 0
        self.clamped, self.settled = False, True
        self._fired: FiredList = NOTHING
        self._list_on_device: tuple[int, npt.ArrayLike] | None = None

    def restore(self, state: EngineState) -> None:
        """Go on behind the last burst of ``state``."""
        self.clamped = state.clamped
        self._fired = state.fired_ids.copy(), state.fired_potentials.copy()
        self._list_on_device, self._turn = None, 0

    def forget(self) -> None:
        """The devices are given back, and with them the last fired list that lies there."""
        self._list_on_device = None

    def looped(self, fired: int, clamped: bool) -> None:
        """Take in that a kernel did bursts on the first set, in the last of which ``fired`` neurons fired."""
        self._list_on_device, self._turn = (0, fired), 1
        self.clamped |= clamped

    def last_list(self, devices: Devices) -> FiredList:
        """The fired list of the last burst."""
        if self._list_on_device is not None:
            number, fired = self._list_on_device
            self._fired, self._list_on_device = devices.fired(number, np.atleast_2d(fired)), None
        return self._fired

    def one(
        self, engine: BatchEngine, devices: Devices, packed: PackedStimulus | None, behind: Behind | None = None
    ) -> tuple[FiredList, int]:
        """One burst that ``devices`` of ``engine`` take without a batch: what fired, and the candidates."""
        self.settled = False
        fired, candidates = devices.step(self._turn, packed, behind)
        self._list_on_device = self._turn, len(fired[0])
        self._turn = (self._turn + 1) % SETS
        engine.burst_count += 1
        self.clamped |= devices.power_clamped or (packed is not None and packed.clamped)
        self.settled = True
        return fired, candidates

    def run(
        self, engine: BatchEngine, stimuli: PackedPlan, bursts: int, record: Record, progress: Progress | None
    ) -> Recording:
        """Run ``bursts`` bursts, which stimulus is given for by their numbers."""
        devices = engine.devices
        pieces: list[Recording] = []
        last = engine.burst_count + bursts
        under_way: deque[_Batch] = deque()

        def settle() -> None:
            """Take in what is under way, so that the engine stands after the last burst done, and let batches run."""
            while under_way:
                pieces.append(self._finish(engine, under_way.popleft(), record))
            devices.resume()
            self.settled = True

        while engine.burst_count < last:
            self._queue(engine, under_way, stimuli, last, record is Record.FIRED)
            batch, before = under_way.popleft(), engine.burst_count
            pieces.append(self._finish(engine, batch, record))
            done = engine.burst_count - before
            if done < batch.bursts:
                settle()
            tell(progress, done, settle)
        self.settled = True
        return joined(pieces if record is not Record.NONE else [])

    def _queue(self, engine: BatchEngine, under_way: deque[_Batch], stimuli: PackedPlan, last: int, keep: bool) -> None:
        """Queue batches until two are under way or the run is covered."""
        ahead = engine.burst_count + sum(batch.bursts for batch in under_way)
        while ahead < last and len(under_way) < SETS:
            tables = engine.devices.tables(stimuli, ahead + 1, last - ahead, self._turn)
            self.settled = False
            engine.devices.submit(self._turn, tables, keep, ahead)
            under_way.append(_Batch(self._turn, tables))
            self._turn = (self._turn + 1) % SETS
            ahead += tables[0].bursts

    def _finish(self, engine: BatchEngine, batch: _Batch, record: Record) -> Recording:
        """Wait for a batch, take in what it did and return its recording."""
        devices = engine.devices
        report = devices.collect(batch.number)
        numbers = engine.burst_count + 1 + np.arange(report.bursts, dtype=np.int64)
        fired = NOTHING
        if report.bursts:
            engine.burst_count += report.bursts
            clamped = any(place < report.bursts for table in batch.tables for place in table.clamped)
            self.clamped |= devices.power_clamped or clamped
            self._list_on_device = batch.number, report.fired[:, -1:]
            if record is Record.FIRED:
                fired = self._take_lists(devices, batch.number, report)
        return Recording(numbers, report.fired.sum(axis=0), report.candidates, *fired)

    def _take_lists(self, devices: Devices, number: int, report: BatchReport) -> FiredList:
        """The fired lists of a batch, of which the last one belongs to the state."""
        ids, potentials = devices.fired(number, report.fired)
        first = len(ids) - int(report.fired[:, -1].sum())
        self._fired, self._list_on_device = (ids[first:], potentials[first:]), None
        return ids, potentials
