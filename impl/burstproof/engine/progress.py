"""Telling a caller of bursts done, while more of them are under way."""

from __future__ import annotations

from collections.abc import Callable

from burstproof.engine.protocol import Progress


def tell(progress: Progress | None, bursts: int, settle: Callable[[], None]) -> None:
    """Call ``progress`` with ``bursts``; if it raises, ``settle`` what is under way, then pass on what it raised."""
    if progress is None:
        return
    try:
        progress(bursts)
    except BaseException:
        settle()
        raise
