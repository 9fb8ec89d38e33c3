"""The numba CPU engine: whole trains of bursts in one call on one core, or spread over threads (BE-5)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.arrays import Plan, plan_of
from burstproof.engine.cpu.kernels import Kernels
from burstproof.engine.cpu.memory import CpuMemory
from burstproof.engine.cpu.threads import Team, thread_count, usable_cores
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine, Progress
from burstproof.engine.recorder import joined, recording_of
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.stimulus import PackedStimulus, coming_bursts, pack_stimulus, planned
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_TRAIN_UPDATES = 1 << 24
_LONGEST_TRAIN = 256


class CpuEngine(Engine):
    """Engine on the CPU; on one thread or several, as ``options.cpu.threads`` or the size says."""

    backend = "cpu"

    def __init__(self, network: Network, options: EngineOptions) -> None:
        self.network = network
        self.options = options
        self.fixed_point: FixedPoint = plan_fixed_point(network, options)
        self.burst_count = network.burst_count
        self.threads = thread_count(options, network.neuron_count, network.synapse_count, usable_cores())
        self._memory = CpuMemory(network, options, self.fixed_point)
        self._no_plan = plan_of([None], self._memory.ring.sums.dtype)
        capacity = max(network.neuron_count, 1)
        self._ids = np.empty(capacity, np.uint32)
        self._potentials = np.empty(capacity, np.float32)
        self._team = Team(self.threads, self._memory) if self.threads > 1 else None

    @classmethod
    def create(cls, network: Network, options: EngineOptions | None = None) -> CpuEngine:
        """An engine over ``network``.

        Raises
        ------
        NetworkError
            A network that the profile refuses, or a contribution that is not finite.
        """
        return cls(network, options or EngineOptions())

    @property
    def launch(self) -> str:
        """Number of threads."""
        return f"{self.threads} thread{'s' if self.threads != 1 else ''}"

    @property
    def kernels(self) -> Kernels:
        """The kernels that run this network now."""
        return self._memory.kernels

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst; see ``Engine.step``."""
        plan = self._no_plan
        if stimulus is not NO_STIMULUS:
            packed = self._pack(stimulus)
            self._admit([packed])
            plan = plan_of([packed], self._memory.ring.sums.dtype)
        ends, candidates = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._advance(1, plan, ends, candidates)
        fired = self._memory.fired
        return Burst(self.burst_count, fired[0].copy(), fired[1].copy(), int(candidates[0]))

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Run ``bursts`` bursts; see ``Engine.run``. The whole plan is checked before the first burst."""
        packed = self._pack_plan(bursts, plan)
        parts = [recording_of([], record)]
        left = bursts
        while left:
            part = self._train(min(left, self._train_length()), packed, record)
            left -= len(part.bursts)
            if record is not Record.NONE:
                parts.append(part)
            if progress is not None:
                progress(len(part.bursts))
        return joined(parts)

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        return self._memory.state(self.burst_count)

    def potentials(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]:
        """Membrane potentials of ``ids``; see ``Engine.potentials``."""
        return self._memory.neurons.v[ids]

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``; contributions follow its weights.

        Raises
        ------
        NetworkError
            Weights that the network's fixed-point scale does not admit.
        """
        self._memory.restore(state)
        self.burst_count = state.burst_count

    def close(self) -> None:
        """End the threads; closing twice is allowed."""
        if self._team is not None:
            self._team.close()
            self._team = None

    def _pack(self, stimulus: Stimulus) -> PackedStimulus:
        return pack_stimulus(stimulus, self.network, self.options, self.fixed_point)

    def _pack_plan(self, bursts: int, plan: StimulusPlan) -> dict[int, PackedStimulus]:
        """Checked stimulus of the coming ``bursts`` bursts by number."""
        coming = coming_bursts(self.burst_count, bursts)
        return {number: self._pack(plan[number]) for number in planned(plan, coming)}

    def _admit(self, stimuli: list[PackedStimulus]) -> None:
        """Prepare for stimuli that may cancel to 0, and note clamped ones."""
        if any(s.may_cancel for s in stimuli):
            self._memory.use_flags()
        if any(s.clamped for s in stimuli):
            self._memory.set_clamped()

    def _train_length(self) -> int:
        return max(1, min(_LONGEST_TRAIN, _TRAIN_UPDATES // max(self.network.neuron_count, 1)))

    def _train(self, bursts: int, packed: dict[int, PackedStimulus], record: Record) -> Recording:
        """Run up to ``bursts`` bursts in one go; returns those done, with fired lists if ``record`` asks for them."""
        first = self.burst_count + 1
        stimuli = [packed.get(number) for number in range(first, first + bursts)]
        self._admit([s for s in stimuli if s is not None])
        self._reserve(bursts)
        ends, candidates = np.zeros(bursts, np.int64), np.zeros(bursts, np.int64)
        plan = plan_of(stimuli, self._memory.ring.sums.dtype)
        done = self._advance(bursts, plan, ends, candidates)
        kept = int(ends[done - 1]) if record is Record.FIRED else 0
        counts = np.diff(ends[:done], prepend=0)
        fired = self._ids[:kept].copy(), self._potentials[:kept].copy()
        return Recording(first + np.arange(done), counts, candidates[:done], *fired)

    def _reserve(self, bursts: int) -> None:
        """Make the output large enough for a train of ``bursts`` bursts in which a tenth of the neurons fires."""
        neurons = max(self.network.neuron_count, 1)
        wanted = neurons if bursts == 1 else neurons + neurons * bursts // 10
        if len(self._ids) < wanted:
            self._ids = np.empty(wanted, np.uint32)
            self._potentials = np.empty(wanted, np.float32)

    def _advance(
        self,
        bursts: int,
        plan: Plan,
        ends: npt.NDArray[np.int64],
        candidates: npt.NDArray[np.int64],
    ) -> int:
        """Run up to ``bursts`` bursts into the output buffers; returns how many were done."""
        ids, potentials = self._ids, self._potentials
        memory = self._memory
        if memory.layout.power_clamped and self.network.power_neuron is not None:
            memory.set_clamped()
        if self._team is not None:
            done = self._team.advance(self.burst_count + 1, bursts, plan, ids, potentials, ends, candidates)
        else:
            done = memory.kernels.train(
                self.burst_count + 1,
                bursts,
                memory.ring,
                plan,
                memory.parameters,
                memory.neurons,
                memory.static,
                memory.computed,
                memory.plastic,
                memory.scalars,
                memory.counters,
                memory.fired[0],
                ids,
                potentials,
                ends,
                candidates,
            )
        self.burst_count += done
        start = int(ends[done - 2]) if done > 1 else 0
        last = slice(start, int(ends[done - 1]))
        memory.fired = ids[last].copy(), potentials[last].copy()
        return done
