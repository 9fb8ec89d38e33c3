"""The memory plan of an engine: each buffer that it will allocate, and why; for all backends that plan."""

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
    """The buffers of an engine; ``choices`` explains how it keeps sums and delays, if it has a choice."""

    buffers: tuple[PlannedBuffer, ...]
    choices: str = ""


def total_bytes(buffers: Sequence[PlannedBuffer], place: str = "device") -> int:
    """Bytes of all buffers with this ``place``."""
    return sum(buffer.bytes for buffer in buffers if buffer.place == place)
