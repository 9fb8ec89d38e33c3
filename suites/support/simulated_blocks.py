"""numba's CUDA simulator without what takes most of its time, for the processes that check kernels there.

- The simulator starts an OS thread for each CUDA thread of each launch and asks all of them in a loop whether they have
  come to a barrier; the loop takes the interpreter's lock from the threads it asks. Here the same threads serve one
  launch after the other, and the last one to come to a barrier opens it. As before, they run side by side, and the
  interpreter switches between them when it likes.
- Each call of a device function puts a stand-in for ``cuda`` into its module, and takes it out afterwards. Here the
  stand-in stays, and asks who is running.
- Kernels see arrays through two wrappers. Here they see the arrays.
- Threads of a block hand over the interpreter's lock, which takes twice as long between cores. Here they share one.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import numpy as np
from numba import cuda
from numba.cuda.simulator import kernel, kernelapi

_MAKING, _ARRAY = threading.Lock(), kernelapi.FakeCUDAShared.array
_LAUNCH = kernel.FakeCUDAKernel.__call__


@contextmanager
def quick_simulator() -> Iterator[set[CodeType]]:
    """Within it, the simulator runs as said above; the code of the kernels and device functions that it called."""
    called: set[CodeType] = set()

    def call(function: kernel.FakeCUDAKernel, *arguments: object) -> object:
        names = function.fn.__globals__
        if names.get("cuda") is cuda:
            names["cuda"] = _STAND_IN
        called.add(function.fn.__code__)
        if kernel._kernel_context is None:
            return _LAUNCH(function, *arguments)
        return function.fn(*arguments)

    with (
        _one_core(),
        mock.patch.object(kernel.FakeCUDAKernel, "__call__", call),
        mock.patch.object(kernel, "FakeWithinKernelCUDAArray", lambda wrapped: wrapped._ary),
        mock.patch.object(kernel, "BlockManager", _Block),
        # shared arrays are told apart by who asks; a whole stack with its files looked at is not needed for that
        mock.patch.object(kernelapi, "traceback", SimpleNamespace(extract_stack=_asking)),
        mock.patch.object(kernelapi.FakeCUDAShared, "array", _shared_array),
    ):
        yield called


@contextmanager
def _one_core() -> Iterator[None]:
    """Within it, this thread and those that it starts run on one core; where cores cannot be chosen, on any."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(cores)[os.getpid() % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


class _StandIn:
    """``cuda`` in modules of device functions: what a kernel sees while one runs, else numba's module."""

    def __getattr__(self, name: str) -> Any:
        return getattr(kernel._kernel_context or cuda, name)


_STAND_IN = _StandIn()


def _shared_array(*arguments: Any, **named: Any) -> Any:
    """A shared array, made by the first thread that asks: without a lock a second one may make another."""
    with _MAKING:
        return _ARRAY(*arguments, **named)


def _asking(frame: FrameType) -> list[tuple[str, int]]:
    """File and line of who asks for a shared array, and of ``frame``, the simulator's function for it."""
    asking = frame.f_back and frame.f_back.f_back  # beyond ``_shared_array``
    return [(one.f_code.co_filename, one.f_lineno) for one in (asking, frame) if one is not None]


class _Lane(threading.Thread):
    """A thread of a block, which serves one block after the other; kernels ask it for their place."""

    syncthreads_count = kernel.BlockThread.syncthreads_count
    syncthreads_and = kernel.BlockThread.syncthreads_and
    syncthreads_or = kernel.BlockThread.syncthreads_or

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._gate = threading.Lock()
        self._gate.acquire()
        self.start()

    def begin(self, block: _Block, work: Callable[[], None], number: int) -> None:
        """Run ``work`` as thread ``number`` of ``block``."""
        self._manager, self._work = block, work
        rest, x = divmod(number, block.shape[0])
        z, y = divmod(rest, block.shape[1])
        self.blockIdx, self.threadIdx, self.thread_id = block.place, kernelapi.Dim3(x, y, z), number
        self._gate.release()

    def run(self) -> None:
        while True:
            self._gate.acquire()
            error = None
            try:
                self._work()
            except Exception as raised:
                raised.add_note(f"in {self.threadIdx} of block {self.blockIdx}")
                error = raised
            self._manager.leave(error)

    def syncthreads(self) -> None:
        """Wait for the others."""
        self._manager.arrive(self)
        self._gate.acquire()
        if self._manager.error is not None:
            raise RuntimeError("another thread of the block failed")

    def go_on(self) -> None:
        """Leave the barrier."""
        self._gate.release()


class _Block:
    """Takes the place of the simulator's ``BlockManager``."""

    _idle: ClassVar[list[_Lane]] = []

    def __init__(self, function: Callable[..., None], grid: tuple[int, ...], block: tuple[int, ...], debug: bool):
        self._function = function
        self.shape = block
        self.block_state = np.zeros(block, np.bool_)
        self.error: Exception | None = None
        self._lock, self._over = threading.Lock(), threading.Event()
        self._waiting: list[_Lane] = []

    def run(self, place: tuple[int, ...], *arguments: Any) -> None:
        """Run the block at ``place`` of the grid to its end, or until a thread of it fails."""
        self.place = kernelapi.Dim3(*place)
        self._running = math.prod(self.shape)
        while len(self._idle) < self._running:
            self._idle.append(_Lane())
        for number, lane in enumerate(self._idle[: self._running]):
            lane.begin(self, lambda: self._function(*arguments), number)
        self._over.wait()
        if self.error is not None:
            self._idle.clear()  # others may still be under way
            raise self.error

    def arrive(self, lane: _Lane) -> None:
        """``lane`` has come to a barrier."""
        with self._lock:
            self._waiting.append(lane)
            self._open()

    def leave(self, error: Exception | None) -> None:
        """A lane is done, or has failed."""
        with self._lock:
            self._running -= 1
            self.error = self.error or error
            self._open()
            if self.error is not None or not self._running:
                self._over.set()

    def _open(self) -> None:
        """Let those at the barrier go on once all are there who still run, or once one has failed."""
        if self.error is not None or len(self._waiting) == self._running:
            waiting, self._waiting = self._waiting, []
            for lane in waiting:
                lane.go_on()
