"""Memory of arrays: served by the pool, counted, limited, given back (TO-6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from burstproof.device import memory
from burstproof.errors import OutOfMemoryError
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
    pool = place.xp.get_default_memory_pool()
    with place.use():  # the pool speaks of the current device
        pool.free_all_blocks()
        yield place
        pool.set_limit(size=0)
        pool.free_all_blocks()


def _step(place: Backend) -> None:
    x = place.ones((300, 400))
    scale = place.ones(400)
    y = nn.layer_norm(elementwise.evaluate("a * 2 + 1", {"a": x}), scale, scale).values
    nn.layer_norm_backward(y, x, scale, nn.layer_norm(x, scale, scale))
    matmul(y, x, transpose_b=True)


@pytest.mark.measures("pool.driver_allocations", requests=...)
@pytest.mark.gate("gpu")
def test_the_steady_state_asks_nothing_of_the_driver(device: Backend, measure: Measure) -> None:
    _step(device)
    with memory.observe(device.device) as found:
        for _ in range(50):
            _step(device)
    measure("pool.driver_allocations", found.driver_allocations, "1", conditions={"requests": found.requests})
    assert found.requests >= 50 * 6
    assert found.requested_bytes > 0
    assert found.driver_allocations == 0
    assert found.served_from_pool == 1


@pytest.mark.gate("gpu")
def test_what_is_held_is_counted_and_given_back(device: Backend) -> None:
    pool = device.xp.get_default_memory_pool()
    used, held = pool.used_bytes(), pool.total_bytes()
    with memory.observe(device.device) as found:
        array = device.zeros(MEBI, np.float64)
    assert found.driver_allocations == 1
    assert found.driver_bytes >= array.nbytes
    assert pool.used_bytes() == used + array.nbytes
    del array
    assert pool.used_bytes() == used
    assert pool.total_bytes() >= held + 8 * MEBI
    pool.free_all_blocks()
    assert pool.total_bytes() <= held


@pytest.mark.gate("gpu")
def test_out_of_memory_returns_what_is_unused_and_the_next_call_works(device: Backend) -> None:
    kept = device.ones(1000)
    unused = device.zeros(4 * MEBI)
    del unused
    pool = device.xp.get_default_memory_pool()
    held = pool.total_bytes()
    pool.set_limit(size=held + MEBI)
    with pytest.raises(OutOfMemoryError, match="cannot give memory for an array of shape"):
        device.empty(64 * MEBI)
    rows = device.empty((3 * MEBI // 4096, 4096))
    with pytest.raises(OutOfMemoryError, match="cannot give memory"):
        nn.softmax(rows)
    del rows
    pool.free_all_blocks()
    assert pool.total_bytes() < held
    assert device.to_host(elementwise.add(kept, kept)).sum() == 2000
    pool.set_limit(size=0)
    assert device.to_host(device.ones(4 * MEBI)).sum() == 4 * MEBI


def test_the_share_that_the_pool_served() -> None:
    assert memory.PoolStatistics().served_from_pool == 1
    assert memory.PoolStatistics(3, 2048, 1, 1024).served_from_pool == pytest.approx(2 / 3)
