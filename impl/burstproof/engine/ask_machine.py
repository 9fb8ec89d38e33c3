"""Queries of this machine: its cores, the CUDA driver and wgpu, but never NVML."""

from __future__ import annotations

import importlib.util
import os
from importlib import metadata

from burstproof.engine.machine import NO_CUDA_DEVICE, CudaDevice, CudaFacts, Machine, Obstacle, WgpuFacts

_INSTALL = (
    "Install the extra that fits the driver, in the folder of the clone: pip install '.[cuda12]' (drivers for CUDA 12, "
    "and compute capability 7.0) or '.[cuda13]'"
)


def this_machine() -> Machine:
    """This machine; creates no context on any device."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(cores, ask_cuda(), ask_wgpu())


def ask_wgpu() -> WgpuFacts:
    """The adapters that wgpu shows, if it is installed."""
    if not _importable("wgpu"):
        return WgpuFacts()
    from burstproof.engine.wgpu.adapters import list_adapters

    return list_adapters()


def ask_cuda() -> CudaFacts:
    """The devices that the CUDA driver shows, through cuda.core."""
    missing = [name for name in ("numba_cuda", "cuda.core", "cupy") if not _importable(name)]
    if missing:
        return CudaFacts(Obstacle(f"not installed: {', '.join(missing)}", _INSTALL))
    from cuda.core import Device

    tools = _tools_version()
    try:
        found = tuple(Device.get_all_devices())
        devices = tuple(_describe(number, device) for number, device in enumerate(found))
        return CudaFacts(None, devices, _driver_version(), tools)
    except Exception as error:  # the driver's answer, whatever its type, is the reason that is reported
        return CudaFacts(_driver_obstacle(error), tools_version=tools)


def _importable(name: str) -> bool:
    """Whether a package is installed, without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _describe(number: int, device: object) -> CudaDevice:
    """A cuda.core device as plain values."""
    capability = device.compute_capability  # type: ignore[attr-defined]
    name = str(device.name)  # type: ignore[attr-defined]
    return CudaDevice(number, name, (int(capability[0]), int(capability[1])), _memory_bytes(number))


def _memory_bytes(number: int) -> int:
    """Memory of a device, 0 if unknown; cuda.core has no query for it, so the driver bindings are used."""
    from cuda.bindings import driver

    status, handle = driver.cuDeviceGet(number)
    if int(status) != 0:
        return 0
    status, size = driver.cuDeviceTotalMem(handle)
    return int(size) if int(status) == 0 else 0


def _driver_version() -> tuple[int, int] | None:
    """Newest CUDA version that the driver supports (12080 is 12.8)."""
    from cuda.bindings import driver

    status, version = driver.cuDriverGetVersion()
    return (int(version) // 1000, int(version) % 1000 // 10) if int(status) == 0 else None


def _tools_version() -> tuple[int, int] | None:
    """CUDA version of the installed packages: cuda-bindings has the version of its toolkit."""
    try:
        major, minor = metadata.version("cuda-bindings").split(".")[:2]
    except metadata.PackageNotFoundError:
        return None
    return int(major), int(minor)


def _driver_obstacle(error: Exception) -> Obstacle:
    """Why a query of the driver failed."""
    text = " ".join(str(error).split()) or type(error).__name__
    if "NO_DEVICE" in text:
        return NO_CUDA_DEVICE
    if "DynamicLib" in type(error).__name__:
        return Obstacle("no NVIDIA driver on this machine", "Install the NVIDIA driver, or use --backend cpu")
    return Obstacle(f"the CUDA driver failed: {text}", "Check the driver's installation, or use --backend cpu")
