"""The interface between an engine and its devices: batches go in, reports and fired lists come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.host.stimulus_table import StimulusTable
from burstproof.engine.cuda.plan.budget import MemoryPlan
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.sharded.shard import StatePart
from burstproof.engine.state import EngineState, Stimulus

FiredList = tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]
"""Ids, uint32, and potentials, float32, of the neurons that fired."""

Behind = Callable[[], None]
"""Called after a burst was queued and before the host waits for it; may queue more work on the same stream."""

NOTHING: FiredList = (np.empty(0, np.uint32), np.empty(0, np.float32))


@dataclass(frozen=True, eq=False)
class BatchReport:
    """Counts of a batch: ``fired`` (shards, bursts done) and ``candidates`` (bursts done,), int64."""

    fired: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int64]

    @property
    def bursts(self) -> int:
        """Bursts done."""
        return len(self.candidates)


class LoopKernel(Protocol):
    """A persistent kernel that runs one burst for every call (``kernels.closed_loop``).

    Attributes
    ----------
    mail, answers, replies : int64
        Host memory for calls and answers, which the device reads and writes (``kernels.mailbox``, ``kernels.replies``).
    ids : uint32 (N + SLACK,)
        Receives the fired list of an answer.
    chunks : int
        Number of chunks of neurons; each sends a reply of its own.
    room : int
        Most amounts, and most forced firings, of a call.
    shown : int64 (2, words)
        Replies with the potentials, one row for even calls and one for odd ones, if potentials are shown.
    answered, fired : int
        Number of the last call done, and how many neurons fired in it; valid once the kernel has ended.
    """

    mail: npt.NDArray[np.int64]
    answers: npt.NDArray[np.int64]
    replies: npt.NDArray[np.int64]
    shown: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint32]
    chunks: int
    room: int

    @property
    def answered(self) -> int: ...  # noqa: D102

    @property
    def fired(self) -> int: ...  # noqa: D102

    def show(self, potentials: bool) -> None:
        """Choose whether replies with ``potentials`` are written, from the next launch on."""

    def finish(self, found: int, wait: Callable[[], int]) -> int:
        """Wait for the answer to the call in the mail, and launch the kernel if it does not run.

        ``found`` is the last result of ``wait`` (``host.loop_calls``) for this call.

        Raises
        ------
        DeviceFaultError
            No answer in time, or blocks of the kernel that waited for each other in vain.
        """

    def leave(self) -> None:
        """End the kernel and wait until it has; a call in the mail is either done by then or never will be."""


class Devices(Protocol):
    """A network on one or more devices.

    Up to two batches are in flight at a time; they alternate between buffer sets 0 and 1.

    Attributes
    ----------
    memory_bytes : int
        Memory of the network on all devices together.
    plan : MemoryPlan
        The buffers of a network on one device; an ``InputError`` if there are shards.
    host_bytes : int
        Bytes of synapses that devices read from host memory.
    path : str
        How firings travel between devices, in words.
    choices : str
        The layout chosen for sums, rows and delivery, and why, in words.
    max_delay : int
        Longest delay in bursts: the rows of ``EngineState.pending``.
    power_clamped : bool
        Whether the amount of the power neuron is clamped in every burst.
    """

    @property
    def memory_bytes(self) -> int: ...  # noqa: D102

    @property
    def plan(self) -> MemoryPlan: ...  # noqa: D102

    @property
    def host_bytes(self) -> int: ...  # noqa: D102

    @property
    def path(self) -> str: ...  # noqa: D102

    @property
    def choices(self) -> str: ...  # noqa: D102

    @property
    def max_delay(self) -> int: ...  # noqa: D102

    @property
    def power_clamped(self) -> bool: ...  # noqa: D102

    def tables(
        self, stimuli: Mapping[int, PackedStimulus], first: int, bursts: int, number: int
    ) -> tuple[StimulusTable, ...]:
        """One stimulus table per shard for the next batch: at most ``bursts`` bursts, from burst ``first`` on."""

    def submit(self, number: int, tables: tuple[StimulusTable, ...], keep: bool, burst: int) -> None:
        """Queue a batch on set ``number`` after burst ``burst``; ``keep`` all fired lists, or only the last one."""

    def collect(self, number: int) -> BatchReport:
        """Wait for the batch of set ``number`` and read its report."""

    def due(self) -> bool:
        """Whether ``restore`` would choose a better layout, because more or fewer neurons fire than expected."""

    def fired(self, number: int, counts: npt.NDArray[np.int64]) -> FiredList:
        """The fired lists of a batch, ids ascending within a burst; ``counts`` (shards, bursts) are their lengths."""

    def takes(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """Whether ``step`` can run a burst with ``stimulus``; if not, it has to be a batch of one burst."""

    def step(self, number: int, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """Run one burst on set ``number`` and return its fired list and candidate count. No batch may be in flight."""

    def loop_kernel(self) -> LoopKernel | None:
        """The persistent kernel for closed loops; ``None`` if the network cannot have one (``can_persist``)."""

    def resume(self) -> None:
        """Let batches run again after one that stopped early because its log was full."""

    def state(self, clamped: bool) -> list[StatePart]:
        """The state of each shard; ``clamped`` says whether the host knows of an input that was clamped."""

    def restore(self, state: EngineState) -> None:
        """Write ``state``; the network is packed again if the state needs other kernels or contributions."""

    def release(self) -> None:
        """Free the memory."""
