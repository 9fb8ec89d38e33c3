"""What a cubin costs and contains: registers, spills, shared memory and the instructions that matter."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from burstproof.errors import EnvironmentInvalidError
from burstproof.kernels.compile import Image

DISASSEMBLES_FROM = (7, 5)
"""Lowest capability that nvdisasm 13 accepts; below it only registers are known."""

_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")  # the order of Resources
_OPCODE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.MULTILINE)


@dataclass(frozen=True)
class Resources:
    """Registers, bytes of stack and of local memory (spills) per thread; bytes of shared memory per block."""

    registers: int
    stack_bytes: int
    shared_bytes: int
    local_bytes: int


@dataclass(frozen=True)
class Instructions:
    """Counts of instructions in the machine code (static, not executed).

    ``reductions`` do not read back (RED), ``atomics`` do (ATOM); ``wide_loads`` fetch 64 or 128 bits;
    ``double_precision`` is arithmetic in float64; ``spills`` are loads and stores of local memory.
    """

    total: int
    global_loads: int
    wide_loads: int
    global_stores: int
    reductions: int
    atomics: int
    double_precision: int
    spills: int


def _tool(name: str) -> str:
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(root).glob(f"*/bin/{name}*"), reverse=True):
            return str(found)
    on_path = shutil.which(name)
    if on_path is None:
        raise EnvironmentInvalidError(
            f"the tool {name} is not installed", cure="Install burstproof with the extra compile"
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


def resources_of(image: Image) -> Resources:
    """Resources of the kernel in ``image``, as cuobjdump reads them.

    Raises
    ------
    EnvironmentInvalidError
        cuobjdump is missing or does not know the image.
    """
    found = _RESOURCES.findall(_run("cuobjdump", ["--dump-resource-usage"], image))
    if not found:
        raise EnvironmentInvalidError("cuobjdump reports no kernel", where=f"kernel {image.name} for {image.arch}")
    return Resources(*(max(int(row[column]) for row in found) for column in range(4)))


def instructions_of(image: Image) -> Instructions | None:
    """Instruction counts of ``image``, or ``None`` below ``DISASSEMBLES_FROM``.

    Raises
    ------
    EnvironmentInvalidError
        nvdisasm is missing or does not know the image.
    """
    if image.capability < DISASSEMBLES_FROM:
        return None
    opcodes = [op for op in _OPCODE.findall(_run("nvdisasm", ["-c"], image)) if not op.startswith("NOP")]
    return count_instructions(opcodes)


def count_instructions(opcodes: list[str]) -> Instructions:
    """Counts of the SASS mnemonics in ``opcodes``."""

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
    )
