"""Gates: what a stage needs from the hardware, open, or closed with a reason that states the cure.

A gate is a fact about the machine. No CUDA context is created to evaluate one.
"""

from __future__ import annotations

from dataclasses import dataclass

from hardware.inventory import Gpu, Inventory
from hardware.prerequisites import MIN_COMPUTE_CAPABILITY, MIN_DRIVER, driver_is_enough

GATE_NAMES = ("none", "nvml", "gpu", "multi_gpu")
_CUDA_13_LEAST_CAPABILITY = (7, 5)


@dataclass(frozen=True)
class Gate:
    """One gate; ``reason`` says why it is open, or what is missing and the cure."""

    name: str
    is_open: bool
    reason: str


def evaluate_gates(inventory: Inventory) -> dict[str, Gate]:
    """Evaluate every gate of the test plan.

    Returns
    -------
    dict of str to Gate
        ``none`` (always open), ``nvml`` (NVML answers and lists a GPU), ``gpu`` (a GPU that the CUDA engine can
        use, driver and Python packages included), ``multi_gpu`` (two such GPUs that reach each other's memory).
    """
    gpu = _gpu_gate(inventory)
    gates = (Gate("none", True, "Needs nothing from the hardware."), _nvml_gate(inventory), gpu)
    return {gate.name: gate for gate in (*gates, _multi_gpu_gate(inventory, gpu))}


def usable_gpus(inventory: Inventory) -> tuple[Gpu, ...]:
    """The GPUs that CUDA code can run on here, in NVML's order."""
    return tuple(gpu for gpu in inventory.gpus if _objection(gpu, inventory) is None)


def peer_group(inventory: Inventory) -> tuple[int, ...]:
    """The largest group found of usable GPUs that all reach each other's memory (NVML indices, ascending).

    A GPU cut into MIG slices has no peers. Grown greedily from each GPU in turn.
    """
    whole = [gpu.index for gpu in usable_gpus(inventory) if not gpu.mig_enabled]
    pairs = {(link.a, link.b) for link in inventory.links if link.peer_access}
    best: tuple[int, ...] = ()
    for first in whole:
        group = [first]
        for other in whole:
            if other != first and all((min(other, one), max(other, one)) in pairs for one in group):
                group.append(other)
        best = max(best, tuple(sorted(group)), key=len)
    return best


def visible_indices(inventory: Inventory) -> tuple[int, ...]:
    """NVML indices of the GPUs that ``CUDA_VISIBLE_DEVICES`` leaves to CUDA.

    Numbers are taken as NVML indices, which holds for equal GPUs or under ``CUDA_DEVICE_ORDER=PCI_BUS_ID``. As in
    CUDA, the list ends at the first entry that names no device.
    """
    wanted = inventory.host.visible_devices
    if wanted is None:
        return tuple(gpu.index for gpu in inventory.gpus)
    found: list[int] = []
    for entry in (part.strip() for part in wanted.split(",")):
        named = [gpu.index for gpu in inventory.gpus if _is_named(gpu, entry)]
        if not named:
            break
        found.extend(index for index in named if index not in found)
    return tuple(found)


def _is_named(gpu: Gpu, entry: str) -> bool:
    if entry.startswith("MIG-"):
        return bool(gpu.mig_enabled)
    if entry.startswith("GPU-"):
        return gpu.uuid is not None and gpu.uuid.startswith(entry)
    return entry.isdecimal() and int(entry) == gpu.index


def _nvml_gate(inventory: Inventory) -> Gate:
    if inventory.problem is not None:
        return Gate("nvml", False, inventory.problem)
    if not inventory.gpus:
        return Gate("nvml", False, "NVML answers but lists no GPU: give the container or user access to one.")
    return Gate("nvml", True, f"NVML answers and lists {_count(len(inventory.gpus))}.")


def _gpu_gate(inventory: Inventory) -> Gate:
    nvml = _nvml_gate(inventory)
    if not nvml.is_open:
        return Gate("gpu", False, nvml.reason)
    obstacle = _driver_obstacle(inventory) or _device_obstacle(inventory) or _stack_obstacle(inventory)
    if obstacle is not None:
        return Gate("gpu", False, obstacle)
    usable = usable_gpus(inventory)
    refused = len(inventory.gpus) - len(usable)
    rest = f"; {_count(refused)} cannot be used" if refused else ""
    return Gate("gpu", True, f"{_count(len(usable))}, first {_described(usable[0])}{rest}.")


