"""Fake machines at the NVML seam: data that describes a box, and an ``Nvml`` that answers from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hardware.host import CudaStack, Host
from hardware.inventory import Inventory, take_inventory
from hardware.nvml import Nvml
from hardware.nvml_codes import (
    Clock,
    ClockReason,
    MemoryBytes,
    NvLinkRemote,
    NvmlCode,
    NvmlError,
    NvmlUnavailableError,
    P2pCapability,
    P2pStatus,
    TopologyLevel,
)

Value = TypeVar("Value")

LINUX_HOST = Host(
    cpu="Fake CPU",
    cores=64,
    usable_cores=64,
    memory_bytes=512 * 2**30,
    os="Linux",
    os_release="6.1.0",
    python="3.11.9",
    container=None,
)
CUDA_12_STACK = CudaStack(cupy=True, numba_cuda=True, cuda_major=12)


@dataclass(frozen=True)
class FakeGpu:
    """What one fake GPU answers; ``unsupported`` names methods that answer NOT_SUPPORTED."""

    name: str
    capability: tuple[int, int]
    memory_gib: float
    cores: int
    pcie: tuple[int, int] = (5, 16)
    mig: bool = False
    mig_instances: int = 0
    nvlinks: int = 0
    nvlink_version: str = "4.0"
    nvlink_remote: NvLinkRemote = NvLinkRemote.SWITCH
    power_limit_w: float = 700.0
    clock_reasons: tuple[ClockReason, ...] = (ClockReason.GPU_IDLE,)
    unsupported: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FakeMachine:
    """A box: its driver, its GPUs, and what fails.

    ``refusal`` is why NVML cannot be opened; ``failures`` maps (method, device or None for every one) to the code that
    the method answers; ``fail_nth`` lets the n-th call (from 0) fail with the given code, whatever it asks.
    """

    gpus: tuple[FakeGpu, ...] = ()
    driver: str = "550.54.15"
    cuda: tuple[int, int] = (12, 4)
    p2p: P2pStatus = P2pStatus.OK
    level: TopologyLevel = TopologyLevel.SYSTEM
    refusal: NvmlCode | None = None
    failures: Mapping[tuple[str, int | None], NvmlCode] = field(default_factory=dict)
    fail_nth: Mapping[int, NvmlCode] = field(default_factory=dict)

    @contextmanager
    def open(self) -> Iterator[Nvml]:
        """Stand-in for ``open_nvml``."""
        if self.refusal is not None:
            raise NvmlUnavailableError("nvmlInit", self.refusal)
        yield FakeNvml(self)

    def inventory(self, host: Host = LINUX_HOST, stack: CudaStack = CUDA_12_STACK) -> Inventory:
        """The inventory that the real code takes of this machine, on a fixed host with fixed packages."""
        return replace(take_inventory(open_door=self.open), host=host, stack=stack)


class FakeNvml:
    """An ``Nvml`` that answers from a :class:`FakeMachine` and remembers its calls."""

    def __init__(self, machine: FakeMachine) -> None:
        self.machine = machine
        self.calls: list[tuple[str, int | None]] = []

    def _answer(self, method: str, device: int | None, value: Callable[[], Value]) -> Value:
        number = len(self.calls)
        self.calls.append((method, device))
        failures = self.machine.failures
        code = self.machine.fail_nth.get(number) or failures.get((method, device)) or failures.get((method, None))
        if code is None and device is not None and method in self.machine.gpus[device].unsupported:
            code = NvmlCode.NOT_SUPPORTED
        if code is not None:
            raise NvmlError(method, code)
        return value()

    def _of_gpu(self, method: str, device: int, value: Callable[[FakeGpu], Value]) -> Value:
        return self._answer(method, device, lambda: value(self.machine.gpus[device]))

    def driver_version(self) -> str:
        return self._answer("driver_version", None, lambda: self.machine.driver)

    def cuda_driver_version(self) -> tuple[int, int]:
        return self._answer("cuda_driver_version", None, lambda: self.machine.cuda)

    def device_count(self) -> int:
        return self._answer("device_count", None, lambda: len(self.machine.gpus))

    def name(self, device: int) -> str:
        return self._of_gpu("name", device, lambda gpu: gpu.name)

    def uuid(self, device: int) -> str:
        return self._answer("uuid", device, lambda: f"GPU-{device:08x}-feed-beef-cafe-000000000000")

    def pci_bus_id(self, device: int) -> str:
        return self._answer("pci_bus_id", device, lambda: bus_id(device))

    def compute_capability(self, device: int) -> tuple[int, int]:
        return self._of_gpu("compute_capability", device, lambda gpu: gpu.capability)

    def core_count(self, device: int) -> int:
        return self._of_gpu("core_count", device, lambda gpu: gpu.cores)

    def memory(self, device: int) -> MemoryBytes:
        def memory(gpu: FakeGpu) -> MemoryBytes:
            total = int(gpu.memory_gib * 2**30)
            return MemoryBytes(total=total, free=total - 2**30, used=2**30)

        return self._of_gpu("memory", device, memory)

    def pcie_generation(self, device: int) -> int:
        return self._answer("pcie_generation", device, lambda: 1)

    def pcie_max_generation(self, device: int) -> int:
        return self._of_gpu("pcie_max_generation", device, lambda gpu: gpu.pcie[0])

    def pcie_width(self, device: int) -> int:
        return self._of_gpu("pcie_width", device, lambda gpu: gpu.pcie[1])

    def mig_enabled(self, device: int) -> bool:
        return self._of_gpu("mig_enabled", device, lambda gpu: gpu.mig)

    def mig_instances(self, device: int) -> int:
        return self._of_gpu("mig_instances", device, lambda gpu: gpu.mig_instances)

    def ecc_enabled(self, device: int) -> bool:
        return self._answer("ecc_enabled", device, lambda: True)

    def ecc_errors(self, device: int, *, corrected: bool) -> int:
        """Asked in turns for both kinds; each turn after the first finds one more corrected error."""

        def errors() -> int:
            return (self.calls.count(("ecc_errors", device)) - 1) // 2 if corrected else 0

        return self._answer("ecc_errors", device, errors)

    def persistence(self, device: int) -> bool:
        return self._answer("persistence", device, lambda: True)

    def power_limit_w(self, device: int) -> float:
        return self._of_gpu("power_limit_w", device, lambda gpu: gpu.power_limit_w)

    def power_w(self, device: int) -> float:
        return self._of_gpu("power_w", device, lambda gpu: gpu.power_limit_w / 2)

    def energy_j(self, device: int) -> float:
        """Ten joules more at every question."""
        return self._answer("energy_j", device, lambda: 1000.0 + 10 * self.calls.count(("energy_j", device)))

    def temperature_c(self, device: int) -> int:
        """One degree warmer at every question."""
        return self._answer("temperature_c", device, lambda: 39 + self.calls.count(("temperature_c", device)))

    def clock_mhz(self, device: int, clock: Clock) -> int:
        return self._answer("clock_mhz", device, lambda: 1980 if clock is Clock.SM else 2619)

    def max_clock_mhz(self, device: int, clock: Clock) -> int:
        return self._answer("max_clock_mhz", device, lambda: 1980 if clock is Clock.SM else 2619)

    def clock_reasons(self, device: int) -> int:
        """One of the GPU's reasons after the other; the last one stays."""

        def reason(gpu: FakeGpu) -> int:
            asked = self.calls.count(("clock_reasons", device)) - 1
            return int(gpu.clock_reasons[min(asked, len(gpu.clock_reasons) - 1)])

        return self._of_gpu("clock_reasons", device, reason)

    def utilisation_percent(self, device: int) -> int:
        return self._answer("utilisation_percent", device, lambda: 50)

    def nvlink_active(self, device: int, link: int) -> bool:
        def active(gpu: FakeGpu) -> bool:
            if gpu.nvlinks == 0:
                raise NvmlError("nvlink_active", NvmlCode.NOT_SUPPORTED)
            if link >= gpu.nvlinks:
                raise NvmlError("nvlink_active", NvmlCode.INVALID_ARGUMENT)
            return True

        return self._of_gpu("nvlink_active", device, active)

    def nvlink_version(self, device: int, link: int) -> str:
        return self._of_gpu("nvlink_version", device, lambda gpu: gpu.nvlink_version)

    def nvlink_remote(self, device: int, link: int) -> NvLinkRemote:
        return self._of_gpu("nvlink_remote", device, lambda gpu: gpu.nvlink_remote)

    def nvlink_remote_bus_id(self, device: int, link: int) -> str:
        """Links to a GPU lead to the neighbour (0 to 1, 2 to 3); links to switches spread over four of them."""

        def remote(gpu: FakeGpu) -> str:
            return bus_id(device ^ 1) if gpu.nvlink_remote is NvLinkRemote.GPU else f"00000000:0{link % 4}:00.0"

        return self._of_gpu("nvlink_remote_bus_id", device, remote)

    def p2p_status(self, device: int, peer: int, capability: P2pCapability) -> P2pStatus:
        return self._answer("p2p_status", device, lambda: self.machine.p2p)

    def topology_level(self, device: int, peer: int) -> TopologyLevel:
        return self._answer("topology_level", device, lambda: self.machine.level)


