"""The Engine protocol, which every backend keeps by inheriting from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from burstproof.engine.closed_loop import ClosedLoop
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus, Packer
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.stimulus import coming_bursts, planned
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

PackedPlan = Mapping[int, PackedStimulus]
"""What comes in from outside, by burst number."""

Progress = Callable[[int], None]
"""Called with the number of bursts just done; ``Engine.run`` says what becomes of what it raises."""


class Engine(Protocol):
    """One network being stepped on one backend; ``burst_count`` is the number of the last burst done.

    A ``with`` block closes the engine at its end.
    """

    backend: str
    burst_count: int
    network: Network
    options: EngineOptions
    fixed_point: FixedPoint

    @property
    def host_bytes(self) -> int:
        """Bytes of synapses that a device reads from host memory, over its link."""
        return 0

    @property
    def launch(self) -> str:
        """How the engine uses its device, in words; empty if there is nothing to say."""
        return ""

    @abstractmethod
    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst and return what it did.

        Raises
        ------
        StimulusError
            An id outside the network or not valid, an amount that is not finite, fractional or larger than declared.
        """

    @abstractmethod
    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Run ``bursts`` bursts with the stimulus planned for their numbers.

        Fewer than 0 are an ``InputError``.

        ``progress`` is called between bursts. What it raises ends the run and is passed on; the recording is lost. The
        engine then stands at the end of burst ``burst_count``, which may lie beyond those told: what is under way is
        taken in first. Its state is that of that burst, to the bit, and the next run goes on from there. Where several
        processes share an engine, the callback has to raise in all of them after the same burst, or in none.
        """

    def closed_loop(self, outputs: npt.NDArray[np.uint32] | None = None) -> ClosedLoop:
        """Bursts call by call, each with its stimulus; what fired comes back, of the neurons ``outputs`` or of all.

        An engine that answers faster so than by ``step`` overrides this.
        """
        return ClosedLoop(self.step, self.network.neuron_count, outputs)

    @abstractmethod
    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""

    def potentials(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]:
        """Membrane potentials of the neurons ``ids`` (W,) after the last burst, float32 (W,).

        An engine that can read them without copying its state overrides this.
        """
        return self.state().membrane_potentials[ids]

    @abstractmethod
    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, taken from any backend over the same network and options.

        Raises
        ------
        NetworkError
            Sums of another scale.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back memory and devices; the engine cannot be used afterwards. Closing twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PackedEngine(Engine, Protocol):
    """An engine that takes a whole plan in at once, in the units of its sums."""

    @cached_property
    def pack(self) -> Packer:
        """``pack(stimulus)``: the stimulus, checked, in the units of the sums."""
        return Packer(self.network, self.options, self.fixed_point)

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Run ``bursts`` bursts; see ``Engine.run``. The whole plan is checked before the first burst."""
        coming = coming_bursts(self.burst_count, bursts)
        packed = {number: self.pack(plan[number]) for number in planned(plan, coming)}
        return self._run(coming, packed, plan, record, progress)

    @abstractmethod
    def _run(
        self, coming: range, packed: PackedPlan, plan: StimulusPlan, record: Record, progress: Progress | None
    ) -> Recording:
        """Run the bursts ``coming``, whose stimulus is ``packed``."""


CreateEngine = Callable[[Network, EngineOptions], Engine]
"""Makes the engine of one backend."""
