"""The CPU engine over networks in which neurons or synapses appear: its memory and the host's memory machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.arrays import StimulusTable
from burstproof.engine.cpu.memory import CpuMemory
from burstproof.engine.features.growing import Floats, Growth, Ids
from burstproof.engine.features.machine import Begun
from burstproof.engine.features.tables import finite_limits
from burstproof.engine.fixed_point import synapses_appear
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.state import EngineState
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network


class Growing(Growth):
    """The memory of a CPU engine with room for twins, and the machine that decides what appears.

    Attributes
    ----------
    memory : CpuMemory
        Replaced when the room for twins runs out.
    """

    def __init__(self, network: Network, options: EngineOptions, fixed_point: FixedPoint, threads: int) -> None:
        self._options, self._fixed_point, self._threads = options, fixed_point, threads
        super().__init__(network, fixed_point)

    def _hold(self) -> None:
        roomy = self._with_room()
        self.memory = CpuMemory(roomy, self._options, self._fixed_point, threads=self._threads)
        self._silence = self.memory.plan([None])
        first, parameters = self._network.neuron_count, self.memory.parameters
        self.memory.neurons.unclamped[first:] = True
        for name in ("thresholds", "threshold_limits"):
            getattr(parameters, name)[first:] = getattr(roomy.neurons, name)[first:]
        self._templates = {
            area: {name: getattr(parameters, name)[first + at].copy() for name in parameters._fields}
            for at, area in enumerate(self._homes)
        }
        self._places = np.full(self._network.synapse_count, -1, np.int64)
        self._places[self.memory.computed_places] = np.arange(len(self.memory.computed_places))

    # A burst ---------------------------------------------------------------------------------------------------

    def begin(self, number: int, stimulus: PackedStimulus | None) -> tuple[StimulusTable, Begun]:
        """The stimulus of burst ``number`` including that of memories, and the firings of memory neurons."""
        begun = self._machine.begin(number)
        if self._drivers:
            self._note_drivers(begun)
        packed = self._stimulus(begun, stimulus)
        return self._silence if packed is None else self.memory.plan([packed]), begun

    def _note_drivers(self, begun: Begun) -> None:
        extras = self.memory.extras
        extras.memory_fired[:] = False
        for driver, (_, potential) in self._first_driving(begun).items():
            extras.memory_fired[driver + 1], extras.memory_potentials[driver + 1] = True, potential

    def end(self, number: int, early: npt.NDArray[np.uint32]) -> None:
        """Let the machine see what fired in burst ``number``."""
        signals = self.memory.extras.signals
        in_force, following = signals[number & 1], signals[(number + 1) & 1]
        ids, potentials = self.memory.fired
        self._end(number, (ids.copy(), potentials.copy()), in_force, following, early.tolist())

    def _set_weights(self, rows: Ids, weights: Floats) -> None:
        self.memory.computed.weights[self._places[rows]] = weights

    def _set_divisors(self, sources: Ids, divisors: Floats) -> None:
        self.memory.computed.divisors[sources] = divisors

    def _set_twin(self, place: int, area: int) -> None:
        memory, extras = self.memory, self.memory.extras
        template = self._templates[area]
        for name, value in template.items():
            getattr(memory.parameters, name)[place] = value
        model = self._models[self._homes.index(area)]
        extras.leaks_in_force[place] = self._network.neurons.leak_coefficients[model]
        trains = self._network.features.areas[area].spike_train
        extras.can_train[place] = trains and finite_limits(template["consecutive_fire_limits"])
        extras.driver_of[place] = self._drivers.index(area) + 1 if area in self._drivers else 0

    # State -----------------------------------------------------------------------------------------------------

    def _whole(self, burst_count: int) -> EngineState:
        return self.memory.state(burst_count)

    def _take(self, state: EngineState, twins: Sequence[int]) -> None:
        self._hold()
        for place, area in enumerate(twins, self._network.neuron_count):
            self._set_twin(place, area)
        self.memory.restore(self._wider(state))


def make_memory(
    network: Network, options: EngineOptions, fixed_point: FixedPoint, threads: int
) -> tuple[CpuMemory, Growing | None]:
    """The memory of an engine over ``network``, and its owner ``Growing`` if neurons or synapses can appear."""
    if not synapses_appear(network.features):
        return CpuMemory(network, options, fixed_point, threads=threads), None
    growing = Growing(network, options, fixed_point, threads)
    return growing.memory, growing
