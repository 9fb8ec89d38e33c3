"""All access to NVML: a narrow protocol, its implementation over ``pynvml``, and typed errors that state the cure.

Nothing else in the repository imports ``pynvml`` (the module of the distribution ``nvidia-ml-py``). No call here
creates a CUDA context.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import ModuleType
from typing import Any, Protocol, TypeVar

from hardware.nvml_codes import (
    NVLINK_VERSIONS,
    Clock,
    MemoryBytes,
    NvLinkRemote,
    NvmlCode,
    NvmlError,
    NvmlUnavailableError,
    P2pCapability,
    P2pStatus,
    TopologyLevel,
)
from hardware.timed_calls import TimedCalls

CALL_LIMIT_S = 20.0
START_LIMIT_S = 90.0
"""``nvmlInit`` takes seconds for each GPU if no client keeps the driver loaded."""

NVLINK_MAX_LINKS = 36
"""Most links of a device (``NVML_NVLINK_MAX_LINKS``)."""

Value = TypeVar("Value")

_CALLS = TimedCalls(CALL_LIMIT_S)
"""Shared by the whole process: once a call hangs, the driver is not asked again."""


class Nvml(Protocol):
    """The calls to NVML that this repository needs; every method raises :class:`NvmlError` and nothing else.

    ``device`` is NVML's index (PCI bus order), which is CUDA's ordinal only under
    ``CUDA_DEVICE_ORDER=PCI_BUS_ID``.
    """

    def driver_version(self) -> str:
        """Version of the kernel driver, such as ``550.54.15``."""

    def cuda_driver_version(self) -> tuple[int, int]:
        """Newest CUDA version that the driver serves, as (major, minor)."""

    def device_count(self) -> int:
        """Number of GPUs that NVML lists."""

    def name(self, device: int) -> str:
        """Product name, such as ``NVIDIA H100 80GB HBM3``."""

    def uuid(self, device: int) -> str:
        """Permanent identity, ``GPU-...``."""

    def pci_bus_id(self, device: int) -> str:
        """PCI address, ``00000000:1B:00.0``."""

    def compute_capability(self, device: int) -> tuple[int, int]:
        """Compute capability as (major, minor)."""

    def core_count(self, device: int) -> int:
        """Number of FP32 cores."""

    def memory(self, device: int) -> MemoryBytes:
        """Device memory: total, free and used, in bytes."""

    def pcie_generation(self, device: int) -> int:
        """PCIe generation of the link now; idle GPUs lower it."""

    def pcie_max_generation(self, device: int) -> int:
        """Highest PCIe generation that GPU and slot allow together."""

    def pcie_width(self, device: int) -> int:
        """Lanes of the PCIe link now."""

    def mig_enabled(self, device: int) -> bool:
        """Whether Multi-Instance GPU mode is on."""

    def mig_instances(self, device: int) -> int:
        """Number of MIG devices that exist on the GPU."""

    def ecc_enabled(self, device: int) -> bool:
        """Whether ECC is on."""

    def ecc_errors(self, device: int, *, corrected: bool) -> int:
        """Errors since the driver was loaded."""

    def persistence(self, device: int) -> bool:
        """Whether the driver stays loaded without a client."""

    def power_limit_w(self, device: int) -> float:
        """Enforced power limit in watts."""

    def power_w(self, device: int) -> float:
        """Power drawn now, in watts."""

    def energy_j(self, device: int) -> float:
        """Energy drawn since the driver was loaded, in joules; from Volta on."""

    def temperature_c(self, device: int) -> int:
        """GPU temperature in degrees Celsius."""

    def clock_mhz(self, device: int, clock: Clock) -> int:
        """Clock now, in MHz."""

    def max_clock_mhz(self, device: int, clock: Clock) -> int:
        """Highest clock, in MHz."""

    def clock_reasons(self, device: int) -> int:
        """Bits that say why the clocks are where they are (:class:`hardware.nvml_codes.ClockReason`)."""

    def utilisation_percent(self, device: int) -> int:
        """Share of the last driver period in which a kernel ran."""

    def nvlink_active(self, device: int, link: int) -> bool:
        """Whether the link is up; INVALID_ARGUMENT or NOT_SUPPORTED past the last one."""

    def nvlink_version(self, device: int, link: int) -> str:
        """NVLink version of the link, such as ``4.0``."""

    def nvlink_remote(self, device: int, link: int) -> NvLinkRemote:
        """What sits at the other end of the link."""

    def nvlink_remote_bus_id(self, device: int, link: int) -> str:
        """PCI address of what sits at the other end of the link."""

    def p2p_status(self, device: int, peer: int, capability: P2pCapability) -> P2pStatus:
        """Whether ``device`` may do this to the memory of ``peer``."""

    def topology_level(self, device: int, peer: int) -> TopologyLevel:
        """Closest common ancestor of two devices in the PCIe tree."""


class PynvmlDoor:
    """:class:`Nvml` over an initialised ``pynvml`` module.

    Parameters
    ----------
    module : module
        The imported ``pynvml``. A function that an older version lacks raises FUNCTION_NOT_FOUND.
    calls : TimedCalls
        Makes the calls; one that does not return in time raises NO_ANSWER.
    """

    def __init__(self, module: ModuleType, calls: TimedCalls = _CALLS) -> None:
        self._module = module
        self._calls = calls
        self._handles: dict[int, object] = {}

    def _call(self, function: str, *arguments: object) -> Any:
        called = getattr(self._module, function, None)
        if called is None:
            raise NvmlError(function, NvmlCode.FUNCTION_NOT_FOUND)
        try:
            return self._calls.call(function, lambda: called(*arguments))
        except TimeoutError as error:
            raise NvmlError(function, NvmlCode.NO_ANSWER) from error
        except self._module.NVMLError as error:
            raise NvmlError(function, NvmlCode(error.value)) from error
        except UnicodeDecodeError as error:
            raise NvmlError(function, NvmlCode.UNKNOWN) from error

    def _ask(self, function: str, device: int, *arguments: object) -> Any:
        if device not in self._handles:
            self._handles[device] = self._call("nvmlDeviceGetHandleByIndex", device)
        return self._call(function, self._handles[device], *arguments)

    def _decoded(self, function: str, decode: Callable[[int], Value], code: int) -> Value:
        try:
            return decode(code)
        except (KeyError, ValueError) as error:
            raise NvmlError(f"{function} answered {code}", NvmlCode.UNKNOWN) from error

    def driver_version(self) -> str:
        """See :meth:`Nvml.driver_version`."""
        return str(self._call("nvmlSystemGetDriverVersion"))

    def cuda_driver_version(self) -> tuple[int, int]:
        """See :meth:`Nvml.cuda_driver_version`; NVML packs it as 1000 major + 10 minor."""
        packed = int(self._call("nvmlSystemGetCudaDriverVersion_v2"))
        return packed // 1000, packed % 1000 // 10

    def device_count(self) -> int:
        """See :meth:`Nvml.device_count`."""
        return int(self._call("nvmlDeviceGetCount"))

    def name(self, device: int) -> str:
        """See :meth:`Nvml.name`."""
        return str(self._ask("nvmlDeviceGetName", device))

    def uuid(self, device: int) -> str:
        """See :meth:`Nvml.uuid`."""
        return str(self._ask("nvmlDeviceGetUUID", device))

    def pci_bus_id(self, device: int) -> str:
        """See :meth:`Nvml.pci_bus_id`."""
        return _text(self._ask("nvmlDeviceGetPciInfo", device).busId)

    def compute_capability(self, device: int) -> tuple[int, int]:
        """See :meth:`Nvml.compute_capability`."""
        major, minor = self._ask("nvmlDeviceGetCudaComputeCapability", device)
        return int(major), int(minor)

    def core_count(self, device: int) -> int:
        """See :meth:`Nvml.core_count`."""
        return int(self._ask("nvmlDeviceGetNumGpuCores", device))

    def memory(self, device: int) -> MemoryBytes:
        """See :meth:`Nvml.memory`."""
        memory = self._ask("nvmlDeviceGetMemoryInfo", device)
        return MemoryBytes(total=int(memory.total), free=int(memory.free), used=int(memory.used))

    def pcie_generation(self, device: int) -> int:
        """See :meth:`Nvml.pcie_generation`."""
        return int(self._ask("nvmlDeviceGetCurrPcieLinkGeneration", device))

    def pcie_max_generation(self, device: int) -> int:
        """See :meth:`Nvml.pcie_max_generation`."""
        return int(self._ask("nvmlDeviceGetMaxPcieLinkGeneration", device))

    def pcie_width(self, device: int) -> int:
        """See :meth:`Nvml.pcie_width`."""
        return int(self._ask("nvmlDeviceGetCurrPcieLinkWidth", device))

    def mig_enabled(self, device: int) -> bool:
        """See :meth:`Nvml.mig_enabled`."""
        current, _pending = self._ask("nvmlDeviceGetMigMode", device)
        return bool(current)

    def mig_instances(self, device: int) -> int:
        """See :meth:`Nvml.mig_instances`; NVML numbers the slots and answers NOT_FOUND for empty ones."""
        slots = int(self._ask("nvmlDeviceGetMaxMigDeviceCount", device))
        return sum(self._mig_slot_taken(device, slot) for slot in range(slots))

    def _mig_slot_taken(self, device: int, slot: int) -> bool:
        try:
            self._ask("nvmlDeviceGetMigDeviceHandleByIndex", device, slot)
        except NvmlError as error:
            if error.code in (NvmlCode.NOT_FOUND, NvmlCode.INVALID_ARGUMENT):
                return False
            raise
        return True

    def ecc_enabled(self, device: int) -> bool:
        """See :meth:`Nvml.ecc_enabled`."""
        current, _pending = self._ask("nvmlDeviceGetEccMode", device)
        return bool(current)

    def ecc_errors(self, device: int, *, corrected: bool) -> int:
        """See :meth:`Nvml.ecc_errors`."""
        kind, volatile = (0 if corrected else 1), 0
        return int(self._ask("nvmlDeviceGetTotalEccErrors", device, kind, volatile))

    def persistence(self, device: int) -> bool:
        """See :meth:`Nvml.persistence`."""
        return bool(self._ask("nvmlDeviceGetPersistenceMode", device))

    def power_limit_w(self, device: int) -> float:
        """See :meth:`Nvml.power_limit_w`; NVML speaks milliwatts."""
        return int(self._ask("nvmlDeviceGetEnforcedPowerLimit", device)) / 1000

    def power_w(self, device: int) -> float:
        """See :meth:`Nvml.power_w`; NVML speaks milliwatts."""
        return int(self._ask("nvmlDeviceGetPowerUsage", device)) / 1000

    def energy_j(self, device: int) -> float:
        """See :meth:`Nvml.energy_j`; NVML speaks millijoules."""
        return int(self._ask("nvmlDeviceGetTotalEnergyConsumption", device)) / 1000

    def temperature_c(self, device: int) -> int:
        """See :meth:`Nvml.temperature_c`; sensor 0 is the GPU die."""
        return int(self._ask("nvmlDeviceGetTemperature", device, 0))

    def clock_mhz(self, device: int, clock: Clock) -> int:
        """See :meth:`Nvml.clock_mhz`."""
        return int(self._ask("nvmlDeviceGetClockInfo", device, clock.value))

    def max_clock_mhz(self, device: int, clock: Clock) -> int:
        """See :meth:`Nvml.max_clock_mhz`."""
        return int(self._ask("nvmlDeviceGetMaxClockInfo", device, clock.value))

    def clock_reasons(self, device: int) -> int:
        """See :meth:`Nvml.clock_reasons`; drivers before R535 know the call by its older name."""
        try:
            return int(self._ask("nvmlDeviceGetCurrentClocksEventReasons", device))
        except NvmlError as error:
            if error.code is not NvmlCode.FUNCTION_NOT_FOUND:
                raise
            return int(self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", device))

    def utilisation_percent(self, device: int) -> int:
        """See :meth:`Nvml.utilisation_percent`."""
        return int(self._ask("nvmlDeviceGetUtilizationRates", device).gpu)

    def nvlink_active(self, device: int, link: int) -> bool:
        """See :meth:`Nvml.nvlink_active`."""
        return bool(self._ask("nvmlDeviceGetNvLinkState", device, link))

    def nvlink_version(self, device: int, link: int) -> str:
        """See :meth:`Nvml.nvlink_version`; NVML answers a code of its own (6 means 4.0)."""
        function = "nvmlDeviceGetNvLinkVersion"
        return self._decoded(function, NVLINK_VERSIONS.__getitem__, int(self._ask(function, device, link)))

    def nvlink_remote(self, device: int, link: int) -> NvLinkRemote:
        """See :meth:`Nvml.nvlink_remote`."""
        function = "nvmlDeviceGetNvLinkRemoteDeviceType"
        return self._decoded(function, NvLinkRemote, int(self._ask(function, device, link)))

    def nvlink_remote_bus_id(self, device: int, link: int) -> str:
        """See :meth:`Nvml.nvlink_remote_bus_id`."""
        return _text(self._ask("nvmlDeviceGetNvLinkRemotePciInfo", device, link).busId)

    def p2p_status(self, device: int, peer: int, capability: P2pCapability) -> P2pStatus:
        """See :meth:`Nvml.p2p_status`; pynvml's constant for READ is a tuple by mistake."""
        function = "nvmlDeviceGetP2PStatus"
        return self._decoded(function, P2pStatus, int(self._pair(function, device, peer, capability.value)))

    def topology_level(self, device: int, peer: int) -> TopologyLevel:
        """See :meth:`Nvml.topology_level`."""
        function = "nvmlDeviceGetTopologyCommonAncestor"
        return self._decoded(function, TopologyLevel, int(self._pair(function, device, peer)))

    def _pair(self, function: str, device: int, peer: int, *arguments: object) -> Any:
        if peer not in self._handles:
            self._handles[peer] = self._call("nvmlDeviceGetHandleByIndex", peer)
        return self._ask(function, device, self._handles[peer], *arguments)


