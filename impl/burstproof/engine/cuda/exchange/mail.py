"""How shards on devices reach each other: mailboxes on each device, or in host memory where peers cannot (MG-2)."""

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
"""While one side of a mailbox is read, the other takes the next burst."""


class Path(Enum):
    """The way that firings take from device to device.

    ``peer``: kernels store into mailboxes on every device. ``staged``: into one mailbox in host memory, which all
    devices read. ``nccl``: into one on their own device, which NCCL broadcasts.
    """

    PEER = "peer"
    STAGED = "staged"
    NCCL = "nccl"


WORDS = {
    Path.PEER: "peer access, mailboxes on every device",
    Path.STAGED: "staged, mailboxes in host memory",
    Path.NCCL: "NCCL, lists broadcast in every burst",
}
"""The ways in words, for reports."""


class Boxes(list[Any]):
    """Mailboxes as the simulator's kernels take them: arrays instead of addresses."""

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
        For each shard what it stores to, and where it reads what each shard says; kernels take them.
    outboxes, copies : tuple of DeviceBuffer
        With NCCL: what each shard stores to, and the buffer behind its inboxes. Otherwise empty.
    """

    path: Path
    words: int
    sinks: tuple[Any, ...]
    inboxes: tuple[Any, ...]
    outboxes: tuple[DeviceBuffer, ...]
    copies: tuple[DeviceBuffer, ...]
    kept: tuple[DeviceBuffer, ...]
    """All memory of the mailboxes, which lives as long as this value."""
    packets: int = 0
    """Packets of a side, where every chunk of neurons has its own (``kernels.packet``)."""


def choose_path(runtimes: Sequence[DeviceRuntime], *, peers: bool, nccl: bool) -> Path:
    """The way to take between the devices of ``runtimes``: what configuration allows and the machine has.

    Parameters
    ----------
    peers : bool
        Whether devices may reach each other's memory (``cuda.multi_gpu.enable_p2p``).
    nccl : bool
        Whether NCCL may be used where they may not or cannot (``cuda.multi_gpu.use_nccl``).
    """
    if peers and make_peers(runtimes):
        return Path.PEER
    return Path.NCCL if nccl and nccl_obstacle(runtimes) is None else Path.STAGED


def open_mail(path: Path, runtimes: Sequence[DeviceRuntime], words: int) -> Mail:
    """Mailboxes for one shard on each of ``runtimes``, which may repeat.

    Raises
    ------
    BackendUnavailableError
        Peers that cannot reach each other, or NCCL that cannot be used.
    OutOfMemoryError
        A device, or the host, has no room for them.
    """
    shards, side = len(runtimes), _SIDES * words
    if path is Path.PEER:
        if not make_peers(runtimes):
            raise BackendUnavailableError("the devices cannot reach each other's memory", where="enable_p2p")
        own = tuple(_allocate(runtime, shards * side) for runtime in runtimes)
        sinks = [[(own[to], sender * side) for to in range(shards)] for sender in range(shards)]
        inboxes = [[(own[to], sender * side) for sender in range(shards)] for to in range(shards)]
        return _mail(path, words, runtimes, sinks, inboxes, own)
    if path is Path.STAGED:
        host = tuple(_allocate_host(runtime, side) for runtime in runtimes)
        return _mail(
            path, words, runtimes, [[(box, 0)] for box in host], [[(box, 0) for box in host] for _ in host], host
        )
    outboxes = tuple(_allocate(runtime, side) for runtime in runtimes)
    copies = tuple(_allocate(runtime, shards * side) for runtime in runtimes)
    inboxes = [[(copies[to], sender * side) for sender in range(shards)] for to in range(shards)]
    sinks = [[(box, 0)] for box in outboxes]
    return _mail(path, words, runtimes, sinks, inboxes, (*outboxes, *copies), outboxes, copies)


def rank_mail(path: Path, runtime: DeviceRuntime, words: int, senders: int = 1) -> Mail:
    """Mailboxes of the single shard of a rank: one out, and one in for each of ``senders``.

    Over ``staged`` the host reads and fills them; over ``nccl`` the inboxes take what every rank sends.

    Raises
    ------
    OutOfMemoryError
        The device has no room for them.
    """
    side = _SIDES * words
    box, copy = _allocate(runtime, side), _allocate(runtime, senders * side)
    inboxes = [(copy, sender * side) for sender in range(senders)]
    return _mail(path, words, [runtime], [[(box, 0)]], [inboxes], (box, copy), (box,), (copy,))


def mail_bytes(path: Path, shards: int, words: int) -> int:
    """Bytes on each device that the mailboxes take."""
    boxes = {Path.PEER: shards, Path.STAGED: 0, Path.NCCL: shards + 1}[path]
    return boxes * _SIDES * words * 8


def _spec(words: int) -> BufferSpec:
    return BufferSpec("mail", words, np.dtype(np.uint64))


def _allocate(runtime: DeviceRuntime, words: int) -> DeviceBuffer:
    """A mailbox on the device; in the simulator an array of the host, as all mailboxes are there."""
    if runtime.simulated:
        return runtime.mapped(_spec(words))
    make_current(runtime)
    return runtime.allocate([_spec(words)])["mail"]


def _allocate_host(runtime: DeviceRuntime, words: int) -> DeviceBuffer:
    if runtime.simulated:
        return runtime.mapped(_spec(words))
    make_current(runtime)
    return runtime.allocate_host([_spec(words)])["mail"]


def _mail(
    path: Path,
    words: int,
    runtimes: Sequence[DeviceRuntime],
    sinks: Sequence[Sequence[tuple[DeviceBuffer, int]]],
    inboxes: Sequence[Sequence[tuple[DeviceBuffer, int]]],
    kept: tuple[DeviceBuffer, ...],
    outboxes: tuple[DeviceBuffer, ...] = (),
    copies: tuple[DeviceBuffer, ...] = (),
) -> Mail:
    return Mail(
        path,
        words,
        tuple(_table(runtime, boxes) for runtime, boxes in zip(runtimes, sinks, strict=True)),
        tuple(_table(runtime, boxes) for runtime, boxes in zip(runtimes, inboxes, strict=True)),
        outboxes,
        copies,
        kept,
    )


def _table(runtime: DeviceRuntime, boxes: Sequence[tuple[DeviceBuffer, int]]) -> Any:
    """What a kernel on ``runtime`` takes to reach ``boxes``, each a buffer and a place in it."""
    if runtime.simulated:
        return Boxes(box.array[start:] for box, start in boxes)
    make_current(runtime)
    spec = BufferSpec("boxes", len(boxes), np.dtype(np.uint64))
    table = runtime.allocate([spec])["boxes"]
    stream = runtime.stream()
    runtime.upload(table, np.array([address_of(box) + 8 * start for box, start in boxes], np.uint64), stream)
    stream.synchronize()
    return table
