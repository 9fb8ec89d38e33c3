"""Facts about the host: processor, memory, system, Python, and which CUDA packages are installed.

CUDA packages are looked for, not imported.
"""

from __future__ import annotations

import ctypes
import hmac
import importlib.metadata
import importlib.util
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

_NCCL_WHEELS = ("nvidia-nccl-cu12", "nvidia-nccl-cu13")
_CUPY_WHEELS = {"cupy-cuda11x": 11, "cupy-cuda12x": 12, "cupy-cuda13x": 13}


@dataclass(frozen=True)
class Host:
    """The computer.

    Attributes
    ----------
    cpu : str
        Model name of the processor.
    cores, usable_cores : int
        Logical cores of the machine, and those that this process may use.
    memory_bytes : int or None
        Physical memory; ``None`` where the system does not say.
    os : str
        ``Linux``, ``Windows`` or ``Darwin``.
    os_release : str
        Kernel release or version.
    python : str
        Version of the interpreter.
    container : str or None
        ``docker``, ``podman``, ``kubernetes`` or ``container``; ``None`` outside one.
    visible_devices : str or None
        The value of ``CUDA_VISIBLE_DEVICES``; ``None`` when unset. NVML ignores it, CUDA does not.
    name : str or None
        Host name; inside a container, that of the container.
    machine_id : str or None
        Hash of the system's machine id, from which the id cannot be recovered; ``None`` if there is none, and in a
        container, where the id is that of the image.
    cpu_max_mhz : float or None
        Highest clock of the first core; ``None`` if the system does not say (most virtual machines).
    """

    cpu: str
    cores: int
    usable_cores: int
    memory_bytes: int | None
    os: str
    os_release: str
    python: str
    container: str | None
    visible_devices: str | None = None
    name: str | None = None
    machine_id: str | None = None
    cpu_max_mhz: float | None = None


@dataclass(frozen=True)
class CudaStack:
    """The Python packages that the CUDA engine needs, as found without importing them.

    Attributes
    ----------
    cupy, numba_cuda : bool
        Whether the package can be found.
    cuda_major : int or None
        CUDA version that the installed CuPy wheel is built for; ``None`` if it was built from source or is absent.
    """

    cupy: bool
    numba_cuda: bool
    cuda_major: int | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the packages that are not there."""
        present = {"cupy": self.cupy, "numba_cuda": self.numba_cuda}
        return tuple(name for name, found in present.items() if not found)


def take_host() -> Host:
    """Collect the facts about this host; what the system does not say is ``None`` or ``unknown``."""
    container = _container()
    return Host(
        cpu=_cpu_model(),
        cores=os.cpu_count() or 1,
        usable_cores=_usable_cores(),
        memory_bytes=_memory_bytes(),
        os=platform.system(),
        os_release=platform.release(),
        python=platform.python_version(),
        container=container,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        name=platform.node() or None,
        machine_id=None if container else _machine_id(),
        cpu_max_mhz=_cpu_max_mhz(),
    )


def find_cuda_stack() -> CudaStack:
    """Look for CuPy and numba-cuda without importing them."""
    majors = [major for wheel, major in _CUPY_WHEELS.items() if _wheel_version(wheel)]
    return CudaStack(
        cupy=importlib.util.find_spec("cupy") is not None,
        numba_cuda=importlib.util.find_spec("numba_cuda") is not None,
        cuda_major=majors[0] if len(majors) == 1 else None,
    )


def find_nccl_version() -> str | None:
    """Version of NCCL: of the installed wheel, else of a system library; ``None`` without either.

    ``ncclGetVersion`` touches no GPU.
    """
    for wheel in _NCCL_WHEELS:
        if version := _wheel_version(wheel):
            return version
    try:
        library = ctypes.CDLL("libnccl.so.2")
        packed = ctypes.c_int()
        failed = library.ncclGetVersion(ctypes.byref(packed))
    except (OSError, AttributeError):
        return None
    return None if failed else unpack_nccl_version(packed.value)


def unpack_nccl_version(packed: int) -> str:
    """NCCL's integer as ``major.minor.patch``.

    Up to 2.8 it is 1000 major + 100 minor + patch, later 10000 major + 100 minor + patch (``nccl.h``).
    """
    base = 10_000 if packed >= 10_000 else 1_000
    return f"{packed // base}.{packed % base // 100}.{packed % 100}"


def _wheel_version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _cpu_model() -> str:
    named = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    if named:
        return named.group(1).strip()
    return platform.processor() or platform.machine() or "unknown"


def _machine_id() -> str | None:
    """A hash keyed with the machine id, never the id itself, as machine-id(5) demands."""
    found = _read("/etc/machine-id").strip()
    return hmac.new(found.encode(), b"burstproof", "sha256").hexdigest()[:16] if found else None


def _cpu_max_mhz() -> float | None:
    khz = _read("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").strip()
    return int(khz) / 1e3 if khz.isdecimal() else None


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _container() -> str | None:
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    groups = _read("/proc/1/cgroup")
    return "container" if re.search(r"docker|containerd|kubepods|libpod|lxc", groups) else None
