"""Grid, block and shared memory of a launch against the limits of the device and the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.errors import InputError

Extent = int | tuple[int, ...]
"""Blocks or threads: a number, or up to three of them for x, y, z."""

_AXES = "xyz"


@dataclass(frozen=True)
class LaunchLimits:
    """What device and kernel allow.

    Attributes
    ----------
    grid : (int, int, int)
        Most blocks along x, y, z.
    block : (int, int, int)
        Most threads of a block along x, y, z.
    threads : int
        Most threads per block; the kernel's registers may lower it.
    static_shared_bytes : int
        Shared memory that the kernel declares with a fixed size.
    shared_bytes : int
        Most shared memory per block, static and dynamic, with opt-in.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    threads: int
    static_shared_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class Geometry:
    """A checked launch: blocks, threads, and dynamic shared memory in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int

    @classmethod
    def checked(cls, kernel: str, limits: LaunchLimits, grid: Extent, block: Extent, shared_bytes: int) -> Geometry:
        """The geometry, if device and kernel allow it.

        Raises
        ------
        InputError
            A grid or block with a zero, too many threads or blocks, too much shared memory.
        """
        blocks = _extent(kernel, "grid", grid, limits.grid)
        threads = _extent(kernel, "block", block, limits.block)
        count = threads[0] * threads[1] * threads[2]
        if count > limits.threads:
            raise InputError(
                "too many threads per block",
                where=f"kernel {kernel}, block",
                got=block,
                allowed=f"at most {limits.threads} threads for this kernel's registers",
                cure="Launch smaller blocks, or compile with max_registers",
            )
        room = limits.shared_bytes - limits.static_shared_bytes
        if not 0 <= shared_bytes <= room:
            raise InputError(
                "too much dynamic shared memory" if shared_bytes > 0 else "not a number of bytes",
                where=f"kernel {kernel}, shared_bytes",
                got=shared_bytes,
                allowed=f"0...{room} beside {limits.static_shared_bytes} bytes that the kernel declares",
                cure="Use smaller tiles",
            )
        return cls(blocks, threads, shared_bytes)


def _extent(kernel: str, name: str, given: Extent, largest: tuple[int, int, int]) -> tuple[int, int, int]:
    sizes = given if isinstance(given, tuple) else (given,)
    if not 1 <= len(sizes) <= 3:
        raise InputError("not one to three sizes", where=f"kernel {kernel}, {name}", got=given)
    full = (*sizes, 1, 1)[:3]
    for axis, size, limit in zip(_AXES, full, largest, strict=True):
        if not 1 <= size <= limit:
            cure = "Skip the launch when there is nothing to do" if size == 0 else "Let each block or thread do more"
            raise InputError(
                f"{name} size along {axis} out of range",
                where=f"kernel {kernel}, {name}",
                got=given,
                allowed=f"1...{limit}",
                cure=cure,
            )
    return int(full[0]), int(full[1]), int(full[2])
