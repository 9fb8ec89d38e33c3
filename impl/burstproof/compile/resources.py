"""What a cubin costs and contains: registers, spills, shared memory, occupancy, and the instructions that matter."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TypeVar

from burstproof.compile.numba_cubin import Capability, Image
from burstproof.errors import EnvironmentInvalidError, InputError, SourceError

Found = TypeVar("Found")

DISASSEMBLES_FROM = (7, 5)
"""Lowest capability that nvdisasm 13 accepts; below it only registers are known."""

_RESOURCES = re.compile(
    r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)"
)  # after the name, the order of Resources
_PARAMETERS_OF = re.compile(r"^\.nv\.info\.(\S+)$", re.MULTILINE)
_PARAMETER = re.compile(r"Ordinal : 0x([0-9a-f]+)\s+Offset\s+: 0x[0-9a-f]+\s+Size\s+: 0x([0-9a-f]+)")
_CODE_OF = re.compile(r"^\.text\.(\S+):$", re.MULTILINE)
_RESERVES_SHARED = (9, 0)
"""From here on the tools count the KiB that the system takes of a block's shared memory as the kernel's."""

_OPCODE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.MULTILINE)


@dataclass(frozen=True)
class Resources:
    """Registers, bytes of stack and of local memory (spills) per thread; bytes of static shared memory per block."""

    registers: int
    stack_bytes: int
    shared_bytes: int
    local_bytes: int


@dataclass(frozen=True)
class Instructions:
    """Counts of instructions in the machine code (static, not executed).

    ``reductions`` do not read back (RED), ``atomics`` do (ATOM); ``wide_loads`` fetch 64 or 128 bits, ``wide_stores``
    put them; ``double_precision`` is arithmetic in float64; ``spills`` are loads and stores of local memory;
    ``tensor`` are matrix products on tensor cores, ``async_copies`` go from global to shared memory past the registers.
    """

    total: int
    global_loads: int
    wide_loads: int
    global_stores: int
    reductions: int
    atomics: int
    double_precision: int
    spills: int
    wide_stores: int = 0
    tensor: int = 0
    async_copies: int = 0


def _tool(name: str) -> str:
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(root).glob(f"*/bin/{name}*"), reverse=True):
            return str(found)
    on_path = shutil.which(name)
    if on_path is None:
        raise EnvironmentInvalidError(
            f"the tool {name} is not installed",
            cure="Install the extra in the folder of the clone: pip install '.[compile]'",
        )
    return on_path


def _run(tool: str, arguments: list[str], image: Image) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{image.name}.cubin"
        path.write_bytes(image.cubin)
        done = subprocess.run([_tool(tool), *arguments, str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentInvalidError(
            f"{tool} refuses the image: {(done.stderr or done.stdout).strip()[:200]}",
            where=f"kernel {image.name} for {image.arch}",
            cure="Install a newer version of the tool (extra compile)",
        )
    return done.stdout


def resources_by_kernel(image: Image) -> dict[str, Resources]:
    """Resources of every kernel in ``image`` by its name in the machine code, as cuobjdump reads them.

    Raises
    ------
    EnvironmentInvalidError
        cuobjdump is missing or does not know the image, or the image holds no kernel.
    """
    found = {}
    for name, *figures in _RESOURCES.findall(_run("cuobjdump", ["--dump-resource-usage"], image)):
        registers, stack, shared, local = map(int, figures)
        reserved = 1024 if shared and image.capability >= _RESERVES_SHARED else 0
        found[name] = Resources(registers, stack, shared - reserved, local)
    if not found:
        raise SourceError(
            "the machine code holds no kernel",
            where=f"{image.name} for {image.arch}",
            cure="Write a function with __global__ in front; a template is built only for the instances that "
            "--template (in Python templates=) names, such as 'fill<float>'",
        )
    return found


def resources_of(image: Image, function: str | None = None) -> Resources:
    """Resources of a kernel in ``image``.

    Parameters
    ----------
    image : Image
    function : str, optional
        Name or template instance; by default the most of each over all kernels.

    Raises
    ------
    EnvironmentInvalidError
        As ``resources_by_kernel``.
    InputError
        The image has no such function.
    """
    found = resources_by_kernel(image)
    if function is not None:
        return _of(function, image, found)
    return Resources(*map(max, zip(*map(astuple, found.values()), strict=True)))


def parameter_bytes_of(image: Image, function: str) -> tuple[int, ...]:
    """Size of each parameter that the machine code of ``function`` takes, as cuobjdump reads it.

    Raises
    ------
    EnvironmentInvalidError, InputError
        As ``resources_of``.
    """
    sections = _sections(_PARAMETERS_OF, _run("cuobjdump", ["-elf"], image))
    sizes = {int(ordinal, 16): int(size, 16) for ordinal, size in _PARAMETER.findall(_of(function, image, sections))}
    return tuple(sizes[ordinal] for ordinal in sorted(sizes))


def disassembled(image: Image) -> str:
    """The machine code of ``image`` as nvdisasm prints it.

    Raises
    ------
    EnvironmentInvalidError
        nvdisasm is missing or does not know the image.
    """
    return _run("nvdisasm", ["-c"], image)


def instructions_by_kernel(image: Image) -> dict[str, Instructions]:
    """Instruction counts of every kernel in ``image`` by its name there; empty below ``DISASSEMBLES_FROM``.

    Raises
    ------
    EnvironmentInvalidError
        nvdisasm is missing or does not know the image.
    """
    if image.capability < DISASSEMBLES_FROM:
        return {}
    sections = _sections(_CODE_OF, disassembled(image))
    return {name: count_instructions(_OPCODE.findall(text)) for name, text in sections.items()}


def instructions_of(image: Image, function: str | None = None) -> Instructions | None:
    """Instruction counts of a kernel in ``image``, or of all; ``None`` below ``DISASSEMBLES_FROM``.

    Raises
    ------
    EnvironmentInvalidError
        As ``instructions_by_kernel``.
    InputError
        The image has no such function.
    """
    found = instructions_by_kernel(image)
    if not found:
        return None
    if function is not None:
        return _of(function, image, found)
    return Instructions(*map(sum, zip(*map(astuple, found.values()), strict=True)))


def _sections(title: re.Pattern[str], text: str) -> dict[str, str]:
    """What follows each title up to the next one."""
    marks = list(title.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {mark[1]: text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)}


def _of(function: str, image: Image, found: Mapping[str, Found]) -> Found:
    name = image.symbols.get(function, function)
    if name not in found:
        raise InputError(
            "the image has no such kernel",
            where=f"{image.name} for {image.arch}",
            got=function,
            allowed=", ".join(sorted({*image.symbols, *found} - set(image.symbols.values()))),
            cure='Declare it extern "C", or list its instance in templates',
        )
    return found[name]


def count_instructions(opcodes: list[str]) -> Instructions:
    """Counts of the SASS mnemonics in ``opcodes``, padding (NOP) left out."""
    opcodes = [op for op in opcodes if not op.startswith("NOP")]

    def count(pattern: str) -> int:
        return sum(re.match(pattern, op) is not None for op in opcodes)

    return Instructions(
        total=len(opcodes),
        global_loads=count(r"LDG?\b"),
        wide_loads=count(r"LDG?\..*(64|128)"),
        global_stores=count(r"STG?\b"),
        reductions=count(r"REDG?\b"),
        atomics=count(r"ATOMG?\b"),
        double_precision=count(r"D(ADD|MUL|FMA|SETP)\b"),
        spills=count(r"(LDL|STL)\b"),
        wide_stores=count(r"STG?\..*(64|128)"),
        tensor=count(r"([HIDQ]|OM)G?MMA\b|UTC[A-Z]*MMA"),
        async_copies=count(r"LDGSTS\b|UBLKCP\b|UTMALDG\b"),
    )


_WARP = 32
_REGISTER_UNIT = 256
_WARP_UNIT = 4
_SHARED_UNIT = 128
_MOST_REGISTERS = 65536


@dataclass(frozen=True)
class Multiprocessor:
    """Threads and blocks that it holds at once, KiB of shared memory, and KiB of it that each block costs besides."""

    threads: int
    blocks: int
    shared_kib: int
    reserved_kib: int


MULTIPROCESSORS: dict[Capability, Multiprocessor] = {
    (7, 0): Multiprocessor(2048, 32, 96, 0),
    (7, 5): Multiprocessor(1024, 16, 64, 0),
    (8, 0): Multiprocessor(2048, 32, 164, 1),
    (8, 6): Multiprocessor(1536, 16, 100, 1),
    (8, 9): Multiprocessor(1536, 24, 100, 1),
    (9, 0): Multiprocessor(2048, 32, 228, 1),
    (10, 0): Multiprocessor(2048, 32, 228, 1),
    (12, 0): Multiprocessor(1536, 24, 100, 1),
}
"""By capability. Source: technical specifications per compute capability, CUDA C++ Programming Guide."""


@dataclass(frozen=True)
class Occupancy:
    """Blocks that fit at once, the share of a multiprocessor's threads that they fill, and what bounds them."""

    blocks: int
    share: float
    bound_by: str


