"""Changes that the host makes to one shard of a running network: forced potentials, drivers, weights, twins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import DeviceRuntime
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.kernels.marks import RESTARTING_MARK, marks_of
from burstproof.engine.cuda.plan.columns import PARAMETERS
from burstproof.engine.cuda.plan.features import CAN_TRAIN, DRIVES
from burstproof.engine.cuda.plan.shard_pack import PackedShard, places_among
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.sharded.shard import Twin
from burstproof.engine.stimulus import FORCED_POTENTIAL

Floats = npt.NDArray[np.float32]

_HALF = np.uint64(32)


class Appearing:
    """Changes one shard of a network with room for twins; on one device that is the whole network.

    ``synapses`` is the length of the network's synapse table if associative mappings may change weights, else 0.
    """

    def __init__(self, runtime: DeviceRuntime, shard: PackedShard, device: DeviceState, synapses: int) -> None:
        self._runtime, self._packed, self._buffers = runtime, shard.packed, device
        self._ids = shard.ids()
        self._given = np.empty(0, np.int64)
        self._places = np.full(synapses, -1, np.int64)
        computed = self._packed.layout.computed
        if synapses and computed is not None:
            self._places[computed.rows] = np.arange(len(computed.rows))
        self._signals: Floats | None = None
        self.forget_signals()

    @property
    def _device(self) -> DeviceState:
        """The buffers; makes their device current."""
        make_current(self._runtime)
        return self._buffers

    def give(self, stimulus: PackedStimulus | None, *, local: bool = False) -> None:
        """Set the potentials of the coming burst's forced firings, and reset those of the last burst.

        ``local``: the stimulus holds indices within the shard, not ids.
        """
        if not self._packed.variant.extras.replays:
            return
        places, potentials = self._given[:0], np.empty(0, np.float32)
        if stimulus is not None and stimulus.forced_potentials is not None:
            own = stimulus.forced_potentials != FORCED_POTENTIAL
            places, potentials = stimulus.forced[own].astype(np.int64), stimulus.forced_potentials[own]
            if not local:
                places, inside = places_among(self._ids, places)
                places, potentials = places[inside], potentials[inside]
        if not len(places) and not len(self._given):
            return
        stale = np.setdiff1d(self._given, places, assume_unique=True)
        self._given = places
        defaults = np.full(len(stale), FORCED_POTENTIAL, np.float32)
        self._change("given_potentials", np.concatenate([places, stale]), np.concatenate([potentials, defaults]))

    def forget_signals(self) -> None:
        """Discard the copy of the signals; the next request reads them again."""
        self._signals_until = -1

    def bring_signals(self, burst: int) -> None:
        """Queue, after burst ``burst - 1``, a copy of the signals that act in ``burst`` and in ``burst - 1``."""
        device = self._device
        if self._signals is None:
            self._signals = device.page_locked("signals")
        device.bring("signals", self._signals)
        self._signals_until = burst

    def signals(self, burst: int) -> Floats:
        """See ``Shard.signals``."""
        count = self._packed.sizes.features.modulators
        if not count:
            return np.empty(0, np.float32)
        if self._signals_until < burst:
            self.bring_signals(burst)
            self._device.wait()
        assert self._signals is not None
        found: Floats = self._signals.reshape(2, count)[burst & 1].copy()
        return found

    def drive(self, driver: int, neuron: int, potential: np.float32) -> None:
        """See ``Shard.drive``. Dense neurons have lower ids than memory neurons."""
        word = (np.uint64(neuron) << _HALF) | np.uint64(np.float32(potential).view(np.uint32))
        self._device.write_at("drives", driver, word)

    def set_weights(self, rows: npt.NDArray[np.int64], weights: Floats) -> None:
        """See ``Shard.set_weights``."""
        places = self._places[rows]
        here = places >= 0
        self._change("weights", places[here], weights[here])

    def set_divisors(self, sources: npt.NDArray[np.int64], divisors: Floats) -> None:
        """See ``Shard.set_divisors``."""
        if self._packed.layout.computed is not None:
            self._change("divisors", sources, divisors)

    def _change(self, name: str, places: npt.NDArray[np.int64], values: Floats) -> None:
        if len(places):
            self._device.change(name, places, values)

    def add_twin(self, twin: Twin) -> None:
        """See ``Shard.add_twin``."""
        device, key = self._device, self._packed.variant.extras
        if key.modulators:
            device.write_at("driver_of", twin.place, twin.driver)
        places, inside = places_among(self._ids, np.array([twin.place, twin.template]))
        if not inside[0]:
            return
        place, template = places.tolist()
        for name in PARAMETERS:
            if name not in self._packed.sizes.uniform:
                device.write_at(name, place, twin.parameters[name])
        if self._packed.features.restarts:
            kept = int(device.read_at("marks", place)) & ~RESTARTING_MARK
            device.write_at("marks", place, kept | int(marks_of(twin.parameters["mp_charge_accumulation"])))
        device.adopt(place, template)
        if key.trains or key.modulators:
            kept = int(device.read_at("kinds", place)) & ~(CAN_TRAIN | DRIVES)
            device.write_at("kinds", place, kept | twin.trains * CAN_TRAIN | bool(twin.driver) * DRIVES)
