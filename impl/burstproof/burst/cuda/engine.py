"""CudaEngine: a network resident on one CUDA device, stepped in trains of bursts without the host in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from burstproof.burst.cuda.budget import MemoryPlan, available_bytes
from burstproof.burst.cuda.buffers import SETS
from burstproof.burst.cuda.control import HALTED
from burstproof.burst.cuda.device_state import DeviceState
from burstproof.burst.cuda.fired_lists import Collector, FiredList, ordered
from burstproof.burst.cuda.launches import BurstLaunches, checked_block_size
from burstproof.burst.cuda.packed import Packed, pack_network
from burstproof.burst.cuda.stimulus_table import StimulusTable, train_table
from burstproof.burst.cuda.train import Streams, TrainResult, TrainSet
from burstproof.burst.cuda.upload import upload_network
from burstproof.burst.engine import (
    NO_PLAN,
    NO_STIMULUS,
    Burst,
    EngineOptions,
    EngineState,
    Progress,
    Record,
    Recording,
    Stimulus,
    StimulusPlan,
)
from burstproof.burst.stimulus import PackedStimulus, pack_stimulus
from burstproof.errors import BurstproofError, InputError
from burstproof.kernels.device import DeviceRuntime, open_device
from burstproof.network.model import Network

FirstContents = Callable[[DeviceState], None]
"""Fills the buffers of a new engine."""


@dataclass(frozen=True, eq=False)
class _Train:
    """A train under way: the set it runs on and what it was asked to do."""

    on: TrainSet
    table: StimulusTable


class CudaEngine:
    """Engine on one CUDA device (BE-6, BE-7): all state stays there; the host sees what it asks for.

    Make it with ``create``. Bursts are queued in trains; a train is replayed from one CUDA graph unless
    ``options.cuda.graphs`` is off. Two trains are under way at a time, so that the stimulus of one goes up and the
    fired lists of the other come down while a train runs (BE-8).
    """

    backend = "cuda"

    def __init__(self, packed: Packed, runtime: DeviceRuntime, contents: FirstContents) -> None:
        self.network = packed.network
        self.options = packed.options
        self.fixed_point = packed.fixed_point
        self.burst_count = packed.network.burst_count
        self.memory_plan = MemoryPlan.of(packed)
        self._runtime = runtime
        block = checked_block_size(packed.options.cuda.block_size, packed.sizes.neurons)
        available = available_bytes(runtime.memory_info()[0], packed.options)
        self.memory_plan.check(available, f"device {runtime.name}")
        self._buffers = runtime.allocate(self.memory_plan.buffers)
        self._streams = Streams.open(runtime, packed.options.cuda.stream_count)
        self._device = DeviceState(runtime, self._streams.burst, self._buffers, packed.variant, packed.layout)
        contents(self._device)
        self._sets = self._train_sets(packed, block)
        self._turn = 0
        self._weights = packed.network.synapses.weights
        self._eligibility = packed.network.synapses.eligibility_traces
        self._clamped = False
        self._power_clamped = packed.layout.power_clamped and packed.network.power_neuron is not None
        self._fired: FiredList = (np.empty(0, np.uint32), np.empty(0, np.float32))
        self._list_on_device: tuple[TrainSet, int] | None = None

    def _train_sets(self, packed: Packed, block: int) -> list[TrainSet]:
        launches = BurstLaunches(self._runtime, packed, block)
        sets = [
            TrainSet(self._runtime, launches, packed, self._buffers, number, self._streams) for number in range(SETS)
        ]
        sets[0].warm()
        return sets

    @classmethod
    def create(
        cls, network: Network, options: EngineOptions | None = None, runtime: DeviceRuntime | None = None
    ) -> CudaEngine:
        """An engine over ``network`` on the device of ``options``, or on ``runtime``.

        Raises
        ------
        NetworkError
            A network that the profile refuses, or a contribution that is not finite.
        BackendUnavailableError
            No driver, no such device, or a package that is missing.
        OutOfMemoryError
            The network does not fit; the message says what would.
        """
        options = options or EngineOptions()
        opened = runtime or open_device(options.cuda.device_id)
        packed = pack_network(network, options)
        return cls(packed, opened, partial(upload_network, packed))

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst and return what it did.

        Raises
        ------
        StimulusError
            An id outside the network or not valid, an amount that is not finite, fractional or larger than declared.
        """
        number = self.burst_count + 1
        done = self.run(1, {number: stimulus}, Record.FIRED)
        return Burst(number, done.fired_ids, done.fired_potentials, int(done.candidate_counts[0]))

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Run ``bursts`` bursts with the stimulus planned for their numbers.

        Raises
        ------
        StimulusError
            A burst's stimulus is refused; the bursts before it are done.
        """
        if not self._sets:
            raise InputError("the engine is closed", where="run", cure="Create another engine")
        collector = Collector(self.burst_count + 1, record)
        last = self.burst_count + bursts
        under_way: deque[_Train] = deque()
        while self.burst_count < last:
            try:
                self._fill(under_way, plan, last, collector.wants_fired)
            except BurstproofError:
                self._drain(under_way, collector, progress)
                raise
            train = under_way.popleft()
            result = self._finish(train, collector, progress)
            if result.bursts < train.table.bursts:
                self._drain(under_way, collector, progress)
                self._device.write_control(HALTED, 0)
        return collector.recording()

    def _fill(self, under_way: deque[_Train], plan: StimulusPlan, last: int, keep: bool) -> None:
        """Queue trains until two are under way or the run is covered."""
        ahead = self.burst_count + sum(train.table.bursts for train in under_way)
        while ahead < last and len(under_way) < SETS:
            on = self._sets[self._turn]
            bursts = min(last - ahead, on.sizes.length)
            table = train_table(
                plan, self._pack, ahead + 1, bursts, on.sizes.length, on.sizes.stimulus, self.fixed_point.dtype
            )
            on.submit(table, keep)
            under_way.append(_Train(on, table))
            self._turn = (self._turn + 1) % SETS
            ahead += table.bursts

    def _pack(self, stimulus: Stimulus) -> PackedStimulus:
        return pack_stimulus(stimulus, self.network, self.options, self.fixed_point)

    def _finish(self, train: _Train, collector: Collector, progress: Progress | None) -> TrainResult:
        """Wait for a train and take in what it did."""
        result = train.on.collect()
        if result.bursts == 0:
            return result
        self.burst_count += result.bursts
        self._clamped |= self._power_clamped or any(place < result.bursts for place in train.table.clamped)
        total, last = int(result.fired.sum()), int(result.fired[-1])
        if collector.wants_fired:
            ids, potentials = train.on.fired(0, total)
            collector.add(result, (ids, potentials))
            self._fired = ordered((ids[total - last :], potentials[total - last :]), result.fired[-1:])
            self._list_on_device = None
        else:
            collector.add(result, None)
            self._list_on_device = (train.on, last)
        if progress is not None:
            progress(result.bursts)
        return result

    def _drain(self, under_way: deque[_Train], collector: Collector, progress: Progress | None) -> None:
        while under_way:
            self._finish(under_way.popleft(), collector, progress)

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        if self._list_on_device is not None:
            on, count = self._list_on_device
            self._fired = ordered(on.fired(0, count), np.array([count]))
            self._list_on_device = None
        fired = (self._fired[0].copy(), self._fired[1].copy())
        return self._device.capture(self._weights, self._eligibility, fired, self._clamped)

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, taken from any backend over the same network and options.

        Raises
        ------
        NetworkError
            A state of another network.
        """
        self._device.restore(state)
        self.burst_count = state.burst_count
        self._weights = state.weights.copy()
        self._eligibility = state.eligibility_traces.copy()
        self._clamped = state.clamped
        self._fired = (state.fired_ids.copy(), state.fired_potentials.copy())
        self._list_on_device = None

    def close(self) -> None:
        """Give back the device's memory; the engine cannot be used afterwards. Closing twice is allowed."""
        self._list_on_device = None
        self._sets.clear()
        self._buffers.clear()
        self._runtime.close()
