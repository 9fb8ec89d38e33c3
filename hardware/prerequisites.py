"""The prerequisites of the deployment notes, each checked against an inventory."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hardware.inventory import Gpu, Inventory

SOURCE = "CUDA deployment guide, prerequisites (requirement ST-2)"

MIN_COMPUTE_CAPABILITY = (7, 0)
MIN_MEMORY_BYTES = 8 * 10**9
MIN_DRIVER = {"Linux": "520.61.05", "Windows": "527.41"}
MIN_CUDA = (11, 8)
MIN_NCCL = "2.16"
MIN_PCIE_GENERATION = 3
MIN_PCIE_WIDTH = 16


@dataclass(frozen=True)
class Prerequisite:
    """One prerequisite and what this machine has for it.

    Attributes
    ----------
    name : str
        ``compute_capability``, ``memory``, ``driver``, ``cuda``, ``nccl`` or ``pcie``.
    subject : str
        ``machine`` or ``GPU 0``.
    required, found : str
        What the notes ask for, and what is there, or why that cannot be determined.
    met : bool or None
        ``None`` if it cannot be determined.
    cure : str
        What to do when it is not met.
    source : str
        Where the requirement comes from.
    """

    name: str
    subject: str
    required: str
    found: str
    met: bool | None
    cure: str
    source: str = SOURCE


def version_key(version: str) -> tuple[int, ...]:
    """A dotted version as numbers that compare (``520.61.05`` is (520, 61, 5))."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def driver_is_enough(inventory: Inventory) -> bool | None:
    """Whether the driver is at least the one that the notes ask for on this system; ``None``: not determinable."""
    least = MIN_DRIVER.get(inventory.host.os)
    if least is None or inventory.driver_version is None:
        return None
    return version_key(inventory.driver_version) >= version_key(least)


def judge_prerequisites(inventory: Inventory) -> tuple[Prerequisite, ...]:
    """Judge every prerequisite: three of the machine (driver, CUDA, NCCL), then three of each GPU.

    Without a GPU the three of a GPU are there once, undetermined.
    """
    machine = (_driver(inventory), _cuda(inventory), _nccl(inventory))
    per_gpu = (_capability, _memory, _pcie)
    if not inventory.gpus:
        unknown = Gpu(index=-1)
        why = _unknown(inventory, "GPUs")
        return machine + tuple(_unheard(judge(unknown), why) for judge in per_gpu)
    return machine + tuple(judge(gpu) for gpu in inventory.gpus for judge in per_gpu)


def _unheard(prerequisite: Prerequisite, why: str) -> Prerequisite:
    return Prerequisite(prerequisite.name, "machine", prerequisite.required, why, None, prerequisite.cure)


def _unknown(inventory: Inventory, what: str) -> str:
    if inventory.problem is not None:
        return "not determinable: NVML gives no answer here (the gate nvml says why)"
    return f"not determinable: NVML did not say the {what}"


def _driver(inventory: Inventory) -> Prerequisite:
    system = inventory.host.os
    least = MIN_DRIVER.get(system)
    found = inventory.driver_version
    if least is None:
        found = f"not determinable: the notes name no driver for {system}"
    return Prerequisite(
        "driver",
        "machine",
        ", ".join(f">= {version} ({name})" for name, version in MIN_DRIVER.items()),
        found or _unknown(inventory, "driver version"),
        driver_is_enough(inventory),
        f"Install an NVIDIA driver of version {least or MIN_DRIVER['Linux']} or newer",
    )


def _cuda(inventory: Inventory) -> Prerequisite:
    version = inventory.cuda_driver_version
    return Prerequisite(
        "cuda",
        "machine",
        f">= {MIN_CUDA[0]}.{MIN_CUDA[1]}",
        f"{version[0]}.{version[1]}" if version else _unknown(inventory, "CUDA version"),
        version >= MIN_CUDA if version else None,
        "Install a driver that serves CUDA 11.8 or newer",
    )


def _nccl(inventory: Inventory) -> Prerequisite:
    version = inventory.nccl_version
    return Prerequisite(
        "nccl",
        "machine",
        f">= {MIN_NCCL} for collectives",
        version or "not installed",
        version is not None and version_key(version) >= version_key(MIN_NCCL),
        "Install nvidia-nccl-cu12 or nvidia-nccl-cu13, matching the CUDA extra (only collectives need it)",
    )


def _of_gpu(
    gpu: Gpu, name: str, required: str, found: str | None, judge: Callable[[], bool], cure: str
) -> Prerequisite:
    if found is None:
        return Prerequisite(
            name, f"GPU {gpu.index}", required, f"not determinable: NVML did not say its {name}", None, cure
        )
    return Prerequisite(name, f"GPU {gpu.index}", required, found, judge(), cure)


def _capability(gpu: Gpu) -> Prerequisite:
    capability = gpu.compute_capability
    return _of_gpu(
        gpu,
        "compute_capability",
        f">= {MIN_COMPUTE_CAPABILITY[0]}.{MIN_COMPUTE_CAPABILITY[1]}",
        f"{capability[0]}.{capability[1]}" if capability else None,
        lambda: capability is not None and capability >= MIN_COMPUTE_CAPABILITY,
        "Use a Volta GPU (V100) or newer; hide older ones with CUDA_VISIBLE_DEVICES",
    )


def _memory(gpu: Gpu) -> Prerequisite:
    total = gpu.memory_total_bytes
    return _of_gpu(
        gpu,
        "memory",
        ">= 8 GB",
        f"{total / 1e9:.1f} GB" if total is not None else None,
        lambda: total is not None and total >= MIN_MEMORY_BYTES,
        "Use a GPU with at least 8 GB, or smaller networks",
    )


def _pcie(gpu: Gpu) -> Prerequisite:
    """Judged by the highest generation that GPU and slot allow: an idle link runs slower to save power."""
    highest, now, width = gpu.pcie_max_generation, gpu.pcie_generation, gpu.pcie_width
    known = highest is not None and width is not None
    return _of_gpu(
        gpu,
        "pcie",
        f"PCIe {MIN_PCIE_GENERATION}.0 x{MIN_PCIE_WIDTH}",
        f"up to PCIe {highest}.0 x{width} (generation {now} at the moment)" if known else None,
        lambda: (highest or 0) >= MIN_PCIE_GENERATION and (width or 0) >= MIN_PCIE_WIDTH,
        "Put the GPU into a x16 slot of generation 3 or newer",
    )
