"""A network on one CUDA device or more, stepped in batches of bursts without the host in between."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from burstproof.device.faults import error_of, translated
from burstproof.device.protocol import DeviceRuntime
from burstproof.engine.admission import check_state
from burstproof.engine.closed_loop import ClosedLoop
from burstproof.engine.cuda.batches import Batches
from burstproof.engine.cuda.closed_loop import PersistentLoop
from burstproof.engine.cuda.failure import keeping_failure
from burstproof.engine.cuda.host.devices import Behind, Devices, FiredList, LoopKernel
from burstproof.engine.cuda.host.many_devices import ManyDevices, pack_shards
from burstproof.engine.cuda.host.one_device import OneDevice
from burstproof.engine.cuda.host.shard import Fill
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.plan.budget import MemoryPlan
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.shard_pack import whole_network
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.cuda.tuning.cache import Launch
from burstproof.engine.interruption import closed
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.protocol import PackedEngine, PackedPlan, Progress
from burstproof.engine.recorder import recording_of
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import joined_state
from burstproof.engine.state import NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.errors import BurstproofError, InputError, OutOfMemoryError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

if TYPE_CHECKING:
    pass

_SHORT_LISTS = 10_000_000
"""Up to so many neurons a run of one burst is a step, whatever it records: to fetch the fired list takes less time than
a batch does."""


class DeviceEngine(PackedEngine):
    """Engine on CUDA devices (BE-6, BE-7, MG-1 to MG-4): all state stays there; the host sees what it asks for.

    ``CudaEngine.create`` makes it. Bursts are queued in batches; a batch is replayed from one CUDA graph per device
    unless ``options.cuda.graphs`` is off. Two batches are under way at a time, so that the stimulus of one goes up and
    the fired lists of the other come down while a batch runs (BE-8).

    Attributes
    ----------
    partition : Partition or None
        How the neurons are split over shards; ``None`` on one device, and where shards generated their own synapses.
    failure : Exception or None
        Why the engine cannot go on: a device failed, or its memory ran out, while something was under way; or a burst
        did not end.
    loop_lock : RLock
        The ``lock`` of the engine's closed loops.
    """

    backend = "cuda"

    def __init__(self, network: Network, options: EngineOptions, fixed_point: FixedPoint, devices: Devices) -> None:
        self.network, self.options, self.fixed_point = network, options, fixed_point
        self.burst_count = network.burst_count
        self._open: Devices | None = devices
        self._batches = Batches()
        self._weights = network.synapses.weights
        self._eligibility = network.synapses.eligibility_traces
        self._psps = network.synapses.postsynaptic_potentials
        self._loop: PersistentLoop | None = None
        self.loop_lock = RLock()
        self.partition: Partition | None = None
        self.failure: Exception | None = None

    @property
    def devices(self) -> Devices:
        """The network on its devices, where no closed loop is under way: its next step begins another kernel.

        Raises
        ------
        InputError
            The engine is closed.
        DeviceFaultError, OutOfMemoryError
            A device failed, or its memory ran out, before.
        """
        opened = self.usable()
        if self._loop is None:
            return opened
        self._loop.pause()
        return self.usable()

    def usable(self) -> Devices:
        """The network on its devices, if the engine can go on."""
        if self._open is None:
            raise closed()
        if self.failure is not None:
            raise self.failure
        return self._open

    @property
    def memory_bytes(self) -> int:
        """Bytes that all devices together give to the engine."""
        return self.devices.memory_bytes

    @property
    def memory_plan(self) -> MemoryPlan:
        """The buffers of an engine on one device, with their bytes.

        Raises
        ------
        InputError
            The engine has shards, each of which has its own.
        """
        return self.devices.plan

    @property
    def has_settled(self) -> bool:
        """Whether the host knows of all bursts that the devices did."""
        return self._batches.settled

    @property
    def exchange_path(self) -> str:
        """The way that firings take between devices, in words."""
        return self.devices.path

    @property
    def host_bytes(self) -> int:
        """Bytes of synapses that one device reads from host memory."""
        return self.devices.host_bytes

    @property
    def launch(self) -> str:
        """The launch configuration, in which 0 is the engine's own choice; how sums and delays are kept, and why."""
        return f"{Launch.of(self.options.cuda)}; {self.devices.choices}"

    @keeping_failure
    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst and return what it did.

        Raises
        ------
        StimulusError
            An id outside the network or not valid, an amount that is not finite, fractional or larger than declared.
        """
        number, devices = self.burst_count + 1, self.devices
        if not devices.takes(stimulus):
            done = self.run(1, {number: stimulus}, Record.FIRED)
            return Burst(number, done.fired_ids, done.fired_potentials, int(done.candidate_counts[0]))
        given = len(stimulus.ids) or len(stimulus.forced) or len(stimulus.amounts)
        packed = self.pack(stimulus) if given else None
        fired, candidates = self._batches.one(self, devices, packed)
        return Burst(number, *fired, candidates)

    @translated
    def closed_loop(self, outputs: npt.NDArray[np.uint32] | None = None) -> ClosedLoop:
        """See ``Engine.closed_loop``: where a burst is one kernel, that stays on the device from call to call."""
        loop = self.persistent_loop(outputs)
        return super().closed_loop(outputs) if loop is None else loop

    def persistent_loop(self, outputs: npt.NDArray[np.uint32] | None = None) -> PersistentLoop | None:
        """A closed loop whose kernel stays on the device, if its bursts can be turns of one."""
        return None if self.devices.loop_kernel() is None else PersistentLoop(self, outputs)

    def enter_loop(self, loop: PersistentLoop) -> LoopKernel | None:
        """The kernel of ``loop``, which has the devices from now on; ``None`` where a burst has to be a batch."""
        devices = self.devices
        kernel = devices.loop_kernel() if devices.takes(NO_STIMULUS) else None
        self._loop = None if kernel is None else loop
        return kernel

    def leave_loop(self, bursts: int, fired: int, clamped: bool) -> None:
        """Take in what a loop did in its ``bursts`` bursts, in the last of which ``fired`` neurons fired."""
        self._loop = None
        if bursts and self._open is not None:
            self._batches.looped(fired, self._open.power_clamped or clamped)

    @keeping_failure
    def _run(
        self, coming: range, packed: PackedPlan, plan: StimulusPlan, record: Record, progress: Progress | None
    ) -> Recording:
        """See ``Engine.run``.

        Raises
        ------
        ShardLostError
            A shard was waited for in vain: it is named, and this engine cannot go on.
        DeviceFaultError, OutOfMemoryError
            A device failed, or its memory ran out.
        """
        recording = self._run_as_step(coming, packed, record)
        if recording is None:
            recording = self._batches.run(self, packed, len(coming), record, progress)
        elif progress is not None:
            progress(1)
        if self.devices.due():
            self._lay_out_again()
        return recording

    def _run_as_step(self, coming: range, packed: PackedPlan, record: Record) -> Recording | None:
        """A run of one burst, done as a step: in a quarter of the host's time. ``None`` where it has to be a batch."""
        listed = record is Record.FIRED or self.network.neuron_count <= _SHORT_LISTS
        if len(coming) != 1 or not listed:
            return None
        devices, stimulus = self.devices, packed.get(coming[0])
        if not devices.takes(NO_STIMULUS if stimulus is None else stimulus):
            return None
        fired, candidates = self._batches.one(self, devices, stimulus)
        return recording_of([Burst(coming[0], *fired, candidates)], record)

    def _lay_out_again(self) -> None:
        """Go on from the state at hand in the layout that suits what fires.

        The run is over by then: if this fails, whatever is asked next says why. Interrupted, the engine is closed.
        """
        state = self.state()
        try:
            self.take(state)
        except Exception as error:
            self.failure = error if isinstance(error, BurstproofError) else error_of(error)
            if self.failure is None:
                raise
        except BaseException:
            self.close()
            raise

    def one(self, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """One burst of an engine that holds another's network with room: what fired, and the candidates.

        ``behind`` is queued behind the burst.
        """
        number, devices = self.burst_count + 1, self.devices
        if devices.takes(NO_STIMULUS if stimulus is None else stimulus):
            return self._batches.one(self, devices, stimulus, behind)
        done = self._batches.run(self, {} if stimulus is None else {number: stimulus}, 1, Record.FIRED, None)
        if behind is not None:
            behind()
            self.memory.wait()
        return (done.fired_ids, done.fired_potentials), int(done.candidate_counts[0])

    @property
    def memory(self) -> DeviceState:
        """The buffers of one device."""
        devices = self.devices
        assert isinstance(devices, OneDevice | ManyDevices)
        return devices.device if isinstance(devices, OneDevice) else devices.shards[0].device

    @keeping_failure
    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        devices = self.devices
        parts = devices.state(self._batches.clamped)
        fired = self.last_list()
        return joined_state(parts, self._weights, self._eligibility, (fired[0].copy(), fired[1].copy()), self._psps)

    def last_list(self) -> FiredList:
        """The fired list of the last burst."""
        return self._batches.last_list(self.devices)

    @keeping_failure
    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, taken from any backend over the same network and options.

        Contributions follow the state's weights; a state that needs other kernels or contributions than those on the
        devices has the network packed again.

        Raises
        ------
        NetworkError
            A state of another network, or weights that its fixed-point scale does not admit.
        OutOfMemoryError
            The network packed for the state does not fit; the engine is closed then.
        """
        check_state(state, self.network, self.fixed_point, self.devices.max_delay)
        try:
            self.take(state)
        except OutOfMemoryError:
            self.close()  # what the devices held is gone
            raise

    def take(self, state: EngineState) -> None:
        """Continue from ``state``, which is known to be one of this network."""
        self.devices.restore(state)
        self.burst_count = state.burst_count
        self._weights, self._eligibility = state.weights.copy(), state.eligibility_traces.copy()
        if state.features is not None:
            self._psps = state.features.postsynaptic_potentials.copy()
        self._batches.restore(state)

    @keeping_failure
    def reshard(self, partition: Partition) -> None:
        """Go on with another partition from the state at hand; devices are given to its shards in turn.

        Raises
        ------
        InputError
            A partition of another network, or an engine that was created without one.
        """
        partition.check(self.network)
        state, devices = self.state(), self.devices
        if self.partition is None or not isinstance(devices, ManyDevices):
            cure = "Create it with a partition, or leave it on its devices"
            raise InputError("the engine has no partition to change", where="reshard", cure=cure)
        self.close()
        self.lay_out(partition, devices.choice)
        self.partition = partition
        self.restore(state)

    def lay_out(self, partition: Partition, choice: ShardingChoice) -> None:
        """Put the network of a closed engine onto the devices of ``choice``."""
        self._open = pack_shards(self.network, self.options, partition, choice)

    def close(self) -> None:
        """Give back the devices' memory; the engine cannot be used afterwards. Closing twice is allowed.

        A device that failed has nothing to give back.

        Raises
        ------
        InputError
            Another thread is inside a call of a closed loop; the engine stays open then.
        """
        if self._loop is not None:
            self._loop.pause()
        self._batches.forget()
        devices, self._open = self._open, None
        if devices is None:
            return
        try:
            devices.release()
        except Exception as error:
            if error_of(error) is None:
                raise


def on_device(runtime: DeviceRuntime, packed: Packed, fill: Fill) -> Devices:
    """``packed`` on one device: bursts in one kernel where they can be, else as the one shard of a device."""
    if packed.variant.fused is not None:
        return OneDevice(runtime, packed, fill)
    number, options = packed.options.cuda.device_id, packed.options
    return ManyDevices([whole_network(packed)], options, ShardingChoice((number,)), fill, None, {number: runtime})
