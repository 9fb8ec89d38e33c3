"""The GPUs that a sharded network would run on: links, peer access, and data that really crosses between two of them.

Sharded networks are the business of ``test_cuda_shards``, figures of every link that of ``test_links``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hardware.gates import peer_group
from hardware.inventory import Inventory, take_inventory
from hardware.topology import Path, topology_of
from stages.measuring import Measure
from suites.support.bench.steady import Rule, telemetry_of, time_steadily

pytestmark = [pytest.mark.requirement("ST-7"), pytest.mark.gate("multi_gpu")]

COPIED_BYTES = 1 << 28
RULE = Rule(max_samples=100, max_seconds=1.0)


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    """What NVML says of this machine."""
    return take_inventory()


def _pairs(inventory: Inventory) -> Iterator[tuple[int, int]]:
    """Row and column in the matrices of every pair of GPUs."""
    count = len(inventory.gpus)
    return ((a, b) for a in range(count) for b in range(a + 1, count))


@pytest.mark.measures("topology.peer_access", "topology.nvlinks", pair=..., device=...)
def test_peer_access_matrix(inventory: Inventory, measure: Measure) -> None:
    """Peer access, path and NVLinks of every pair as NVML reports them."""
    topology = topology_of(inventory)
    group = peer_group(inventory)
    assert len(group) >= 2
    for a, b in _pairs(inventory):
        path = topology.paths[a][b]
        indices = topology.indices[a], topology.indices[b]
        conditions = {
            "pair": f"{indices[0]}-{indices[1]}",
            "path": path.value,
            "level": topology.levels[a][b] or "unknown",
            "device": inventory.gpus[a].name or "unknown",
        }
        measure("topology.peer_access", path is not Path.HOST_STAGED, "1", conditions=conditions)
        measure(
            "topology.nvlinks",
            topology.nvlinks[a][b],
            "1",
            conditions={**conditions, "version": topology.nvlink_versions[a][b] or "none"},
        )
        if set(indices) <= set(group):
            assert path is not Path.HOST_STAGED, f"the gate is open for {group}, but {indices} cannot reach each other"


@pytest.mark.measures("topology.active_nvlinks", gpu=..., device=...)
def test_nvlink_counts(inventory: Inventory, measure: Measure) -> None:
    """Active NVLinks of every GPU; no pair has more than either of its ends."""
    topology = topology_of(inventory)
    for row, gpu in enumerate(inventory.gpus):
        conditions = {"gpu": gpu.index, "device": gpu.name or "unknown"}
        measure("topology.active_nvlinks", len(gpu.nvlinks), "1", conditions=conditions)
        assert max(topology.nvlinks[row]) <= len(gpu.nvlinks)


@pytest.mark.measures("topology.peer_copy", pair="0-1", device=...)
def test_data_crosses_intact(measure: Measure) -> None:
    """256 MiB from device 0 to device 1 arrive as they were sent; then the rate of the copy."""
    import cupy

    from burstproof.device.open import open_device
    from burstproof.device.protocol import BufferSpec
    from suites.support.bench.timers import DeviceTimer

    count = COPIED_BYTES // 4
    spec = BufferSpec("words", count, np.dtype(np.uint32))
    far = open_device(1)
    target = far.allocate([spec])["words"]
    near = open_device(0)
    source = near.allocate([spec])["words"]
    stream = near.stream()
    sent = np.random.default_rng(1).integers(0, 1 << 32, count, np.uint32)
    near.upload(source, sent, stream)
    stream.synchronize()

    def launch(on: Any) -> None:
        pointers = target.array.data.ptr, 1, source.array.data.ptr, 0
        cupy.cuda.runtime.memcpyPeerAsync(*pointers, COPIED_BYTES, on.cupy_stream.ptr)

    launch(stream)
    stream.synchronize()
    with cupy.cuda.Device(1):
        received = target.array.get()
    assert np.array_equal(received, sent)
    watch = telemetry_of(cupy.cuda.Device(0).pci_bus_id)
    timed = time_steadily(DeviceTimer(near, stream, launch), RULE, watch)
    where = {"pair": "0-1", "device": near.name}
    note = "one direction, 256 MiB through the copy engine, contents compared first"
    timed.put(measure, "topology.peer_copy", "GB/s", where, note, lambda ms: COPIED_BYTES / ms / 1e6)
    near.close()
    far.close()
