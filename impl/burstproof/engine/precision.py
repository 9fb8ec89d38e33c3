"""Storage formats of membrane potentials between bursts (BE-11), in plain NumPy.

Arithmetic is float32 in all formats: a potential is widened when its neuron is a candidate, and rounded once when it
is written back. So the state after a burst is ``Storage.rounded`` of the result of SEMANTICS.md; nothing else differs
from fp32.

=====  =====  ==========================================================================================
name   bytes  a potential v is kept as
=====  =====  ==========================================================================================
fp32   4      itself
fp16   2      the nearest IEEE half, ties to even; beyond +-65504 that value
bf16   2      the nearest float32 with 8 significant bits, ties to even; beyond the largest that value
int8   1      step * q, q the nearest integer to v / step, ties to even, within +-127; NaN becomes 0
=====  =====  ==========================================================================================

``step`` is the smallest power of two for which 127 * step reaches the largest |threshold| of the network. A power of
two makes division and product exact. 0 is kept as 0. A saturated potential has reached every threshold, but may lie
below a threshold limit that it had exceeded; a range with room for limits would cost more firings than that.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import InputError
from burstproof.network.model import Network

Floats = npt.NDArray[np.float32]

LARGEST_HALF = np.float32(65504)
LARGEST_BRAIN = np.uint32(0x7F7F0000).view(np.float32)
"""Largest finite bfloat16."""

BRAIN_NAN = np.uint16(0x7FC0)
LEVELS = 127
"""Largest |q| of int8."""

_SMALLEST_STEP, _LARGEST_STEP = -120, 121


class Precision(Enum):
    """Format of the stored potentials; ``fp16`` and ``int8`` are among FEAGI's ``quantization_precision``."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    INT8 = "int8"

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a stored potential; bfloat16 is stored as uint16."""
        types = {"fp32": np.float32, "fp16": np.float16, "bf16": np.uint16, "int8": np.int8}
        return np.dtype(types[self.value])


def precision_named(name: str) -> Precision:
    """The precision of that name.

    Raises
    ------
    InputError
        Unknown name.
    """
    try:
        return Precision(name)
    except ValueError:
        allowed = ", ".join(PRECISION_NAMES)
        raise InputError("unknown precision", where="precision", got=name, allowed=allowed) from None


FEAGI_INT8 = "feagi-int8"
"""Name of the released engine's own 8-bit precision: fp32 with potentials and thresholds clamped to 0...255 (FEATURES
section 6)."""

PRECISION_NAMES = (*(precision.value for precision in Precision), FEAGI_INT8)
"""Precisions that a user may choose."""


def with_precision(network: Network, name: str) -> tuple[Network, Precision]:
    """The network and the storage format for the precision ``name``.

    Raises
    ------
    InputError
        Unknown name.
    """
    if name != FEAGI_INT8:
        return network, precision_named(name)
    features = dataclasses.replace(network.features, clamp_potentials=True)
    return network.replace(features=features, fixed_point=network.fixed_point), Precision.FP32


@dataclass(frozen=True)
class Storage:
    """A storage format for one network; ``step`` is the unit of int8, 1 for other formats."""

    precision: Precision = Precision.FP32
    step: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether every float32 is stored unchanged."""
        return self.precision is Precision.FP32

    @property
    def words(self) -> str:
        """The format, in words."""
        step = f" in steps of {self.step:g}" if self.precision is Precision.INT8 else ""
        return f"potentials in {self.precision.value}{step}"

    def encode(self, potentials: Floats) -> npt.NDArray[Any]:
        """``potentials`` as stored: an array of the same shape and of ``precision.dtype``."""
        if self.precision is Precision.FP16:
            return np.clip(potentials, -LARGEST_HALF, LARGEST_HALF).astype(np.float16)
        if self.precision is Precision.BF16:
            return _brain_of(potentials)
        if self.precision is Precision.INT8:
            step = np.float32(self.step)
            numbers = np.where(np.isnan(potentials), np.float32(0), potentials)
            return np.rint(np.clip(numbers, -LEVELS * step, LEVELS * step) / step).astype(np.int8)
        return potentials.copy()

    def decode(self, stored: npt.NDArray[Any]) -> Floats:
        """The float32 potentials of ``stored``."""
        if self.precision is Precision.BF16:
            return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
        if self.precision is Precision.INT8:
            return stored.astype(np.float32) * np.float32(self.step)
        return stored.astype(np.float32)

    def rounded(self, potentials: Floats) -> Floats:
        """``potentials`` after encoding and decoding."""
        return self.decode(self.encode(potentials))


def _brain_of(potentials: Floats) -> npt.NDArray[np.uint16]:
    """Upper halves of float32, rounded half to even."""
    bits = np.clip(potentials, -LARGEST_BRAIN, LARGEST_BRAIN).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    upper = ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(potentials), BRAIN_NAN, upper)


def storage_for(precision: Precision, thresholds: Floats) -> Storage:
    """The storage for a network with these ``thresholds``, (N,), those of all its neurons also for a shard.

    If all thresholds are 0, the step is that for thresholds of 1.
    """
    if precision is not Precision.INT8:
        return Storage(precision)
    finite = np.abs(thresholds[np.isfinite(thresholds)]).astype(np.float64)
    largest = float(finite.max(initial=0.0)) or 1.0
    exponent = _SMALLEST_STEP
    while exponent < _LARGEST_STEP and LEVELS * 2.0**exponent < largest:
        exponent += 1
    return Storage(precision, 2.0**exponent)
