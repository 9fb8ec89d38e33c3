"""The WGPU engine: bursts as compute shaders, up to 64 of them in one submission (BE-16)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.engine.ask_machine import ask_wgpu
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.interruption import KeepingFailure, refuse_failed
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.protocol import PackedEngine, PackedPlan, Progress
from burstproof.engine.recorder import joined
from burstproof.engine.state import NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.wgpu.adapters import chosen_adapter
from burstproof.engine.wgpu.batches import Classes, Encoder, Place, entry_words, stimulus_table, uniforms
from burstproof.engine.wgpu.device import Device, open_device
from burstproof.engine.wgpu.memory import WgpuMemory
from burstproof.engine.wgpu.packed import refuse_options, refuse_scale
from burstproof.engine.wgpu.shaders import FIRST_CANDIDATES, LONGEST_BATCH
from burstproof.errors import InputError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_NO_CLASSES = Classes()


class WgpuEngine(PackedEngine):
    """Engine on one adapter of wgpu.

    Attributes
    ----------
    failure : Exception or None
        Why the engine cannot go on until a state is restored: a burst did not end.
    """

    backend = "wgpu"

    def __init__(self, network: Network, options: EngineOptions, device: Device) -> None:
        self.network = network
        self.options = options
        self.fixed_point: FixedPoint = plan_fixed_point(network, options)
        refuse_scale(self.fixed_point)
        self.burst_count = network.burst_count
        self.failure: Exception | None = None
        self._longest = options.wgpu.batch_length or LONGEST_BATCH
        self._device = device
        self._memory = WgpuMemory(device, network, options, self.fixed_point, self._longest)
        self._uniforms = device.uniforms(LONGEST_BATCH)
        self._uniform_group = device.burst_group(self._uniforms)

    @classmethod
    def create(cls, network: Network, options: EngineOptions | None = None) -> WgpuEngine:
        """An engine over ``network`` on the adapter that ``options.wgpu`` names.

        Raises
        ------
        BackendUnavailableError
            No package, no adapter, an adapter whose float32 does not pass the probe, or an option that this engine
            does not have.
        OutOfMemoryError
            A buffer is larger than the adapter takes.
        NetworkError
            A network that the profile refuses, or a contribution that is not finite.
        """
        options = options or EngineOptions()
        if not 0 <= options.wgpu.batch_length <= LONGEST_BATCH:
            raise InputError(
                "no such length of a batch",
                where="WgpuOptions.batch_length",
                got=options.wgpu.batch_length,
                allowed=f"0...{LONGEST_BATCH}",
            )
        refuse_options(options)
        return cls(network, options, open_device(chosen_adapter(ask_wgpu(), options.wgpu.adapter)))

    @property
    def adapter(self) -> str:
        """Name of the adapter that runs this engine."""
        return self._device.adapter.name

    @property
    def launch(self) -> str:
        """The adapter."""
        return f"adapter {self.adapter}"

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst; see ``Engine.step``."""
        done = self._submit([self.pack(stimulus)], Record.FIRED)
        return Burst(self.burst_count, done.fired_ids, done.fired_potentials, int(done.candidate_counts[0]))

    def _run(
        self, coming: range, packed: PackedPlan, plan: StimulusPlan, record: Record, progress: Progress | None
    ) -> Recording:
        nothing = self.pack(NO_STIMULUS)
        pieces: list[Recording] = []
        last = self.burst_count + len(coming)
        while self.burst_count < last:
            end = min(last, self.burst_count + (self._longest if self._memory.host is None else 1))
            batch = [packed.get(number, nothing) for number in range(self.burst_count + 1, end + 1)]
            piece = self._submit(batch, record)
            if record is not Record.NONE:
                pieces.append(piece)
            if progress is not None:
                progress(len(piece.bursts))
        return joined(pieces)

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        refuse_failed(self)
        return self._memory.state(self.burst_count)

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``; contributions follow its weights.

        Raises
        ------
        NetworkError
            A state of another network, or weights that its fixed-point scale does not admit.
        """
        self._memory.restore(state)
        self.burst_count, self.failure = state.burst_count, None

    def close(self) -> None:
        """Give the buffers back; the device stays open for other engines. Closing twice is allowed."""
        self._memory.close()
        self._uniforms.destroy()

    def _submit(self, stimuli: list[PackedStimulus], record: Record) -> Recording:
        """Run as many bursts of a batch as the log has room for, at least one."""
        refuse_failed(self)
        with KeepingFailure(self):
            return self._run_batch(stimuli, record)

    def _run_batch(self, stimuli: list[PackedStimulus], record: Record) -> Recording:
        """See ``_submit``."""
        memory = self._memory
        if any(s.may_cancel for s in stimuli):
            memory.use_flags()
        table, places = stimulus_table(stimuli)
        table, classes = self._classes(table, len(stimuli))
        self._begin(table, places, self.burst_count + 1, classes)
        encoder = self._encoder()
        for index, place in enumerate(places):
            encoder.select(index)
            encoder.put(place)
            encoder.burst(memory.layout.neuron_count)
        encoder.submit()
        done = self._collect(len(stimuli), record)
        power_clamps = memory.layout.power_clamped and self.network.power_neuron is not None
        memory.clamped |= power_clamps or any(s.clamped for s in stimuli[: len(done.bursts)])
        self.burst_count += len(done.bursts)
        self._send_computed()
        memory.modulation.measure(*memory.fired)
        return done

    def _classes(self, table: npt.NDArray[np.uint32], bursts: int) -> tuple[npt.NDArray[np.uint32], Classes]:
        """The table of a batch with what area classes have in its ``bursts``, and where it has that."""
        if not self._memory.variant.adapts:
            return table, Classes()
        numbers = range(self.burst_count + 1, self.burst_count + 1 + bursts)
        words, classes = self._memory.modulation.class_table(numbers, len(table))
        return np.concatenate([table, words]), classes

    def _begin(
        self, table: npt.NDArray[np.uint32], places: list[Place], first_burst: int, classes: Classes = _NO_CLASSES
    ) -> None:
        memory = self._memory
        memory.begin_batch(table)
        words = uniforms(memory.layout, self.fixed_point, memory.log_entries, first_burst, places, classes)
        self._device.write(self._uniforms, words)

    def _encoder(self) -> Encoder:
        return Encoder(self._device, self._memory.variant, self._memory.group, self._uniform_group)

    def _collect(self, bursts: int, record: Record) -> Recording:
        """What the bursts of the batch did; the last list is kept as the state's."""
        memory = self._memory
        words = memory.batch_words().astype(np.int64)
        ends = words[1 : bursts + 2]
        ran = int(np.count_nonzero(memory.log_entries - ends[:-1] >= memory.layout.neuron_count))
        counts = np.diff(ends[: ran + 1])
        clamping = memory.layout.static.clamped_sources
        first = 0 if record is Record.FIRED or clamping is not None else int(ends[ran - 1])
        ids, potentials = memory.logged(first, int(ends[ran]))
        if clamping is not None:
            memory.clamped |= bool(clamping[ids].any())
        order = np.lexsort((ids, np.repeat(np.arange(ran), counts)[first:]))
        ids, potentials = ids[order], potentials[order]
        last, kept = len(ids) - counts[-1], len(ids) if record is Record.FIRED else 0
        memory.fired = ids[last:].copy(), potentials[last:].copy()
        candidates = words[FIRST_CANDIDATES : FIRST_CANDIDATES + ran]
        return Recording(self.burst_count + 1 + np.arange(ran), counts, candidates, ids[:kept], potentials[:kept])

    def _send_computed(self) -> None:
        """Put on its way what the computed synapses of the last burst contribute."""
        memory = self._memory
        if memory.host is None:
            return
        ids, potentials = memory.fired
        factors = memory.modulation.factors
        arrivals = memory.host.after_burst(self.burst_count, ids.astype(np.int64), potentials, factors)
        memory.clamped |= arrivals.clamped
        if not len(arrivals.cells):
            return
        # cells are counted from the first slot, which is that of burst 0
        place = Place(0, len(arrivals.cells))
        self._begin(entry_words(arrivals.cells, arrivals.sums), [place], 0)
        encoder = self._encoder()
        encoder.select(0)
        encoder.put(place)
        encoder.submit()
