"""Gathering of the fired lists of all ranks by NCCL, into the inboxes of each device and to its host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime
from burstproof.engine.cluster.rank_nccl import Column, NcclRanks
from burstproof.engine.cuda.exchange.devices import address_of, make_current
from burstproof.engine.cuda.exchange.mail import Mail
from burstproof.engine.cuda.exchange.words import COUNT_WORD, HEADER_WORDS
from burstproof.engine.cuda.host.batch import Staging
from burstproof.engine.cuda.kernels.control import REPORT_HEAD
from burstproof.engine.sharded.shard import Fired
from burstproof.errors import ShardLostError

LEAST_EAGER = 1024
"""Least firings per rank that are sent with the counts."""

_LOW = 0xFFFFFFFF


def eager_limit(most: int, room: int) -> int:
    """Firings per rank to send with the counts, from the longest list of the last burst, ``most``; at most ``room``."""
    wanted = -(-(most + most // 4) // LEAST_EAGER) * LEAST_EAGER
    return min(room, max(LEAST_EAGER, wanted))


@dataclass(frozen=True, eq=False)
class _Gathered:
    """Gathered ``words``: headers and ids, (ranks, HEADER_WORDS + limit); potentials (ranks, limit); candidates."""

    words: npt.NDArray[np.uint64]
    potentials: npt.NDArray[np.float32]
    candidates: npt.NDArray[np.int64]


class RankLists:
    """Gathers the fired lists of all ranks in a rank's inboxes and on its host.

    Counts and the first ``limit`` firings of every rank are gathered together. If a list is longer, all are gathered a
    second time. All ranks know all counts, so all choose the same limit for the next burst, where one gathering then
    usually suffices.

    Parameters
    ----------
    ranks : NcclRanks
    mail : Mail
        One outbox, and an inbox for each rank.
    room : int
        Room of a mailbox in firings.
    carries : bool
        Whether kernels need the potentials, which then follow the ids in the mailboxes.
    buffer : callable
        Returns a buffer of the shard by name.

    Raises
    ------
    OutOfMemoryError
        The device has no room for the gathered lists.
    """

    def __init__(
        self,
        runtime: DeviceRuntime,
        stream: Any,
        ranks: NcclRanks,
        mail: Mail,
        room: int,
        carries: bool,
        buffer: Callable[[str], DeviceBuffer],
    ) -> None:
        self._runtime, self._stream, self._ranks = runtime, stream, ranks
        self._mail, self._room, self._carries, self._buffer = mail, room, carries, buffer
        self._staging = Staging(runtime)
        make_current(runtime)
        self._gathered = runtime.allocate(self._specs())
        self.restart()

    def _specs(self) -> tuple[BufferSpec, ...]:
        ranks, word = self._ranks.ranks, np.dtype(np.uint64)
        return (
            BufferSpec("words", ranks * (HEADER_WORDS + self._room), word),
            BufferSpec("carried", ranks * self._room if self._carries else 1, word),
            BufferSpec("potentials", ranks * self._room, np.dtype(np.float32)),
            BufferSpec("candidates", ranks, np.dtype(np.int64)),
        )

    def restart(self) -> None:
        """Clear the mailboxes, since all ranks count exchanges from 1 again: no old word may match a new exchange."""
        make_current(self._runtime)
        self._eager_limit = eager_limit(0, self._room)
        for box in (*self._mail.outboxes, *self._mail.copies):
            self._runtime.fill(box, 0, self._stream)
        self._stream.synchronize()

    def headers(self, sequence: int) -> None:
        """Gather only the headers, with candidates counted before the burst."""
        side = (sequence & 1) * self._mail.words
        with self._ranks.watched():
            self._ranks.all_gather([self._column(side, "words", HEADER_WORDS)], self._stream)
            self._scatter("words", HEADER_WORDS, side)

    def exchange(self, sequence: int) -> Fired:
        """Gather the lists of exchange ``sequence`` in all inboxes; returns what fired in all ranks, ids ascending.

        Raises
        ------
        ShardLostError
            A rank's device did not do the burst.
        """
        found = self._gather(sequence, self._eager_limit)
        counts = self._counts(sequence, found.words)
        most = int(counts.max())
        if most > self._eager_limit:
            found = self._gather(sequence, eager_limit(most, self._room))
        self._eager_limit = eager_limit(most, self._room)
        return _joined(found, counts.tolist())

    def _gather(self, sequence: int, limit: int) -> _Gathered:
        """Gather up to ``limit`` firings of every rank."""
        side, span = (sequence & 1) * self._mail.words, HEADER_WORDS + limit
        columns = [
            self._column(side, "words", span),
            Column(self._buffer("log_potentials.0"), 0, self._gathered["potentials"], limit),
            Column(self._buffer("report.0"), REPORT_HEAD + 1, self._gathered["candidates"], 1),
        ]
        behind = side + HEADER_WORDS + self._room
        if self._carries:
            columns.append(self._column(behind, "carried", limit))
        ranks = self._ranks.ranks
        with self._ranks.watched():
            self._ranks.all_gather(columns, self._stream)
            self._scatter("words", span, side)
            if self._carries:
                self._scatter("carried", limit, behind)
            words = self._downloaded("words", ranks * span)
            potentials = self._downloaded("potentials", ranks * limit)
            candidates = self._downloaded("candidates", ranks)
            self._ranks.wait(self._stream)
        return _Gathered(words.reshape(ranks, span), potentials.reshape(ranks, limit), candidates)

    def _column(self, start: int, name: str, count: int) -> Column:
        return Column(self._mail.outboxes[0], start, self._gathered[name], count)

    def _scatter(self, name: str, count: int, start: int) -> None:
        """Queue copies of ``count`` gathered words of every rank to offset ``start`` of its inbox."""
        ranks, length = self._ranks.ranks, 2 * self._mail.words
        source, inbox = self._gathered[name], self._mail.copies[0]
        if self._runtime.simulated:
            rows = source.array.copy_to_host()[: ranks * count].reshape(ranks, count)
            inbox.array.reshape(ranks, length)[:, start : start + count] = rows
            return
        from cupy.cuda import runtime

        queue, kind = self._stream.cupy_stream.ptr, runtime.memcpyDeviceToDevice
        for rank in range(ranks):
            target = address_of(inbox) + 8 * (rank * length + start)
            runtime.memcpyAsync(target, address_of(source) + 8 * rank * count, 8 * count, kind, queue)

    def _downloaded(self, name: str, count: int) -> npt.NDArray[Any]:
        """Start a download of ``count`` gathered elements; returns its page-locked target."""
        buffer = self._gathered[name]
        host = self._staging.room(name, count, buffer.spec.dtype)
        self._runtime.download(host, buffer, self._stream)
        return host

    def _counts(self, sequence: int, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Firings of every rank, (ranks,) int64; raises if a header is not of exchange ``sequence``."""
        heads = words[:, COUNT_WORD]
        numbers = heads >> np.uint64(32)
        late = np.flatnonzero(numbers != np.uint64(sequence & _LOW))
        if len(late):
            raise ShardLostError(
                "a device did not do the burst",
                where=f"rank {late[0]}",
                got=f"exchange {numbers[late[0]]}",
                allowed=f"exchange {sequence & _LOW}",
                cure="Restore the last checkpoint in a new run",
            )
        return (heads & np.uint64(_LOW)).astype(np.int64)


def _joined(found: _Gathered, counts: list[int]) -> Fired:
    """The lists of all ranks, of lengths ``counts``, as one, ids ascending."""
    ids = np.concatenate([row[:count] for row, count in zip(found.words[:, HEADER_WORDS:], counts, strict=True)])
    potentials = np.concatenate([row[:count] for row, count in zip(found.potentials, counts, strict=True)])
    narrow = ids.astype(np.uint32)
    order = np.argsort(narrow)
    return Fired(narrow[order], potentials[order], int(found.candidates.sum()))
