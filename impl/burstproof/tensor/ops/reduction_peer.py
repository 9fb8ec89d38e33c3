"""Sum over devices by peer copies: each device sums one piece of all parts, then all fetch the summed pieces.

Every element crosses the links twice, as in a ring; sums are taken in ascending order of the parts, so that all devices
hold the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.protocol import Array, Backend

if TYPE_CHECKING:
    from cupy.cuda import Event, Stream

_ENABLED_ALREADY = 704


@dataclass(frozen=True, eq=False)
class _Member:
    """One device: its part as one axis, its stream, and its piece of the work."""

    place: Backend
    part: Array
    stream: Stream
    piece: slice

    def mark(self) -> Event:
        """An event at the present end of the stream."""
        with self.place.use():
            event = self.place.xp.cuda.Event(disable_timing=True)
            event.record(self.stream)
        return event


def all_reduce(parts: tuple[Array, ...]) -> None:
    """Queue the sum of all parts into each, on every device's current stream; checked by the caller."""
    members = _members(parts)
    _enable_peers(members)
    _wait_for_all(members)
    for member in members:
        _sum_piece(member, members)
    _wait_for_all(members)
    for member in members:
        for other in members:
            if other is not member:
                _fetch(member.part[other.piece], member, other.part[other.piece], other)
    _wait_for_all(members)


def _members(parts: tuple[Array, ...]) -> list[_Member]:
    length = -(-parts[0].size // len(parts))
    members = []
    for number, part in enumerate(parts):
        place = backend_of(part)
        with place.use():
            stream = place.xp.cuda.get_current_stream()
        members.append(_Member(place, part.reshape(-1), stream, slice(number * length, (number + 1) * length)))
    return members


def _sum_piece(member: _Member, members: list[_Member]) -> None:
    """Fetch this member's piece of all other parts and add all up, in the order of the parts."""
    own = member.part[member.piece]
    if not own.size:
        return
    with member.place.use():
        fetched = member.place.empty((len(members), own.size), own.dtype)
        for row, other in zip(fetched, members, strict=True):
            _fetch(row, member, other.part[member.piece], other)
        total = fetched[0]
        for row in fetched[1:-1]:
            member.place.xp.add(total, row, out=total)
        member.place.xp.add(total, fetched[-1], out=own)


def _fetch(target: Array, to: _Member, source: Array, origin: _Member) -> None:
    if not source.size:
        return
    with to.place.use():
        to.place.xp.cuda.runtime.memcpyPeerAsync(
            target.data.ptr, to.place.device, source.data.ptr, origin.place.device, source.nbytes, to.stream.ptr
        )


def _wait_for_all(members: list[_Member]) -> None:
    """Let every stream wait for the present end of all others."""
    marks = [member.mark() for member in members]
    for member in members:
        with member.place.use():
            for mark in marks:
                member.stream.wait_event(mark)


def _enable_peers(members: list[_Member]) -> None:
    """Direct access between all pairs of devices that have it; without, the driver copies through the host."""
    for member in members:
        runtime = member.place.xp.cuda.runtime
        with member.place.use():
            for other in members:
                if other is member or not runtime.deviceCanAccessPeer(member.place.device, other.place.device):
                    continue
                try:
                    runtime.deviceEnablePeerAccess(other.place.device)
                except runtime.CUDARuntimeError as error:
                    if error.status != _ENABLED_ALREADY:
                        raise
