"""Networks in which neurons or synapses appear, over shards: shards with room for twins, and the machine of the host.

Every process hears of all that fired, so each runs a machine of its own over the same lists: they agree without a word
between them. What the machine changes goes to the shard that owns it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.associations import governed
from burstproof.engine.features.machine import Begun, Ended, MemoryMachine
from burstproof.engine.features.room import cropped, padded, with_room
from burstproof.engine.features.tables import finite_limits
from burstproof.engine.layout import parameters_of
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, Twin
from burstproof.engine.state import Burst, EngineState
from burstproof.engine.stimulus import FORCED_POTENTIAL, PackedStimulus
from burstproof.network.features import FIRST_MEMORY_ID
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

FIRST_ROOM = 64
"""Neurons that are reserved for twins at load; where they run out, twice as many."""

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

_NO_AMOUNTS: Ids = np.empty(0, np.int64)


class Held(Protocol):
    """Shards of a network, laid out with room for twins."""

    def lay_out(self, network: Network, together: int) -> None:
        """Hold ``network`` from now on; of the added neurons so many stay ``together`` in a shard."""
        ...

    def burst(self, number: int, stimulus: PackedStimulus | None) -> Fired:
        """Run burst ``number``; what fired in all shards, ids ascending."""
        ...

    def signals(self, burst: int) -> Floats:
        """Signals that act in ``burst``, (M,): this one's or the next one's."""
        ...

    def drive(self, driver: int, neuron: int, potential: np.float32) -> None:
        """A memory neuron, the first of driver area ``driver``, fires in the coming burst."""
        ...

    def change(self, ended: Ended) -> None:
        """Take over weights and divisors."""
        ...

    def add_twin(self, twin: Twin) -> None:
        """A neuron of the room becomes a twin."""
        ...

    def whole(self) -> EngineState:
        """The state of the network with room."""
        ...

    def take(self, state: EngineState) -> None:
        """Continue from a state of the network with room."""
        ...


class Growing:
    """Shards with room for twins, and the machine that says what appears."""

    def __init__(self, network: Network, fixed_point: FixedPoint, held: Held) -> None:
        self._network, self._held = network, held
        self._rules = governed(network)
        areas = network.features.areas
        self._homes = sorted(index for index, area in areas.items() if area.memory is not None)
        self._models = [int(np.argmax(network.neurons.cortical_areas == index)) for index in self._homes]
        self._drivers = sorted({one.driver for one in network.features.modulators})
        self._spare = FIRST_ROOM if self._homes else 0
        longest = max((one.window for one in self._lay_out().plastic_pairs), default=1)
        self._machine = MemoryMachine(network, fixed_point, self._rules, longest)
        self._arriving: tuple[Ids, Ids] = _NO_AMOUNTS, _NO_AMOUNTS

    def _lay_out(self) -> Network:
        """Hold the network with ``_spare`` more neurons."""
        homes = max(len(self._homes), 1)
        self._spare = -(-self._spare // homes) * homes
        held = with_room(self._network, self._rules, self._models, self._spare)
        self._raw = parameters_of(held.neurons)
        self._held.lay_out(held, homes)
        return held

    # A burst ---------------------------------------------------------------------------------------------------

    def step(self, number: int, stimulus: PackedStimulus | None, early: npt.NDArray[np.uint32]) -> Burst:
        """Run burst ``number``."""
        if self._wanted() > self._spare:
            state = self.state()
            self._spare = 2 * self._wanted()
            self.restore(state)
        begun = self._machine.begin(number)
        self._note_drivers(begun)
        in_force = self._held.signals(number)
        done = self._held.burst(number, self._stimulus(begun, stimulus))
        following = self._held.signals(number + 1)
        ended = self._machine.end(number, done.ids, done.potentials, in_force, following, early.tolist())
        self._arriving = ended.targets, ended.amounts
        self._held.change(ended)
        first = self._network.neuron_count + len(self._machine.twin_areas) - len(ended.twins)
        for place, area in enumerate(ended.twins, first):
            self._held.add_twin(self._twin(place, area))
        return Burst(
            number,
            np.concatenate([done.ids, begun.fired_ids]),
            np.concatenate([done.potentials, begun.fired_potentials]),
            done.candidates + begun.candidates,
        )

    def _wanted(self) -> int:
        """Neurons that the next burst may need room for."""
        machine = self._machine
        return len(machine.twin_areas) + len(machine.memories.twins_due) + 2 * len(self._homes)

    def _note_drivers(self, begun: Begun) -> None:
        """Memory neurons that drive modulators: the first one of each area; ids of dense neurons are lower."""
        first: dict[int, tuple[int, np.float32]] = {}
        for number, potential in zip(begun.fired_ids.tolist(), begun.fired_potentials, strict=True):
            first.setdefault(self._machine.memories.live[number].area, (number, potential))
        for driver, area in enumerate(self._drivers):
            if area in first:
                self._held.drive(driver, *first[area])

    def _stimulus(self, begun: Begun, stimulus: PackedStimulus | None) -> PackedStimulus | None:
        """``stimulus`` with all that memories put into the burst."""
        targets, amounts = self._arriving
        if not (len(targets) or len(begun.ids) or len(begun.forced)):
            return stimulus
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

    def _twin(self, place: int, area: int) -> Twin:
        """The twin of ``area`` at ``place``."""
        home, raw = self._homes.index(area), self._raw
        template = place - (place - self._network.neuron_count) % len(self._homes) + home
        parameters = {name: getattr(raw, name)[template] for name in raw._fields}
        leak = self._network.neurons.leak_coefficients[self._models[home]]
        able = self._network.features.areas[area].spike_train
        trains = able and bool(finite_limits(raw.consecutive_fire_limits)[template])
        driver = self._drivers.index(area) + 1 if area in self._drivers else 0
        return Twin(place, template, parameters, leak, trains, driver)

    # State -----------------------------------------------------------------------------------------------------

    def state(self) -> EngineState:
        """The canonical state: the network's neurons and the twins that there are."""
        machine = self._machine
        whole = cropped(self._held.whole(), self._network.neuron_count + len(machine.twin_areas))
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
        self._lay_out()
        dense = state.fired_ids < FIRST_MEMORY_ID
        ids, potentials = state.fired_ids[dense], state.fired_potentials[dense]
        wider = padded(state, self._held.whole())
        self._held.take(replace(wider, fired_ids=ids, fired_potentials=potentials))
        for place, area in enumerate(twins, self._network.neuron_count):
            self._held.add_twin(self._twin(place, area))
        self._arriving = _NO_AMOUNTS, _NO_AMOUNTS
        learnt = state.weights, state.eligibility_traces, state.last_fired, state.history_bursts
        fired = state.fired_ids, state.fired_potentials
        sources, divisors = self._machine.restore(
            state.burst_count, state.features.made, state.features.memory, learnt, fired
        )
        none = np.empty(0, np.float32)
        self._held.change(Ended(_NO_AMOUNTS, _NO_AMOUNTS, _NO_AMOUNTS, none, sources, divisors, []))


def roomy(partition: Partition, neurons: int, together: int) -> Partition:
    """``partition`` of a network with room: of its ``neurons``, those that were added belong to the shards in turn.

    So many ``together``: a neuron like each twin that there may be is in every shard in which there is any.
    """
    added = np.arange(neurons - partition.neuron_count) // together % partition.shards
    return replace(partition, owner=np.concatenate([partition.owner, added.astype(np.uint16)]))
