"""CUDA C++ source text to machine code for any capability, without a GPU or a driver: NVRTC through cuda.core."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burstproof.compile.image_cache import Compiled, cached_image
from burstproof.compile.numba_cubin import Capability, Image, compiler_version
from burstproof.errors import CompileError, InputError, SourceError
from burstproof.regular_file import check_regular

if TYPE_CHECKING:
    from cuda.core import ProgramOptions

_FIRST_ERROR = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic |fatal )?error:? *(?P<text>.*)$", re.MULTILINE
)


@dataclass(frozen=True)
class SourceOptions:
    """What the compiler is told besides the source; the defaults keep IEEE arithmetic.

    Attributes
    ----------
    defines : tuple of (name, value)
        Macros.
    fast_math : bool
        Approximate division and functions, subnormals to zero.
    contract : bool
        Let ``a * b + c`` become one fused operation.
    max_registers : int or None
        Bound on registers per thread.
    """

    defines: tuple[tuple[str, str], ...] = ()
    fast_math: bool = False
    contract: bool = True
    max_registers: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.defines, tuple) or not all(_is_macro(one) for one in self.defines):
            raise InputError(
                "no macros",
                where="SourceOptions.defines",
                got=self.defines,
                allowed="a tuple of pairs of strings, such as (('TILE', '64'),)",
            )
        bound = self.max_registers
        if bound is not None and not 16 <= bound <= 255:
            raise InputError("no bound", where="SourceOptions.max_registers", got=bound, allowed="16 to 255, or None")

    def arch(self, capability: Capability) -> str:
        """Architecture as NVRTC names it.

        Raises
        ------
        InputError
            No pair of numbers.
        """
        if not isinstance(capability, tuple) or len(capability) != 2:
            raise InputError("no compute capability", where="capability", got=capability, allowed="such as (9, 0)")
        return f"sm_{capability[0]}{capability[1]}"


@dataclass(frozen=True)
class CudaSource:
    """CUDA C++ text that compiles to one image per capability.

    Attributes
    ----------
    name : str
        File name in errors and reports.
    text : str
        The source, headers that it needs of its own included.
    options : SourceOptions
    templates : tuple of str
        Instances that the image holds, such as ``softmax<float, 4>``; functions that are ``extern "C"`` need no entry.
    """

    name: str
    text: str
    options: SourceOptions = SourceOptions()
    templates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.templates, str):
            raise InputError(
                "one string, not a tuple of them",
                where=f"{self.name}, templates",
                got=self.templates,
                cure=f"Write ({self.templates!r},)",
            )

    @classmethod
    def beside(
        cls, module_file: str, *names: str, options: SourceOptions | None = None, templates: tuple[str, ...] = ()
    ) -> CudaSource:
        """Source from files in the folder of ``module_file`` (``__file__``), joined in order; the last names it.

        Raises
        ------
        InputError
            No name, or a file that cannot be read.
        """
        folder = Path(module_file).parent
        if not names:
            raise InputError("no source file is named", where="CudaSource.beside")
        parts = [f'#line 1 "{Path(name).name}"\n{_text_of(folder / name)}' for name in names]
        return cls(names[-1], "\n".join(parts), options or SourceOptions(), templates)

    def image(self, capability: Capability) -> Image:
        """Machine code for ``capability``, from the disk cache where it holds it.

        Raises
        ------
        CompileError
            What the compiler said, with file and line of the first error, its source line, and the whole log.
        EnvironmentInvalidError
            No compiler is installed.
        """
        return cached_image(self.name, capability, self._key(capability), lambda: self._compile(capability))

    def _key(self, capability: Capability) -> Mapping[str, Any]:
        from importlib.metadata import version

        return {
            "source": self.text,
            "name": self.name,
            "templates": self.templates,
            "options": repr(self.options),
            "compiler": ("nvrtc", compiler_version()),
            "cuda.core": version("cuda-core"),
            "headers": include_folders(),
            "capability": capability,
        }

    def ptx(self, capability: Capability) -> str:
        """PTX text for ``capability`` and later ones, of the compiler's own ISA; needs no driver.

        Raises
        ------
        CompileError, EnvironmentInvalidError
            As ``image``.
        """
        compiler_version()
        arch = self.options.arch(capability).replace("sm_", "compute_")
        try:
            return _ptx_of(self.text, self.name, self._told(arch).as_bytes("nvrtc"), self.templates)
        except _NvrtcError as error:
            raise self._refused(str(error), arch) from error

    def ltoir(self, capability: Capability) -> bytes:
        """LTO-IR for ``capability``, to be linked by tools of the same major version of CUDA (``LtoirCode``).

        Raises
        ------
        CompileError, EnvironmentInvalidError
            As ``image``.
        """
        compiler_version()
        return self._built("ltoir", self.options.arch(capability), link_time_optimization=True)[0]

    def _compile(self, capability: Capability) -> Compiled:
        return self._built("cubin", self.options.arch(capability))

    def _built(self, target: str, arch: str, **more: bool) -> Compiled:
        from cuda.core import Program

        try:
            code = Program(self.text, "c++", self._told(arch, **more)).compile(target, name_expressions=self.templates)
        except Exception as error:
            raise self._refused(str(error), arch) from error
        return bytes(code.code), {str(k): _text(v) for k, v in code.symbol_mapping.items()}

    def _told(self, arch: str, **more: bool) -> ProgramOptions:
        """Options as cuda.core takes them."""
        from cuda.core import ProgramOptions

        wanted = self.options
        return ProgramOptions(
            name=self.name,
            arch=arch,
            std="c++17",
            include_path=list(include_folders()),
            define_macro=list(wanted.defines) or None,
            use_fast_math=wanted.fast_math,
            fma=wanted.contract,
            max_register_count=wanted.max_registers,
            **more,
        )

    def _refused(self, log: str, arch: str) -> CompileError:
        log = log.rstrip("\0 \n")
        found = _FIRST_ERROR.search(log)
        if found is None:
            unknown = "gpu-architecture" in log
            return CompileError(
                f"does not compile: {log}",
                where=f"{self.name} for {arch}",
                cure="Choose a capability that the installed compiler knows" if unknown else None,
            )
        if found["file"] == "__nv_name_map":  # the compiler's own list of the instances
            return SourceError(
                f"an instance does not compile for {arch}: {found['text']}",
                where=f"{self.name}, templates",
                got=", ".join(self.templates),
                allowed="instances of templates in the source, such as 'fill<float>'",
                cure=f"Correct the name; the compiler's log:\n{log}",
            )
        shown = self._line(found["file"], int(found["line"]))
        return SourceError(
            f"does not compile for {arch}: {found['text']}",
            where=f"{found['file']}, line {found['line']}",
            got=shown or None,
            cure=f"Correct the source; the compiler's log:\n{log}",
        )

    def _line(self, file: str, line: int) -> str:
        """Text of a line as the compiler counts it, following the marks between joined files."""
        name, number = self.name, 0
        for text in self.text.splitlines():
            mark = re.fullmatch(r'#line 1 "(.+)"', text)
            name, number = (mark[1], 0) if mark else (name, number + 1)
            if (name, number) == (file, line):
                return text.strip()
        return ""


def _is_macro(pair: object) -> bool:
    """Whether ``pair`` is a name and its value."""
    return isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(text, str) for text in pair)


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


@cache
def _text_of(path: Path) -> str:
    try:
        check_regular(path)
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"the source cannot be read: {why}", where=str(path), cure="Check the path") from error


@cache
def include_folders() -> tuple[str, ...]:
    """Folders of the CUDA headers that are installed (cuda_fp16.h, cuda_bf16.h, mma.h and what they include)."""
    from cuda.pathfinder import find_nvidia_header_directory

    folders: dict[str, None] = {}
    for component in ("cudart", "nvcc", "cccl"):
        found = find_nvidia_header_directory(component)
        if found is not None:
            folders[str(found)] = None
    return tuple(folders)


class _NvrtcError(Exception):
    """NVRTC's log, or the name of its error where it wrote none."""


def _ptx_of(text: str, name: str, options: Sequence[bytes], templates: Sequence[str]) -> str:
    """PTX from NVRTC itself, which needs no driver; cuda.core would ask the driver about it."""
    from cuda.bindings import nvrtc

    program = _taken(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
    try:
        for template in templates:
            _taken(nvrtc.nvrtcAddNameExpression(program, template.encode()))
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), list(options))
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = bytearray(_taken(nvrtc.nvrtcGetProgramLogSize(program)))
            _taken(nvrtc.nvrtcGetProgramLog(program, log))
            raise _NvrtcError(log.decode(errors="replace"))
        ptx = bytearray(_taken(nvrtc.nvrtcGetPTXSize(program)))
        _taken(nvrtc.nvrtcGetPTX(program, ptx))
        return ptx.rstrip(b"\0").decode()
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _taken(answer: tuple[Any, ...]) -> Any:
    from cuda.bindings import nvrtc

    if answer[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise _NvrtcError(str(answer[0]))
    return answer[1] if len(answer) > 1 else None
