"""The closed loop of the CUDA engine on one device: a kernel stays there between bursts, called through memory."""

from __future__ import annotations

from threading import RLock
from typing import Protocol

import numpy as np
import numpy.typing as npt
from numba.core.errors import NumbaError

from burstproof.device.faults import error_of, translated
from burstproof.engine.closed_loop import NO_AMOUNTS, NO_IDS, Amounts, ClosedLoop, Ids
from burstproof.engine.cuda.host.devices import FiredList, LoopKernel
from burstproof.engine.cuda.host.loop_calls import loop_calls, write_nothing, write_packed
from burstproof.engine.cuda.host.loop_codes import FIRED_BITS, MANY, UNSUITED
from burstproof.engine.cuda.kernels.mailbox import CALL_NUMBERS
from burstproof.engine.interruption import alone, in_use
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import Limits, PackedStimulus
from burstproof.engine.state import Burst, Stimulus
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

Words = npt.NDArray[np.int64]

_SPARE = 256
"""Elements that the list of a call has room for beyond those of the last, at least: it is made before it is known."""


class LoopEngine(Protocol):
    """What the loop asks of its engine."""

    network: Network
    options: EngineOptions
    fixed_point: FixedPoint
    burst_count: int
    failure: Exception | None
    loop_lock: RLock

    def step(self, stimulus: Stimulus) -> Burst:
        """Run one burst by itself."""

    def pack(self, stimulus: Stimulus) -> PackedStimulus:
        """``stimulus``, checked, in the units of the sums."""

    def enter_loop(self, loop: PersistentLoop) -> LoopKernel | None:
        """The kernel of ``loop``, which has the devices from now on; ``None`` where a burst has to be a batch."""

    def leave_loop(self, bursts: int, fired: int, clamped: bool) -> None:
        """Take in what a loop did in its ``bursts`` bursts, in the last of which ``fired`` neurons fired."""

    def last_list(self) -> FiredList:
        """The fired list of the last burst."""


