"""NCCL exchange between devices of one process (MG-3): broadcast the counts of all shards, then their lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burstproof.device.nccl_library import nccl_library
from burstproof.device.protocol import DeviceRuntime, DeviceStream
from burstproof.engine.cuda.exchange.devices import address_of, device_of, make_current, nccl_obstacle
from burstproof.engine.cuda.exchange.mail import Mail
from burstproof.engine.cuda.exchange.words import COUNT_WORD, FULL_BIT, HEADER_WORDS
from burstproof.errors import BackendUnavailableError


class NcclExchange:
    """One communicator per device; the host waits for the counts of every burst.

    ``room`` is the distance in words from a list's ids to its potentials, or 0 if potentials are not exchanged.

    Raises
    ------
    BackendUnavailableError
        NCCL cannot be used here.
    """

    def __init__(self, runtimes: Sequence[DeviceRuntime], mail: Mail, room: int) -> None:
        obstacle = nccl_obstacle(runtimes)
        if obstacle is not None:
            raise BackendUnavailableError(
                obstacle, where="use_nccl", cure="Let peers reach each other, or take the path staged"
            )
        self._runtimes, self._mail, self._room = tuple(runtimes), mail, room
        self._nccl = nccl_library()
        self._members = self._nccl.NcclCommunicator.initAll([device_of(runtime) for runtime in runtimes])
        self._counts = [runtime.pinned(len(runtimes), np.uint64) for runtime in runtimes]

    def exchange(self, sequence: int, streams: Sequence[DeviceStream]) -> None:
        """Broadcast the lists of exchange number ``sequence`` to all inboxes, on ``streams``, one per device."""
        side = (sequence & 1) * self._mail.words
        self.headers(sequence, streams)
        counts = self._counts_of(side + COUNT_WORD, streams)
        columns = (HEADER_WORDS, HEADER_WORDS + self._room) if self._room else (HEADER_WORDS,)
        for first in columns:
            self._broadcast([(side + first, int(count)) for count in counts], streams)

    def headers(self, sequence: int, streams: Sequence[DeviceStream]) -> None:
        """Broadcast only the headers, which hold the counts."""
        side = (sequence & 1) * self._mail.words
        self._broadcast([(side, HEADER_WORDS)] * len(self._members), streams)

    def _counts_of(self, place: int, streams: Sequence[DeviceStream]) -> list[int]:
        """Firings of each shard, read from word ``place`` of the first device's inboxes."""
        runtime, stream, copies = self._runtimes[0], streams[0], self._mail.copies[0]
        make_current(runtime)
        for sender in range(len(self._members)):
            start = sender * 2 * self._mail.words + place
            runtime.download(self._counts[0][sender : sender + 1], copies, stream, start)
        stream.synchronize()
        return [int(word) & (FULL_BIT - 1) for word in self._counts[0]]

    def _broadcast(self, spans: Sequence[tuple[int, int]], streams: Sequence[Any]) -> None:
        """Broadcast from each shard's outbox a span (first word, words) to the same words of its inbox everywhere."""
        nccl = self._nccl
        nccl.groupStart()
        for sender, (start, count) in enumerate(spans):
            if not count:
                continue
            source = address_of(self._mail.outboxes[sender]) + 8 * start
            for receiver, member in enumerate(self._members):
                target = address_of(self._mail.copies[receiver]) + 8 * (sender * 2 * self._mail.words + start)
                send_from = source if receiver == sender else target
                member.broadcast(send_from, target, count, nccl.NCCL_UINT64, sender, streams[receiver].cupy_stream.ptr)
        nccl.groupEnd()

    def close(self) -> None:
        """Destroy the communicators; closing twice is allowed."""
        for member in self._members:
            member.destroy()
        self._members = []
