"""CudaEngine: a network resident on one CUDA device, stepped in trains of bursts without the host in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from burstproof.device.open import open_device
from burstproof.device.protocol import DeviceRuntime
from burstproof.engine.admission import check_state
from burstproof.engine.ask_machine import this_machine
from burstproof.engine.cuda.host.batch import TrainSet
from burstproof.engine.cuda.host.fired_lists import Collector, FiredList, ordered
from burstproof.engine.cuda.host.fused_batch import FusedTrainSet
from burstproof.engine.cuda.host.resident import Contents, Resident
from burstproof.engine.cuda.host.stimulus_table import StimulusTable, train_table
from burstproof.engine.cuda.host.upload import upload_network
from burstproof.engine.cuda.kernels.control import HALTED
from burstproof.engine.cuda.plan.budget import MemoryPlan
from burstproof.engine.cuda.plan.buffers import SETS
from burstproof.engine.cuda.plan.packed import Packed, pack_network, packed_for
from burstproof.engine.cuda.tuning.cache import Launch
from burstproof.engine.options import EngineOptions
from burstproof.engine.progress import tell
from burstproof.engine.protocol import Engine, Progress
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.stimulus import PackedStimulus, coming_bursts, pack_stimulus, planned
from burstproof.errors import InputError, NetworkError
from burstproof.network.model import Network
from burstproof.network.synthetic.spec import SyntheticSpec


@dataclass(frozen=True, eq=False)
class _Train:
    """A train under way: the set it runs on and what it was asked to do."""

    on: TrainSet | FusedTrainSet
    table: StimulusTable


class CudaEngine(Engine):
    """Engine on one CUDA device (BE-6, BE-7): all state stays there; the host sees what it asks for.

    Make it with ``create``. Bursts are queued in trains; a train is replayed from one CUDA graph unless
    ``options.cuda.graphs`` is off. Two trains are under way at a time, so that the stimulus of one goes up and the
    fired lists of the other come down while a train runs (BE-8).
    """

    backend = "cuda"

    def __init__(self, packed: Packed, runtime: DeviceRuntime, contents: Contents) -> None:
        self.network = packed.network
        self.options = packed.options
        self.fixed_point = packed.fixed_point
        self.burst_count = packed.network.burst_count
        self._runtime = runtime
        self._contents = contents
        self._resident = Resident(runtime, packed, contents)
        self._turn = 0
        self._weights = packed.network.synapses.weights
        self._eligibility = packed.network.synapses.eligibility_traces
        self._clamped = False
        self._fired: FiredList = (np.empty(0, np.uint32), np.empty(0, np.float32))
        self._list_on_device: tuple[TrainSet | FusedTrainSet, int] | None = None

    @property
    def memory_plan(self) -> MemoryPlan:
        """The buffers on the device with their bytes."""
        return self._resident.plan

    @property
    def launch(self) -> str:
        """The launch configuration; 0 in it is the engine's own choice."""
        return str(Launch.of(self.options.cuda))

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
        if options.cuda.autotune:
            options = cls._tuned(network, options, opened.name)
        packed = pack_network(network, options)
        return cls(packed, opened, upload_network)

    @classmethod
    def _tuned(cls, network: Network, options: EngineOptions, device: str) -> EngineOptions:
        """``options`` with the autotuner's choice for ``network``."""
        from burstproof.engine.cuda.tuning.tuner import tuned_launch, with_launch

        driver = ".".join(map(str, this_machine().cuda.driver_version or ("unknown",)))
        return with_launch(options, tuned_launch(network, options, cls.create, device, driver).launch)

    @classmethod
    def from_spec(
        cls, spec: SyntheticSpec, options: EngineOptions | None = None, runtime: DeviceRuntime | None = None
    ) -> CudaEngine:
        """An engine over the network of ``spec``, whose synapses the device makes itself (BE-3).

        It runs like one over ``synthesize(spec)``; ``network`` and the state hold no synapses, hence no weights.

        Raises
        ------
        NetworkError
            A specification that the device cannot generate, or that the profile refuses.
        BackendUnavailableError, OutOfMemoryError
            As for ``create``.
        """
        from burstproof.engine.cuda.host.generate import pack_spec

        options = options or EngineOptions()
        opened = runtime or open_device(options.cuda.device_id)
        packed, contents = pack_spec(spec, options, opened)
        return cls(packed, opened, contents)

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst and return what it did.

        Raises
        ------
        StimulusError
            An id outside the network or not valid, an amount that is not finite, fractional or larger than declared.
        """
        number = self.burst_count + 1
        on = self._resident.sets[self._turn] if self._resident.sets else None
        if isinstance(on, FusedTrainSet) and on.holds(stimulus):
            return self._quick_step(on, number, stimulus)
        done = self.run(1, {number: stimulus}, Record.FIRED)
        return Burst(number, done.fired_ids, done.fired_potentials, int(done.candidate_counts[0]))

    def _quick_step(self, on: FusedTrainSet, number: int, stimulus: Stimulus) -> Burst:
        """One burst: one launch, one wait, nothing to sort."""
        packed = None
        if len(stimulus.ids) or len(stimulus.forced) or len(stimulus.amounts):
            packed = self._pack(stimulus)
            self._clamped |= packed.clamped
        on.submit_single(packed)
        count, candidates, ids, potentials = on.collect_single()
        self._turn = (self._turn + 1) % SETS
        self.burst_count = number
        self._clamped |= self._power_clamped
        self._list_on_device = (on, count)
        return Burst(number, ids, potentials, candidates)

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Run ``bursts`` bursts; see ``Engine.run``. The whole plan is checked before the first burst.

        Raises
        ------
        StimulusError
            A burst's stimulus is refused.
        """
        if not self._resident.sets:
            raise InputError("the engine is closed", where="run", cure="Create another engine")
        stimuli = self._pack_plan(bursts, plan)
        collector = Collector(self.burst_count + 1, record)
        last = self.burst_count + bursts
        under_way: deque[_Train] = deque()

        def settle() -> None:
            """Take in what is under way, so that the engine stands after the last burst done, and let trains run."""
            while under_way:
                self._finish(under_way.popleft(), collector)
            self._resident.device.write_control(HALTED, 0)

        while self.burst_count < last:
            self._fill(under_way, stimuli, last, collector.wants_fired)
            train = under_way.popleft()
            done = self._finish(train, collector)
            if done < train.table.bursts:
                settle()
            tell(progress, done, settle)
        return collector.recording()

    def _fill(self, under_way: deque[_Train], stimuli: Mapping[int, PackedStimulus], last: int, keep: bool) -> None:
        """Queue trains until two are under way or the run is covered."""
        ahead = self.burst_count + sum(train.table.bursts for train in under_way)
        while ahead < last and len(under_way) < SETS:
            on = self._resident.sets[self._turn]
            length, capacity = on.sizes.length, on.sizes.stimulus
            bursts = min(last - ahead, length)
            table = train_table(stimuli, ahead + 1, bursts, length, capacity, self.fixed_point.dtype)
            on.submit(table, keep)
            under_way.append(_Train(on, table))
            self._turn = (self._turn + 1) % SETS
            ahead += table.bursts

    def _pack_plan(self, bursts: int, plan: StimulusPlan) -> dict[int, PackedStimulus]:
        """Checked stimulus of the coming ``bursts`` bursts by number."""
        coming = coming_bursts(self.burst_count, bursts)
        return {number: self._pack(plan[number]) for number in planned(plan, coming)}

    def _pack(self, stimulus: Stimulus) -> PackedStimulus:
        return pack_stimulus(stimulus, self.network, self.options, self.fixed_point)

    def _finish(self, train: _Train, collector: Collector) -> int:
        """Wait for a train, take in what it did and return the bursts done."""
        result = train.on.collect()
        if result.bursts == 0:
            return 0
        self.burst_count += result.bursts
        self._note_clamps(train.table, result.bursts)
        total, last = int(result.fired.sum()), int(result.fired[-1])
        if collector.wants_fired:
            ids, potentials = ordered(train.on.fired(0, total), result.fired, train.on.ordered)
            collector.add(result, (ids, potentials))
            self._fired = ids[total - last :], potentials[total - last :]
            self._list_on_device = None
        else:
            collector.add(result, None)
            self._list_on_device = (train.on, last)
        return result.bursts

    def _note_clamps(self, table: StimulusTable, bursts: int) -> None:
        """Set the sticky flag if power or the stimulus of a burst that was done is clamped."""
        self._clamped |= self._power_clamped or any(place < bursts for place in table.clamped)

    @property
    def _power_clamped(self) -> bool:
        return self._resident.packed.layout.power_clamped and self.network.power_neuron is not None

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        if self._list_on_device is not None:
            on, count = self._list_on_device
            self._fired = ordered(on.fired(0, count), np.array([count]), on.ordered)
            self._list_on_device = None
        fired = (self._fired[0].copy(), self._fired[1].copy())
        return self._resident.device.capture(self._weights, self._eligibility, fired, self._clamped)

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, taken from any backend over the same network and options.

        Contributions follow the state's weights; a state that needs other kernels or contributions than those on the
        device has the network packed again.

        Raises
        ------
        NetworkError
            A state of another network, or weights that its fixed-point scale does not admit.
        """
        layout = self._resident.packed.layout
        shape = (layout.max_delay, layout.neuron_count)
        if state.pending.shape != shape or state.weights.shape != self._weights.shape:
            raise NetworkError(
                "a state of another network", where="state.pending", got=state.pending.shape, allowed=str(shape)
            )
        check_state(state, self.fixed_point)
        packed = packed_for(self._resident.packed, state)
        if packed is not self._resident.packed:
            self._resident.release()
            self._resident = Resident(self._runtime, packed, self._contents)
        self._resident.device.restore(state)
        self.burst_count = state.burst_count
        self._weights = state.weights.copy()
        self._eligibility = state.eligibility_traces.copy()
        self._clamped = state.clamped
        self._fired = (state.fired_ids.copy(), state.fired_potentials.copy())
        self._list_on_device = None
        self._turn = 0

    def close(self) -> None:
        """Give back the device's memory; the engine cannot be used afterwards. Closing twice is allowed."""
        self._list_on_device = None
        self._resident.release()
        self._runtime.close()
