"""Memory of arrays comes from CuPy's pool: what it holds, what it asked of the driver, how to give it back.

Blocks that arrays no longer use stay in the pool and serve the next request, so that a program in its steady state
allocates nothing from the driver. ``observe`` counts both kinds of request to show it. On the CPU, NumPy asks the C
library, which pools by itself: the counts are zero there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from burstproof.errors import ArrayError
from burstproof.tensor.array.protocol import Backend


@dataclass(frozen=True)
class PoolUsage:
    """Bytes in use by arrays, and bytes that the pool holds, those in use included."""

    used_bytes: int
    held_bytes: int


@dataclass(frozen=True)
class PoolStatistics:
    """Requests since observation began.

    Attributes
    ----------
    requests, requested_bytes : int
        Blocks that arrays asked for (rounded as the pool rounds them).
    driver_allocations, driver_bytes : int
        Those of them for which the pool had to ask the driver.
    """

    requests: int = 0
    requested_bytes: int = 0
    driver_allocations: int = 0
    driver_bytes: int = 0

    @property
    def served_from_pool(self) -> float:
        """Share of the requests that never reached the driver; 1 where there were none."""
        return 1 - self.driver_allocations / self.requests if self.requests else 1.0


class PoolObserver:
    """Counts requests while it observes."""

    def __init__(self) -> None:
        self._counts = [0, 0, 0, 0]

    @property
    def statistics(self) -> PoolStatistics:
        """Counts so far."""
        return PoolStatistics(*self._counts)

    def requested(self, size: int) -> None:
        """An array asked for ``size`` bytes."""
        self._counts[0] += 1
        self._counts[1] += size

    def allocated(self, size: int) -> None:
        """The pool asked the driver for ``size`` bytes."""
        self._counts[2] += 1
        self._counts[3] += size


def usage(place: Backend) -> PoolUsage:
    """What the pool of a device holds."""
    if place.name == "numpy":
        return PoolUsage(0, 0)
    with place.use():
        pool = place.xp.get_default_memory_pool()
        return PoolUsage(int(pool.used_bytes()), int(pool.total_bytes()))


def release(place: Backend) -> int:
    """Give the blocks that no array uses back to the driver.

    Returns
    -------
    int
        Bytes that were given back.
    """
    if place.name == "numpy":
        return 0
    with place.use():
        pool = place.xp.get_default_memory_pool()
        before = int(pool.total_bytes())
        pool.free_all_blocks()
        return before - int(pool.total_bytes())


@contextmanager
def limited(place: Backend, size: int) -> Iterator[None]:
    """Let the pool of a device hold at most ``size`` bytes inside a ``with`` block; more is out of memory.

    Raises
    ------
    ArrayError
        The CPU, which has no pool, or a size that is not positive.
    """
    if place.name == "numpy" or size <= 0:
        raise ArrayError("only a device's pool has a limit, of at least one byte", where="limited", got=size)
    with place.use():
        pool = place.xp.get_default_memory_pool()
        before = int(pool.get_limit())
        pool.set_limit(size=size)
    try:
        yield
    finally:
        with place.use():
            pool.set_limit(size=before)


@contextmanager
def observe(place: Backend) -> Iterator[PoolObserver]:
    """Count the requests of this thread on a device inside a ``with`` block; costs about a microsecond a request."""
    observer = PoolObserver()
    if place.name == "numpy":
        yield observer
        return
    with _hook(observer, place.device):
        yield observer


def _hook(observer: PoolObserver, device: int | None) -> Any:
    from cupy.cuda import memory_hook

    class Hook(memory_hook.MemoryHook):  # type: ignore[misc]
        """CuPy calls these around its requests."""

        name = f"burstproof-{id(observer)}"

        def malloc_preprocess(self, **request: int) -> None:
            """An array asks the pool."""
            if request["device_id"] == device:
                observer.requested(request["mem_size"])

        def alloc_preprocess(self, **request: int) -> None:
            """The pool asks the driver."""
            if request["device_id"] == device:
                observer.allocated(request["mem_size"])

    return Hook()
