"""AdamW on one flat array: all parameters of a model in one kernel, with the 16-bit copy that the next step reads."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check_contiguous, check_dtype, check_same_dtype, check_shape
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops import train_kernels
from burstproof.tensor.ops.nn_reference import narrowed


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
        rates = (correction, self.beta1, self.beta2, self.epsilon, self.rate * self.decay, second)
        with place.use():
            train_kernels.adamw(weights, gradients, moments, copy, shrinking, rates)

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
        check_dtype(weights, (FLOAT32, FLOAT64), f"{where}, weights")
        if weights.ndim != 1 or not weights.size:
            raise ArrayError("the weights must be one flat array", where=where, got=tuple(weights.shape))
        for name, array in (("gradients", gradients), ("moments", moments[0]), ("moments", moments[1])):
            check_same_dtype(weights, array, f"{where}, {name}")
            check_shape(array, tuple(weights.shape), f"{where}, {name}")
        for array in (weights, gradients, *moments):
            check_contiguous(array, where)
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
