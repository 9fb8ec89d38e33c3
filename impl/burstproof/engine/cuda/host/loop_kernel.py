"""The kernel of a closed loop on its device: its mail, its launches, its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.host.fused_batch import FusedBatch
from burstproof.engine.cuda.host.launches import Kernels, Values, numbers_of
from burstproof.engine.cuda.host.loop_calls import NOT_RUNNING
from burstproof.engine.cuda.kernels.mailbox import (
    ANSWERS_HEAD,
    CALL,
    ENDED,
    IDLE_NS,
    LEAVE,
    MOST_ENTRIES,
    NUMBER_SHIFT,
    RELAY_LENGTH,
    RUNNING,
    STATUS,
    STUCK,
    STUCK_NS,
    mail_length,
)
from burstproof.engine.cuda.plan.buffers import chunks_of
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.errors import DeviceFaultError

_THREADS_PER_MULTIPROCESSOR = 1536
"""Threads of the kernel on a multiprocessor at most: others find room beside it."""
_PATIENCE_S = 2 * STUCK_NS / 1e9


class StayingKernel:
    """See ``LoopKernel``: that of one device, which shares log and window with a batch set."""

    def __init__(
        self, runtime: DeviceRuntime, packed: Packed, buffers: Mapping[str, DeviceBuffer], batch: FusedBatch
    ) -> None:
        from burstproof.engine.cuda.kernels.closed_loop import closed_loop_spec, staying
        from burstproof.engine.cuda.kernels.gather import gathering_blocks

        self._runtime, self._batch, self._stream = runtime, batch, batch.stream
        variant, threads = packed.variant, staying(packed.variant).threads
        chunks, word = chunks_of(packed.sizes.neurons, variant), np.dtype(np.int64)
        kernels = Kernels(runtime, staying(variant), (closed_loop_spec(variant),))
        most = kernels.cooperative_blocks("closed_loop", threads, _THREADS_PER_MULTIPROCESSOR)
        grid = min(1 + chunks, most)
        all_send = variant.long_rows or variant.recalled > 0
        self.answering = grid if all_send else min(grid, gathering_blocks(variant, chunks, threads))
        self.room = max(1, min(packed.sizes.neurons, MOST_ENTRIES))
        mail = runtime.mapped(BufferSpec("mail", mail_length(self.room), word))
        answers = runtime.mapped(BufferSpec("answers", ANSWERS_HEAD + grid, word))
        self._relay = runtime.allocate([BufferSpec("relay", RELAY_LENGTH, word)])["relay"]
        window = batch.lend()
        self.mail: npt.NDArray[np.int64] = mail.array
        self.answers: npt.NDArray[np.int64] = answers.array
        self.ids: npt.NDArray[np.uint32] = window.ids
        given = {
            **numbers_of(packed),
            **window.given,
            "mail": mail,
            "answers": answers,
            "relay": self._relay,
            "mail_room": self.room,
            "answering": self.answering,
            "idle": IDLE_NS,
        }
        values = Values(runtime, buffers, 0, given)
        self._call = replace(kernels.call("closed_loop", grid, threads, values), cooperative=True)
        self.answers[STATUS] = ENDED

    @property
    def answered(self) -> int:
        """Number of the call that was answered last."""
        return int(self.answers[ANSWERS_HEAD]) >> NUMBER_SHIFT

    @property
    def fired(self) -> int:
        """Neurons that fired in that call."""
        return int(self.answers[ANSWERS_HEAD]) & ((1 << NUMBER_SHIFT) - 1)

    def finish(self, number: int, found: int, wait: Callable[..., int]) -> int:
        """See ``LoopKernel.finish``."""
        since = time.monotonic()
        while found < 0:
            if found == NOT_RUNNING:
                self._launch()
            elif not self._stream.finished() and time.monotonic() - since > _PATIENCE_S:
                raise self._lost("the kernel of a closed loop gives no answer")
            found = wait(self.answers, number, self.answering)
        return found

    def _launch(self) -> None:
        """Queue the kernel: it begins with the call that waits."""
        if self.answers[STATUS] == STUCK:
            raise self._lost("blocks of a closed loop waited for each other in vain")
        make_current(self._runtime)
        self._batch.lend()
        self._runtime.fill(self._relay, 0, self._stream)
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
        if self.answers[STATUS] == RUNNING:
            self.answers[STATUS] = ENDED

    def _lost(self, message: str) -> DeviceFaultError:
        return DeviceFaultError(
            f"{message}; its last burst is lost",
            where=f"device {self._runtime.name}",
            cure="Create another engine and restore a state; end other programs that keep the device busy",
        )
