"""NVML's codes and their text: errors with their cures, link versions, peer states, clock reasons.

Source of the numbers: the NVML API reference (``nvml.h``).
"""

from __future__ import annotations

from enum import Enum, IntEnum, IntFlag
from typing import NamedTuple

from burstproof.errors import EnvironmentInvalidError


class NvmlCode(IntEnum):
    """Why a call failed: ``nvmlReturn_t``, plus codes of our own: no Python package, no answer in time."""

    NO_ANSWER = -2
    PYTHON_PACKAGE_MISSING = -1
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    ALREADY_INITIALIZED = 5
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    INSUFFICIENT_POWER = 8
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    IRQ_ISSUE = 11
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    CORRUPTED_INFOROM = 14
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    IN_USE = 19
    MEMORY = 20
    NO_DATA = 21
    VGPU_ECC_NOT_SUPPORTED = 22
    INSUFFICIENT_RESOURCES = 23
    FREQ_NOT_SUPPORTED = 24
    ARGUMENT_VERSION_MISMATCH = 25
    DEPRECATED = 26
    NOT_READY = 27
    GPU_NOT_FOUND = 28
    INVALID_STATE = 29
    RESET_TYPE_NOT_SUPPORTED = 30
    UNKNOWN = 999

    @classmethod
    def _missing_(cls, value: object) -> NvmlCode:
        return cls.UNKNOWN

    @property
    def words(self) -> str:
        """The code as a clause for a sentence."""
        return _WORDS.get(self, self.name.lower().replace("_", " "))

    @property
    def means_absent(self) -> bool:
        """Whether device or driver lack the feature; otherwise something failed."""
        return self in (NvmlCode.NOT_SUPPORTED, NvmlCode.FUNCTION_NOT_FOUND)


_WORDS = {
    NvmlCode.PYTHON_PACKAGE_MISSING: "the Python package nvidia-ml-py is not installed",
    NvmlCode.NO_ANSWER: "NVML does not answer: a call did not return within its time limit",
    NvmlCode.LIBRARY_NOT_FOUND: "the NVIDIA driver's NVML library is not on this machine",
    NvmlCode.DRIVER_NOT_LOADED: "the NVIDIA kernel driver is not loaded",
    NvmlCode.LIB_RM_VERSION_MISMATCH: "the driver's library and its kernel module have different versions",
    NvmlCode.NO_PERMISSION: "this user may not ask NVML",
    NvmlCode.GPU_IS_LOST: "the GPU fell off the bus",
    NvmlCode.RESET_REQUIRED: "the GPU needs a reset",
    NvmlCode.FUNCTION_NOT_FOUND: "the installed driver does not know this call",
    NvmlCode.UNKNOWN: "an internal driver error",
}

_CURES = {
    NvmlCode.PYTHON_PACKAGE_MISSING: "Install nvidia-ml-py (the extras cuda12, cuda13 and test contain it)",
    NvmlCode.LIBRARY_NOT_FOUND: (
        "Install the NVIDIA driver, or start the container with GPU access, or run only the GPU-free stages"
    ),
    NvmlCode.NO_ANSWER: "Look for Xid messages in the kernel log, then reset the GPU or reboot",
    NvmlCode.DRIVER_NOT_LOADED: "Load the kernel module (modprobe nvidia), or reboot",
    NvmlCode.LIB_RM_VERSION_MISMATCH: "Reboot, so that the new driver's kernel module is loaded",
    NvmlCode.NO_PERMISSION: "Give this user access to the /dev/nvidia* devices",
    NvmlCode.GPU_IS_LOST: "Look for Xid messages in the kernel log and power-cycle the machine",
    NvmlCode.RESET_REQUIRED: "Reset the GPU (nvidia-smi --gpu-reset) or reboot",
    NvmlCode.FUNCTION_NOT_FOUND: "Install a newer NVIDIA driver",
}

_DEFAULT_CURE = "Check that nvidia-smi works on this machine, and if it fails too, reinstall the driver or reboot"


