"""Matrices of the links between the GPUs of a machine, with the line rate to expect for each pair (MG-6).

They follow from NVML and from the rates in the standards. The multi-GPU stage measures bandwidth and latency.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from hardware.inventory import Gpu, Inventory, Link

Cell = TypeVar("Cell")

NVLINK_GB_PER_S = {
    "1.0": 20.0,
    "2.0": 25.0,
    "2.2": 25.0,
    "3.0": 25.0,
    "3.1": 25.0,
    "4.0": 25.0,
    "5.0": 50.0,
}
"""One link, one direction, in GB/s (10**9): architecture white papers of P100, V100, A100, H100 and Blackwell."""

PCIE_GB_PER_S_PER_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938}
"""One lane, one direction, after line encoding (8b/10b up to generation 2, 128b/130b from 3), in GB/s."""


class Path(Enum):
    """The way that data takes between two GPUs; ``HOST_STAGED`` where peers cannot reach each other."""

    SELF = "self"
    NVLINK = "nvlink"
    PCIE = "pcie"
    HOST_STAGED = "host staged"


@dataclass(frozen=True)
class Topology:
    """Square matrices over the GPUs in NVML's order; rows and columns are ``indices``.

    Attributes
    ----------
    indices : tuple of int
        NVML indices.
    nvlinks : tuple of tuple of int
        NVLinks between each pair; 0 on the diagonal.
    nvlink_versions, read, write, atomics, levels : tuple of tuple of str or None
        As in :class:`hardware.inventory.Link`; ``None`` on the diagonal and where NVML did not say.
    paths : tuple of tuple of Path
        The way that data takes.
    line_rates_gb_per_s : tuple of tuple of float or None
        Expected rate in one direction; ``None`` on the diagonal and where version or link is unknown.
    """

    indices: tuple[int, ...]
    nvlinks: tuple[tuple[int, ...], ...]
    nvlink_versions: tuple[tuple[str | None, ...], ...]
    read: tuple[tuple[str | None, ...], ...]
    write: tuple[tuple[str | None, ...], ...]
    atomics: tuple[tuple[str | None, ...], ...]
    levels: tuple[tuple[str | None, ...], ...]
    paths: tuple[tuple[Path, ...], ...]
    line_rates_gb_per_s: tuple[tuple[float | None, ...], ...]


def path_of(link: Link) -> Path:
    """The way that data takes over ``link``; NVLinks without granted peer access carry nothing."""
    if not link.peer_access:
        return Path.HOST_STAGED
    return Path.NVLINK if link.nvlinks else Path.PCIE


def line_rate_gb_per_s(link: Link, a: Gpu, b: Gpu) -> float | None:
    """Rate to expect between two GPUs in one direction.

    NVLink: links times the version's rate. Otherwise the slower PCIe link of the two, at the highest generation that
    GPU and slot allow (idle links run slower); data staged through the host meets the same bound.

    Returns
    -------
    float or None
        GB/s (10**9 bytes); ``None`` when NVML did not say what the rate follows from.
    """
    if path_of(link) is Path.NVLINK:
        per_link = NVLINK_GB_PER_S.get(link.nvlink_version or "")
        return None if per_link is None else link.nvlinks * per_link
    rates = [pcie_gb_per_s(gpu.pcie_max_generation, gpu.pcie_width) for gpu in (a, b)]
    known = [rate for rate in rates if rate is not None]
    return min(known) if len(known) == 2 else None


def pcie_gb_per_s(generation: int | None, width: int | None) -> float | None:
    """Rate of a PCIe link in one direction, in GB/s; ``None`` for a generation that the table does not know."""
    per_lane = PCIE_GB_PER_S_PER_LANE.get(generation or 0)
    return None if per_lane is None or width is None else per_lane * width


def topology_of(inventory: Inventory) -> Topology:
    """Arrange the links of an inventory, which may have no GPU, as symmetric matrices."""
    gpus = inventory.gpus
    links = {(link.a, link.b): link for link in inventory.links}

    def matrix(diagonal: Cell, cell: Callable[[Link, Gpu, Gpu], Cell]) -> tuple[tuple[Cell, ...], ...]:
        return tuple(
            tuple(diagonal if a is b else cell(links[min(a.index, b.index), max(a.index, b.index)], a, b) for b in gpus)
            for a in gpus
        )

    def words(what: Callable[[Link], str | None]) -> tuple[tuple[str | None, ...], ...]:
        return matrix(None, lambda link, a, b: what(link))

    return Topology(
        indices=tuple(gpu.index for gpu in gpus),
        nvlinks=matrix(0, lambda link, a, b: link.nvlinks),
        nvlink_versions=words(lambda link: link.nvlink_version),
        read=words(lambda link: link.read),
        write=words(lambda link: link.write),
        atomics=words(lambda link: link.atomics),
        levels=words(lambda link: link.level),
        paths=matrix(Path.SELF, lambda link, a, b: path_of(link)),
        line_rates_gb_per_s=matrix(None, line_rate_gb_per_s),
    )
