"""The ``Engine`` protocol, from which the engine of every backend inherits."""

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
"""Packed stimuli by burst number."""

Progress = Callable[[int], None]
"""Called with the number of bursts just done; for its exceptions see ``Engine.run``."""


class Engine(Protocol):
    """Steps one network on one backend; ``burst_count`` is the number of the last burst done.

    An engine is a context manager that closes it.
    """

    backend: str
    burst_count: int
    network: Network
    options: EngineOptions
    fixed_point: FixedPoint

    @property
    def host_bytes(self) -> int:
        """Bytes of synapses that a device reads from host memory."""
        return 0

    @property
    def launch(self) -> str:
        """How the engine uses its device, in words; may be empty."""
        return ""

    @abstractmethod
    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst and return its result.

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

        A negative number is an ``InputError``.

        ``progress`` is called between bursts. An exception from it ends the run and propagates; the recording is lost.
        The engine first completes the bursts under way, so ``burst_count`` may exceed the bursts reported. Its state is
        exactly that of burst ``burst_count``, and the next run continues from there. If several processes share an
        engine, the callback must raise in all of them after the same burst, or in none.
        """

    def closed_loop(self, outputs: npt.NDArray[np.uint32] | None = None) -> ClosedLoop:
        """A closed loop: each call takes a stimulus, runs a burst, and returns what fired of ``outputs``, or of all.

        An engine with a faster way than ``step`` overrides this.
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
        """Release memory and devices; the engine cannot be used afterwards. Closing twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PackedEngine(Engine, Protocol):
    """An engine that packs a whole stimulus plan before a run."""

    @cached_property
    def pack(self) -> Packer:
        """``pack(stimulus)``: check a stimulus and convert it to the units of the sums."""
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
        """Run the bursts ``coming``; ``packed`` is their stimulus."""


CreateEngine = Callable[[Network, EngineOptions], Engine]
"""Creates the engine of one backend."""
