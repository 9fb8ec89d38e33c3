"""The device side of a growing network: an engine for the network with room for more neurons and synapses.

The engine is on one device or over shards. In a burst, changes go up in records that the device reads from host memory;
the fired list and the signals come back together, so on one device the host waits once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.closed_loop import PersistentLoop
from burstproof.engine.cuda.host.devices import Behind, Devices, FiredList
from burstproof.engine.cuda.host.many_devices import ManyDevices
from burstproof.engine.cuda.host.one_device import OneDevice
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.sharded.shard import Fired, Twin
from burstproof.engine.state import EngineState
from burstproof.network.model import Network


class RoomyEngine(Protocol):
    """An engine for a network with room."""

    @property
    def devices(self) -> Devices:
        """The network on its devices."""

    def one(self, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """Run one burst and queue ``behind`` after it; return the fired list and the candidate count."""

    def persistent_loop(self) -> PersistentLoop | None:
        """A closed loop with a persistent kernel; ``None`` if the network cannot have one."""

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""

    def take(self, state: EngineState) -> None:
        """Continue from ``state``, which fits the network with room."""

    def close(self) -> None:
        """Free the devices' memory."""


E = TypeVar("E", bound=RoomyEngine)
Hold = Callable[[Network, int], E]
"""Makes an engine for a network with room; this many consecutive added neurons share a shard."""


class Room(Generic[E]):
    """See ``sharded.growing.Held``: holds an engine, and replaces it whenever the network is laid out again."""

    def __init__(self, hold: Hold[E]) -> None:
        self._hold = hold
        self._engine: E | None = None

    @property
    def engine(self) -> E:
        """The present engine; there is one once the network was laid out."""
        assert self._engine is not None
        return self._engine

    def lay_out(self, network: Network, together: int) -> None:
        """See ``Held.lay_out``."""
        if self._engine is not None:
            self._engine.close()
        self._engine = self._hold(network, together)
        self._rows = network.synapse_count if network.features.associative else 0
        self._modulated = bool(network.features.modulators)
        self._loop: PersistentLoop | None = None
        self._appear()

    def _appear(self) -> None:
        devices = self.engine.devices
        assert isinstance(devices, OneDevice | ManyDevices)
        self._shards = devices.appearing(self._rows)

    def burst(self, number: int, stimulus: PackedStimulus | None) -> Fired:
        """See ``Held.burst``."""
        for shard in self._shards:
            shard.give(stimulus)
        behind = partial(self._shards[0].bring_signals, number + 1) if self._modulated else None
        fired, candidates = self.engine.one(stimulus, behind)
        return Fired(*fired, candidates)

    def give(self, stimulus: PackedStimulus | None, shows: bool) -> bool:
        """Start a burst in the persistent kernel; ``False`` if it has to be a batch.

        ``shows``: whether ``potentials`` will be called; constant from one ``leave`` to the next.
        """
        if self._loop is None:
            self._loop = self.engine.persistent_loop()
        return self._loop is not None and self._loop.give(stimulus, shows)

    def hear(self) -> tuple[npt.NDArray[np.uint32], int]:
        """Wait for the started burst: ids that fired, ascending, and the number of candidates."""
        assert self._loop is not None
        return self._loop.take(), self._loop.candidates

    def potentials(self) -> npt.NDArray[np.float32]:
        """Potentials of the ids that ``hear`` returned last, even if the next burst was started since."""
        assert self._loop is not None
        return self._loop.potentials()

    def leave(self) -> None:
        """End the persistent kernel, if it runs."""
        if self._loop is not None:
            self._loop.pause()

    def signals(self, burst: int) -> npt.NDArray[np.float32]:
        """See ``Held.signals``."""
        return self._shards[0].signals(burst)

    def drive(self, driver: int, neuron: int, potential: np.float32) -> None:
        """See ``Held.drive``."""
        self.leave()
        for shard in self._shards:
            shard.drive(driver, neuron, potential)

    def set_weights(self, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.float32]) -> None:
        """See ``Held.set_weights``."""
        self.leave()
        for shard in self._shards:
            shard.set_weights(rows, weights)

    def set_divisors(self, sources: npt.NDArray[np.int64], divisors: npt.NDArray[np.float32]) -> None:
        """See ``Held.set_divisors``."""
        self.leave()
        for shard in self._shards:
            shard.set_divisors(sources, divisors)

    def add_twin(self, twin: Twin) -> None:
        """See ``Held.add_twin``."""
        self.leave()
        for shard in self._shards:
            shard.add_twin(twin)

    def whole(self) -> EngineState:
        """See ``Held.whole``."""
        return self.engine.state()

    def take(self, state: EngineState) -> None:
        """See ``Held.take``. The network may have been packed again, with other buffers."""
        self.engine.take(state)
        self._appear()
