"""From a numba kernel to a cubin for any capability, without a GPU or a driver: numba to LTO-IR, nvJitLink to cubin."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from unittest import mock

from burstproof.device.protocol import Signature
from burstproof.errors import CompileError, EnvironmentInvalidError

Capability = tuple[int, int]

CAPABILITIES: tuple[Capability, ...] = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))
"""Compute capabilities that every kernel must build for; (7, 0) needs the tools of CUDA 12 (requirement KL-1)."""


_COMPILING = threading.Lock()
"""One kernel is compiled at a time: what is patched meanwhile, other threads see, too."""

_DROPPED_IN_CUDA_13: frozenset[Capability] = frozenset({(7, 0)})


def toolkit_version() -> tuple[int, int]:
    """CUDA version of the installed linker nvJitLink, (major, minor).

    Raises
    ------
    EnvironmentInvalidError
        It is not installed.
    """
    return _version_of("the linker nvJitLink", "nvjitlink", "version")


def compiler_version() -> tuple[int, int]:
    """Version of the installed NVRTC, (major, minor).

    Raises
    ------
    EnvironmentInvalidError
        It is not installed.
    """
    return _version_of("the compiler NVRTC", "nvrtc", "nvrtcVersion")


def _version_of(tool: str, binding: str, function: str) -> tuple[int, int]:
    try:
        *_, major, minor = getattr(import_module(f"cuda.bindings.{binding}"), function)()
    except (ImportError, RuntimeError) as error:  # no package, or no library where it looks
        raise EnvironmentInvalidError(
            f"{tool} is not installed",
            where="burstproof.compile",
            got=str(error),
            cure="In the folder of the clone: pip install '.[compile]', or '.[cuda12]' or '.[cuda13]' with a GPU",
        ) from error
    return int(major), int(minor)


def refusal(capability: Capability, where: str | None = None) -> EnvironmentInvalidError | None:
    """The error, at ``where``, that the installed tools do not build for ``capability``; ``None`` if they do.

    Raises
    ------
    EnvironmentInvalidError
        There are no tools.
    """
    major, minor = toolkit_version()
    if major < 13 or capability not in _DROPPED_IN_CUDA_13:
        return None
    return EnvironmentInvalidError(
        f"the installed tools are of CUDA {major}.{minor}, which no longer builds for this capability",
        where=where,
        got=f"{capability[0]}.{capability[1]}",
        cure="Use an environment with the extra compile, which brings the tools of CUDA 12",
    )


def obstacle(capability: Capability) -> str | None:
    """Why the installed tools cannot build for ``capability``, with the cure; ``None`` if they can."""
    refused = refusal(capability)
    return None if refused is None else str(refused)


def runs_on(built_for: Capability, capability: Capability) -> bool:
    """Whether machine code runs: on its own capability, and on later minor ones of the same major."""
    return built_for[0] == capability[0] and built_for[1] <= capability[1]


@dataclass(frozen=True)
class Image:
    """Machine code for one capability; ``seconds`` is what compiling and linking, or reading it from disk, took.

    ``symbols`` gives the name in the machine code of each template instance.
    """

    name: str
    capability: Capability
    cubin: bytes
    seconds: float
    symbols: Mapping[str, str] = field(default_factory=dict)

    @property
    def arch(self) -> str:
        """Architecture name as the tools spell it, e.g. ``sm_90``."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


def compile_kernel(
    name: str,
    function: Callable[..., None],
    signature: Signature,
    capability: Capability,
    registers: int | None = None,
) -> Image:
    """Compile ``function`` for ``capability``.

    Parameters
    ----------
    name : str
        Name of the kernel in errors and reports.
    function : callable
        Python function as for ``numba.cuda.jit``.
    signature : numba signature
        ``types.void(...)`` of the launch.
    capability : (int, int)
        Major and minor compute capability.
    registers : int, optional
        Most registers of a thread.

    Raises
    ------
    CompileError
        What numba or nvJitLink said, with the kernel and the capability.
    """
    from cuda.core import Linker, LinkerOptions, ObjectCode

    from burstproof.device.numba_cuda import cuda

    start = time.perf_counter()
    arch = f"sm_{capability[0]}{capability[1]}"
    device = mock.Mock(compute_capability=capability)
    try:
        with _COMPILING, mock.patch("numba.cuda.dispatcher.get_current_device", return_value=device):
            ltoir, _ = cuda.compile(
                function, signature, cc=capability, device=False, abi="numba", output="ltoir", debug=False
            )
        options = LinkerOptions(arch=arch, link_time_optimization=True, max_register_count=registers)
        linked = Linker(ObjectCode.from_ltoir(ltoir), options=options).link("cubin")
    except Exception as error:
        raise CompileError(
            f"does not compile: {type(error).__name__}: {error}",
            where=f"kernel {name} for {arch}",
            cure="Correct the source line named above, or take a toolkit that knows this capability",
        ) from error
    return Image(name, capability, bytes(linked.code), time.perf_counter() - start)
