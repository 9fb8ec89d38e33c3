"""The backward pass of a model as one CUDA graph: the host launches once a step instead of some five hundred times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from burstproof.tensor.backend import Array, Backend
from burstproof.tensor.gpt_batch import Batch, PlacedBatch

Compute = Callable[[PlacedBatch], Array]
"""Queues all work on the current stream and gives the array of the loss."""


class GradientGraph:
    """Runs ``compute`` on a device: the first batch of a shape kernel by kernel, the second captures, the rest replay.

    All arrays of a shape come from a memory pool of their own, which lives as long as its graph does: what the graph
    writes to stays its own. One shape is kept; another one takes its place when it comes a second time.

    Parameters
    ----------
    place : Backend
        A CUDA device.
    compute : callable
        Reads and writes the same addresses for the same shape, besides what it allocates.
    """

    def __init__(self, place: Backend, compute: Compute) -> None:
        self._place, self._compute = place, compute
        self._stream: Any = None
        self._pool: Any = None
        self._seen: object = None
        self._graph: Any = None
        self._packed: Array = None
        self._loss: Array = None

    def run(self, batch: Batch) -> Array:
        """Queue ``compute`` for ``batch``; the loss, an array of one value of its own.

        Raises
        ------
        OutOfMemoryError
            No room; what the pool held was given back.
        """
        with self._place.use():
            key = (batch.shape, batch.counted)
            if key != self._seen:
                return self._first(batch, key)
            self._packed.set(batch.packed)
            if self._graph is None:
                self._capture(batch)
            self._graph.launch(self._place.xp.cuda.get_current_stream())
            return self._loss.copy()

    def _first(self, batch: Batch, key: object) -> Array:
        """Kernel by kernel, which also loads the kernels and fills the pool."""
        self._forget()
        self._pool = self._place.xp.cuda.MemoryPool()
        self._packed = self._place.from_host(batch.packed)
        with self._apart():
            loss = self._compute(PlacedBatch.of(self._packed, batch))
        self._seen = key
        return loss.copy()

    def _capture(self, batch: Batch) -> None:
        with self._apart() as stream:
            stream.begin_capture()
            try:
                self._loss = self._compute(PlacedBatch.of(self._packed, batch))
            finally:
                self._graph = stream.end_capture()

    def _forget(self) -> None:
        """Give the memory back; what arrays in use still hold of it follows when they go."""
        self._seen = self._graph = self._loss = self._packed = None
        if self._pool is not None:
            self._pool.free_all_blocks()
        self._pool = None

    @contextmanager
    def _apart(self) -> Iterator[Any]:
        """A stream and a pool of this graph's own; in order with the current stream."""
        cuda = self._place.xp.cuda
        outer = cuda.get_current_stream()
        if self._stream is None:
            self._stream = cuda.Stream(non_blocking=True)
        self._stream.wait_event(outer.record())
        try:
            with self._stream, cuda.using_allocator(self._pool.malloc):
                yield self._stream
        except BaseException:
            self._forget()
            raise
        outer.wait_event(self._stream.record())
