"""Networks in which neurons or synapses appear, over shards on the devices of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.host.appearing import Appearing
from burstproof.engine.cuda.host.devices import Behind, Devices, FiredList
from burstproof.engine.cuda.host.many_devices import ManyDevices
from burstproof.engine.sharded.growing import Growing
from burstproof.engine.sharded.shard import Fired, Twin
from burstproof.engine.state import EngineState
from burstproof.engine.stimulus import PackedStimulus
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network


class OverShards(Protocol):
    """An engine over shards of the network with room."""

    @property
    def devices(self) -> Devices:
        """The shards on their devices."""
        ...

    def one(self, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """Run one burst: what fired, and the candidates."""
        ...

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        ...

    def take(self, state: EngineState) -> None:
        """Continue from ``state``, which fits the network with room."""
        ...

    def close(self) -> None:
        """Give back the devices' memory."""
        ...


E = TypeVar("E", bound=OverShards)
Hold = Callable[[Network, int], E]
"""An engine over the network with room, of whose added neurons so many at a time stay together."""


class _Room(Generic[E]):
    """See ``Held``: the engine over shards, another one whenever the network is laid out anew."""

    def __init__(self, hold: Hold[E]) -> None:
        self._hold = hold
        self.engine: E | None = None

    def lay_out(self, network: Network, together: int) -> None:
        """See ``Held.lay_out``."""
        if self.engine is not None:
            self.engine.close()
        self.engine = self._hold(network, together)
        self._rows = network.synapse_count if network.features.associative else 0
        self._appear()

    @property
    def present(self) -> E:
        """The engine, once the network was laid out."""
        assert self.engine is not None
        return self.engine

    def _appear(self) -> None:
        devices = self.present.devices
        assert isinstance(devices, ManyDevices)
        self._shards = [Appearing(shard, self._rows) for shard in devices.shards]

    def burst(self, number: int, stimulus: PackedStimulus | None) -> Fired:
        """See ``Held.burst``."""
        for shard in self._shards:
            shard.give(stimulus)
        fired, candidates = self.present.one(stimulus)
        return Fired(*fired, candidates)

    def signals(self, burst: int) -> npt.NDArray[np.float32]:
        """See ``Held.signals``."""
        return self._shards[0].signals(burst)

    def drive(self, driver: int, neuron: int, potential: np.float32) -> None:
        """See ``Held.drive``."""
        for shard in self._shards:
            shard.drive(driver, neuron, potential)

    def set_weights(self, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.float32]) -> None:
        """See ``Held.set_weights``."""
        for shard in self._shards:
            shard.set_weights(rows, weights)

    def set_divisors(self, sources: npt.NDArray[np.int64], divisors: npt.NDArray[np.float32]) -> None:
        """See ``Held.set_divisors``."""
        for shard in self._shards:
            shard.set_divisors(sources, divisors)

    def add_twin(self, twin: Twin) -> None:
        """See ``Held.add_twin``."""
        for shard in self._shards:
            shard.add_twin(twin)

    def whole(self) -> EngineState:
        """See ``Held.whole``."""
        return self.present.state()

    def take(self, state: EngineState) -> None:
        """See ``Held.take``: other kernels may be on the devices then."""
        self.present.take(state)
        self._appear()


class GrowingShards(Growing, Generic[E]):
    """Shards on devices with room for twins, and the machine that says what appears."""

    def __init__(self, network: Network, fixed_point: FixedPoint, hold: Hold[E]) -> None:
        self._room = _Room(hold)
        super().__init__(network, fixed_point, self._room)

    @property
    def engine(self) -> E:
        """The engine over the network with room."""
        return self._room.present
