"""The real machine: what NVML says of it, and each deployment prerequisite as a measurement of its own."""

from __future__ import annotations

import pytest

from hardware.gates import evaluate_gates
from hardware.inventory import Inventory, take_inventory
from hardware.prerequisites import judge_prerequisites
from hardware.telemetry import Telemetry
from hardware.topology import Path, topology_of
from stages.measuring import Measure

pytestmark = pytest.mark.gate("nvml")


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    return take_inventory()


@pytest.mark.requirement("ST-2")
def test_inventory(inventory: Inventory, measure: Measure) -> None:
    assert inventory.problem is None
    assert inventory.problems == ()
    gates = evaluate_gates(inventory)
    for gpu in inventory.gpus:
        assert gpu.uuid is not None
        assert gpu.compute_capability is not None
        conditions = {"gpu": gpu.index, "device": gpu.name or "unknown", "gate_gpu": gates["gpu"].reason}
        if gpu.memory_total_bytes is not None:
            measure("gpu.memory", gpu.memory_total_bytes / 2**30, "GiB", conditions=conditions)
    measure("gpu.count", len(inventory.gpus), "1", conditions={"driver": inventory.driver_version or "unknown"})


@pytest.mark.requirement("ST-2")
@pytest.mark.parametrize("name", ["driver", "cuda", "nccl", "compute_capability", "memory", "pcie"])
def test_prerequisite(name: str, inventory: Inventory, measure: Measure) -> None:
    """1 says met, 0 not met; the target of the same name decides what that means."""
    judged = [one for one in judge_prerequisites(inventory) if one.name == name]
    assert judged
    for one in judged:
        assert one.met is not None, f"{one.subject}: {one.found}"
        conditions = {
            "subject": one.subject,
            "required": one.required,
            "found": one.found,
            "gpus": len(inventory.gpus),
        }
        note = "" if one.met else one.cure
        measure(f"prerequisite.{name}", float(one.met), "1", conditions=conditions, note=note)


@pytest.mark.requirement("ST-2")
def test_telemetry(inventory: Inventory, measure: Measure) -> None:
    with Telemetry(inventory.gpus[0].index, interval_s=0.02) as telemetry:
        take_inventory()
    summary = telemetry.summary()
    assert summary["available"] is True
    assert "failed_reads" not in summary, summary.get("failures")
    assert float(summary["temperature_c_max"]) > 0
    measure("telemetry.samples", float(summary["samples"]), "1", telemetry=summary)


@pytest.mark.requirement("MG-6")
def test_topology(inventory: Inventory, measure: Measure) -> None:
    """The line rate to expect of each pair; with one GPU there is no pair, and that is said."""
    if len(inventory.gpus) < 2:
        pytest.skip("One GPU has no peer: run on a machine with two or more GPUs to see the links between them.")
    topology = topology_of(inventory)
    for row, a in enumerate(topology.indices):
        for column in range(row + 1, len(topology.indices)):
            path, rate = topology.paths[row][column], topology.line_rates_gb_per_s[row][column]
            assert rate is not None, f"no line rate for the pair {a}, {topology.indices[column]}"
            conditions = {
                "pair": f"{a}-{topology.indices[column]}",
                "path": path.value,
                "nvlinks": topology.nvlinks[row][column],
                "read": topology.read[row][column] or "unknown",
                "write": topology.write[row][column] or "unknown",
                "atomics": topology.atomics[row][column] or "unknown",
                "level": topology.levels[row][column] or "unknown",
            }
            measure("topology.line_rate", rate, "GB/s", conditions=conditions)
    assert all(topology.paths[index][index] is Path.SELF for index in range(len(topology.indices)))
