"""The persistent kernel of closed loops on one device: its mail, its launches and its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.host.fused_batch import FusedBatch
from burstproof.engine.cuda.host.launches import Call, Kernels, Values, numbers_of
from burstproof.engine.cuda.host.loop_codes import NOT_RUNNING, SLACK
from burstproof.engine.cuda.kernels.mailbox import (
    ANSWERS_LENGTH,
    CALL,
    ENDED,
    IDLE_NS,
    LAST,
    LEAVE,
    MOST_ENTRIES,
    NUMBER_SHIFT,
    RELAY_LENGTH,
    RUNNING,
    STATUS,
    STUCK,
    STUCK_NS,
    UNIT_BITS,
    mail_length,
    reply_lines,
)
from burstproof.engine.cuda.plan.block_size import CHUNKS_PER_SPAN
from burstproof.engine.cuda.plan.buffers import chunks_of
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.errors import DeviceFaultError

_THREADS_PER_MULTIPROCESSOR = 1536
"""Most threads of the kernel on a multiprocessor; the rest is left to other kernels."""
_PATIENCE_S = 2 * STUCK_NS / 1e9
"""How long the host waits for an answer or the kernel's end; blocks that lose each other give up earlier."""


class PersistentKernel:
    """The ``LoopKernel`` of one device; it shares the log and the host window of ``batch``."""

    def __init__(
        self, runtime: DeviceRuntime, packed: Packed, buffers: Mapping[str, DeviceBuffer], batch: FusedBatch
    ) -> None:
        from burstproof.engine.cuda.kernels.closed_loop import closed_loop_spec, persistent_variant

        self._runtime, self._batch, self._stream = runtime, batch, batch.stream
        shard, neurons, word = persistent_variant(packed.variant), packed.sizes.neurons, np.dtype(np.int64)
        kernels = Kernels(runtime, shard, (closed_loop_spec(packed.variant),))
        self.chunks, lines = chunks_of(neurons, shard.variant), reply_lines(neurons, shard.chunk)
        most_blocks = kernels.cooperative_blocks("closed_loop", shard.threads, _THREADS_PER_MULTIPROCESSOR)
        self.room = max(1, min(neurons, MOST_ENTRIES))
        mail = runtime.mapped(BufferSpec("mail", mail_length(self.room), word))
        answers = runtime.mapped(BufferSpec("answers", ANSWERS_LENGTH, word))
        replies = runtime.mapped(BufferSpec("replies", (4 << UNIT_BITS) * self.chunks * lines, np.dtype(np.uint32)))
        spans = BufferSpec("span_counts", 2 * -(-self.chunks // CHUNKS_PER_SPAN), np.dtype(np.uint32))
        on_device = runtime.allocate([BufferSpec("relay", RELAY_LENGTH, word), spans])
        self._cleared = tuple(on_device.values())
        self.mail: npt.NDArray[np.int64] = mail.array
        self.answers: npt.NDArray[np.int64] = answers.array
        self.replies: npt.NDArray[np.int64] = replies.array.view(np.int64)
        self.ids: npt.NDArray[np.uint32] = np.empty(neurons + SLACK, np.uint32)
        given = {
            **numbers_of(packed),
            **batch.lend().given,
            **on_device,
            "mail": mail,
            "answers": answers,
            "replies": replies,
            "shown": replies,
            "shows": 0,
            "mail_room": self.room,
            "reply_lines": lines,
            "idle": IDLE_NS,
        }
        self._kernels, self._values = kernels, Values(runtime, buffers, 0, given)
        self._grid, self._threads = min(1 + self.chunks, most_blocks), shard.threads
        self._call = self._silent = self._make_call()
        self._showing: Call | None = None
        self.shown: npt.NDArray[np.int64] = self.replies[None]
        self.answers[STATUS] = ENDED

    def _make_call(self, **given: object) -> Call:
        """The cooperative launch of the kernel, with the arguments in ``given`` replaced."""
        call = self._kernels.call("closed_loop", self._grid, self._threads, self._values.replacing(**given))
        return replace(call, cooperative=True)

    def show(self, potentials: bool) -> None:
        """See ``LoopKernel.show``; memory for potentials is allocated when they are first asked for."""
        if potentials and self._showing is None:
            words = 2 * len(self.replies)
            shown = self._runtime.mapped(BufferSpec("shown", 2 * words, np.dtype(np.uint32)))
            self.shown = shown.array.view(np.int64).reshape(2, -1)
            self._showing = self._make_call(shown=shown, shows=words)
        self._call = self._showing if potentials and self._showing is not None else self._silent

    @property
    def answered(self) -> int:
        """Number of the last call done, as the kernel reported when it ended."""
        return int(self.answers[LAST]) >> NUMBER_SHIFT

    @property
    def fired(self) -> int:
        """Number of neurons that fired in that call."""
        return int(self.answers[LAST]) & ((1 << NUMBER_SHIFT) - 1)

    def finish(self, found: int, wait: Callable[[], int]) -> int:
        """See ``LoopKernel.finish``."""
        since = time.monotonic()
        while found < 0:
            if found == NOT_RUNNING:
                self._launch()
            elif not self._stream.finished() and time.monotonic() - since > _PATIENCE_S:
                raise self._lost("the kernel of a closed loop gives no answer")
            found = wait()
        return found

    def _launch(self) -> None:
        """Queue the kernel; it starts with the call in the mail."""
        self._check()
        make_current(self._runtime)
        self._batch.lend()
        for buffer in self._cleared:
            self._runtime.fill(buffer, 0, self._stream)
        self.answers[STATUS] = RUNNING
        self._call.queue(self._stream)

    def leave(self) -> None:
        """See ``LoopKernel.leave``."""
        if self.answers[STATUS] == RUNNING:
            self.mail[CALL] = LEAVE
        since = time.monotonic()
        while not self._stream.finished():
            if time.monotonic() - since > _PATIENCE_S:
                raise self._lost("the kernel of a closed loop does not end")
        self._check()
        if self.answers[STATUS] == RUNNING:
            self.answers[STATUS] = ENDED

    def _check(self) -> None:
        """Raise if blocks of the last launch waited for each other in vain."""
        if self.answers[STATUS] == STUCK:
            raise self._lost("blocks of a closed loop waited for each other in vain")

    def _lost(self, message: str) -> DeviceFaultError:
        return DeviceFaultError(
            f"{message}; its last burst is lost",
            where=f"device {self._runtime.name}",
            cure="Create another engine and restore a state; end other programs that keep the device busy",
        )
