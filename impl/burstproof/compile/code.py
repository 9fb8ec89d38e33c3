"""Other things than CUDA C++ text that give machine code: PTX, LTO-IR, cubins, and Python functions for numba.

Each has ``name`` and ``image(capability)``, as ``CudaSource`` has, and takes its place in an ``Entry``.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

from burstproof.compile.image_cache import Compiled, cached_image, is_kept
from burstproof.compile.numba_cubin import Capability, Image, compile_kernel, runs_on, toolkit_version
from burstproof.compile.parameters import VALUE_TYPES, Parameter
from burstproof.device.protocol import Signature
from burstproof.errors import CompileError, EnvironmentInvalidError, InputError

_CODE_SECTION = re.compile(rb"\.text\.([\w$]+)\x00")


NEWEST_ISA: dict[tuple[int, int], tuple[int, int]] = {
    (11, 8): (7, 8),
    (12, 0): (8, 0),
    (12, 1): (8, 1),
    (12, 2): (8, 2),
    (12, 3): (8, 3),
    (12, 4): (8, 4),
    (12, 5): (8, 5),
    (12, 6): (8, 5),
    (12, 7): (8, 6),
    (12, 8): (8, 7),
    (12, 9): (8, 8),
    (13, 0): (9, 0),
    (13, 1): (9, 1),
    (13, 2): (9, 2),
    (13, 3): (9, 3),
    (13, 4): (9, 4),
}
"""Newest PTX ISA by CUDA version of the linker. Source: release notes in NVIDIA's PTX ISA manual."""

_VERSION = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)


def ptx_isa(ptx: str) -> tuple[int, int]:
    """ISA version that ``ptx`` declares.

    Raises
    ------
    CompileError
        No ``.version`` directive.
    """
    found = _VERSION.search(ptx)
    if found is None:
        raise CompileError(
            "the text has no .version directive", got=ptx[:60], cure="Pass the PTX that a compiler wrote"
        )
    return int(found[1]), int(found[2])


def newest_isa(tools: tuple[int, int]) -> tuple[int, int]:
    """Newest PTX ISA that the linker of CUDA ``tools`` accepts; one newer than the table counts as its last.

    Raises
    ------
    CompileError
        Tools older than CUDA 11.8.
    """
    known = [version for version in NEWEST_ISA if version <= tools]
    if not known:
        raise CompileError(
            "the tools are older than any supported CUDA version",
            got=f"{tools[0]}.{tools[1]}",
            allowed="CUDA 11.8 or newer",
            cure="Install nvJitLink 12 or newer",
        )
    return NEWEST_ISA[max(known)]


def with_isa(ptx: str, isa: tuple[int, int]) -> str:
    """``ptx`` declared as ISA ``isa``; the assembler then refuses what that ISA does not have."""
    return _VERSION.sub(f".version {isa[0]}.{isa[1]}", ptx, count=1)


def check_ptx(ptx: str, tools: tuple[int, int]) -> None:
    """Refuse a PTX that the tools of CUDA version ``tools`` cannot assemble, before they are called.

    Raises
    ------
    CompileError
        The ISA is newer than they accept; names both and the cure.
    """
    isa, newest = ptx_isa(ptx), newest_isa(tools)
    if isa > newest:
        raise CompileError(
            "the PTX is newer than nvJitLink accepts",
            got=f"PTX ISA {isa[0]}.{isa[1]}",
            allowed=f"at most {newest[0]}.{newest[1]} with that of CUDA {tools[0]}.{tools[1]}",
            cure="Set rebuild, compile the source anew, or update nvJitLink",
        )


@dataclass(frozen=True)
class PtxCode:
    """PTX text, assembled by nvJitLink, so that no driver has to understand it.

    Attributes
    ----------
    name : str
    text : str
    rebuild : bool
        Whether text of a newer ISA than nvJitLink knows is declared as the newest that it knows and assembled all the
        same. An instruction that needs more is then refused as an error of the assembler.
    """

    name: str
    text: str
    rebuild: bool = False

    def image(self, capability: Capability) -> Image:
        """Machine code for ``capability``.

        Raises
        ------
        CompileError
            The PTX is newer than the tools, names a higher target, or has an error.
        """
        text, tools = self.text, toolkit_version()
        if ptx_isa(text) > newest_isa(tools) and self.rebuild:
            text = with_isa(text, newest_isa(tools))
        check_ptx(text, tools)
        key = {"ptx": text, "linker": tools, "capability": capability}
        return cached_image(self.name, capability, key, lambda: _linked(self.name, text, "ptx", capability))


@dataclass(frozen=True)
class LtoirCode:
    """LTO-IR of NVRTC or numba, linked by nvJitLink; it must be of the same major version of CUDA."""

    name: str
    code: bytes

    def image(self, capability: Capability) -> Image:
        """Machine code for ``capability``.

        Raises
        ------
        CompileError
            What nvJitLink said.
        """
        key = {"ltoir": self.code.hex(), "linker": toolkit_version(), "capability": capability}
        return cached_image(self.name, capability, key, lambda: _linked(self.name, self.code, "ltoir", capability))


