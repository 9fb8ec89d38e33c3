"""Opens a device: through CuPy, or in the CUDA simulator if that is enabled."""

from __future__ import annotations

from burstproof.device.protocol import DeviceRuntime


def open_device(device_id: int = 0) -> DeviceRuntime:
    """The runtime of device ``device_id``, or of the simulator if that is enabled.

    Raises
    ------
    BackendUnavailableError
        No driver, no such device, or a missing package.
    """
    from burstproof.device.numba_cuda import SIMULATED

    if SIMULATED:
        from burstproof.device.simulator import SimulatorRuntime

        return SimulatorRuntime()
    from burstproof.device.cupy_runtime import CupyRuntime

    return CupyRuntime.open(device_id)
