"""The CPU engine: runs whole batches of bursts in one compiled call, on one thread or several (BE-5)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import check_state
from burstproof.engine.cores import usable_cores
from burstproof.engine.cpu.arrays import Counters, Output, StimulusTable, stimulus_table
from burstproof.engine.cpu.growing import Growing, make_memory
from burstproof.engine.cpu.kernels import Kernels
from burstproof.engine.cpu.memory import CpuMemory
from burstproof.engine.cpu.threads import Team, needs_team, thread_count
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.interruption import KeepingFailure, closed, deferred_interrupt, refuse_failed
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.protocol import PackedEngine, PackedPlan, Progress
from burstproof.engine.recorder import FiredList, joined, record_steps
from burstproof.engine.state import NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_BATCH_UPDATES, _LONGEST_BATCH = 1 << 24, 256
"""Most neuron updates (bursts times neurons) and most bursts in a batch."""

_GENERAL_UPDATES = 1 << 31
"""Neuron updates that runs do with the general kernels before kernels are compiled for the network: ten to twenty
seconds for a network with few synapses."""


class CpuEngine(PackedEngine):
    """Engine on the CPU, on ``options.cpu.threads`` threads or, if that is 0, as many as the size suggests.

    Attributes
    ----------
    failure : Exception or None
        Why a burst did not end; the engine cannot go on until a state is restored.
    """

    backend = "cpu"

    def __init__(self, network: Network, options: EngineOptions) -> None:
        self.network = network
        self.options = options
        self.fixed_point: FixedPoint = plan_fixed_point(network, options)
        self.burst_count = network.burst_count
        self.failure: Exception | None = None
        self.threads = thread_count(options, network.neuron_count, network.synapse_count, usable_cores())
        self._team: Team | None = None
        self._closed = False
        self._general_updates = 0
        memory, self._growing = make_memory(network, options, self.fixed_point, self.threads)
        self._adopt(memory)

    def _adopt(self, memory: CpuMemory) -> None:
        """Run ``memory`` from now on, with output buffers and threads to match."""
        with KeepingFailure(self):
            self._end_team()
            self._memory = memory
            self._no_plan = stimulus_table([None], memory.ring.dtype)
            self._room = _room_for(max(memory.layout.neuron_count, 1))
            self._team = Team(self.threads, memory) if needs_team(self.threads, memory) else None

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
        """The number of threads, in words: ``2 threads``."""
        return f"{self.threads} thread{'s' if self.threads != 1 else ''}"

    @property
    def kernels(self) -> Kernels:
        """The kernels that run this network now."""
        return self._memory.kernels

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst; see ``Engine.step``."""
        packed = None if stimulus is NO_STIMULUS else self.pack(stimulus)
        if self._growing is not None:
            return self._grow(self._growing, packed, stimulus.memories_early)
        plan = self._no_plan if packed is None else self._memory.plan([packed])
        ends, candidates = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._advance([packed], plan, ends, candidates)
        ids, potentials = self._memory.fired
        return Burst(self.burst_count, ids.copy(), potentials.copy(), int(candidates[0]))

    def _grow(self, growing: Growing, stimulus: PackedStimulus | None, early: npt.NDArray[np.uint32]) -> Burst:
        """Run one burst of a network in which neurons or synapses appear."""
        self._check_usable()
        ends, candidates = np.zeros(1, np.int64), np.zeros(1, np.int64)
        with KeepingFailure(self):
            if growing.is_short_of_room():
                self._flush()
                growing.make_room(self.burst_count)
                self._adopt(growing.memory)
            plan, begun = growing.begin(self.burst_count + 1, stimulus)
            self._advance([stimulus], plan, ends, candidates)
            growing.end(self.burst_count, early)
        ids, potentials = self._memory.fired
        return Burst(
            self.burst_count,
            np.concatenate([ids, begun.fired_ids]),
            np.concatenate([potentials, begun.fired_potentials]),
            int(candidates[0]) + begun.candidates,
        )

    def _run(
        self, coming: range, packed: PackedPlan, plan: StimulusPlan, record: Record, progress: Progress | None
    ) -> Recording:
        growing = self._growing
        if growing is not None:
            return record_steps(
                coming,
                lambda b: self._grow(growing, packed.get(b), plan.get(b, NO_STIMULUS).memories_early),
                record,
                progress,
            )
        pieces: list[Recording] = []
        left = len(coming)
        while left:
            if self._general_updates > _GENERAL_UPDATES:
                self._specialise()
            piece = self._run_batch(min(left, self._batch_length()), packed, record)
            left -= len(piece.bursts)
            if self._memory.general and self.options.cpu.specialise is None:
                self._general_updates += len(piece.bursts) * self.network.neuron_count
            if record is not Record.NONE:
                pieces.append(piece)
            if progress is not None:
                progress(len(piece.bursts))
        return joined(pieces)

    def _specialise(self) -> None:
        """Go on from the same state with kernels compiled for the network, if memory suffices for both for a while."""
        self._general_updates = 0
        options = dataclasses.replace(self.options, cpu=dataclasses.replace(self.options.cpu, specialise=True))
        try:
            memory = CpuMemory(self.network, options, self.fixed_point, threads=self.threads)
            memory.restore(self.state())
        except MemoryError:
            return
        self._adopt(memory)

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        self._check_usable()
        self._flush()
        return (self._growing or self._memory).state(self.burst_count)

    def _flush(self) -> None:
        """Move all contributions under way into the ring."""
        if self._team is not None:
            self._team.flush_queues()
        self._memory.flush_lists(self.burst_count)

    def potentials(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]:
        """Membrane potentials of ``ids``; see ``Engine.potentials``."""
        self._check_usable()
        return self._memory.neurons.membrane_potentials[ids]

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``; contributions follow its weights.

        Raises
        ------
        NetworkError
            A state of another network, or weights that its fixed-point scale does not admit.
        """
        self._check_open()
        check_state(state, self.network, self.fixed_point)
        with deferred_interrupt():
            if self.failure is not None:
                self._adopt(self._memory)  # new threads: where the old ones were interrupted is unknown
            self._flush()
            (self._growing or self._memory).restore(state)
            if self._growing is not None:
                self._adopt(self._growing.memory)
            elif needs_team(self.threads, self._memory) is not (self._team is not None):
                self._adopt(self._memory)
            self.burst_count, self.failure = state.burst_count, None

    def close(self) -> None:
        """End the threads; the engine cannot be used afterwards. Closing twice is allowed."""
        self._closed = True
        self._end_team()

    def _check_open(self) -> None:
        """Raise an ``InputError`` if the engine is closed."""
        if self._closed:
            raise closed()

    def _check_usable(self) -> None:
        """Raise if the engine is closed, or if a burst of it did not end."""
        self._check_open()
        refuse_failed(self)

    def _end_team(self) -> None:
        team, self._team = self._team, None
        if team is not None:
            team.close()

    def _batch_length(self) -> int:
        return max(1, min(_LONGEST_BATCH, _BATCH_UPDATES // max(self.network.neuron_count, 1)))

    def _run_batch(self, bursts: int, packed: PackedPlan, record: Record) -> Recording:
        """Run a batch of up to ``bursts`` bursts; returns the recording of those that were done."""
        first = self.burst_count + 1
        stimuli = [packed.get(number) for number in range(first, first + bursts)]
        self._reserve(bursts)
        ends, candidates = np.zeros(bursts, np.int64), np.zeros(bursts, np.int64)
        with deferred_interrupt():
            done = self._advance(stimuli, self._memory.plan(stimuli), ends, candidates)
        kept = int(ends[done - 1]) if record is Record.FIRED else 0
        return Recording(
            bursts=first + np.arange(done),
            fired_counts=np.diff(ends[:done], prepend=0),
            candidate_counts=candidates[:done],
            fired_ids=self._room[0][:kept].copy(),
            fired_potentials=self._room[1][:kept].copy(),
        )

    def _reserve(self, bursts: int) -> None:
        """Grow the output for a batch of ``bursts`` bursts at a 10 % firing rate."""
        neurons = max(self._memory.layout.neuron_count, 1)
        wanted = neurons if bursts == 1 else neurons + neurons * bursts // 10
        if len(self._room[0]) < wanted:
            self._room = _room_for(wanted)

    def _advance(
        self, stimuli: Sequence[PackedStimulus | None], plan: StimulusTable, ends: Counters, candidates: Counters
    ) -> int:
        """Run a burst for each of ``stimuli``, as long as the output has room; returns the number done.

        ``plan`` is the table of ``stimuli``. Writes ``ends`` and ``candidates``, one entry a burst.
        """
        self._check_usable()
        (ids, potentials), memory = self._room, self._memory
        first, bursts = self.burst_count + 1, len(stimuli)
        with KeepingFailure(self):
            memory.note_power()
            if self._team is not None:
                done = self._team.advance(first, bursts, plan, Output(ids, potentials, ends, candidates))
            else:
                run, fired_before, counters = memory.kernels.run_batch, memory.fired[0], memory.counters
                done = run(memory.held(plan), first, bursts, counters, fired_before, ids, potentials, ends, candidates)
            memory.note_clamped(stimuli[:done])
            self.burst_count += done
            last_burst = slice(int(ends[done - 2]) if done > 1 else 0, int(ends[done - 1]))
            memory.keep_fired(ids[last_burst], potentials[last_burst])
        return done


def _room_for(firings: int) -> FiredList:
    """Room for the ids and potentials of so many firings. Both change at once, whatever interrupts."""
    return np.empty(firings, np.uint32), np.empty(firings, np.float32)