def occupancy(capability: Capability, registers: int, shared_bytes: int, block: int) -> Occupancy:
    """Occupancy of a kernel.

    Parameters
    ----------
    capability : (int, int)
    registers : int
        Per thread.
    shared_bytes : int
        Static and dynamic, per block.
    block : int
        Threads per block.

    Raises
    ------
    InputError
        A capability whose multiprocessor is not in the table, or a block size out of range.
    """
    if capability not in MULTIPROCESSORS or not 1 <= block <= 1024:
        raise InputError(
            "no occupancy for this capability or block",
            where="occupancy",
            got=(capability, block),
            allowed=f"{sorted(MULTIPROCESSORS)}, 1...1024 threads",
        )
    has = MULTIPROCESSORS[capability]
    warps = -(-block // _WARP)
    per_warp = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    register_warps = _MOST_REGISTERS // max(per_warp, 1) // _WARP_UNIT * _WARP_UNIT
    per_block = -(-(shared_bytes + 1024 * has.reserved_kib) // _SHARED_UNIT) * _SHARED_UNIT
    fits = {
        "threads": has.threads // (warps * _WARP),
        "blocks": has.blocks,
        "registers": register_warps // warps,
        "shared memory": has.shared_kib * 1024 // per_block if per_block else has.blocks,
    }
    bound_by = min(fits, key=lambda name: fits[name])
    blocks = fits[bound_by]
    return Occupancy(blocks, blocks * warps * _WARP / has.threads, bound_by)


@dataclass(frozen=True)
class KernelReport:
    """One kernel of an image; ``instructions`` is ``None`` for capabilities that are not disassembled."""

    kernel: str
    resources: Resources
    occupancy: Occupancy
    instructions: Instructions | None

    @property
    def spilled_bytes(self) -> int:
        """Bytes per thread that do not stay in registers."""
        return self.resources.stack_bytes + self.resources.local_bytes


def report_of(image: Image, block: int = 256, shared_bytes: int = 0) -> tuple[KernelReport, ...]:
    """Every kernel of ``image``, by name.

    Parameters
    ----------
    image : Image
    block : int
        Threads per block at which occupancy is worked out.
    shared_bytes : int
        Dynamic shared memory per block, likewise.

    Raises
    ------
    EnvironmentInvalidError
        The tools that read machine code are missing.
    InputError
        A block size out of range.
    """
    shown = {symbol: name for name, symbol in image.symbols.items()}
    resources, instructions = resources_by_kernel(image), instructions_by_kernel(image)
    return tuple(
        KernelReport(
            shown.get(name, name),
            found,
            occupancy(image.capability, found.registers, found.shared_bytes + shared_bytes, block),
            instructions.get(name),
        )
        for name, found in sorted(resources.items())
    )


_COLUMNS = ("kernel", "registers", "spilled B", "shared B", "occupancy", "bound by", "instructions", "loads 64/128 bit")


def table_of(reports: tuple[KernelReport, ...]) -> str:
    """The reports as a text table, with the instructions that matter below a kernel that has some."""
    rows = [_COLUMNS, *(_row(report) for report in reports)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    for index, report in reversed(list(enumerate(reports, 1))):
        if report.instructions is not None and (notes := _notes(report.instructions)):
            lines.insert(index + 1, f"  {notes}")
    if any(report.instructions is None for report in reports):
        lines.append("  unknown: nvdisasm reads machine code from capability {}.{} on".format(*DISASSEMBLES_FROM))
    return "\n".join(lines)


def _row(report: KernelReport) -> tuple[str, ...]:
    counts, fits = report.instructions, report.occupancy
    return (
        report.kernel,
        str(report.resources.registers),
        str(report.spilled_bytes),
        str(report.resources.shared_bytes),
        f"{fits.share:.0%} ({fits.blocks} blocks)",
        fits.bound_by,
        str(counts.total) if counts else "unknown",
        f"{counts.wide_loads} of {counts.global_loads}" if counts else "unknown",
    )


def _notes(counts: Instructions) -> str:
    named = {
        "matrix products on tensor cores": counts.tensor,
        "asynchronous copies": counts.async_copies,
        "reductions": counts.reductions,
        "atomics that read back": counts.atomics,
        "operations in float64": counts.double_precision,
        "loads and stores of spilled registers": counts.spills,
    }
    return ", ".join(f"{count} {name}" for name, count in named.items() if count)
