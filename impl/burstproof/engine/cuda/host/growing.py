"""Networks in which neurons or synapses appear: a network with room for them on a device, and the host's machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.args import PARAMETERS
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.plan.features import CAN_TRAIN, IN_TRAIN
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.features.associations import governed
from burstproof.engine.features.machine import Begun, Ended, MemoryMachine
from burstproof.engine.features.room import cropped, padded, with_room
from burstproof.engine.features.tables import finite_limits
from burstproof.engine.state import Burst, EngineState, Recording
from burstproof.engine.stimulus import FORCED_POTENTIAL, PackedStimulus
from burstproof.network.features import FIRST_MEMORY_ID
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

FIRST_ROOM = 64
"""Neurons that are reserved for twins at load; where they run out, twice as many."""

_NO_AMOUNTS = np.empty(0, np.int64)
_LOW = np.uint64(32)


class Held(Protocol):
    """An engine over the network with room."""

    burst_count: int

    @property
    def packed(self) -> Packed:
        """What is on the device."""
        ...

    @property
    def memory(self) -> DeviceState:
        """The buffers of the device."""
        ...

    def one(self, stimulus: PackedStimulus) -> Recording:
        """Run one burst."""
        ...

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        ...

    def take(self, state: EngineState) -> None:
        """Continue from ``state``, which fits the network with room."""
        ...

    def close(self) -> None:
        """Give back the device's memory."""
        ...


H = TypeVar("H", bound=Held)


def needs_machine(network: Network) -> bool:
    """Whether neurons or synapses may appear in ``network``."""
    areas = network.features.areas.values()
    return bool(network.features.associative) or any(area.memory is not None for area in areas)