class NvmlError(EnvironmentInvalidError):
    """One NVML call that failed.

    Parameters
    ----------
    call : str
        The NVML function.
    code : NvmlCode
        Why; its words and cure become the message.
    """

    def __init__(self, call: str, code: NvmlCode) -> None:
        self.call = call
        self.code = code
        self.reason = code.words
        super().__init__(code.words, where=call, cure=_CURES.get(code, _DEFAULT_CURE))

    @property
    def sentence(self) -> str:
        """Reason and cure as one sentence, without the function's name."""
        cure = self.cure or _DEFAULT_CURE
        return f"{self.reason[0].upper()}{self.reason[1:]}: {cure[0].lower()}{cure[1:]}."


class NvmlUnavailableError(NvmlError):
    """NVML cannot be opened at all on this machine."""


class MemoryBytes(NamedTuple):
    """Device memory in bytes; ``used`` includes what the driver reserves."""

    total: int
    free: int
    used: int


class Clock(Enum):
    """Clock domains that matter to a measurement."""

    SM = 1
    MEMORY = 2


class P2pCapability(Enum):
    """What one GPU may do to another's memory."""

    READ = 0
    WRITE = 1
    NVLINK = 2
    ATOMICS = 3


class P2pStatus(Enum):
    """NVML's answer about one peer capability."""

    OK = 0
    CHIPSET_NOT_SUPPORTED = 1
    GPU_NOT_SUPPORTED = 2
    TOPOLOGY_NOT_SUPPORTED = 3
    DISABLED_BY_REGKEY = 4
    NOT_SUPPORTED = 5
    UNKNOWN = 6

    @property
    def words(self) -> str:
        """The status as a word or two."""
        return self.name.lower().replace("_", " ")


class TopologyLevel(Enum):
    """Closest common ancestor of two GPUs in the PCIe tree, nearest first."""

    INTERNAL = 0
    SINGLE_SWITCH = 10
    MULTIPLE_SWITCHES = 20
    HOST_BRIDGE = 30
    NUMA_NODE = 40
    SYSTEM = 50

    @property
    def words(self) -> str:
        """The level as words."""
        return self.name.lower().replace("_", " ")


class NvLinkRemote(Enum):
    """What sits at the other end of an NVLink."""

    GPU = 0x00
    IBM_NPU = 0x01
    SWITCH = 0x02
    UNKNOWN = 0xFF


NVLINK_VERSIONS = {
    1: "1.0",
    2: "2.0",
    3: "2.2",
    4: "3.0",
    5: "3.1",
    6: "4.0",
    7: "5.0",
    8: "6.0",
}
"""NVML's version codes (``NVML_NVLINK_VERSION_*``) and the versions they stand for."""


class ClockReason(IntFlag):
    """Why the clocks are where they are (``nvmlClocksEventReasons``)."""

    GPU_IDLE = 0x001
    APPLICATION_CLOCKS = 0x002
    SW_POWER_CAP = 0x004
    HW_SLOWDOWN = 0x008
    SYNC_BOOST = 0x010
    SW_THERMAL_SLOWDOWN = 0x020
    HW_THERMAL_SLOWDOWN = 0x040
    HW_POWER_BRAKE = 0x080
    DISPLAY_CLOCKS = 0x100
    BOARD_LIMIT = 0x200
    RELIABILITY = 0x400


THROTTLING = (
    ClockReason.SW_POWER_CAP
    | ClockReason.HW_SLOWDOWN
    | ClockReason.SW_THERMAL_SLOWDOWN
    | ClockReason.HW_THERMAL_SLOWDOWN
    | ClockReason.HW_POWER_BRAKE
    | ClockReason.BOARD_LIMIT
    | ClockReason.RELIABILITY
)
"""Reasons that hold a busy GPU below the clock it asked for; idling or a chosen clock is not throttling."""


def clock_reason_words(bits: int) -> tuple[str, ...]:
    """Decode NVML's clock reasons: a phrase for each set bit, lowest bit first; unknown bits in hexadecimal."""
    known = tuple(reason.name or "" for reason in ClockReason if bits & reason)
    rest = bits & ~sum(ClockReason)
    words = tuple(name.lower().replace("_", " ") for name in known)
    return (*words, f"unknown reason {rest:#x}") if rest else words
