"""The inventory, gates, prerequisites and topology as text for a terminal, or as one JSON object."""

from __future__ import annotations

from dataclasses import asdict

from hardware.gates import Gate, evaluate_gates
from hardware.inventory import Gpu, Inventory
from hardware.prerequisites import Prerequisite, judge_prerequisites
from hardware.topology import Path, Topology, topology_of

_MARK = {True: "met", False: "NOT MET", None: "unknown"}


def to_json(inventory: Inventory) -> dict[str, object]:
    """Everything that ``python -m hardware --json`` prints."""
    return {
        "inventory": inventory.to_dict(),
        "gates": {name: asdict(gate) for name, gate in evaluate_gates(inventory).items()},
        "prerequisites": [asdict(one) for one in judge_prerequisites(inventory)],
    }


def to_text(inventory: Inventory) -> str:
    """Everything that ``python -m hardware`` prints."""
    sections = (
        _host_lines(inventory),
        _gpu_lines(inventory),
        _topology_lines(topology_of(inventory)),
        _gate_lines(evaluate_gates(inventory)),
        _prerequisite_lines(judge_prerequisites(inventory)),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _host_lines(inventory: Inventory) -> list[str]:
    host = inventory.host
    memory = f"{host.memory_bytes / 2**30:.1f} GiB" if host.memory_bytes else "unknown memory"
    lines = [
        f"Host: {host.cpu}, {host.usable_cores} of {host.cores} cores, {memory}",
        f"      {host.os} {host.os_release}, Python {host.python}, container: {host.container or 'no'}",
    ]
    missing = inventory.stack.missing
    lines.append(f"CUDA packages: {'all there' if not missing else 'missing ' + ', '.join(missing)}")
    lines.append(f"NCCL: {inventory.nccl_version or 'not installed'}")
    return lines


def _gpu_lines(inventory: Inventory) -> list[str]:
    if not inventory.gpus:
        return [f"GPUs: none. {inventory.problem or 'NVML lists no GPU.'}"]
    cuda = inventory.cuda_driver_version
    served = f"{cuda[0]}.{cuda[1]}" if cuda else "unknown"
    lines = [f"Driver {inventory.driver_version or 'unknown'}, CUDA {served}"]
    lines += [_gpu_line(gpu) for gpu in inventory.gpus]
    lines += [f"Failed half-way: {problem}" for problem in inventory.problems]
    return lines


def _gpu_line(gpu: Gpu) -> str:
    capability = ".".join(str(part) for part in gpu.compute_capability) if gpu.compute_capability else "?"
    memory = f"{gpu.memory_total_bytes / 2**30:.1f} GiB" if gpu.memory_total_bytes else "? GiB"
    states = {True: "on", False: "off", None: "unknown"}
    return (
        f"GPU {gpu.index}: {gpu.name or 'name unknown'}, capability {capability}, {memory}, "
        f"{gpu.sm_count or '?'} SMs, PCIe {gpu.pcie_max_generation or '?'}.0 x{gpu.pcie_width or '?'}, "
        f"{len(gpu.nvlinks)} NVLinks, MIG {states[gpu.mig_enabled]}, ECC {states[gpu.ecc]}, "
        f"limit {gpu.power_limit_w or '?'} W"
    )


def _topology_lines(topology: Topology) -> list[str]:
    if len(topology.indices) < 2:
        return []
    lines = ["Links (path, line rate in one direction):"]
    for row, a in enumerate(topology.indices):
        for column in range(row + 1, len(topology.indices)):
            path, rate = topology.paths[row][column], topology.line_rates_gb_per_s[row][column]
            count = f" x{topology.nvlinks[row][column]}" if path is Path.NVLINK else ""
            speed = f"{rate:.0f} GB/s" if rate is not None else "rate unknown"
            lines.append(f"  GPU {a} - GPU {topology.indices[column]}: {path.value}{count}, {speed}")
    return lines


def _gate_lines(gates: dict[str, Gate]) -> list[str]:
    return ["Gates:"] + [
        f"  {gate.name:<10} {'open' if gate.is_open else 'CLOSED':<7} {gate.reason}" for gate in gates.values()
    ]


def _prerequisite_lines(prerequisites: tuple[Prerequisite, ...]) -> list[str]:
    lines = ["Prerequisites:"]
    for one in prerequisites:
        lines.append(
            f"  {one.subject:<8} {one.name:<19} {_MARK[one.met]:<8} requires {one.required}; found {one.found}"
        )
        if one.met is False:
            lines.append(f"{'':<30} {one.cure}")
    return lines
