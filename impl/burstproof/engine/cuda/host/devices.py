"""What the engine asks of the devices that hold its network: batches go in, reports and fired lists come out."""

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
"""Ids and potentials of firings."""

Behind = Callable[[], None]
"""Queues more behind a burst, before the host waits for it."""

NOTHING: FiredList = (np.empty(0, np.uint32), np.empty(0, np.float32))


@dataclass(frozen=True, eq=False)
class BatchReport:
    """What a batch did: ``fired`` (shards, bursts done) and ``candidates`` (bursts done,), int64."""

    fired: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int64]

    @property
    def bursts(self) -> int:
        """Bursts done."""
        return len(self.candidates)


class LoopKernel(Protocol):
    """A kernel that stays on its device and does a burst for every call (``kernels.closed_loop``).

    Attributes
    ----------
    mail, answers, replies : int64
        Host memory of calls and of answers (``kernels.mailbox``, ``kernels.replies``).
    ids : uint32 (N + SLACK,)
        Where the fired list lies after an answer.
    chunks : int
        Chunks of neurons, each of which has an answer.
    room : int
        Amounts, and forced firings, that fit into a call.
    shown : int64 (2, words)
        The same of potentials, of even calls and of odd ones, if they are shown.
    answered, fired : int
        Number of the call that was done last, and the neurons that fired in it; right when the kernel has ended.
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
        """Show ``potentials``, or do not, from the next launch on."""

    def finish(self, found: int, wait: Callable[[], int]) -> int:
        """The answer to the call in the mail; launches the kernel if it does not run.

        ``found`` is what ``wait`` (``host.loop_calls``) said of it so far.

        Raises
        ------
        DeviceFaultError
            No answer, or blocks of the kernel lost each other.
        """

    def leave(self) -> None:
        """End the kernel and wait for its end; the call at hand is either done by then or never."""


class Devices(Protocol):
    """A network on one device or more.

    Two batches are under way at a time, on the buffers of set 0 and of set 1 in turn.

    Attributes
    ----------
    memory_bytes : int
        Device memory that the network takes on all devices together.
    plan : MemoryPlan
        The buffers of a network on one device; refused where there are shards.
    host_bytes : int
        Bytes of synapses that a device reads from host memory.
    path : str
        The way that firings take between devices, in words.
    choices : str
        What was chosen when the layout was built, and why.
    max_delay : int
        Rows of ``EngineState.pending``.
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
        """The stimulus of the next batch, a table for each shard: at most ``bursts`` bursts from ``first`` on."""

    def submit(self, number: int, tables: tuple[StimulusTable, ...], keep: bool, burst: int) -> None:
        """Queue a batch on set ``number``, after burst ``burst``; ``keep`` all its fired lists or only the last."""

    def collect(self, number: int) -> BatchReport:
        """Wait for the batch of set ``number`` and read its report."""

    def due(self) -> bool:
        """Whether ``restore`` would lay the network out in a better way, since it fires otherwise than expected."""

    def fired(self, number: int, counts: npt.NDArray[np.int64]) -> FiredList:
        """The log of a batch, ids ascending within each burst; ``counts`` (shards, bursts) are the firings in it."""

    def takes(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """Whether ``step`` can run a burst with ``stimulus``; otherwise it is run as a batch of one burst."""

    def step(self, number: int, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """Run one burst on set ``number``: its list and its candidates. No batch may be under way."""

    def loop_kernel(self) -> LoopKernel | None:
        """What does the bursts of a closed loop without a launch for each; ``None`` where each has several kernels."""

    def resume(self) -> None:
        """Let batches run again after one that ended early for lack of room in its log."""

    def state(self, clamped: bool) -> list[StatePart]:
        """The part of the state that each shard holds; ``clamped`` if a contribution was, as the host knows."""

    def restore(self, state: EngineState) -> None:
        """Write ``state``; packs again where it asks for other kernels or contributions."""

    def release(self) -> None:
        """Give the memory back."""
