"""Several devices in one process: the current device, peer access, and whether NCCL can be used."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from burstproof.device.nccl_library import nccl_library
from burstproof.device.open import open_device
from burstproof.device.protocol import DeviceBuffer, DeviceRuntime


class _Thread(threading.local):
    """The device that this thread last made current, for CuPy and numba."""

    ordinal = -1


_THREAD = _Thread()


def make_current(runtime: DeviceRuntime) -> None:
    """Make the device of ``runtime`` current for CuPy and numba; the simulator has only one.

    Costs little if it is current already; to select it again would take longer than a short copy.
    """
    if runtime.simulated:
        return
    import cupy

    ordinal = device_of(runtime)
    if _THREAD.ordinal == ordinal == cupy.cuda.runtime.getDevice():
        return
    from burstproof.device.numba_cuda import cuda

    cupy.cuda.Device(ordinal).use()
    cuda.select_device(ordinal)
    _THREAD.ordinal = ordinal


def device_of(runtime: DeviceRuntime) -> int:
    """Ordinal of the device of ``runtime``; 0 in the simulator."""
    return int(getattr(runtime, "device_id", 0))


def device_count() -> int:
    """Number of CUDA devices; 1 in the simulator.

    Raises
    ------
    BackendUnavailableError
        No driver, no device, or a missing package.
    """
    runtime = open_device(0)
    if runtime.simulated:
        return 1
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())


def address_of(buffer: DeviceBuffer) -> int:
    """Address of the first element of ``buffer``."""
    return int(buffer.array.data.ptr)


def make_peers(runtimes: Sequence[DeviceRuntime]) -> bool:
    """Enable peer access between all devices; ``False`` if some pair does not support it."""
    ordinals = sorted({device_of(runtime) for runtime in runtimes})
    if len(ordinals) < 2:
        return True
    import cupy

    driver = cupy.cuda.runtime
    pairs = [(a, b) for a in ordinals for b in ordinals if a != b]
    if not all(driver.deviceCanAccessPeer(a, b) for a, b in pairs):
        return False
    for a, b in pairs:
        with cupy.cuda.Device(a):
            _enable(driver, b)
    return True


def _enable(driver: Any, peer: int) -> None:
    """Enable access from the current device to ``peer``; no error if it is enabled already."""
    try:
        driver.deviceEnablePeerAccess(peer)
    except driver.CUDARuntimeError as error:
        if "AlreadyEnabled" not in str(error):
            raise


def nccl_obstacle(runtimes: Sequence[DeviceRuntime]) -> str | None:
    """Why NCCL cannot be used between the devices of ``runtimes``; ``None`` if it can."""
    if any(runtime.simulated for runtime in runtimes):
        return "the CUDA simulator has no NCCL"
    if len({device_of(runtime) for runtime in runtimes}) < len(runtimes):
        return "NCCL takes one shard per device"
    if nccl_library() is None:
        return "the library NCCL is not installed (package nvidia-nccl-cu13 or nvidia-nccl-cu12)"
    return None
