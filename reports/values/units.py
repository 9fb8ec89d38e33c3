"""Units: their dimensions, conversion, which way is better, and figures as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from burstproof.errors import InputError

_SCALES: dict[str, tuple[str, float]] = {
    "ns": ("time", 1e-9),
    "us": ("time", 1e-6),
    "µs": ("time", 1e-6),
    "ms": ("time", 1e-3),
    "s": ("time", 1.0),
    "min": ("time", 60.0),
    "B": ("bytes", 1.0),
    "KB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9),
    "TB": ("bytes", 1e12),
    "KiB": ("bytes", 2.0**10),
    "MiB": ("bytes", 2.0**20),
    "GiB": ("bytes", 2.0**30),
    "TiB": ("bytes", 2.0**40),
    "B/s": ("bandwidth", 1.0),
    "MB/s": ("bandwidth", 1e6),
    "GB/s": ("bandwidth", 1e9),
    "TB/s": ("bandwidth", 1e12),
    "GiB/s": ("bandwidth", 2.0**30),
    "FLOP/s": ("arithmetic", 1.0),
    "GFLOP/s": ("arithmetic", 1e9),
    "TFLOP/s": ("arithmetic", 1e12),
    "Hz": ("frequency", 1.0),
    "MHz": ("frequency", 1e6),
    "GHz": ("frequency", 1e9),
    "1": ("ratio", 1.0),
    "x": ("ratio", 1.0),
    "%": ("ratio", 0.01),
    "neurons": ("neurons", 1.0),
    "synapses": ("synapses", 1.0),
    "bursts": ("bursts", 1.0),
    "tokens/s": ("tokens/s", 1.0),
    "W": ("power", 1.0),
    "nJ": ("energy", 1e-9),
    "uJ": ("energy", 1e-6),
    "J": ("energy", 1.0),
    "C": ("temperature", 1.0),
}
_COUNTS = frozenset({"neurons", "synapses", "bursts", "ratio"})
_RATES = frozenset({"bandwidth", "arithmetic", "frequency", "tokens/s"})
_PRINTED = {"us": "µs", "uJ": "µJ", "C": "°C"}
_IN_SENTENCES = (
    (re.compile(r"(?<=\d) us\b"), " µs"),
    (re.compile(r"(?<=\d) uJ\b"), " µJ"),
    (re.compile(r"(?<=\d)x(?!\w)"), "×"),
    (re.compile(r"<= (?=[\d.-])"), "≤ "),
    (re.compile(r">= (?=[\d.-])"), "≥ "),
)


def known(unit: str) -> bool:
    """Whether a target may be stated in ``unit``."""
    return unit in _SCALES


def names() -> tuple[str, ...]:
    """Every unit that a target may be stated in."""
    return tuple(_SCALES)


def dimension(unit: str) -> str:
    """Name the dimension of ``unit``; an unknown unit is a dimension of its own."""
    return _SCALES[unit][0] if unit in _SCALES else f"unit {unit}"


def convert(value: float, unit: str, to: str) -> float:
    """Convert ``value`` from ``unit`` to ``to``.

    Raises
    ------
    InputError
        If the two units measure different things.
    """
    if unit == to:
        return value
    if dimension(unit) != dimension(to):
        raise InputError(
            f"a figure in {unit} cannot be compared with one in {to}",
            cure="State the measurement and its target in units of the same dimension.",
        )
    return value * (_SCALES[unit][1] / _SCALES[to][1])


def converted(value: float | None, unit: str, to: str) -> float | None:
    """``value`` in the unit ``to``; ``None`` if it is not finite, or if the units measure different things."""
    if value is None or not math.isfinite(value) or dimension(unit) != dimension(to):
        return None
    return convert(value, unit, to)


def lower_is_better(unit: str) -> bool | None:
    """``True`` for times and energies, ``False`` for rates, ``None`` for units that do not say which way is better."""
    kind = dimension(unit)
    if kind in ("time", "energy"):
        return True
    return False if kind in _RATES else None


def shown(value: float, unit: str = "1") -> str:
    """A figure with its unit, to four significant digits: ``0.6 ms``, ``16 µs``, ``5 M neurons``, ``62×``."""
    figure = _with_size(value) if dimension(unit) in _COUNTS else _digits(value)
    if unit == "1":
        return figure
    return f"{figure}×" if unit == "x" else f"{figure} {_PRINTED.get(unit, unit)}"


def typeset(text: str) -> str:
    """A sentence with units and limits written as :func:`shown` does: ``≤ 16 µs`` for ``<= 16 us``."""
    for pattern, printed in _IN_SENTENCES:
        text = pattern.sub(printed, text)
    return text


def readable(value: float, unit: str) -> str:
    """As :func:`shown`, but times and bytes in the unit that suits their size: ``6.1 µs`` for 0.0061 ms.

    It is the largest unit in which the figure is at least 0.1, as in targets: 0.43 ms, not 430 µs.
    """
    ladder = {"time": ("ns", "us", "ms", "s"), "bytes": ("B", "KB", "MB", "GB")}.get(dimension(unit))
    if not ladder or value == 0.0:
        return shown(value, unit)
    fitting = [step for step in ladder if abs(convert(value, unit, step)) >= 0.1]
    best = fitting[-1] if fitting else ladder[0]
    return shown(convert(value, unit, best), best)


def fitting(value: float, unit: str) -> str:
    """A figure in ``unit`` from 0.1 to 1000, so that it has the unit of its limit; otherwise as :func:`readable`."""
    return shown(value, unit) if 0.1 <= abs(value) < 1000.0 else readable(value, unit)


def _with_size(value: float) -> str:
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e4, " K")):
        if abs(value) >= size:
            return f"{_digits(value / (1e3 if letter == ' K' else size))}{letter}"
    return _digits(value)


def _digits(value: float) -> str:
    if value and 1e-3 <= abs(value) < 1e6:
        text = f"{value:.{max(0, 3 - _magnitude(value))}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.4g}"


def _magnitude(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])


def counted(count: int, noun: str) -> str:
    """``1 case``, ``2 cases``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(texts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def first_of(texts: Sequence[str], most: int) -> str:
    """``a, b and 3 more``: the first ``most`` of ``texts``, and the number of the others."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def scalar_text(value: object) -> str:
    """A condition or a telemetry value as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