class PersistentLoop(ClosedLoop):
    """A closed loop whose kernel stays on the device; see ``ClosedLoop``.

    The kernel runs from a call until the engine is asked for something else, until an exception, or until no call came
    for ``kernels.mailbox.IDLE_NS``; the next call launches it again.

    All loops of an engine share one kernel and one mail, in which a call lies until its answer is taken. They share one
    ``lock``, too, so a second thread can neither write over the call nor end the kernel.

    Attributes
    ----------
    candidates : int
        Of the burst done last.
    """

    def __init__(self, engine: LoopEngine, outputs: Ids | None) -> None:
        super().__init__(engine.step, engine.network.neuron_count, outputs)
        self._engine = engine
        self.lock = engine.loop_lock
        self._calls = loop_calls()
        self._limits = Limits.of(engine.network, engine.options, engine.fixed_point)
        self._picked = np.empty(engine.network.neuron_count if outputs is not None else 0, np.uint32)
        self._addresses, self._likely = np.empty(0, np.int64), _SPARE
        self._kernel: LoopKernel | None = None
        self._first = self._start = self._done = 0
        self._clamped = self._clamping = False
        self._taken: tuple[LoopKernel, int, FiredList | None] | None = None
        self.candidates = 0

    def step(self, ids: Ids = NO_IDS, amounts: Amounts = NO_AMOUNTS, forced: Ids = NO_IDS) -> Ids:
        """Run one burst and return what fired in it; see ``ClosedLoop.step``.

        Raises
        ------
        DeviceFaultError
            The device failed.
        InputError
            The loop is closed, or another thread is using the engine. No burst was done then.
        """
        if not self.lock.acquire(False):  # not alone(), which takes longer; by position, as a keyword does
            raise in_use("step")
        try:
            kernel = self._kernel
            if kernel is None:
                kernel = self._enter()
                if kernel is None:
                    return super().step(ids, amounts, forced)
            number = self._number(self._done + 1)
            try:
                posted = self._calls.post(self._addresses, ids, amounts, forced, number)
            except (TypeError, NumbaError):  # other types than those that it is compiled for
                posted = False
            fired = kernel.ids if self._wanted is not None else np.empty(self._likely, np.uint32)
            found = UNSUITED
            if posted:
                found = self._calls.wait(kernel.answers, kernel.replies, number, kernel.chunks, fired)
            if found < 0:
                if max(np.size(ids), np.size(forced)) > kernel.room:
                    return super().step(ids, amounts, forced)
                found, fired = self._at_length(kernel, Stimulus(ids, amounts, forced), number, found), kernel.ids
            return self._fired(kernel, found, fired)
        except BaseException:
            self.pause()
            raise
        finally:
            self.lock.release()

    def give(self, stimulus: PackedStimulus | None, shows: bool = False) -> bool:
        """Begin a burst, whose list is then to be taken; ``False`` where it has to be a batch.

        Ids above all others of the network have been checked by the caller, who gives amounts in units of the sums and
        says whether the kernel ``shows`` potentials, if it is to be launched.
        """
        kernel = self._kernel or self._enter(shows)
        if kernel is None or (stimulus is not None and max(len(stimulus.ids), len(stimulus.forced)) > kernel.room):
            return False
        number = self._number(self._done + 1)
        if stimulus is None:
            write_nothing(kernel.mail, number)
            self._calls.ring(kernel.mail, number, 0, 0)
        else:
            self._give_packed(kernel, stimulus, number)
        return True

    def take(self) -> Ids:
        """What fired in the burst that was given, ascending.

        Raises
        ------
        DeviceFaultError
            The device failed.
        """
        kernel = self._kernel
        assert kernel is not None
        number = self._number(self._done + 1)
        answer = self._wait(kernel, kernel.replies, number)
        self._clamped, self._clamping = self._clamped or self._clamping, False
        self._taken = kernel, number, None
        return self._fired(kernel, answer, kernel.ids)

    def potentials(self) -> npt.NDArray[np.float32]:
        """Potentials of what fired in the burst taken last, if they are shown, until another one is taken."""
        assert self._taken is not None
        kernel, number, listed = self._taken
        if listed is not None:
            return listed[1].copy()
        count = self._wait(kernel, kernel.shown[number & 1], number) & MANY
        return kernel.ids[:count].view(np.float32).copy()

    def pause(self) -> None:
        """End the kernel, if it runs; the engine then stands after the last burst done, and the next step goes on.

        Raises
        ------
        InputError
            Another thread is inside a call of a loop of this engine.
        """
        with alone(self.lock, "closed_loop"):
            self._end_kernel()

    def _end_kernel(self) -> None:
        kernel = self._kernel
        if kernel is not None:
            try:
                kernel.leave()
            except Exception as error:
                known = error_of(error)
                if known is None:
                    raise
                self._engine.failure, self._done = known, 0
            else:
                if kernel.answered == self._number(self._done + 1):  # its answer was not taken
                    self._done += 1
                    self._clamped |= self._clamping
            self._engine.burst_count = self._first + self._done
            self._engine.leave_loop(self._done, kernel.fired, self._clamped)
        self._kernel, self._clamping = None, False

    def close(self) -> None:
        """End the loop and its kernel."""
        self.pause()
        super().close()

    def _enter(self, shows: bool = False) -> LoopKernel | None:
        """Take the devices, unless a restored state has the next burst run as a batch."""
        self._check_open()
        kernel = self._engine.enter_loop(self)
        if kernel is None:
            return None
        self._first, self._start, self._done = self._engine.burst_count, kernel.answered, 0
        self._addresses = self._calls.borrow(kernel.mail, *self._limits)
        self._kernel, self._clamped = kernel, False
        kernel.show(shows)
        return kernel

    def _number(self, done: int) -> int:
        """Number of the call that makes it ``done`` bursts since the devices were taken; the next differs in parity."""
        return (self._start + done - 1) % (CALL_NUMBERS - 2) + 1

    @translated
    def _at_length(self, kernel: LoopKernel, stimulus: Stimulus, number: int, found: int) -> int:
        """The answer to a call that did not go the shortest way."""
        if found == UNSUITED:
            self._give_packed(kernel, self._engine.pack(stimulus), number)
            found = self._wait(kernel, kernel.replies, number)
        else:
            found = self._finish(kernel, kernel.replies, number, found)
        self._clamped, self._clamping = self._clamped or self._clamping, False
        return found

    def _wait(self, kernel: LoopKernel, replies: Words, number: int) -> int:
        """The answer to call ``number``, which is in the mail, or was."""
        found = self._calls.wait(kernel.answers, replies, number, kernel.chunks, kernel.ids)
        return found if found >= 0 else self._finish(kernel, replies, number, found)

    @translated
    def _finish(self, kernel: LoopKernel, replies: Words, number: int, found: int) -> int:
        return kernel.finish(
            found, lambda: self._calls.wait(kernel.answers, replies, number, kernel.chunks, kernel.ids)
        )

    def _give_packed(self, kernel: LoopKernel, packed: PackedStimulus, number: int) -> None:
        self._clamping = packed.clamped
        write_packed(kernel.mail, packed, number)
        self._calls.ring(kernel.mail, number, len(packed.ids), len(packed.forced))

    def _fired(self, kernel: LoopKernel, answer: int, fired: Ids) -> Ids:
        """What fired in the burst just done: the first of ``fired``, which may be the kernel's list."""
        self._done += 1
        self._engine.burst_count = self._first + self._done
        self.candidates, count = answer >> FIRED_BITS, answer & MANY
        if count == MANY:
            listed = self._engine.last_list()
            self._taken = kernel, 0, listed
            return self._chosen(listed[0].copy())
        if self._wanted is None:
            self._likely = count + (count >> 2) + _SPARE
            return fired[:count].copy() if fired is kernel.ids else fired[:count]
        chosen = self._calls.pick(fired, count, self._wanted, self._picked)
        return self._picked[:chosen].copy()
