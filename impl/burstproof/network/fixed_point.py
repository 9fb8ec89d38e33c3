"""The scale of a network's sums as a value: part of the state, so files, checkpoints and records hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_FINEST = 149
"""Digits after the point of the smallest float32."""

UNBOUNDED = 1 << 63
"""``FixedPoint.largest_sum`` where nothing bounds the sums."""

_MAY_WRAP = 1 << 62
"""From here on a sum that was taken in float64 may be beyond 64 bits."""


@dataclass(frozen=True)
class FixedPoint:
    """Scale, width and clamp of the accumulator (SEMANTICS section 7).

    A contribution c becomes the integer round-half-even(c * 2^k), clamped to +-``clamp``; NaN becomes 0.

    Attributes
    ----------
    k : int
        Binary digits after the point, 0...149.
    bits : int
        Accumulator width, 32 or 64.
    clamp : int
        Largest magnitude of one integer contribution.
    exact : bool
        Whether every contribution that can occur is a multiple of 2^-k, so that sums are exact.
    largest_sum : int
        Bound of the magnitude of what the synapses onto one neuron add up to in a burst.
    max_stimulus : float
        Declared bound of the stimulus for which the scale was planned.
    fractional_stimulus : bool
        Whether it was planned for fractional stimulus.
    """

    k: int
    bits: int
    clamp: int
    exact: bool
    largest_sum: int = UNBOUNDED
    max_stimulus: float = 255.0
    fractional_stimulus: bool = False

    @classmethod
    def from_values(cls, values: object) -> FixedPoint:
        """The scale that a file states as plain values.

        Raises
        ------
        ValueError
            A value that is absent, unknown, ill-typed or out of range.
        """
        kinds = {"k": int, "bits": int, "clamp": int, "exact": bool, "largest_sum": int}
        kinds |= {"max_stimulus": float, "fractional_stimulus": bool}
        if not isinstance(values, dict) or set(values) != set(kinds):
            raise ValueError(f"a scale has the entries {', '.join(kinds)}")
        bits = values["bits"] if values["bits"] in (32, 64) else 0
        fits = {
            "k": lambda value: 0 <= value <= _FINEST,
            "bits": lambda value: value == bits,
            "clamp": lambda value: 0 < value < 1 << max(bits - 1, 0),
            "largest_sum": lambda value: 0 <= value <= UNBOUNDED,
            "max_stimulus": lambda value: 0 <= value < float("inf"),
        }
        for name, kind in kinds.items():
            if type(values[name]) is not kind or (name in fits and not fits[name](values[name])):
                raise ValueError(f"{name} of the scale of the sums is {values[name]!r}")
        return cls(**values)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Integer dtype of the accumulator."""
        return np.dtype(np.int32 if self.bits == 32 else np.int64)

    @property
    def scale(self) -> float:
        """2^k, exact."""
        return float(1 << self.k)

    @property
    def unit(self) -> np.float32:
        """2^-k as float32, exact."""
        return np.float32(1.0 / self.scale)

    @property
    def clamp_float(self) -> float:
        """The largest float64 that does not exceed ``clamp``: an integer-valued float64 above it is clamped."""
        value = float(self.clamp)
        return value if int(value) <= self.clamp else float(np.nextafter(value, 0.0))

    def __str__(self) -> str:
        sums = "exact" if self.exact else f"rounded to 2^-{self.k}"
        return f"sums {sums}, k = {self.k} in {self.bits} bit"

    def quantise(self, contributions: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int64], bool]:
        """Integers of float32 contributions, any shape, and whether one was clamped."""
        scaled = np.rint(contributions.astype(np.float64) * self.scale)
        if np.abs(scaled).max(initial=0) <= self.clamp_float:
            return scaled.astype(np.int64), False
        outside = np.abs(scaled) > self.clamp_float
        integers = np.where(outside | np.isnan(scaled), 0.0, scaled).astype(np.int64)
        integers[outside] = np.where(scaled[outside] > 0, self.clamp, -self.clamp)
        return integers, bool(outside.any())

    def add_up(
        self, integers: npt.NDArray[np.int64], places: npt.NDArray[np.intp], count: int
    ) -> tuple[npt.NDArray[np.int64], bool]:
        """Sums (count,) of what ``quantise`` gave (A,), ``places`` (A,) among them, and whether one was clamped."""
        sums = np.zeros(count, np.int64)
        np.add.at(sums, places, integers)
        rough = np.bincount(places, weights=integers, minlength=count)
        outside = (np.abs(rough) >= _MAY_WRAP) | (np.abs(sums) > self.clamp)
        sums[outside] = np.where(rough[outside] > 0, self.clamp, -self.clamp)
        return sums, bool(outside.any())
