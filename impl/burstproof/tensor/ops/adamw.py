"""AdamW on one flat array: all parameters of a model in one kernel, with the 16-bit copy that the next step reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.parameters import struct_of
from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check, check_alike, check_dtype
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.kernels import build
from burstproof.tensor.ops.nn_reference import narrowed

_THREADS = 256


class Rates(NamedTuple):
    """What a step takes besides arrays and counts; of the same name in adamw.cu.

    Attributes
    ----------
    step : float
        Learning rate, corrected for the first moment's start at 0.
    first, second : float
        Decay of the two moments.
    epsilon : float
        Added to the root of the second moment.
    decay : float
        Part by which weights shrink.
    second_correction : float
        What the root of the second moment is multiplied with.
    """

    step: float
    first: float
    second: float
    epsilon: float
    decay: float
    second_correction: float


@lru_cache(maxsize=8)
def entry(dtype: np.dtype[Any]) -> Entry:
    """The kernel of adamw.cu with a copy of ``dtype``."""
    declared = "float32[] float32[] float32[] float32[] {s}[]? int64 int64 int64 " + struct_of(Rates, "float32")
    return build(("adamw.cu",), "adamw", declared, dtype, _THREADS, THREADS=_THREADS, HINTS=0)


@dataclass(frozen=True)
class AdamW:
    """Constants of the optimiser.

    Attributes
    ----------
    rate : float
        Learning rate.
    beta1, beta2 : float
        Decay of the two moments, 0 to below 1.
    epsilon : float
        Added to the root of the second moment.
    decay : float
        Weight decay, decoupled: weights shrink by ``rate * decay`` a step.
    """

    rate: float = 3e-4
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    decay: float = 0.1

    def step(
        self,
        number: int,
        weights: Array,
        gradients: Array,
        moments: tuple[Array, Array],
        *,
        decayed: int | None = None,
        copy: Array | None = None,
    ) -> None:
        """Update ``weights`` and ``moments`` in place.

        Source: Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2.

        Parameters
        ----------
        number : int
            Steps taken, this one included; from 1.
        weights, gradients : array, (count,), float32 (float64 on the CPU)
        moments : two arrays, (count,)
            First and second moment, zero before the first step.
        decayed : int, optional
            Weights from the start that decay; all by default. A multiple of 4 on a device, as ``count``.
        copy : array, (at most count,), float16 or bfloat16, optional
            Gets the rounded new weights from the start on.

        Raises
        ------
        ArrayError
            Shapes, dtypes or devices that do not fit, a step number below 1, counts out of range.
        """
        where = "AdamW.step"
        place = backend_of(weights, gradients, *moments, *(() if copy is None else (copy,)))
        shrinking = weights.size if decayed is None else int(decayed)
        self._check(where, number, weights, gradients, moments, shrinking, copy)
        correction = self.rate / (1.0 - self.beta1**number)
        second = 1.0 / sqrt(1.0 - self.beta2**number)
        if place.device is None:
            self._on_cpu(weights, gradients, moments, shrinking, copy, correction, second)
            return
        if weights.dtype == FLOAT64 or weights.size % 4 or shrinking % 4 or (copy is not None and copy.size % 4):
            raise ArrayError(
                "the kernel takes float32 and counts that are multiples of 4",
                where=where,
                got=(str(weights.dtype), weights.size, shrinking),
                cure="Pad the flat array",
            )
        rates = Rates(correction, self.beta1, self.beta2, self.epsilon, self.rate * self.decay, second)
        copied = 0 if copy is None else copy.size
        with place.use():
            kernel = entry(FLOAT32 if copy is None else copy.dtype).on(place.device)
            blocks = -(-weights.size // (4 * _THREADS))
            kernel(blocks, _THREADS, weights, gradients, *moments, copy, weights.size, shrinking, copied, rates)

    def _check(
        self,
        where: str,
        number: int,
        weights: Array,
        gradients: Array,
        moments: tuple[Array, Array],
        decayed: int,
        copy: Array | None,
    ) -> None:
        if number < 1:
            raise ArrayError("steps count from 1", where=where, got=number)
        check(weights, f"{where}, weights", dtypes=(FLOAT32, FLOAT64))
        if weights.ndim != 1 or not weights.size:
            raise ArrayError("the weights must be one flat array", where=where, got=tuple(weights.shape))
        for name, array in (("gradients", gradients), ("moments", moments[0]), ("moments", moments[1])):
            check_alike(array, weights, f"{where}, {name}")
        if not 0 <= decayed <= weights.size:
            raise ArrayError("decayed out of range", where=where, got=decayed, allowed=f"0 to {weights.size}")
        if copy is not None:
            check_dtype(copy, (FLOAT16, BFLOAT16), f"{where}, copy")
            if copy.ndim != 1 or copy.size > weights.size:
                raise ArrayError("the copy is longer than the weights", where=where, got=tuple(copy.shape))

    def _on_cpu(
        self,
        weights: Array,
        gradients: Array,
        moments: tuple[Array, Array],
        decayed: int,
        copy: Array | None,
        correction: float,
        second: float,
    ) -> None:
        """The same by NumPy."""
        kind = weights.dtype.type
        first_moment, second_moment = moments
        first_moment *= kind(self.beta1)
        first_moment += kind(1.0 - self.beta1) * gradients
        second_moment *= kind(self.beta2)
        second_moment += kind(1.0 - self.beta2) * gradients * gradients
        weights[:decayed] -= kind(self.rate * self.decay) * weights[:decayed]
        weights -= kind(correction) * first_moment / (np.sqrt(second_moment) * kind(second) + kind(self.epsilon))
        if copy is not None:
            copy[...] = narrowed(weights[: copy.size], copy.dtype)
