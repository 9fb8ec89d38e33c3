"""Memory of arrays: served by the pool, counted, limited, given back (TO-6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from burstproof.errors import ArrayError, OutOfMemoryError
from burstproof.tensor.array import memory
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.ops import elementwise, nn
from burstproof.tensor.ops.linalg import matmul
from stages.measuring import Measure

pytestmark = pytest.mark.requirement("TO-6")

MEBI = 1 << 20


@pytest.fixture
def device() -> Iterator[Backend]:
    """A device whose pool holds nothing unused."""
    place = backend("cupy")
    memory.release(place)
    yield place
    memory.release(place)


def _step(place: Backend) -> None:
    x = place.ones((300, 400))
    scale = place.ones(400)
    y = nn.layer_norm(elementwise.evaluate("a * 2 + 1", {"a": x}), scale, scale).values
    nn.layer_norm_backward(y, x, scale, nn.layer_norm(x, scale, scale))
    matmul(y, x, transpose_b=True)


@pytest.mark.gate("gpu")
def test_the_steady_state_asks_nothing_of_the_driver(device: Backend, measure: Measure) -> None:
    _step(device)
    with memory.observe(device) as observer:
        for _ in range(50):
            _step(device)
    found = observer.statistics
    measure("pool.driver_allocations", found.driver_allocations, "1", conditions={"requests": found.requests})
    assert found.requests >= 50 * 6
    assert found.requested_bytes > 0
    assert found.driver_allocations == 0
    assert found.served_from_pool == 1


@pytest.mark.gate("gpu")
def test_what_is_held_is_counted_and_given_back(device: Backend) -> None:
    before = memory.usage(device)
    with memory.observe(device) as observer:
        array = device.zeros(MEBI, np.float64)
    assert observer.statistics.driver_allocations == 1
    assert observer.statistics.driver_bytes >= array.nbytes
    assert memory.usage(device).used_bytes == before.used_bytes + array.nbytes
    del array
    assert memory.usage(device).used_bytes == before.used_bytes
    assert memory.release(device) >= 8 * MEBI
    assert memory.usage(device).held_bytes <= before.held_bytes


@pytest.mark.gate("gpu")
def test_out_of_memory_returns_what_is_unused_and_the_next_call_works(device: Backend) -> None:
    kept = device.ones(1000)
    unused = device.zeros(4 * MEBI)
    del unused
    held = memory.usage(device).held_bytes
    with memory.limited(device, held + MEBI):
        with pytest.raises(OutOfMemoryError, match="cannot give memory for an array of shape"):
            device.empty(64 * MEBI)
        rows = device.empty((3 * MEBI // 4096, 4096))
        with pytest.raises(OutOfMemoryError, match="cannot give memory"):
            nn.softmax(rows)
        del rows
        memory.release(device)
        assert memory.usage(device).held_bytes < held
        assert device.to_host(elementwise.add(kept, kept)).sum() == 2000
    assert device.to_host(device.ones(4 * MEBI)).sum() == 4 * MEBI


def test_the_cpu_has_no_pool() -> None:
    place = backend("numpy")
    assert memory.usage(place) == memory.PoolUsage(0, 0)
    assert memory.release(place) == 0
    with memory.observe(place) as observer:
        place.ones(100)
    assert observer.statistics == memory.PoolStatistics()
    assert observer.statistics.served_from_pool == 1
    with pytest.raises(ArrayError, match="has a limit"), memory.limited(place, 100):
        pass


def test_statistics_add_up() -> None:
    observer = memory.PoolObserver()
    for size in (512, 1024, 512):
        observer.requested(size)
    observer.allocated(1024)
    assert observer.statistics == memory.PoolStatistics(3, 2048, 1, 1024)
    assert observer.statistics.served_from_pool == pytest.approx(2 / 3)
