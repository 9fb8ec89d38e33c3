"""Networks in which neurons or synapses appear, on the numba CPU engine: its memory beside the machine of the host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.arrays import Plan
from burstproof.engine.cpu.memory import CpuMemory
from burstproof.engine.features.associations import governed
from burstproof.engine.features.machine import Begun, Ended, MemoryMachine
from burstproof.engine.features.room import cropped, padded, with_room
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import EngineState
from burstproof.engine.stimulus import FORCED_POTENTIAL, PackedStimulus
from burstproof.network.features import FIRST_MEMORY_ID
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

FIRST_ROOM = 64
"""Neurons that are reserved for twins at load; where they run out, twice as many."""

_NO_AMOUNTS = np.empty(0, np.int64)


class Growing:
    """Memory of an engine with room for twins, and the machine that says what appears.

    Attributes
    ----------
    memory : CpuMemory
        Another one after the room for twins has run out.
    """

    def __init__(self, network: Network, options: EngineOptions, fixed_point: FixedPoint) -> None:
        self._network, self._options, self._fixed_point = network, options, fixed_point
        self._rules = governed(network)
        areas = network.features.areas
        self._homes = sorted(index for index, area in areas.items() if area.memory is not None)
        self._models = [int(np.argmax(network.neurons.cortical_areas == index)) for index in self._homes]
        self._drivers = sorted({one.driver for one in network.features.modulators})
        self._hold(FIRST_ROOM if self._homes else 0)
        longest = self.memory.scalars.longest_window
        self._machine = MemoryMachine(network, fixed_point, self._rules, longest)
        self._arriving: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] = _NO_AMOUNTS, _NO_AMOUNTS

    def _hold(self, spare: int) -> None:
        """Lay out the network with ``spare`` more neurons."""
        self._spare = max(spare, len(self._homes))
        held = with_room(self._network, self._rules, self._models, self._spare)
        self.memory = CpuMemory(held, self._options, self._fixed_point)
        self.memory.use_flags()
        first, parameters = self._network.neuron_count, self.memory.parameters
        self.memory.neurons.unclamped[first:] = True
        for name in ("thresholds", "threshold_limits"):
            getattr(parameters, name)[first:] = getattr(held.neurons, name)[first:]
        self._templates = {
            area: {name: getattr(parameters, name)[first + at].copy() for name in parameters._fields}
            for at, area in enumerate(self._homes)
        }
        self._places = np.full(self._network.synapse_count, -1, np.int64)
        self._places[self.memory.computed_places] = np.arange(len(self.memory.computed_places))

    # A burst ---------------------------------------------------------------------------------------------------

    def is_short_of_room(self) -> bool:
        """Whether the next burst may add more twins than there is room for."""
        return self._wanted() > self._spare

    def _wanted(self) -> int:
        machine = self._machine
        return len(machine.twin_areas) + len(machine.memories.twins_due) + 2 * len(self._homes)

    def make_room(self, burst_count: int) -> None:
        """Lay out the network anew, with room for twice as many twins; ``memory`` is another one then."""
        state = self.state(burst_count)
        self._spare = 2 * self._wanted()
        self.restore(state)

    def begin(self, number: int, stimulus: PackedStimulus | None) -> tuple[Plan, Begun]:
        """The stimulus of burst ``number`` with all that memories put into it."""
        begun, (targets, amounts) = self._machine.begin(number), self._arriving
        self._note_drivers(begun)
        if not (len(targets) or len(begun.ids) or len(begun.forced)):
            return self.memory.plan([stimulus]), begun
        ids, forced = [targets.astype(np.uint32), begun.ids], [begun.forced]
        potentials, sums = [begun.forced_potentials], [amounts, begun.amounts]
        if stimulus is not None:
            ids, sums = [*ids, stimulus.ids], [*sums, stimulus.amounts.astype(np.int64)]
            forced = [stimulus.forced, *forced]
            potentials = [np.full(len(stimulus.forced), FORCED_POTENTIAL), *potentials]
        every, first = np.unique(np.concatenate(forced), return_index=True)
        packed = PackedStimulus(
            np.concatenate(ids),
            np.concatenate(sums),
            every,
            stimulus is not None and stimulus.clamped,
            True,
            np.concatenate(potentials)[first],
        )
        return self.memory.plan([packed]), begun

    def _note_drivers(self, begun: Begun) -> None:
        """Memory neurons that drive modulators: the first one of each area."""
        if not self._drivers:
            return
        extras = self.memory.extras
        extras.memory_fired[:] = False
        live = self._machine.memories.live
        fired = zip(begun.fired_ids.tolist()[::-1], begun.fired_potentials[::-1], strict=True)
        for number, potential in fired:
            area = live[number].area
            if area in self._drivers:
                driver = self._drivers.index(area) + 1
                extras.memory_fired[driver], extras.memory_potentials[driver] = True, potential

    def end(self, number: int, early: npt.NDArray[np.uint32]) -> None:
        """Take in what fired in burst ``number``."""
        signals = self.memory.extras.signals
        in_force, following = signals[number & 1], signals[(number + 1) & 1]
        ended = self._machine.end(number, *self.memory.fired, in_force, following, early.tolist())
        self._arriving = ended.targets, ended.amounts
        self._apply(ended)

    def _apply(self, ended: Ended) -> None:
        computed = self.memory.computed
        if len(ended.rows):
            computed.weights[self._places[ended.rows]] = ended.weights
        if len(ended.sources):
            computed.divisors[ended.sources] = ended.divisors
        first = self._network.neuron_count + len(self._machine.twin_areas) - len(ended.twins)
        for place, area in enumerate(ended.twins, first):
            self._set_twin(place, area)

    def _set_twin(self, place: int, area: int) -> None:
        """The neuron at ``place`` is a twin of ``area``."""
        memory, extras = self.memory, self.memory.extras
        template = self._templates[area]
        for name, value in template.items():
            getattr(memory.parameters, name)[place] = value
        model = self._models[self._homes.index(area)]
        extras.leaks_in_force[place] = self._network.neurons.leak_coefficients[model]
        limit, trains = int(template["consecutive_fire_limits"]), self._network.features.areas[area].spike_train
        extras.can_train[place] = trains and 0 < limit < 65535
        extras.driver_of[place] = self._drivers.index(area) + 1 if area in self._drivers else 0

    # State -----------------------------------------------------------------------------------------------------

    def state(self, burst_count: int) -> EngineState:
        """The canonical state: the network's neurons and the twins that there are."""
        machine = self._machine
        count = self._network.neuron_count + len(machine.twin_areas)
        whole = cropped(self.memory.state(burst_count), count)
        targets, amounts = self._arriving
        pending, candidate = whole.pending.copy(), whole.pending_candidate.copy()
        np.add.at(pending[0], targets, amounts)
        candidate[0, targets] = True
        rows, traces = machine.traces()
        eligibility = whole.eligibility_traces.copy()
        eligibility[rows] = traces
        assert whole.features is not None
        return replace(
            whole,
            pending=pending,
            pending_candidate=candidate,
            eligibility_traces=eligibility,
            fired_ids=np.concatenate([whole.fired_ids, machine.fired[0]]),
            fired_potentials=np.concatenate([whole.fired_potentials, machine.fired[1]]),
            clamped=whole.clamped or machine.clamped,
            features=replace(whole.features, made=machine.made_state(), memory=machine.memory_state(burst_count)),
        )

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``.

        Raises
        ------
        NetworkError
            Weights that the network's fixed-point scale does not admit.
        """
        assert state.features is not None
        twins = state.features.memory.twin_areas.tolist()
        self._hold(max(self._spare, 2 * len(twins)))
        for place, area in enumerate(twins, self._network.neuron_count):
            self._set_twin(place, area)
        dense = state.fired_ids < FIRST_MEMORY_ID
        self.memory.restore(
            replace(
                padded(state, self.memory.state(state.burst_count)),
                fired_ids=state.fired_ids[dense],
                fired_potentials=state.fired_potentials[dense],
            )
        )
        self._arriving = _NO_AMOUNTS, _NO_AMOUNTS
        learnt = state.weights, state.eligibility_traces, state.last_fired, state.history_bursts
        fired = state.fired_ids, state.fired_potentials
        sources, divisors = self._machine.restore(
            state.burst_count, state.features.made, state.features.memory, learnt, fired
        )
        self.memory.computed.divisors[sources] = divisors
