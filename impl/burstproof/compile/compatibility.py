"""Whether a driver or linker accepts a PTX: its ISA version against what their CUDA version knows (KL-3)."""

from __future__ import annotations

import re

from burstproof.errors import CompileError

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
"""Newest PTX ISA by CUDA version of the driver or linker. Source: release notes in NVIDIA's PTX ISA manual."""

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


def newest_isa(driver_cuda: tuple[int, int]) -> tuple[int, int]:
    """Newest PTX ISA that a driver for CUDA ``driver_cuda`` accepts; a driver newer than the table counts as its last.

    Raises
    ------
    CompileError
        A driver older than CUDA 11.8.
    """
    known = [version for version in NEWEST_ISA if version <= driver_cuda]
    if not known:
        raise CompileError(
            "the driver is older than any supported CUDA version",
            got=f"{driver_cuda[0]}.{driver_cuda[1]}",
            allowed="CUDA 11.8 or newer",
            cure="Install driver 520.61.05 or newer",
        )
    return NEWEST_ISA[max(known)]


def with_isa(ptx: str, isa: tuple[int, int]) -> str:
    """``ptx`` declared as ISA ``isa``; the assembler then refuses what that ISA does not have."""
    return _VERSION.sub(f".version {isa[0]}.{isa[1]}", ptx, count=1)


def check_ptx(
    ptx: str,
    cuda: tuple[int, int],
    *,
    reader: str = "the driver",
    cure: str = "Load the cubin instead (compile_kernel), or update the driver",
) -> None:
    """Refuse a PTX that its reader cannot understand, before it is loaded.

    Parameters
    ----------
    ptx : str
    cuda : (int, int)
        CUDA version of the reader.
    reader : str
        What reads it, in the error.
    cure : str
        What to do about it, in the error.

    Raises
    ------
    CompileError
        The ISA is newer than the reader accepts; names both and the cure.
    """
    isa, newest = ptx_isa(ptx), newest_isa(cuda)
    if isa > newest:
        raise CompileError(
            f"the PTX is newer than {reader} accepts",
            got=f"PTX ISA {isa[0]}.{isa[1]}",
            allowed=f"at most {newest[0]}.{newest[1]} with that of CUDA {cuda[0]}.{cuda[1]}",
            cure=cure,
        )
