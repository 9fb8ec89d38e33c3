"""Every link between two GPUs: measured both ways, judged against the line rate that follows from NVML (MG-6)."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from hardware.gates import peer_group
from hardware.inventory import take_inventory
from hardware.topology import topology_of
from stages.measuring import Measure
from suites.support.shards.peer_links import LinkFigures, measure_link

pytestmark = [pytest.mark.requirement("MG-6", "ST-7"), pytest.mark.gate("multi_gpu")]


@pytest.mark.measures("link.bandwidth", "link.latency", way=["copy engine", "kernel stores"], pair=...)
@pytest.mark.measures(
    "link.of_line_rate", only_if="NVML knows the links", way=["copy engine", "kernel stores"], pair=...
)
def test_matrix_of_links(measure: Measure) -> None:
    """Rate and latency of every directed pair, through the copy engine and through stores; data compared first."""
    from cupy.cuda import runtime

    from burstproof.device.open import open_device
    from burstproof.engine.cuda.exchange.devices import make_peers

    inventory = take_inventory()
    topology = topology_of(inventory)
    bus_ids = {gpu.index: gpu.bus_id for gpu in inventory.gpus}
    ordinals = {index: runtime.deviceGetByPCIBusId(bus_ids[index]) for index in peer_group(inventory)}
    assert make_peers([open_device(ordinal) for ordinal in ordinals.values()])
    for a, b in permutations(ordinals, 2):
        figures = measure_link(ordinals[a], ordinals[b])
        assert figures.intact, f"data from GPU {a} to GPU {b} did not arrive as they were sent"
        row, column = topology.indices.index(a), topology.indices.index(b)
        conditions = {
            "pair": f"{a}-{b}",
            "nvlinks": topology.nvlinks[row][column],
            "version": topology.nvlink_versions[row][column] or "none",
            "path": topology.paths[row][column].value,
        }
        _put(figures, topology.line_rates_gb_per_s[row][column], conditions, measure)


def _put(figures: LinkFigures, line_rate: float | None, conditions: dict[str, object], measure: Measure) -> None:
    for way, rates in (("copy engine", figures.copy_gb_per_s), ("kernel stores", figures.store_gb_per_s)):
        rate = float(np.median(rates))
        where = {**conditions, "way": way}
        best = {} if line_rate is None else {"floor": line_rate}
        note = "256 MiB, one direction"
        measure("link.bandwidth", rate, "GB/s", samples=list(rates), conditions=where | best, note=note)
        if line_rate is not None:
            note = f"of {line_rate:g} GB/s that the links carry"
            measure("link.of_line_rate", rate / line_rate, "1", conditions=where, note=note)
    where = {**conditions, "way": "copy engine"}
    measure("link.latency", figures.copy_us, "us", conditions=where, note="16 bytes, one copy after the other")
    where = {**conditions, "way": "kernel stores"}
    measure("link.latency", figures.store_us, "us", conditions=where, note="store until seen, half of a round trip")