OpenNvml = Callable[[], AbstractContextManager[Nvml]]
"""Opens NVML: :func:`open_nvml`, or the ``open`` of a fake machine."""


@contextmanager
def open_nvml(calls: TimedCalls = _CALLS) -> Iterator[Nvml]:
    """Initialise NVML for the length of a ``with`` block.

    Parameters
    ----------
    calls : TimedCalls, optional
        Makes the calls.

    Yields
    ------
    Nvml
        The open door.

    Raises
    ------
    NvmlUnavailableError
        When ``nvidia-ml-py`` is not installed, the driver's library is missing, or it refuses to start or does
        not answer; the error names which, and the cure.
    """
    try:
        module = importlib.import_module("pynvml")
    except ImportError as error:
        raise NvmlUnavailableError("import pynvml", NvmlCode.PYTHON_PACKAGE_MISSING) from error
    try:
        calls.call("nvmlInit", lambda: module.nvmlInit(), START_LIMIT_S)
    except TimeoutError as error:
        raise NvmlUnavailableError("nvmlInit", NvmlCode.NO_ANSWER) from error
    except module.NVMLError as error:
        raise NvmlUnavailableError("nvmlInit", NvmlCode(error.value)) from error
    try:
        yield PynvmlDoor(module, calls)
    finally:
        # If the driver went away, the shutdown fails, too; an error of the block itself matters more.
        with suppress(module.NVMLError, TimeoutError):
            calls.call("nvmlShutdown", lambda: module.nvmlShutdown())


def _text(value: bytes | str) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
