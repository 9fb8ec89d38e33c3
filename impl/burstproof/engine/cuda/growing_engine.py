"""CUDA engines over networks in which neurons or synapses appear: memories, twins of what fires, associations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from burstproof.device.open import open_device
from burstproof.engine.cuda.closed_loop import PersistentLoop
from burstproof.engine.cuda.device_engine import DeviceEngine, on_device
from burstproof.engine.cuda.failure import CURE, keeping_failure
from burstproof.engine.cuda.host.ahead import GrowingOnDevices
from burstproof.engine.cuda.host.devices import Devices
from burstproof.engine.cuda.host.growing import Room
from burstproof.engine.cuda.host.many_devices import pack_shards
from burstproof.engine.cuda.host.upload import fill_shard
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.interruption import KeepingFailure
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.protocol import PackedPlan, Progress
from burstproof.engine.recorder import record_steps
from burstproof.engine.sharded.growing import roomy
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.state import NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

LayOut = Callable[[Network, FixedPoint, int], Devices]
"""``lay_out(network, point, together)``: a network with room for twins, on its devices. So many neurons that are added
``together`` go to the same shard."""


class GrowingEngine(DeviceEngine):
    """An engine whose bursts are those of another, over the network with room for what appears.

    The host updates memories between two bursts; see ``CudaEngine.create``.
    """

    def __init__(
        self,
        network: Network,
        options: EngineOptions,
        point: FixedPoint,
        growing: GrowingOnDevices[DeviceEngine],
        partition: Partition | None = None,
    ) -> None:
        super().__init__(network, options, point, growing.held.engine.devices)
        self.partition = partition
        self._growing = growing

    @property
    def devices(self) -> Devices:
        """The network with room, on its devices; see ``DeviceEngine.devices``."""
        self.usable()
        return self._growing.held.engine.devices

    @keeping_failure
    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """See ``DeviceEngine.step``."""
        self.usable()
        return self._grow(self.burst_count + 1, self.pack(stimulus), stimulus)

    def persistent_loop(self, outputs: npt.NDArray[np.uint32] | None = None) -> PersistentLoop | None:
        """None: the host has its part in every burst."""
        return None

    @keeping_failure
    def _run(
        self, coming: range, packed: PackedPlan, plan: StimulusPlan, record: Record, progress: Progress | None
    ) -> Recording:
        self.usable()
        if self._growing.begin_run(len(coming)):
            return self._run_ahead(coming, packed, plan, record, progress)
        return record_steps(coming, lambda b: self._grow(b, packed.get(b), plan.get(b, NO_STIMULUS)), record, progress)

    def _grow(self, number: int, packed: PackedStimulus | None, stimulus: Stimulus) -> Burst:
        """One burst."""
        self.usable()
        with KeepingFailure(self, CURE):
            burst = self._growing.step(number, packed, stimulus.memories_early)
            self.burst_count = number
        return burst

    def _run_ahead(
        self, coming: range, packed: PackedPlan, plan: StimulusPlan, record: Record, progress: Progress | None
    ) -> Recording:
        """Bursts whose kernel stays on the device."""
        raised: BaseException | None = None
        with KeepingFailure(self, CURE), self._growing.ahead(record) as recorder:
            for number in coming:
                early = plan.get(number, NO_STIMULUS).memories_early.tolist()
                self._growing.advance(number, packed.get(number), early)
                self.burst_count = number
                raised = _raised_by(progress)
                if raised is not None:
                    break
        if raised is not None:
            raise raised
        return recorder.recording()

    @keeping_failure
    def state(self) -> EngineState:
        """See ``DeviceEngine.state``."""
        self.usable()
        return self._growing.state(self.burst_count)

    def take(self, state: EngineState) -> None:
        """See ``DeviceEngine.take``."""
        self._growing.restore(state)
        self.burst_count = state.burst_count

    def lay_out(self, partition: Partition, choice: ShardingChoice) -> None:
        """See ``DeviceEngine.lay_out``."""
        shards = _lay_out_shards(self.network, self.options, partition, choice)
        self._growing = _growing(self.network, self.options, self.fixed_point, shards)
        self._open = self._growing.held.engine.devices

    def close(self) -> None:
        """See ``DeviceEngine.close``."""
        if self._open is not None:
            self._open = None
            self._growing.held.engine.close()


def on_one_device(network: Network, options: EngineOptions) -> GrowingEngine:
    """An engine on the device of ``options``; see ``CudaEngine.create``."""

    def lay_out(held: Network, point: FixedPoint, together: int) -> Devices:
        packed = pack_network(held, options, point, network.neuron_count)
        return on_device(open_device(options.cuda.device_id), packed, partial(fill_shard, network=held))

    point = plan_fixed_point(network, options)
    return GrowingEngine(network, options, point, _growing(network, options, point, lay_out))


def over_shards(
    network: Network, options: EngineOptions, partition: Partition, choice: ShardingChoice
) -> GrowingEngine:
    """An engine over the shards of ``partition``; see ``CudaEngine.create``."""
    partition.check(network)
    point = plan_fixed_point(network, options)
    growing = _growing(network, options, point, _lay_out_shards(network, options, partition, choice))
    return GrowingEngine(network, options, point, growing, partition)


def _lay_out_shards(network: Network, options: EngineOptions, partition: Partition, choice: ShardingChoice) -> LayOut:
    def lay_out(held: Network, point: FixedPoint, together: int) -> Devices:
        cut = roomy(partition, held.neuron_count, together)
        return pack_shards(held, options, cut, choice, point, network.neuron_count)

    return lay_out


def _growing(
    network: Network, options: EngineOptions, point: FixedPoint, lay_out: LayOut
) -> GrowingOnDevices[DeviceEngine]:
    """The network with room on its devices, as an engine that is another one whenever it is laid out anew."""
    room = Room(lambda held, together: DeviceEngine(held, options, point, lay_out(held, point, together)))
    return GrowingOnDevices(network, point, room)


def _raised_by(progress: Progress | None) -> BaseException | None:
    """What ``progress`` raises when told of one burst: the engine can go on behind it."""
    try:
        if progress is not None:
            progress(1)
    except BaseException as error:
        return error
    return None
