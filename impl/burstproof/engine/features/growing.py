"""Networks in which neurons or synapses appear: what every engine does about it, beside the machine of the host.

An engine lays the network out with room for twins, runs bursts of it, and takes what the machine changes. What memories
put into a burst, how much room is wanted, and the canonical state are the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.associations import governed
from burstproof.engine.features.firings import Firings
from burstproof.engine.features.machine import Begun, Ended, MemoryMachine
from burstproof.engine.features.room import cropped, padded, with_room
from burstproof.engine.features.sent import can_be_sent
from burstproof.engine.features.synapses import associated
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.state import EngineState
from burstproof.engine.stimulus import FORCED_POTENTIAL
from burstproof.network.features import FIRST_MEMORY_ID
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

FIRST_ROOM = 64
"""Neurons that are reserved for twins at load; where they run out, twice as many."""

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]
_FEW = 64
"""Amounts up to which a dictionary adds them up faster than NumPy."""
NO_AMOUNTS: Ids = np.empty(0, np.int64)


def _added_up(ids: npt.NDArray[np.uint32], amounts: Ids) -> tuple[npt.NDArray[np.uint32], Ids]:
    """Each id once, ascending, with the sum of its amounts."""
    if len(ids) > _FEW:
        reached, place = np.unique(ids, return_inverse=True)
        totals = np.zeros(len(reached), np.int64)
        np.add.at(totals, place, amounts)
        return reached, totals
    found: dict[int, int] = {}
    for one, amount in zip(ids.tolist(), amounts.tolist(), strict=True):
        found[one] = found.get(one, 0) + amount
    order = sorted(found)
    return np.array(order, np.uint32), np.array([found[one] for one in order], np.int64)


def _is_idle(network: Network, rows: Ids) -> bool:
    """Whether plasticity changes none of the synapses of ``network``, which has other features, too, but ``rows``.

    Those are left to the host, which sends along them.
    """
    others = replace(network.features, associative=())
    if not (network.plastic_mappings and others) or any(len(one.synapses) for one in network.plastic_pairs):
        return False
    changing = associated(network)
    if changing is not None:
        changing[rows] = False
        if changing.any():
            return False
    return can_be_sent(network, rows)


class Growth(ABC):
    """A network with room for twins, and the machine that says what appears."""

    def __init__(self, network: Network, fixed_point: FixedPoint) -> None:
        self._network, self._rules = network, governed(network)
        areas = network.features.areas
        self._homes = sorted(index for index, area in areas.items() if area.memory is not None)
        self._models = [int(np.argmax(network.neurons.cortical_areas == index)) for index in self._homes]
        self._drivers = sorted({one.driver for one in network.features.modulators})
        self._spare = FIRST_ROOM if self._homes else 0
        ruled = with_room(network, self._rules, self._models, 0)
        longest = max((one.window for one in ruled.plastic_pairs), default=1)
        self._sent = np.concatenate([NO_AMOUNTS, *(rows for _, rows in self._rules.associative)])
        self._firings = Firings(longest) if _is_idle(ruled, self._sent) else None
        self._hold()
        self._machine = MemoryMachine(network, fixed_point, self._rules, longest, self._firings is not None)
        self._arriving: tuple[Ids, Ids] = NO_AMOUNTS, NO_AMOUNTS

    # What an engine does ---------------------------------------------------------------------------------------

    @abstractmethod
    def _hold(self) -> None:
        """Lay out ``_with_room()`` anew."""

    @abstractmethod
    def _whole(self, burst_count: int) -> EngineState:
        """The state of the network with room."""

    @abstractmethod
    def _take(self, state: EngineState, twins: Sequence[int]) -> None:
        """Lay the network out anew and continue from ``_wider(state)``; its first spare neurons are ``twins``."""

    @abstractmethod
    def _set_twin(self, place: int, area: int) -> None:
        """The neuron at ``place`` is a twin of ``area``."""

    @abstractmethod
    def _set_weights(self, rows: Ids, weights: Floats) -> None:
        """Rows of the network's synapse table have these weights from now on."""

    @abstractmethod
    def _set_divisors(self, sources: Ids, divisors: Floats) -> None:
        """Contributions of these sources are divided by so much from now on."""

    def _with_room(self) -> Network:
        """The network with ``_spare`` more neurons; without plasticity where the host alone learns."""
        self._spare = max(self._spare, len(self._homes))
        held = with_room(self._network, self._rules, self._models, self._spare)
        if self._firings is None:
            return held
        valid = held.synapses.valid_mask.copy()
        valid[self._sent] = False
        synapses = replace(held.synapses, valid_mask=valid) if len(self._sent) else held.synapses
        return held.replace(plastic_mappings=(), features=replace(held.features, associative=()), synapses=synapses)

    # A burst ---------------------------------------------------------------------------------------------------

    def is_short_of_room(self) -> bool:
        """Whether the next burst may add more twins than there is room for."""
        return self._wanted() > self._spare

    def _wanted(self) -> int:
        machine = self._machine
        return len(machine.twin_areas) + len(machine.memories.twins_due) + 2 * len(self._homes)

    def make_room(self, burst_count: int) -> None:
        """Lay the network out anew, with room for twice as many twins."""
        state = self.state(burst_count)
        self._spare = 2 * self._wanted()
        self.restore(state)

    def _stimulus(self, begun: Begun, stimulus: PackedStimulus | None) -> PackedStimulus | None:
        """``stimulus`` with all that memories put into the burst."""
        targets, amounts = self._arriving
        if not (len(targets) or len(begun.ids) or len(begun.forced)):
            return stimulus
        ids, sums = [targets.astype(np.uint32), begun.ids], [amounts, begun.amounts]
        forced, potentials = begun.forced, begun.forced_potentials
        if stimulus is not None:
            ids, sums = [*ids, stimulus.ids], [*sums, stimulus.amounts.astype(np.int64)]
            forced, first = np.unique(np.concatenate([stimulus.forced, forced]), return_index=True)
            usual = np.full(len(stimulus.forced), FORCED_POTENTIAL, np.float32)
            potentials = np.concatenate([usual, potentials])[first]
        reached, totals = _added_up(np.concatenate(ids), np.concatenate(sums))
        clamped = stimulus is not None and stimulus.clamped
        return PackedStimulus(reached, totals, forced, clamped, True, potentials)

    def _first_driving(self, begun: Begun) -> dict[int, tuple[int, np.float32]]:
        """By number of driver area: the first memory neuron that fires in it, and its potential."""
        found: dict[int, tuple[int, np.float32]] = {}
        if self._drivers and len(begun.fired_ids):
            live = self._machine.memories.live
            for number, potential in zip(begun.fired_ids.tolist(), begun.fired_potentials, strict=True):
                area = live[number].area
                if area in self._drivers:
                    found.setdefault(self._drivers.index(area), (number, potential))
        return found

    def _end(
        self, burst: int, fired: tuple[Words, Floats], in_force: Floats, following: Floats, early: Sequence[int]
    ) -> None:
        """Take in what ``fired`` in ``burst``, with signals as for ``MemoryMachine.end``."""
        if self._firings is not None:
            self._firings.add(fired[0])
        self._ended(self._machine.end(burst, *fired, in_force, following, early))

    def _ended(self, ended: Ended) -> None:
        """Take over what the machine says after a burst."""
        self._arriving = ended.targets, ended.amounts
        self._changed(ended)

    def _changed(self, ended: Ended) -> None:
        """Take over what changes in the network after a burst."""
        if len(ended.rows) and self._firings is None:
            self._set_weights(ended.rows, ended.weights)
        if len(ended.sources) and self._firings is None:
            self._set_divisors(ended.sources, ended.divisors)
        if ended.twins:
            first = self._network.neuron_count + len(self._machine.twin_areas) - len(ended.twins)
            for place, area in enumerate(ended.twins, first):
                self._set_twin(place, area)

    # State -----------------------------------------------------------------------------------------------------

    def state(self, burst_count: int) -> EngineState:
        """The canonical state: the network's neurons and the twins that there are."""
        machine = self._machine
        whole = cropped(self._whole(burst_count), self._network.neuron_count + len(machine.twin_areas))
        targets, amounts = self._arriving
        pending, candidate = whole.pending.copy(), whole.pending_candidate.copy()
        np.add.at(pending[0], targets, amounts)
        candidate[0, targets] = True
        rows, weights, traces = machine.learnt()
        eligibility = whole.eligibility_traces.copy()
        eligibility[rows] = traces
        if self._firings is not None:
            last_fired, streaks = self._firings.columns(burst_count, len(whole.last_fired))
            history = machine.history_bursts
            learnt = whole.weights.copy()
            learnt[rows] = weights
            whole = replace(whole, last_fired=last_fired, fire_streak=streaks, history_bursts=history, weights=learnt)
        assert whole.features is not None
        made, memory = machine.made_state(), machine.memory_state(burst_count)
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
        self._take(state, twins)
        self._arriving = NO_AMOUNTS, NO_AMOUNTS
        learnt = state.weights, state.eligibility_traces, state.last_fired, state.history_bursts
        fired = state.fired_ids, state.fired_potentials
        sources, divisors = self._machine.restore(
            state.burst_count, state.features.made, state.features.memory, learnt, fired
        )
        if self._firings is not None:
            self._firings.restore(state.burst_count, state.last_fired, state.fire_streak)
        elif len(sources):
            self._set_divisors(sources, divisors)

    def _wider(self, state: EngineState) -> EngineState:
        """``state`` as the network with room takes it, without memory neurons."""
        dense = state.fired_ids < FIRST_MEMORY_ID
        wider = padded(state, self._whole(state.burst_count))
        if self._firings is not None and len(self._sent):
            weights = state.weights.copy()
            weights[self._sent] = self._network.synapses.weights[self._sent]
            wider = replace(wider, weights=weights)
        return replace(wider, fired_ids=state.fired_ids[dense], fired_potentials=state.fired_potentials[dense])
