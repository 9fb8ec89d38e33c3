"""Networks in which neurons or synapses appear: a network with room for them on a device, and the host's machine.

Of a burst goes up what changed, in records that the device reads from host memory; what fired and the signals come
back together. The host waits once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.args import PARAMETERS
from burstproof.engine.cuda.host.devices import Behind, FiredList
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.plan.features import CAN_TRAIN, IN_TRAIN
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.features.growing import Floats, Growth, Ids
from burstproof.engine.features.machine import Begun
from burstproof.engine.features.tables import finite_limits
from burstproof.engine.state import Burst, EngineState
from burstproof.engine.stimulus import FORCED_POTENTIAL, PackedStimulus
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_NO_FLOATS = np.empty(0, np.float32)
_NO_WORDS = np.empty(0, np.uint32)
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

    def one(self, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """Run one burst, with more queued ``behind`` it: what fired, and the candidates."""
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


class Growing(Growth, Generic[H]):
    """An engine with room for twins, and the machine that says what appears.

    Attributes
    ----------
    engine : H
        Another one after the room for twins has run out.
    """

    def __init__(self, network: Network, fixed_point: FixedPoint, hold: Callable[[Network], H]) -> None:
        self._make = hold
        self._engine: H | None = None
        super().__init__(network, fixed_point)

    @property
    def engine(self) -> H:
        """The engine over the network with room."""
        assert self._engine is not None
        return self._engine

    def _hold(self) -> int:
        if self._engine is not None:
            self._engine.close()
        self._engine = self._make(self._with_room())
        packed = self._engine.packed
        computed = packed.layout.computed
        self._places = np.full(self._network.synapse_count, -1, np.int64)
        if computed is not None:
            self._places[computed.rows] = np.arange(len(computed.rows))
        self._given = _NO_WORDS
        self._signals_at = -1
        return packed.longest_window

    # A burst ---------------------------------------------------------------------------------------------------

    def step(self, number: int, stimulus: PackedStimulus | None, early: npt.NDArray[np.uint32]) -> Burst:
        """Run burst ``number``."""
        if self.is_short_of_room():
            self.make_room(number - 1)
        begun = self._machine.begin(number)
        self._note_drivers(begun)
        packed = self._stimulus(begun, stimulus)
        self._give(packed)
        in_force = self._signals_of(number)
        fired, candidates = self.engine.one(packed, self._bring_signals if self._drivers else None)
        self._signals_at = number + 1
        ended = self._machine.end(number, *fired, in_force, self._signals_of(number + 1), early.tolist())
        self._ended(ended)
        if not len(begun.fired_ids):
            return Burst(number, *fired, candidates + begun.candidates)
        return Burst(
            number,
            np.concatenate([fired[0], begun.fired_ids]),
            np.concatenate([fired[1], begun.fired_potentials]),
            candidates + begun.candidates,
        )

    def _signals_of(self, burst: int) -> Floats:
        """The signals that act in ``burst``, a copy."""
        if not self._drivers:
            return _NO_FLOATS
        if self._signals_at < burst:
            self._held_signals = self.engine.memory.page_locked("signals")
            self._bring_signals()
            self.engine.memory.wait()
        found: Floats = self._held_signals.reshape(2, -1)[burst & 1].copy()
        return found

    def _bring_signals(self) -> None:
        self.engine.memory.bring("signals", self._held_signals)

    def _give(self, stimulus: PackedStimulus | None) -> None:
        """Put the potentials of forced firings onto the device, and back what others had in the last burst."""
        if not self._homes:
            return
        forced, potentials = _NO_WORDS, _NO_FLOATS
        if stimulus is not None and stimulus.forced_potentials is not None:
            own = stimulus.forced_potentials != FORCED_POTENTIAL
            forced, potentials = stimulus.forced[own], stimulus.forced_potentials[own]
        if not len(forced) and not len(self._given):
            return
        back = np.setdiff1d(self._given, forced, assume_unique=True)
        places = np.concatenate([forced, back])
        usual = np.full(len(back), FORCED_POTENTIAL, np.float32)
        self.engine.memory.change("given_potentials", places, np.concatenate([potentials, usual]))
        self._given = forced

    def _note_drivers(self, begun: Begun) -> None:
        """Ids of dense neurons are lower than those of memory neurons."""
        for driver, (number, potential) in self._first_driving(begun).items():
            word = (np.uint64(number) << _LOW) | np.uint64(np.float32(potential).view(np.uint32))
            self.engine.memory.write_at("drives", driver, word)

    def _set_weights(self, rows: Ids, weights: Floats) -> None:
        self.engine.memory.change("weights", self._places[rows], weights)

    def _set_divisors(self, sources: Ids, divisors: Floats) -> None:
        if self.engine.packed.layout.computed is not None:
            self.engine.memory.change("divisors", sources, divisors)

    def _set_twin(self, place: int, area: int) -> None:
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

    def _whole(self, burst_count: int) -> EngineState:
        return self.engine.state()

    def _take(self, state: EngineState, twins: Sequence[int]) -> None:
        self._hold()
        self.engine.take(self._wider(state))
        for place, area in enumerate(twins, self._network.neuron_count):
            self._set_twin(place, area)
        self._train_again(state, len(twins))

    def _train_again(self, state: EngineState, twins: int) -> None:
        """Twins that are in a spike train stay in it."""
        assert state.features is not None
        if self.engine.packed.variant.extras.trains and twins:
            first = self._network.neuron_count
            bits = self.engine.memory.read("trains")
            bits[first : first + twins] |= (state.features.trains[first:] * IN_TRAIN).astype(np.uint8)
            self.engine.memory.write("trains", bits)