def bus_id(device: int) -> str:
    """PCI address of a fake GPU."""
    return f"00000000:{0x1B + device:02X}:00.0"


H100 = FakeGpu("NVIDIA H100 80GB HBM3", (9, 0), 79.647, 16896, nvlinks=18)
H200 = FakeGpu("NVIDIA H200", (9, 0), 139.8, 16896, nvlinks=18)
V100 = FakeGpu(
    "Tesla V100-SXM2-16GB",
    (7, 0),
    16.0,
    5120,
    pcie=(3, 16),
    nvlinks=6,
    nvlink_version="2.0",
    nvlink_remote=NvLinkRemote.GPU,
    power_limit_w=300.0,
    unsupported=frozenset({"mig_enabled"}),
)
GTX_1080 = FakeGpu(
    "NVIDIA GeForce GTX 1080",
    (6, 1),
    8.0,
    2560,
    pcie=(3, 16),
    power_limit_w=180.0,
    unsupported=frozenset({"mig_enabled", "ecc_enabled", "ecc_errors"}),
)


def dgx_h100() -> FakeMachine:
    """Eight H100 SXM behind NVSwitches."""
    return FakeMachine(gpus=(H100,) * 8)


def h200_box(count: int) -> FakeMachine:
    """``count`` H200 SXM behind NVSwitches."""
    return FakeMachine(gpus=(H200,) * count, driver="570.86.15", cuda=(12, 8))


