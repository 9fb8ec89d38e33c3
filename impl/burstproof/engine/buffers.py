"""What an engine is going to allocate, buffer by buffer, and why; every backend that plans its memory says it so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedBuffer:
    """One buffer: ``count`` elements of ``dtype``, which take ``bytes``, on the ``device`` or in ``host`` memory."""

    name: str
    count: int
    dtype: str
    bytes: int
    place: str = "device"


@dataclass(frozen=True)
class Planned:
    """The buffers of an engine; ``choices`` says in words how it keeps sums and delays, and why, if it has a choice."""

    buffers: tuple[PlannedBuffer, ...]
    choices: str = ""


def total_bytes(buffers: Sequence[PlannedBuffer], place: str = "device") -> int:
    """Bytes of all buffers in one place."""
    return sum(buffer.bytes for buffer in buffers if buffer.place == place)
