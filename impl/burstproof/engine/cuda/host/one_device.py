"""A network on one device whose bursts are one kernel: buffers, kernels and the two sets of batch buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter

import numpy as np
import numpy.typing as npt

from burstproof.device.host_memory import available_host_bytes
from burstproof.device.protocol import DeviceRuntime
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.host.appearing import Appearing
from burstproof.engine.cuda.host.arrivals import Arrivals
from burstproof.engine.cuda.host.batch import Streams
from burstproof.engine.cuda.host.devices import BatchReport, Behind, FiredList, LoopKernel
from burstproof.engine.cuda.host.fused_batch import FusedBatch, FusedLaunches
from burstproof.engine.cuda.host.loop_kernel import PersistentKernel
from burstproof.engine.cuda.host.pending import Pending
from burstproof.engine.cuda.host.regret import Regret
from burstproof.engine.cuda.host.shard import Fill
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.host.stimulus_table import StimulusTable, batch_table
from burstproof.engine.cuda.kernels.control import BURST, HALTED
from burstproof.engine.cuda.plan.block_size import checked_block_size
from burstproof.engine.cuda.plan.budget import MemoryPlan, available_bytes, place_synapses
from burstproof.engine.cuda.plan.buffers import SETS
from burstproof.engine.cuda.plan.choices import choices_of
from burstproof.engine.cuda.plan.packed import Packed, packed_for
from burstproof.engine.cuda.plan.queues import block_bytes
from burstproof.engine.cuda.plan.shard_pack import whole_network
from burstproof.engine.cuda.plan.sizing import QUEUES
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.sharded.shard import StatePart
from burstproof.engine.state import EngineState, Stimulus


class OneDevice:
    """One packed network on one device; see ``Devices``.

    Attributes
    ----------
    packed : Packed
        As it runs, with its synapses placed in device or host memory.
    plan : MemoryPlan
    device : DeviceState
    sets : tuple of FusedBatch
    """

    def __init__(self, runtime: DeviceRuntime, packed: Packed, fill: Fill) -> None:
        self._runtime, self._fill, self._arrivals = runtime, fill, Arrivals()
        self._build(packed)

    def _build(self, packed: Packed) -> None:
        """Put ``packed`` onto the device."""
        runtime, began = self._runtime, perf_counter()
        checked_block_size(packed.options.cuda.block_size, packed.sizes.neurons)
        if block_bytes(packed.variant) > runtime.shared_bytes:
            packed = packed.lacking(QUEUES)
        available = available_bytes(runtime.memory_info()[0], packed.options)
        packed = place_synapses(packed, available)
        packed = replace(packed, variant=replace(packed.variant, overlapped=runtime.overlaps))
        self.packed = packed
        self.plan = MemoryPlan.of(packed)
        self.plan.check(available, f"device {runtime.name}")
        self.plan.check_host(available_host_bytes())
        self._buffers = runtime.allocate(self.plan.buffers) | runtime.allocate_host(self.plan.host_buffers)
        streams = Streams.open(runtime, packed.options.cuda.stream_count)
        self.device = DeviceState(runtime, streams.burst, self._buffers, packed)
        self._fill(whole_network(packed), self.device)
        self._launches, self._burst_stream = FusedLaunches(runtime, packed), streams.burst
        self._launches.sort_rows(self._buffers, streams.burst)
        numbers = range(SETS)
        self.sets = tuple(FusedBatch(runtime, self._launches, packed, self._buffers, n, streams) for n in numbers)
        self.sets[0].warm()
        self._loop_kernel: PersistentKernel | None = None
        self._regret = Regret(packed, perf_counter() - began)

    @property
    def host_bytes(self) -> int:
        """Bytes of synapses that the device reads from host memory."""
        return self.plan.host_bytes

    @property
    def path(self) -> str:
        """See ``Devices.path``."""
        return "on one device"

    @property
    def choices(self) -> str:
        """See ``Devices.choices``."""
        return choices_of(self.packed)

    @property
    def memory_bytes(self) -> int:
        """Bytes on the device."""
        return self.plan.total_bytes

    @property
    def max_delay(self) -> int:
        """Longest delay in bursts."""
        return self.packed.layout.max_delay

    @property
    def power_clamped(self) -> bool:
        """Whether the amount of the power neuron is clamped in every burst."""
        return self.packed.layout.power_clamped and self.packed.network.power_neuron is not None

    def tables(
        self, stimuli: Mapping[int, PackedStimulus], first: int, bursts: int, number: int
    ) -> tuple[StimulusTable, ...]:
        """See ``Devices.tables``."""
        sizes, dtype = self.sets[number].sizes, self.packed.fixed_point.dtype
        self._arrivals.forget(first - SETS * sizes.length)
        stimuli = self._arrivals.beside(stimuli)
        return (batch_table(stimuli, first, min(bursts, sizes.length), sizes.length, sizes.stimulus, dtype),)

    def submit(self, number: int, tables: tuple[StimulusTable, ...], keep: bool, burst: int) -> None:
        """See ``Devices.submit``."""
        make_current(self._runtime)
        self.sets[number].submit(tables[0], keep)

    def collect(self, number: int) -> BatchReport:
        """See ``Devices.collect``."""
        report = self.sets[number].collect()
        self._regret.add(report.bursts, int(report.fired.sum()))
        return report

    def due(self) -> bool:
        """See ``Devices.due``."""
        return self._regret.better() is not None

    def fired(self, number: int, counts: npt.NDArray[np.int64]) -> FiredList:
        """See ``Devices.fired``."""
        return self.sets[number].fired(int(counts.sum()))

    def takes(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """See ``Devices.takes``."""
        return not self._arrivals and self.sets[0].holds(stimulus)

    def step(self, number: int, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """See ``Devices.step``: one launch, one wait, nothing to sort."""
        make_current(self._runtime)
        fired, candidates = self.sets[number].step(stimulus, behind)
        self._regret.add(1, len(fired[0]))
        return fired, candidates

    def loop_kernel(self) -> LoopKernel | None:
        """See ``Devices.loop_kernel``. Compiled at the first request; replaced when the network is packed again."""
        from burstproof.engine.cuda.kernels.closed_loop import can_persist

        if self._loop_kernel is None and can_persist(self.packed.variant):
            make_current(self._runtime)
            self._loop_kernel = PersistentKernel(self._runtime, self.packed, self._buffers, self.sets[0])
        return self._loop_kernel

    def resume(self) -> None:
        """See ``Devices.resume``."""
        self.device.write_control(HALTED, 0)

    def appearing(self, synapses: int) -> list[Appearing]:
        """The ``Appearing`` that changes the network while it runs."""
        return [Appearing(self._runtime, whole_network(self.packed), self.device, synapses)]

    def state(self, clamped: bool) -> list[StatePart]:
        """See ``Devices.state``."""
        make_current(self._runtime)
        variant = self.packed.variant
        pending = self._waiting() if variant.calendar else self._pending() if variant.recalled else None
        return [self.device.capture(slice(None), clamped, pending)]

    def _pending(self) -> Pending:
        """Pending contributions of the coming bursts, if delays are on the sender's side: from the kept fired lists."""
        pending = self.device.pending.read_coming(
            lambda ahead: self._launches.send_ahead(self._buffers, ahead, self._burst_stream)
        )
        self._arrivals.add_to(int(self.device.read("control")[BURST]), *pending)
        return pending

    def _waiting(self) -> Pending:
        """Pending contributions of the coming bursts, if there is a calendar."""
        burst = int(self.device.read("control")[BURST])
        pending = self.device.pending.read_waiting(burst)
        self._arrivals.add_to(burst, *pending)
        return pending

    def restore(self, state: EngineState) -> None:
        """See ``Devices.restore``."""
        make_current(self._runtime)
        packed, self._arrivals = packed_for(self._regret.better() or self.packed, state), Arrivals()
        if packed is not self.packed:
            self._clear()
            self._build(packed)
            packed = self.packed  # may differ: the device may lack the room for what the state asks for
        if packed.variant.recalled or (packed.variant.calendar and not packed.variant.calendar_tiles):
            slots = 0 if packed.variant.queues else 1
            state = self._arrivals.take(state, packed.network.neurons.valid_mask, packed.fixed_point.dtype, slots)
        self.device.restore(state)

    def _clear(self) -> None:
        self.sets, self._loop_kernel = (), None
        self._buffers.clear()

    def release(self) -> None:
        """Free the device's memory."""
        self._clear()
        self._runtime.close()