def _multi_gpu_gate(inventory: Inventory, gpu: Gate) -> Gate:
    if not gpu.is_open:
        return Gate("multi_gpu", False, gpu.reason)
    group = peer_group(inventory)
    if len(group) >= 2:
        return Gate("multi_gpu", True, f"GPUs {_listed(group)} reach each other's memory.")
    usable = usable_gpus(inventory)
    if len(usable) < 2:
        return Gate("multi_gpu", False, "Only one usable GPU is here: run on a machine with two or more.")
    if any(one.mig_enabled for one in usable):
        reason = "MIG slices have no peer access: turn MIG off (nvidia-smi -mig 0) on two or more GPUs."
        return Gate("multi_gpu", False, reason)
    states = sorted({link.read or "unknown" for link in inventory.links if not link.peer_access})
    reason = (
        f"No two of the {len(usable)} usable GPUs reach each other's memory (NVML says: {_listed(states)}): "
        "check NVLink, the fabric manager and the IOMMU settings, or use GPUs that support peer access."
    )
    return Gate("multi_gpu", False, reason)


def _driver_obstacle(inventory: Inventory) -> str | None:
    if inventory.driver_version is None:
        return "NVML did not say the driver's version: check that nvidia-smi works, else reinstall the driver."
    if driver_is_enough(inventory) is False:
        least = MIN_DRIVER[inventory.host.os]
        return (
            f"The driver {inventory.driver_version} is older than {least}: "
            f"install an NVIDIA driver of version {least} or newer."
        )
    major, served = inventory.stack.cuda_major, inventory.cuda_driver_version
    if major is not None and served is not None and served[0] < major:
        return (
            f"The driver {inventory.driver_version} serves CUDA {served[0]}.{served[1]}, but the installed packages "
            f"are for CUDA {major}: install a newer driver, or the extra for the driver's CUDA version."
        )
    return None


def _device_obstacle(inventory: Inventory) -> str | None:
    if usable_gpus(inventory):
        return None
    objections = [_objection(gpu, inventory) for gpu in inventory.gpus]
    others = f"None of the {_count(len(objections))} is usable; " if len(objections) > 1 else ""
    return f"{others}{objections[0]}"


def _stack_obstacle(inventory: Inventory) -> str | None:
    missing = inventory.stack.missing
    if not missing:
        return None
    served = inventory.cuda_driver_version
    extra = "cuda13" if served is not None and served[0] >= 13 else "cuda12"
    return f"The Python package {_listed(missing)} is not installed: pip install '.[{extra}]' in the clone."


def _objection(gpu: Gpu, inventory: Inventory) -> str | None:
    """Why CUDA code cannot run on this GPU, with the cure; ``None`` if it can."""
    label = f"GPU {gpu.index} ({gpu.name or 'name unknown'})"
    capability = gpu.compute_capability
    if gpu.index not in visible_indices(inventory):
        shown = inventory.host.visible_devices
        return f"{label} is hidden by CUDA_VISIBLE_DEVICES={shown!r}: unset the variable or name the GPU in it."
    if capability is None:
        return f"{label} did not say its compute capability: check the kernel log for Xid messages and reboot."
    if capability < MIN_COMPUTE_CAPABILITY:
        return f"{label} has compute capability {_dotted(capability)}, below 7.0: use a Volta GPU (V100) or newer."
    if inventory.stack.cuda_major == 13 and capability < _CUDA_13_LEAST_CAPABILITY:
        return (
            f"{label} has compute capability {_dotted(capability)}, which CUDA 13 dropped: "
            "pip install '.[cuda12]' in the clone."
        )
    if gpu.mig_enabled and not gpu.mig_instances:
        return (
            f"{label} has MIG on but no MIG device: create one (nvidia-smi mig -cgi PROFILE -C) or turn MIG off "
            "(nvidia-smi -mig 0)."
        )
    return None


def _described(gpu: Gpu) -> str:
    capability = gpu.compute_capability
    mig = {True: f"on with {gpu.mig_instances} slices", False: "off", None: "unknown"}[gpu.mig_enabled]
    shown = _dotted(capability) if capability else "unknown"
    return f"{gpu.name or 'of unknown name'} (capability {shown}, MIG {mig})"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _count(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"


def _listed(items: tuple[int, ...] | tuple[str, ...] | list[str]) -> str:
    return ", ".join(str(item) for item in items)
