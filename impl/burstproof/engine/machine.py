"""The hardware and drivers of a machine as plain values, which ``ask_machine`` fills in."""

from __future__ import annotations

from dataclasses import dataclass, field

OLDEST_CAPABILITY = (7, 0)
"""Least compute capability for the CUDA engine (requirement ST-2)."""

OLDEST_CAPABILITY_CUDA_13 = (7, 5)
"""Least compute capability that CUDA 13 compiles for (shared toolchain notes)."""

INSTALL_WGPU = "Install the extra in the folder of the clone: pip install '.[wgpu]'"
_CUDA_12 = "Install the tools of CUDA 12: pip install '.[cuda12]' in the folder of the clone"


@dataclass(frozen=True)
class CudaDevice:
    """A device that the driver shows; ``memory_bytes`` is 0 if unknown."""

    number: int
    name: str
    capability: tuple[int, int]
    memory_bytes: int = 0


@dataclass(frozen=True)
class Obstacle:
    """Why a backend cannot run here, and what to do about it."""

    why: str
    cure: str


NO_CUDA_DEVICE = Obstacle(
    "the driver shows no CUDA device", "Check CUDA_VISIBLE_DEVICES and that the container was given a GPU"
)


@dataclass(frozen=True)
class Usable:
    """The hardware that a backend runs on, in words; ``auto`` never takes a ``software`` adapter."""

    why: str
    software: bool = False


@dataclass(frozen=True)
class CudaFacts:
    """The devices and versions that the driver reported, or why it could not be queried.

    Attributes
    ----------
    obstacle : Obstacle or None
        Missing package, missing driver, failing driver; ``None`` if the driver answered.
    devices : tuple of CudaDevice
    driver_version, tools_version : tuple of int, or None
        Newest CUDA version that the driver supports, and that of the installed packages, as (major, minor).
    """

    obstacle: Obstacle | None = None
    devices: tuple[CudaDevice, ...] = ()
    driver_version: tuple[int, int] | None = None
    tools_version: tuple[int, int] | None = None

    def found(self, device: int) -> Usable | Obstacle:
        """What the CUDA engine would run on with this device, or why it cannot."""
        if self.obstacle is not None:
            return self.obstacle
        if not self.devices:
            return NO_CUDA_DEVICE
        chosen = next((d for d in self.devices if d.number == device), None)
        if chosen is None:
            numbers = ", ".join(str(d.number) for d in self.devices)
            return Obstacle(f"there is no CUDA device {device}", f"Set cuda.device_id to one of: {numbers}")
        usable = Usable(f"{chosen.name}, compute capability {_dotted(chosen.capability)}")
        return self._obstacle_of_tools() or self._obstacle_of_capability(chosen) or usable

    def _obstacle_of_tools(self) -> Obstacle | None:
        if self.driver_version and self.tools_version and self.driver_version[0] < self.tools_version[0]:
            return Obstacle(
                f"the driver takes CUDA {_dotted(self.driver_version)} at most, "
                f"the installed packages are for CUDA {self.tools_version[0]}",
                f"{_CUDA_12}, or update the driver" if self.driver_version[0] == 12 else "Update the driver",
            )
        return None

    def _obstacle_of_capability(self, device: CudaDevice) -> Obstacle | None:
        shown = f"{device.name} has compute capability {_dotted(device.capability)}"
        if device.capability < OLDEST_CAPABILITY:
            return Obstacle(f"{shown}, the oldest supported is {_dotted(OLDEST_CAPABILITY)}", "Use another device")
        newer_tools = self.tools_version is not None and self.tools_version[0] >= 13
        if newer_tools and device.capability < OLDEST_CAPABILITY_CUDA_13:
            return Obstacle(f"{shown}, which the installed tools of CUDA 13 do not build for", _CUDA_12)
        return None


@dataclass(frozen=True)
class WgpuAdapter:
    """An adapter that wgpu shows, with its buffer limits.

    Attributes
    ----------
    number : int
        Index in wgpu's list, as in ``WgpuOptions.adapter``.
    name, kind, api : str
        ``kind`` is wgpu's adapter type (``DiscreteGPU``, ``IntegratedGPU``, ``CPU``, ...), ``api`` the graphics API.
    largest_buffer_bytes, largest_binding_bytes : int
        Largest buffer, and largest part of one that can be bound to a shader.
    """

    number: int
    name: str
    kind: str
    api: str
    largest_buffer_bytes: int
    largest_binding_bytes: int

    @property
    def software(self) -> bool:
        """Whether the adapter is a software renderer on the CPU."""
        return self.kind == "CPU"


_ADAPTER_ORDER = ("DiscreteGPU", "IntegratedGPU", "Unknown", "CPU")


@dataclass(frozen=True)
class WgpuFacts:
    """The adapters that wgpu shows, or why it could not be queried."""

    obstacle: Obstacle | None = Obstacle("not installed: wgpu", INSTALL_WGPU)
    adapters: tuple[WgpuAdapter, ...] = ()

    def found(self) -> Usable | Obstacle:
        """What the WGPU engine would run on, or why it cannot."""
        if self.obstacle is not None:
            return self.obstacle
        if not self.adapters:
            return Obstacle(
                "wgpu shows no Vulkan, Metal or DX12 adapter",
                "Install a Vulkan driver (mesa-vulkan-drivers has one in software), or use --backend cpu",
            )
        adapter = self.preferred()
        aside = ", a software adapter" if adapter.software else ""
        return Usable(f"{adapter.name} through {adapter.api}{aside}", adapter.software)

    def preferred(self) -> WgpuAdapter:
        """The adapter that is used by default; there must be one."""
        return min(self.adapters, key=lambda a: _ADAPTER_ORDER.index(a.kind))


@dataclass(frozen=True)
class Machine:
    """The facts of a machine on which the choice of a backend depends."""

    cpu_cores: int
    cuda: CudaFacts
    wgpu: WgpuFacts = field(default_factory=WgpuFacts)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
