"""What an engine is going to allocate, buffer by buffer; every backend that plans its memory says it in these."""

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


def total_bytes(buffers: Sequence[PlannedBuffer], place: str = "device") -> int:
    """Bytes of all buffers in one place."""
    return sum(buffer.bytes for buffer in buffers if buffer.place == place)
