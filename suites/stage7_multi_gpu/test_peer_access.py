"""Whether the GPUs that NVML calls peers are peers to the CUDA driver."""

from __future__ import annotations

from itertools import permutations

import pytest

from hardware.gates import peer_group
from hardware.inventory import take_inventory
from stages.measuring import Measure


@pytest.mark.requirement("ST-7")
@pytest.mark.gate("multi_gpu")
@pytest.mark.measures("peer.pairs", gpus=...)
def test_peers_by_nvml_are_peers_by_cuda(measure: Measure) -> None:
    """Every pair of the peer group that NVML reports can access each other's memory by the CUDA driver's word."""
    from cupy.cuda import runtime

    inventory = take_inventory()
    bus_ids = {gpu.index: gpu.bus_id for gpu in inventory.gpus}
    ordinals = {index: runtime.deviceGetByPCIBusId(bus_ids[index]) for index in peer_group(inventory)}
    matrix = {(a, b): runtime.deviceCanAccessPeer(ordinals[a], ordinals[b]) for a, b in permutations(ordinals, 2)}
    measure("peer.pairs", sum(matrix.values()), "1", conditions={"gpus": len(ordinals)}, note="directed pairs")
    assert len(ordinals) >= 2
    assert all(matrix.values()), f"no peer access: {[pair for pair, granted in matrix.items() if not granted]}"
