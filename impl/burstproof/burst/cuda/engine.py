"""CudaEngine: a network resident on one CUDA device, stepped in trains of bursts without the host in between."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from burstproof.burst.cuda.budget import available_bytes, plan_memory
from burstproof.burst.cuda.buffers import SETS, default_train_length, network_sizes, train_sizes
from burstproof.burst.cuda.control import HALTED
from burstproof.burst.cuda.device_state import DeviceState
from burstproof.burst.cuda.fired_lists import Collector, FiredList, ordered
from burstproof.burst.cuda.launches import BurstLaunches, checked_block_size
from burstproof.burst.cuda.stimulus_table import StimulusTable, train_table
from burstproof.burst.cuda.train import Streams, TrainResult, TrainSet
from burstproof.burst.cuda.upload import first_contents
from burstproof.burst.cuda.variant import variant_of
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
from burstproof.burst.fixed_point import plan_fixed_point
from burstproof.burst.layout import build_layout
from burstproof.burst.rules import features_of
from burstproof.burst.stimulus import PackedStimulus, pack_stimulus
from burstproof.errors import BurstproofError, ConfigError
from burstproof.kernels.device import DeviceRuntime, open_device
from burstproof.network.model import Network

_LONGEST_TRAIN = 4096


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

    def __init__(self, network: Network, options: EngineOptions, runtime: DeviceRuntime) -> None:
        self.network = network
        self.options = options
        self.fixed_point = plan_fixed_point(network, options)
        self._runtime = runtime
        layout = build_layout(network, options, self.fixed_point)
        features = features_of(network, options)
        variant = variant_of(layout, features, options, self.fixed_point)
        sizes = network_sizes(layout, features)
        block = checked_block_size(options.cuda.block_size, sizes.neurons)
        train = train_sizes(sizes.neurons, _train_length(options, sizes.neurons))
        self.memory_plan = plan_memory(network, options, layout)
        self.memory_plan.check(available_bytes(runtime.memory_info()[0], options), f"device {runtime.name}")
        self._buffers = runtime.allocate(self.memory_plan.buffers)
        self._streams = Streams.open(runtime, options.cuda.stream_count)
        self._device = DeviceState(runtime, self._streams.burst, self._buffers, variant, layout)
        for name, values in first_contents(network, layout, features, sizes):
            self._device.write(name, values)
        longest = layout.plastic.longest_window if layout.plastic is not None else 1
        launches = BurstLaunches(runtime, variant, layout, sizes, train, self.fixed_point, block, longest)
        self._sets = [
            TrainSet(runtime, launches, variant, self._buffers, n, train, self._streams, options.cuda.graphs)
            for n in range(SETS)
        ]
        self._sets[0].warm()
        self._turn = 0
        self._burst_count = network.burst_count
        self._weights = network.synapses.weights
        self._eligibility = network.synapses.eligibility_traces
        self._clamped = False
        self._power_clamped = layout.power_clamped and network.power_neuron is not None
        self._fired: FiredList | None = (np.empty(0, np.uint32), np.empty(0, np.float32))
        self._last_list: tuple[TrainSet, int, int] | None = None

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
        return cls(network, options, runtime or open_device(options.cuda.device_id))

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst and return what it did.

        Raises
        ------
        StimulusError
            An id outside the network or not valid, an amount that is not finite, fractional or larger than declared.
        """
        number = self._burst_count + 1
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
        collector = Collector(self._burst_count + 1, record)
        last = self._burst_count + bursts
        under_way: deque[_Train] = deque()
        while self._burst_count < last:
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
        ahead = self._burst_count + sum(train.table.bursts for train in under_way)
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
        self._burst_count += result.bursts
        self._clamped |= self._power_clamped or any(place < result.bursts for place in train.table.clamped)
        total, last = int(result.fired.sum()), int(result.fired[-1])
        if collector.wants_fired:
            ids, potentials = train.on.fired(0, total)
            collector.add(result, (ids, potentials))
            self._fired = ordered((ids[total - last :], potentials[total - last :]), result.fired[-1:])
            self._last_list = None
        else:
            collector.add(result, None)
            self._fired, self._last_list = None, (train.on, 0, last)
        if progress is not None:
            progress(result.bursts)
        return result

    def _drain(self, under_way: deque[_Train], collector: Collector, progress: Progress | None) -> None:
        while under_way:
            self._finish(under_way.popleft(), collector, progress)

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        if self._fired is None and self._last_list is not None:
            on, start, count = self._last_list
            self._fired = ordered(on.fired(start, count), np.array([count]))
        fired = self._fired if self._fired is not None else (np.empty(0, np.uint32), np.empty(0, np.float32))
        return self._device.capture(self._weights, self._eligibility, (fired[0].copy(), fired[1].copy()), self._clamped)

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, taken from any backend over the same network and options.

        Raises
        ------
        NetworkError
            A state of another network.
        """
        self._device.restore(state)
        self._burst_count = state.burst_count
        self._weights = state.weights.copy()
        self._eligibility = state.eligibility_traces.copy()
        self._clamped = state.clamped
        self._fired = (state.fired_ids.copy(), state.fired_potentials.copy())
        self._last_list = None

    def close(self) -> None:
        """Give back the device's memory; the engine cannot be used afterwards. Closing twice is allowed."""
        self._sets.clear()
        self._buffers.clear()
        self._runtime.close()


def _train_length(options: EngineOptions, neurons: int) -> int:
    length = options.cuda.train_length or default_train_length(neurons)
    if not 1 <= length <= _LONGEST_TRAIN:
        raise ConfigError(
            "not a train length", where="cuda.train_length", got=length, allowed=f"0, or 1...{_LONGEST_TRAIN}"
        )
    return length
