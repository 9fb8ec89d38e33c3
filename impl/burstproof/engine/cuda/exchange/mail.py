"""Mailboxes through which shards exchange firings: on the devices, or in host memory without peer access (MG-2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime
from burstproof.engine.cuda.exchange.devices import address_of, make_current, make_peers, nccl_obstacle
from burstproof.errors import BackendUnavailableError

_SIDES = 2
"""Mailboxes are double-buffered: while one side is read, the other receives the next burst."""

_Box = tuple[DeviceBuffer, int]
"""A buffer, and the word in it where a mailbox starts."""


class Path(Enum):
    """How firings travel from device to device.

    ``peer``: kernels store to mailboxes on every device. ``staged``: they store to one mailbox in host memory, which
    all devices read. ``nccl``: they store to a mailbox on their own device, which NCCL broadcasts.
    """

    PEER = "peer"
    STAGED = "staged"
    NCCL = "nccl"


WORDS = {
    Path.PEER: "peer access, mailboxes on every device",
    Path.STAGED: "staged, mailboxes in host memory",
    Path.NCCL: "NCCL, lists broadcast in every burst",
}
"""The paths in words, for reports."""


class Boxes(list[Any]):
    """A mailbox table for kernels in the simulator: arrays instead of addresses."""

    @property
    def size(self) -> int:
        """Number of mailboxes."""
        return len(self)


@dataclass(frozen=True, eq=False)
class Mail:
    """The mailboxes of all shards.

    Attributes
    ----------
    path : Path
    words : int
        Length of a side of a mailbox in 64-bit words.
    sinks, inboxes : tuple
        For each shard the kernel argument that names the mailboxes it writes, and those it reads, one per sender.
    outboxes, copies : tuple of DeviceBuffer
        With NCCL: each shard's outgoing mailbox, and the buffer that holds all its inboxes. Otherwise empty.
    """

    path: Path
    words: int
    sinks: tuple[Any, ...]
    inboxes: tuple[Any, ...]
    outboxes: tuple[DeviceBuffer, ...]
    copies: tuple[DeviceBuffer, ...]
    kept: tuple[DeviceBuffer, ...]
    """All memory of the mailboxes; kernels hold only addresses."""
    packets: int = 0
    """Packets on a side if every chunk of neurons sends its own (``kernels.packet``), else 0."""


def choose_path(runtimes: Sequence[DeviceRuntime], *, peers: bool, nccl: bool) -> Path:
    """The path between the devices of ``runtimes``: the first of peer, NCCL and staged that is allowed and works.

    Parameters
    ----------
    peers : bool
        Whether peer access is allowed (``cuda.multi_gpu.enable_p2p``).
    nccl : bool
        Whether NCCL is allowed if there is no peer access (``cuda.multi_gpu.use_nccl``).
    """
    if peers and make_peers(runtimes):
        return Path.PEER
    return Path.NCCL if nccl and nccl_obstacle(runtimes) is None else Path.STAGED


def open_mail(path: Path, runtimes: Sequence[DeviceRuntime], words: int) -> Mail:
    """Mailboxes for one shard on each of ``runtimes``; a device may occur several times.

    Raises
    ------
    BackendUnavailableError
        No peer access, or NCCL cannot be used.
    OutOfMemoryError
        A device, or the host, has no room for the mailboxes.
    """
    shards, side = len(runtimes), _SIDES * words
    if path is Path.PEER:
        if not make_peers(runtimes):
            raise BackendUnavailableError("the devices cannot reach each other's memory", where="enable_p2p")
        boxes = tuple(_allocate(runtime, shards * side) for runtime in runtimes)
        sinks = [[(boxes[to], sender * side) for to in range(shards)] for sender in range(shards)]
        inboxes = [[(boxes[to], sender * side) for sender in range(shards)] for to in range(shards)]
        return Mail(path, words, _tables(runtimes, sinks), _tables(runtimes, inboxes), (), (), boxes)
    if path is Path.STAGED:
        boxes = tuple(_allocate(runtime, side, on_host=True) for runtime in runtimes)
        sinks = [[(box, 0)] for box in boxes]
        inboxes = [[(box, 0) for box in boxes] for _ in boxes]
        return Mail(path, words, _tables(runtimes, sinks), _tables(runtimes, inboxes), (), (), boxes)
    outboxes = tuple(_allocate(runtime, side) for runtime in runtimes)
    copies = tuple(_allocate(runtime, shards * side) for runtime in runtimes)
    inboxes = [[(copies[to], sender * side) for sender in range(shards)] for to in range(shards)]
    sinks = [[(box, 0)] for box in outboxes]
    tables = _tables(runtimes, sinks), _tables(runtimes, inboxes)
    return Mail(path, words, *tables, outboxes, copies, (*outboxes, *copies))


def rank_mail(path: Path, runtime: DeviceRuntime, words: int, senders: int = 1) -> Mail:
    """Mailboxes for the single shard of an MPI rank: one to write, and one to read for each of ``senders``.

    With ``staged`` the host reads the outgoing one and fills the others; with ``nccl`` every rank's list arrives there.

    Raises
    ------
    OutOfMemoryError
        The device has no room for the mailboxes.
    """
    side = _SIDES * words
    box, copy = _allocate(runtime, side), _allocate(runtime, senders * side)
    inboxes = [(copy, sender * side) for sender in range(senders)]
    tables = (_table(runtime, [(box, 0)]),), (_table(runtime, inboxes),)
    return Mail(path, words, *tables, (box,), (copy,), (box, copy))


def mail_bytes(path: Path, shards: int, words: int) -> int:
    """Bytes of mailboxes on each device."""
    boxes = {Path.PEER: shards, Path.STAGED: 0, Path.NCCL: shards + 1}[path]
    return boxes * _SIDES * words * 8


def _allocate(runtime: DeviceRuntime, words: int, *, on_host: bool = False) -> DeviceBuffer:
    """A mailbox on the device or in host memory; in the simulator all mailboxes are arrays of the host."""
    spec = BufferSpec("mail", words, np.dtype(np.uint64))
    if runtime.simulated:
        return runtime.mapped(spec)
    make_current(runtime)
    return (runtime.allocate_host if on_host else runtime.allocate)([spec])["mail"]


def _tables(runtimes: Sequence[DeviceRuntime], boxes: Sequence[Sequence[_Box]]) -> tuple[Any, ...]:
    """The table of each shard, for its device and its ``boxes``."""
    return tuple(_table(runtime, own) for runtime, own in zip(runtimes, boxes, strict=True))


def _table(runtime: DeviceRuntime, boxes: Sequence[_Box]) -> Any:
    """The kernel argument for ``boxes``: a table of their addresses on the device."""
    if runtime.simulated:
        return Boxes(box.array[start:] for box, start in boxes)
    make_current(runtime)
    spec = BufferSpec("boxes", len(boxes), np.dtype(np.uint64))
    table = runtime.allocate([spec])["boxes"]
    stream = runtime.stream()
    runtime.upload(table, np.array([address_of(box) + 8 * start for box, start in boxes], np.uint64), stream)
    stream.synchronize()
    return table
