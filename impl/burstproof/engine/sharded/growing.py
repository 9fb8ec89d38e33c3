"""Networks in which neurons or synapses appear, over shards: shards with room for twins, and the host's memory machine.

Every process gets all firings, so each runs its own machine over the same lists. The machines agree without further
communication. Changes that a machine makes go to the shard that owns the neuron or synapse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.growing import Floats, Growth, Ids
from burstproof.engine.features.tables import finite_limits
from burstproof.engine.layout import parameters_of
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, Twin
from burstproof.engine.state import Burst, EngineState
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network


class Held(Protocol):
    """Shards of a network with room for twins."""

    def lay_out(self, network: Network, together: int) -> None:
        """Lay out ``network`` anew; groups of ``together`` added neurons stay in one shard (``roomy``)."""
        ...

    def burst(self, number: int, stimulus: PackedStimulus | None) -> Fired:
        """Run burst ``number``; returns what fired in all shards, ids ascending."""
        ...

    def signals(self, burst: int) -> Floats:
        """Signals that act in ``burst``, (M,)."""
        ...

    def drive(self, driver: int, neuron: int, potential: np.float32) -> None:
        """The first memory neuron of driver area ``driver`` that fires in the coming burst is ``neuron``."""
        ...

    def set_weights(self, rows: Ids, weights: Floats) -> None:
        """Set the weights of rows of the network's synapse table."""
        ...

    def set_divisors(self, sources: Ids, divisors: Floats) -> None:
        """Set the divisors of the contributions of ``sources``."""
        ...

    def add_twin(self, twin: Twin) -> None:
        """Turn a neuron of the room into a twin."""
        ...

    def whole(self) -> EngineState:
        """The state, including the room."""
        ...

    def take(self, state: EngineState) -> None:
        """Continue from a state that includes the room."""
        ...


H = TypeVar("H", bound=Held)


class GrowingShards(Growth, Generic[H]):
    """Shards ``held``, with room for twins, and the machine that decides what appears."""

    def __init__(self, network: Network, fixed_point: FixedPoint, held: H) -> None:
        self.held = held
        super().__init__(network, fixed_point)

    def _hold(self) -> None:
        homes = max(len(self._homes), 1)
        self._spare = -(-self._spare // homes) * homes
        network = self._with_room()
        self._parameters = parameters_of(network.neurons)
        self.held.lay_out(network, homes)

    # A burst ---------------------------------------------------------------------------------------------------

    def step(self, number: int, stimulus: PackedStimulus | None, early: npt.NDArray[np.uint32]) -> Burst:
        """Run burst ``number``."""
        if self.is_short_of_room():
            self.make_room(number - 1)
        begun = self._machine.begin(number)
        for driver, first in self._first_driving(begun).items():
            self.held.drive(driver, *first)
        in_force = self.held.signals(number)
        done = self.held.burst(number, self._stimulus(begun, stimulus))
        following = self.held.signals(number + 1)
        self._end(number, (done.ids, done.potentials), in_force, following, early.tolist())
        return Burst(
            number,
            np.concatenate([done.ids, begun.fired_ids]),
            np.concatenate([done.potentials, begun.fired_potentials]),
            done.candidates + begun.candidates,
        )

    def _set_weights(self, rows: Ids, weights: Floats) -> None:
        self.held.set_weights(rows, weights)

    def _set_divisors(self, sources: Ids, divisors: Floats) -> None:
        self.held.set_divisors(sources, divisors)

    def _set_twin(self, place: int, area: int) -> None:
        home, values = self._homes.index(area), self._parameters
        template = place - (place - self._network.neuron_count) % len(self._homes) + home
        parameters = {name: getattr(values, name)[template] for name in values._fields}
        leak = self._network.neurons.leak_coefficients[self._models[home]]
        able = self._network.features.areas[area].spike_train
        trains = able and bool(finite_limits(values.consecutive_fire_limits)[template])
        driver = self._drivers.index(area) + 1 if area in self._drivers else 0
        self.held.add_twin(Twin(place, template, parameters, leak, trains, driver))

    # State -----------------------------------------------------------------------------------------------------

    def _whole(self, burst_count: int) -> EngineState:
        return self.held.whole()

    def _take(self, state: EngineState, twins: Sequence[int]) -> None:
        self._hold()
        self.held.take(self._wider(state))
        for place, area in enumerate(twins, self._network.neuron_count):
            self._set_twin(place, area)


def roomy(partition: Partition, neurons: int, together: int) -> Partition:
    """``partition`` extended to ``neurons`` neurons: added ones go to the shards in turn, ``together`` at a time.

    ``together`` is the number of memory areas, so each group has a template neuron for the twins of every area.
    """
    added = np.arange(neurons - partition.neuron_count) // together % partition.shards
    return replace(partition, owner=np.concatenate([partition.owner, added.astype(np.uint16)]))
