"""How many blocks of a kernel a multiprocessor holds at once, from its resources alone."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.compile.numba_cubin import Capability
from burstproof.errors import InputError

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
