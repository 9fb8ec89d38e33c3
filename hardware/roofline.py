"""The least time that a piece of work can take on a known GPU model: a smaller figure is an error of the measurement.

The peaks of each model live in ``profiles/*.toml`` with the source of every value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from burstproof.errors import ConfigError

PEAKS = frozenset(
    {
        "memory_gb",
        "memory_bandwidth_gb_per_s",
        "l2_mb",
        "sm_count",
        "fp64_tflops",
        "fp32_tflops",
        "tf32_tensor_tflops",
        "fp16_tensor_tflops",
        "int8_tensor_tops",
        "nvlink_count",
        "nvlink_gb_per_s_per_link",
        "pcie_generation",
    }
)
"""Vendor figures: tensor rates dense, NVLink per link and direction, decimal units."""

MEASURED = frozenset(
    {
        "copy_gb_per_s",
        "random_reductions_g_per_s",
        "random_reductions_20m_g_per_s",
        "random_reductions_100m_g_per_s",
        "graph_node_us",
        "grid_barrier_us",
        "launch_to_download_us",
        "peer_copy_gb_per_s",
        "peer_copy_latency_us",
    }
)
"""Figures of our own prototypes; ``random_reductions`` into an array that fits L2, or of 20 and 100 million entries."""


@dataclass(frozen=True)
class Figure:
    """A value and where it comes from."""

    value: float
    source: str


@dataclass(frozen=True)
class Profile:
    """Peaks of one GPU model.

    Attributes
    ----------
    name : str
        The model in words.
    pattern : str
        Regular expression that NVML's product name must end with.
    peaks, measured : mapping of str to Figure
        Keys from ``PEAKS`` and ``MEASURED``; what is not known is not there.
    """

    name: str
    pattern: str
    peaks: Mapping[str, Figure]
    measured: Mapping[str, Figure]

    def peak(self, key: str) -> float | None:
        """A vendor figure's value, or ``None``."""
        return self.peaks[key].value if key in self.peaks else None

    def measured_value(self, key: str) -> float | None:
        """A measured figure's value, or ``None``."""
        return self.measured[key].value if key in self.measured else None


@dataclass(frozen=True)
class Work:
    """What a piece of device work cannot avoid.

    Attributes
    ----------
    bytes : float
        Bytes that must cross the device memory's interface.
    reductions : float
        Additions to random places in memory.
    nodes : int
        Kernels or graph nodes that must follow one another.
    """

    bytes: float = 0.0
    reductions: float = 0.0
    nodes: int = 0


def floor_us(work: Work, profile: Profile) -> float:
    """Least time for ``work`` in microseconds.

    Bytes at the vendor's peak bandwidth and reductions at the measured rate of an array that fits L2 may overlap
    perfectly, so the longer one counts; nodes follow one another, each at the cost of an empty one. What the profile
    does not know adds nothing, which keeps the floor a floor.
    """
    bandwidth = profile.peak("memory_bandwidth_gb_per_s")
    reductions = profile.measured_value("random_reductions_g_per_s")
    traffic_us = work.bytes / (bandwidth * 1e3) if bandwidth else 0.0
    scatter_us = work.reductions / (reductions * 1e3) if reductions else 0.0
    return max(traffic_us, scatter_us) + work.nodes * (profile.measured_value("graph_node_us") or 0.0)


def profile_for(gpu_name: str | None) -> Profile | None:
    """The profile of a GPU by NVML's product name; ``None`` for a model without one, or a MIG slice."""
    if gpu_name is None:
        return None
    fitting = [one for one in all_profiles() if re.search(rf"(?:{one.pattern})$", gpu_name)]
    return fitting[0] if fitting else None


@cache
def all_profiles() -> tuple[Profile, ...]:
    """Every profile of the folder, in order of file names."""
    folder = Path(__file__).parent / "profiles"
    return tuple(read_profile(path) for path in sorted(folder.glob("*.toml")))


def read_profile(path: Path) -> Profile:
    """Read one profile.

    Raises
    ------
    ConfigError
        For a file that is no TOML, a key that is not in ``PEAKS`` or ``MEASURED``, or a figure without a positive
        value and a source.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        name, pattern = str(content["name"]), str(content["pattern"])
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise ConfigError(
            f"the profile cannot be read: {error}", where=path.name, allowed="TOML with name and pattern"
        ) from error
    peaks = _figures(path, "peak", content.get("peak", {}), PEAKS)
    measured = _figures(path, "measured", content.get("measured", {}), MEASURED)
    return Profile(name, pattern, peaks, measured)


def _figures(path: Path, table: str, content: dict[str, object], allowed: frozenset[str]) -> dict[str, Figure]:
    figures = {}
    for key, entry in content.items():
        where = f"{path.name}: {table}.{key}"
        if key not in allowed:
            raise ConfigError("unknown figure", where=where, got=key, allowed=", ".join(sorted(allowed)))
        value, source = (entry.get("value"), entry.get("source")) if isinstance(entry, dict) else (entry, None)
        if not isinstance(value, (int, float)) or not value > 0 or not source:
            raise ConfigError(
                "a figure needs a positive value and its source",
                where=where,
                got=entry,
                allowed="{ value = 1.0, source = '...' }",
            )
        figures[key] = Figure(float(value), str(source))
    return figures
