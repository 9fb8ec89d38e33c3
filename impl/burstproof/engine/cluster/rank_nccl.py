"""NCCL between the devices of MPI ranks (MG-3, MG-5): whether all ranks can use it, and the communicator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from burstproof.device.nccl_library import nccl_library
from burstproof.device.protocol import DeviceBuffer, DeviceRuntime
from burstproof.engine.cuda.exchange.devices import address_of, make_current, nccl_obstacle
from burstproof.engine.cuda.exchange.words import MOST_SHARDS
from burstproof.engine.sharded.exchange import Exchange
from burstproof.errors import BurstproofError, ShardLostError

_NOT_READY = 600
"""cudaErrorNotReady: the stream still has work."""
_SPIN_S = 1e-3
_NAP_S = 50e-6


@dataclass(frozen=True)
class RankDevice:
    """One rank's ``device`` (UUID) and NCCL ``version``, or the ``obstacle`` to a communicator."""

    device: str = ""
    version: int = 0
    obstacle: str | None = None


@dataclass(frozen=True)
class Column:
    """``count`` elements of ``source`` from ``start`` on, gathered in ``target``: those of rank r at r x ``count``.

    Both buffers have elements of the same size.
    """

    source: DeviceBuffer
    start: int
    target: DeviceBuffer
    count: int


def own_device(runtime: DeviceRuntime, shards_per_rank: int, allowed: bool) -> RankDevice:
    """The device of this rank; ``allowed`` is ``cuda.multi_gpu.use_nccl``."""
    if not allowed:
        return RankDevice(obstacle="cuda.multi_gpu.use_nccl is off")
    if shards_per_rank > 1:
        return RankDevice(obstacle="NCCL takes one shard per rank")
    obstacle = nccl_obstacle([runtime])
    if obstacle is not None:
        return RankDevice(obstacle=obstacle)
    from burstproof.device.numba_cuda import cuda

    make_current(runtime)
    return RankDevice(str(cuda.get_current_device().uuid), int(nccl_library().get_version()))


def agreed_obstacle(devices: Sequence[RankDevice]) -> str | None:
    """Why the ranks with ``devices`` cannot form a communicator; ``None`` if they can.

    All ranks have the same list, so they get the same answer.
    """
    for rank, one in enumerate(devices):
        if one.obstacle is not None:
            everywhere = all(other.obstacle == one.obstacle for other in devices)
            return one.obstacle if everywhere else f"rank {rank}: {one.obstacle}"
    if len(devices) > MOST_SHARDS:
        return f"the kernels take lists of at most {MOST_SHARDS} ranks"
    first: dict[str, int] = {}
    for rank, one in enumerate(devices):
        if one.device in first:
            return f"ranks {first[one.device]} and {rank} share a device"
        first[one.device] = rank
    versions = sorted({one.version for one in devices})
    return None if len(versions) == 1 else f"ranks have NCCL of different versions ({versions[0]}, {versions[-1]})"


def open_ranks(
    exchange: Exchange, open_runtime: Callable[[], DeviceRuntime], shards_per_rank: int, allowed: bool
) -> NcclRanks | str:
    """A communicator over all ranks of ``exchange``, or why there is none; either all ranks get one, or none.

    ``open_runtime`` opens the device of this rank.

    Raises
    ------
    BurstproofError
        A rank has no device; raised in all.
    """
    error, own = None, RankDevice()
    try:
        runtime = open_runtime()
        own = own_device(runtime, shards_per_rank, allowed)
    except BurstproofError as found:
        error = found
    exchange.agree(error)
    obstacle = agreed_obstacle(exchange.share("the choice of a path", own))
    return obstacle or _connected(exchange, runtime)


def _connected(exchange: Exchange, runtime: DeviceRuntime) -> NcclRanks | str:
    """The communicator, or the NCCL error of a rank."""
    nccl = nccl_library()
    make_current(runtime)
    identifier, problem = _tried(nccl, nccl.get_unique_id) if exchange.rank == 0 else (None, "")
    identifier, problem = exchange.share("the name of the communicator", (identifier, problem))[0]
    if problem:
        return problem
    with exchange.waiting("NCCL to connect the ranks"):
        member, problem = _tried(nccl, lambda: nccl.NcclCommunicator(exchange.ranks, identifier, exchange.rank))
    problems = exchange.share("the outcome of NCCL's start", problem)
    met = next((f"rank {rank}: {one}" for rank, one in enumerate(problems) if one), "")
    if not met:
        return NcclRanks(nccl, member, exchange)
    if member is not None:
        member.abort()
    return met


def _tried(nccl: Any, call: Callable[[], Any]) -> tuple[Any, str]:
    """The result of ``call`` and an empty string, or ``None`` and the NCCL error."""
    try:
        return call(), ""
    except nccl.NcclError as error:
        return None, f"NCCL fails: {error}"


def poll(is_done: Callable[[], bool], check: Callable[[], None]) -> None:
    """Poll until ``is_done()``: at first without pause, then with naps, each after a ``check``."""
    began = time.monotonic()
    while not is_done():
        if time.monotonic() - began > _SPIN_S:
            check()
            time.sleep(_NAP_S)


class NcclRanks:
    """An NCCL communicator over the devices of all ranks."""

    def __init__(self, nccl: Any, member: Any, exchange: Exchange) -> None:
        self.ranks = exchange.ranks
        self._nccl, self._member, self._exchange = nccl, member, exchange

    def all_gather(self, columns: Sequence[Column], stream: Any) -> None:
        """Queue an all-gather of ``columns`` on ``stream``, as bytes, in one group."""
        nccl, queue = self._nccl, stream.cupy_stream.ptr
        nccl.groupStart()
        for column in columns:
            size = column.source.spec.dtype.itemsize
            source, target = address_of(column.source) + size * column.start, address_of(column.target)
            self._member.allGather(source, target, size * column.count, nccl.NCCL_INT8, queue)
        nccl.groupEnd()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A context for NCCL operations: a missing rank or an NCCL error ends the run."""
        with self._exchange.waiting("the exchange of what fired"):
            try:
                yield
            except self._nccl.NcclError as error:
                raise ShardLostError(f"NCCL fails: {error}") from error

    def wait(self, stream: Any) -> None:
        """Wait for ``stream`` while other threads can run."""
        from cupy.cuda import runtime

        handle = stream.cupy_stream.ptr
        poll(lambda: runtime.streamQuery(handle) != _NOT_READY, self._member.check_async_error)
        stream.synchronize()

    def close(self) -> None:
        """Destroy the communicator; closing twice is allowed."""
        if self._member is not None:
            self._member.destroy()
            self._member = None