@dataclass(frozen=True)
class CubinCode:
    """Machine code that was compiled elsewhere, by capability."""

    name: str
    cubins: Mapping[Capability, bytes]

    def image(self, capability: Capability) -> Image:
        """The image of the highest capability that runs on ``capability``: same major, same or lower minor.

        Raises
        ------
        CompileError
            There is none.
        """
        fit = [own for own in self.cubins if runs_on(own, capability)]
        if not fit:
            have = ", ".join(f"{major}.{minor}" for major, minor in sorted(self.cubins))
            raise CompileError(
                "no image runs on this capability",
                where=self.name,
                got=f"{capability[0]}.{capability[1]}",
                allowed=f"same major, same or lower minor as one of {have}",
                cure="Compile the source for it",
            )
        return Image(self.name, max(fit), self.cubins[max(fit)], 0.0)


@dataclass(frozen=True, eq=False)
class NumbaCode:
    """A Python function compiled by numba; kept on disk if all that it takes from around it has a digest.

    Attributes
    ----------
    function : callable
        As for ``numba.cuda.jit``.
    signature : numba signature
        ``types.void(...)`` of arrays in C order and numbers; the engine's kernels take named tuples of these, too.
    registers : int or None
        Most registers of a thread.
    """

    function: Callable[..., None]
    signature: Signature
    registers: int | None = None

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.function.__name__

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters as the signature has them; arrays are passed the way numba expects.

        Raises
        ------
        InputError
            A type that a launch cannot pass.
        """
        return tuple(_parameter(self.name, kind) for kind in self.signature.args)

    def image(self, capability: Capability) -> Image:
        """Machine code for ``capability``.

        Raises
        ------
        CompileError
            What numba or nvJitLink said.
        """
        key = self._key(capability)
        if key is None:
            return self._compiled(capability)
        return cached_image(self.name, capability, key, lambda: self._parts(capability))

    def is_kept(self, capability: Capability) -> bool:
        """Whether ``image`` has nothing to compile, or would keep nothing of what another process compiles."""
        key = self._key(capability)
        return key is None or is_kept(key)

    def _key(self, capability: Capability) -> Mapping[str, Any] | None:
        """All that the machine code depends on; ``None`` if something is not known, or there are no tools."""
        from burstproof.compile.meaning import meaning_of

        try:
            meaning, compilers = meaning_of(self.function, *self.signature.args), _compilers()
        except (InputError, EnvironmentInvalidError, PackageNotFoundError):
            return None
        kernel = {"numba": meaning, "name": self.name, "registers": self.registers}
        return {**kernel, "compilers": compilers, "capability": capability}

    def _parts(self, capability: Capability) -> Compiled:
        image = self._compiled(capability)
        return image.cubin, image.symbols

    def _compiled(self, capability: Capability) -> Image:
        image = compile_kernel(self.name, self.function, self.signature, capability, self.registers)
        found = _CODE_SECTION.search(image.cubin)
        if found is None:
            raise CompileError("the machine code holds no kernel", where=f"kernel {self.name} for {image.arch}")
        return Image(self.name, capability, image.cubin, image.seconds, {self.name: found[1].decode()})


@cache
def _compilers() -> tuple[object, ...]:
    """What tells the programs and libraries that make machine code of a Python function from others.

    Raises
    ------
    EnvironmentInvalidError
        One is missing.
    PackageNotFoundError
        A package says no version.
    """
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    packages = "numba", "numba-cuda", "llvmlite", "numpy", "cuda-core", "cuda-bindings"
    libraries = []
    for name in ("nvvm", "nvJitLink"):  # they say no more than the version of their interface
        try:
            path = load_nvidia_dynamic_lib(name).abs_path
        except DynamicLibNotFoundError as error:
            raise EnvironmentInvalidError("a library is missing", where="burstproof.compile", got=name) from error
        libraries.append((name, os.stat(path).st_size if path else 0))
    return python_version(), *map(version, packages), toolkit_version(), *libraries


def _parameter(name: str, kind: Any) -> Parameter:
    """A parameter of numba's type ``kind``: a number, or an array in C order."""
    dimensions = getattr(kind, "ndim", None)
    dtype = str(kind if dimensions is None else kind.dtype)
    if dtype not in VALUE_TYPES or getattr(kind, "layout", "C") != "C":
        raise InputError(
            "not a type that a launch can pass",
            where=f"kernel {name}, signature",
            got=str(kind),
            allowed=f"arrays in C order and numbers of {', '.join(VALUE_TYPES)}",
            cure="Declare arrays as float32[::1], float32[:, ::1] and so on",
        )
    return Parameter(dtype, dimensions is not None, numba_dimensions=dimensions)


def _linked(name: str, code: str | bytes, kind: str, capability: Capability) -> tuple[bytes, Mapping[str, str]]:
    from cuda.core import Linker, LinkerOptions, ObjectCode

    arch = f"sm_{capability[0]}{capability[1]}"
    data = code.encode() if isinstance(code, str) else code
    start = time.perf_counter()
    try:
        part = ObjectCode.from_ptx(data) if kind == "ptx" else ObjectCode.from_ltoir(data)
        options = LinkerOptions(arch=arch, link_time_optimization=kind == "ltoir")
        linked = Linker(part, options=options).link("cubin")
    except Exception as error:
        raise CompileError(
            f"does not link after {time.perf_counter() - start:.1f} s: {error}",
            where=f"{name} for {arch}",
            cure="Correct the code named above, or compile it with the tools that are installed",
        ) from error
    return bytes(linked.code), {}