def v100_pair() -> FakeMachine:
    """Two V100 joined directly by six NVLinks; neither knows MIG."""
    return FakeMachine(gpus=(V100, V100), driver="535.183.01", cuda=(12, 2))


def old_driver_box() -> FakeMachine:
    """A V100 whose driver stops at CUDA 11.4; it lacks the calls that came later."""
    return FakeMachine(
        gpus=(V100,),
        driver="470.256.02",
        cuda=(11, 4),
        failures={("core_count", None): NvmlCode.FUNCTION_NOT_FOUND},
    )


def pascal_box() -> FakeMachine:
    """A GPU below compute capability 7.0."""
    return FakeMachine(gpus=(GTX_1080,), driver="535.183.01", cuda=(12, 2))


def mig_box(instances: int = 2) -> FakeMachine:
    """Two H100 with MIG on, each cut into ``instances`` slices."""
    sliced = replace(H100, mig=True, mig_instances=instances)
    return FakeMachine(gpus=(sliced, sliced), p2p=P2pStatus.NOT_SUPPORTED)


def no_nvml(code: NvmlCode = NvmlCode.LIBRARY_NOT_FOUND) -> FakeMachine:
    """A machine whose NVML cannot be opened."""
    return FakeMachine(refusal=code)


def failing_half_way() -> FakeMachine:
    """Four H200 of which number 2 fell off the bus, so that whatever asks it fails."""
    asked = [name for name in vars(Nvml) if not name.startswith("_")]
    lost: dict[tuple[str, int | None], NvmlCode] = {(method, 2): NvmlCode.GPU_IS_LOST for method in asked}
    return replace(h200_box(4), failures=lost)
