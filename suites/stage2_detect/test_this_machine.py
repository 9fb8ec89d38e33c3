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


@pytest.mark.measures("gpu.memory", "gpu.count", "inventory.refused_questions")
@pytest.mark.requirement("ST-2")
def test_inventory(inventory: Inventory, measure: Measure) -> None:
    """Identity, capability and memory of every GPU are known; what else NVML refused is counted and named."""
    assert inventory.problem is None
    gates = evaluate_gates(inventory)
    for gpu in inventory.gpus:
        assert gpu.uuid is not None, f"GPU {gpu.index} has no UUID; {'; '.join(inventory.problems)}"
        assert gpu.compute_capability is not None
        assert gpu.memory_total_bytes is not None
        conditions = {"gpu": gpu.index, "device": gpu.name or "unknown", "gate_gpu": gates["gpu"].reason}
        measure("gpu.memory", gpu.memory_total_bytes / 2**30, "GiB", conditions=conditions)
    measure("gpu.count", len(inventory.gpus), "1", conditions={"driver": inventory.driver_version or "unknown"})
    measure("inventory.refused_questions", len(inventory.problems), "1", note="; ".join(inventory.problems))


@pytest.mark.requirement("ST-2")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.measures(f"prerequisite.{name}", gpus=..., subject=...))
        for name in ("driver", "cuda", "nccl", "compute_capability", "memory", "pcie")
    ],
)
def test_prerequisite(name: str, inventory: Inventory, measure: Measure) -> None:
    """1 says met, 0 not met; the target of the same name decides what that means."""
    judged = [one for one in judge_prerequisites(inventory) if one.name == name]
    assert judged
    if all(one.met is None for one in judged):
        pytest.skip(f"{name} is {judged[0].found}")
    for one in judged:
        assert one.met is not None, f"{one.subject}: {one.found}, though another GPU told it"
        conditions = {
            "subject": one.subject,
            "required": one.required,
            "found": one.found,
            "gpus": len(inventory.gpus),
        }
        measure(f"prerequisite.{name}", one.met, "1", conditions=conditions, note="" if one.met else one.cure)


@pytest.mark.measures("telemetry.samples")
@pytest.mark.requirement("RE-1")
def test_telemetry(inventory: Inventory, measure: Measure) -> None:
    with Telemetry(inventory.gpus[0].index, interval_s=0.02) as telemetry:
        take_inventory()
    summary = telemetry.summary()
    assert summary["available"] is True, summary.get("reason")
    assert int(summary["samples"]) >= 2
    assert "sm_clock_mhz_mean" in summary, summary.get("failures")
    measure("telemetry.samples", int(summary["samples"]), "1", telemetry=summary)


@pytest.mark.measures("topology.line_rate")
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