class Growing(Generic[H]):
    """An engine with room for twins, and the machine that says what appears.

    Attributes
    ----------
    engine : H
        Another one after the room for twins has run out.
    """

    def __init__(self, network: Network, fixed_point: FixedPoint, hold: Callable[[Network], H]) -> None:
        self._network, self._make = network, hold
        self._rules = governed(network)
        areas = network.features.areas
        self._homes = sorted(index for index, area in areas.items() if area.memory is not None)
        self._models = [int(np.argmax(network.neurons.cortical_areas == index)) for index in self._homes]
        self._drivers = sorted({one.driver for one in network.features.modulators})
        self._spare = FIRST_ROOM if self._homes else 0
        self.engine = self._hold()
        self._machine = MemoryMachine(network, fixed_point, self._rules, self.engine.packed.longest_window)
        self._arriving: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] = _NO_AMOUNTS, _NO_AMOUNTS

    def _hold(self) -> H:
        """Put the network with ``_spare`` more neurons onto the device."""
        self._spare = max(self._spare, len(self._homes))
        held = with_room(self._network, self._rules, self._models, self._spare)
        engine = self._make(held)
        computed = engine.packed.layout.computed
        self._places = np.full(self._network.synapse_count, -1, np.int64)
        if computed is not None:
            self._places[computed.rows] = np.arange(len(computed.rows))
        self._potentials = np.full(held.neuron_count, FORCED_POTENTIAL, np.float32)
        return engine

    # A burst ---------------------------------------------------------------------------------------------------

    def step(self, number: int, stimulus: PackedStimulus | None, early: npt.NDArray[np.uint32]) -> Burst:
        """Run burst ``number``."""
        if self._wanted() > self._spare:
            state = self.state()
            self._spare = 2 * self._wanted()
            self.restore(state)
        begun = self._machine.begin(number)
        self._note_drivers(begun)
        packed = self._stimulus(begun, stimulus)
        self._give(packed)
        in_force = self._signals(number)
        done = self.engine.one(packed)
        fired = done.fired_ids, done.fired_potentials
        ended = self._machine.end(number, *fired, in_force, self._signals(number + 1), early.tolist())
        self._arriving = ended.targets, ended.amounts
        self._apply(ended)
        return Burst(
            number,
            np.concatenate([fired[0], begun.fired_ids]),
            np.concatenate([fired[1], begun.fired_potentials]),
            int(done.candidate_counts[0]) + begun.candidates,
        )

    def _wanted(self) -> int:
        machine = self._machine
        return len(machine.twin_areas) + len(machine.memories.twins_due) + 2 * len(self._homes)

    def _signals(self, burst: int) -> npt.NDArray[np.float32]:
        """The signals that act in ``burst``."""
        count = len(self._network.features.modulators)
        if not count:
            return np.empty(0, np.float32)
        found: npt.NDArray[np.float32] = self.engine.memory.read("signals").reshape(2, count)[burst & 1]
        return found

    def _stimulus(self, begun: Begun, stimulus: PackedStimulus | None) -> PackedStimulus:
        """``stimulus`` with all that memories put into the burst."""
        targets, amounts = self._arriving
        ids, sums = [targets.astype(np.uint32), begun.ids], [amounts, begun.amounts]
        forced, potentials = [begun.forced], [begun.forced_potentials]
        if stimulus is not None:
            ids, sums = [*ids, stimulus.ids], [*sums, stimulus.amounts.astype(np.int64)]
            forced = [stimulus.forced, *forced]
            potentials = [np.full(len(stimulus.forced), FORCED_POTENTIAL, np.float32), *potentials]
        every, first = np.unique(np.concatenate(forced), return_index=True)
        reached, place = np.unique(np.concatenate(ids), return_inverse=True)
        totals = np.zeros(len(reached), np.int64)
        np.add.at(totals, place, np.concatenate(sums))
        clamped = stimulus is not None and stimulus.clamped
        return PackedStimulus(reached, totals, every, clamped, True, np.concatenate(potentials)[first])

    def _give(self, stimulus: PackedStimulus) -> None:
        """Put the potentials of forced firings onto the device."""
        assert stimulus.forced_potentials is not None
        wanted = np.full_like(self._potentials, FORCED_POTENTIAL)
        wanted[stimulus.forced] = stimulus.forced_potentials
        if self._homes and not np.array_equal(wanted, self._potentials):
            self._potentials = wanted
            self.engine.memory.write("given_potentials", wanted)

    def _note_drivers(self, begun: Begun) -> None:
        """Memory neurons that drive modulators: the first one of each area; ids of dense neurons are lower."""
        live = self._machine.memories.live
        for number, potential in zip(begun.fired_ids.tolist()[::-1], begun.fired_potentials[::-1], strict=True):
            area = live[number].area
            if area in self._drivers:
                word = (np.uint64(number) << _LOW) | np.uint64(np.float32(potential).view(np.uint32))
                self.engine.memory.write_at("drives", self._drivers.index(area), word)

    def _apply(self, ended: Ended) -> None:
        memory = self.engine.memory
        if len(ended.rows):
            weights = memory.read("weights")
            weights[self._places[ended.rows]] = ended.weights
            memory.write("weights", weights)
        if len(ended.sources) and self.engine.packed.layout.computed is not None:
            divisors = memory.read("divisors")
            divisors[ended.sources] = ended.divisors
            memory.write("divisors", divisors)
        first = self._network.neuron_count + len(self._machine.twin_areas) - len(ended.twins)
        for place, area in enumerate(ended.twins, first):
            self._set_twin(place, area)

    def _set_twin(self, place: int, area: int) -> None:
        """The neuron at ``place`` is a twin of ``area``."""
        memory, packed, home = self.engine.memory, self.engine.packed, self._homes.index(area)
        own, template = packed.layout.neurons, self._network.neuron_count + home
        for name in PARAMETERS:
            if name not in packed.sizes.uniform:
                memory.write_at(name, place, getattr(own, name)[template])
        memory.adopt(place, template)
        able = self._network.features.areas[area].spike_train and finite_limits(own.consecutive_fire_limits)[template]
        key = packed.variant.extras
        if key.trains:
            memory.write_at("trains", place, CAN_TRAIN if able else 0)
        if key.modulators and area in self._drivers:
            memory.write_at("driver_of", place, self._drivers.index(area) + 1)

    # State -----------------------------------------------------------------------------------------------------

    def state(self) -> EngineState:
        """The canonical state: the network's neurons and the twins that there are."""
        machine = self._machine
        count = self._network.neuron_count + len(machine.twin_areas)
        whole = cropped(self.engine.state(), count)
        targets, amounts = self._arriving
        pending, candidate = whole.pending.copy(), whole.pending_candidate.copy()
        np.add.at(pending[0], targets, amounts)
        candidate[0, targets] = True
        rows, traces = machine.traces()
        eligibility = whole.eligibility_traces.copy()
        eligibility[rows] = traces
        assert whole.features is not None
        made, memory = machine.made_state(), machine.memory_state(whole.burst_count)
        return replace(
            whole,
            pending=pending,
            pending_candidate=candidate,
            eligibility_traces=eligibility,
            fired_ids=np.concatenate([whole.fired_ids, machine.fired[0]]),
            fired_potentials=np.concatenate([whole.fired_potentials, machine.fired[1]]),
            clamped=whole.clamped or machine.clamped,
            features=replace(whole.features, made=made, memory=memory),
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
        self._spare = max(self._spare, 2 * len(twins))
        self.engine.close()
        self.engine = self._hold()
        dense = state.fired_ids < FIRST_MEMORY_ID
        ids, potentials = state.fired_ids[dense], state.fired_potentials[dense]
        wider = padded(state, self.engine.state())
        self.engine.take(replace(wider, fired_ids=ids, fired_potentials=potentials))
        for place, area in enumerate(twins, self._network.neuron_count):
            self._set_twin(place, area)
        self._train_again(state, len(twins))
        self._arriving = _NO_AMOUNTS, _NO_AMOUNTS
        learnt = state.weights, state.eligibility_traces, state.last_fired, state.history_bursts
        fired = state.fired_ids, state.fired_potentials
        sources, divisors = self._machine.restore(
            state.burst_count, state.features.made, state.features.memory, learnt, fired
        )
        if len(sources) and self.engine.packed.layout.computed is not None:
            present = self.engine.memory.read("divisors")
            present[sources] = divisors
            self.engine.memory.write("divisors", present)

    def _train_again(self, state: EngineState, twins: int) -> None:
        """Twins that are in a spike train stay in it."""
        assert state.features is not None
        if self.engine.packed.variant.extras.trains and twins:
            first = self._network.neuron_count
            bits = self.engine.memory.read("trains")
            bits[first : first + twins] |= (state.features.trains[first:] * IN_TRAIN).astype(np.uint8)
            self.engine.memory.write("trains", bits)
