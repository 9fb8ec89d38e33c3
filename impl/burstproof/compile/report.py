"""The resource report of an image: what each kernel needs, how many blocks fit at once, what instructions it has."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.compile.numba_cubin import Image
from burstproof.compile.occupancy import Occupancy, occupancy
from burstproof.compile.resources import (
    DISASSEMBLES_FROM,
    Instructions,
    Resources,
    instructions_by_kernel,
    resources_by_kernel,
)


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
