"""Parameters of a GPT as flat arrays: float32 weights, their 16-bit copy, gradients and moments, with named views."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.errors import ArrayError
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Array, Backend
from burstproof.tensor.gpt.config import GptConfig, ParameterShape
from burstproof.tensor.ops.nn_reference import narrowed

PRECISIONS = {"bfloat16": BFLOAT16, "float32": FLOAT32, "float64": FLOAT64}
"""Types of activations and matrices by name; weights and gradients are float32, with float64 float64."""

_UNDERFLOW = (
    "In float16 gradients underflow unless the loss is scaled: take bfloat16, as small and with float32's range"
)


class GptParameters:
    """All parameters of one model on one backend.

    Parameters
    ----------
    config : GptConfig
    place : Backend
    precision : {"bfloat16", "float32", "float64"}
        Type of the activations.
    seed : int
        Of the initial weights: normal numbers with deviation 0.02, the layers before a residual sum 0.02 / sqrt(2
        layers), as GPT-2 has them.

    Attributes
    ----------
    weights, gradients : array, (count,)
        Matrices first, then vectors.
    moments : two arrays, (count,)
        Of AdamW.
    copy : array or None
        bfloat16 copy of the matrices.
    decayed : int
        Values of the matrices, which decay.

    Raises
    ------
    ArrayError
        An unknown precision; float16, whose gradients underflow without a scaled loss.
    OutOfMemoryError
        No room for the arrays.
    """

    def __init__(self, config: GptConfig, place: Backend, precision: str = "bfloat16", seed: int = 0) -> None:
        if precision not in PRECISIONS:
            raise ArrayError(
                "a GPT is not trained in this precision",
                where="GptParameters, precision",
                got=precision,
                allowed=", ".join(PRECISIONS),
                cure=_UNDERFLOW if precision == "float16" else None,
            )
        self.config, self.place, self.dtype = config, place, PRECISIONS[precision]
        kind = FLOAT64 if precision == "float64" else FLOAT32
        matrices, vectors = tuple(config.matrices()), tuple(config.vectors())
        self.decayed = sum(shape.size for shape in matrices)
        values = _initial((*matrices, *vectors), config, np.random.default_rng(seed)).astype(kind)
        self.weights = place.from_host(values)
        self.gradients = place.zeros(values.size, kind)
        self.moments = (place.zeros(values.size, kind), place.zeros(values.size, kind))
        self.copy = place.from_host(narrowed(values[: self.decayed], BFLOAT16)) if self.dtype == BFLOAT16 else None
        self._weights = _views(self.weights, (*matrices, *vectors))
        self._gradients = _views(self.gradients, (*matrices, *vectors))
        computed = self.weights if self.copy is None else self.copy
        self._computed = _views(computed, matrices)

    def matrix(self, name: str) -> Array:
        """A matrix in the type of the activations."""
        return self._computed[name]

    def vector(self, name: str) -> Array:
        """A bias, scale or shift, float32 or float64."""
        return self._weights[name]

    def gradient(self, name: str) -> Array:
        """Where the gradient of a parameter goes, float32 or float64."""
        return self._gradients[name]

    def on_host(self) -> dict[str, npt.NDArray[np.floating]]:
        """Weights by name, as NumPy arrays of their own."""
        host = self.place.to_host(self.weights)
        shapes = (*self.config.matrices(), *self.config.vectors())
        return {name: np.array(view) for name, view in _views(host, shapes).items()}


def _initial(
    shapes: tuple[ParameterShape, ...], config: GptConfig, random: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Weights at the start, flat; rows of the token table that pad the vocabulary are 0."""
    parts = []
    for shape in shapes:
        part = np.full(shape.shape, shape.constant, np.float32)
        if shape.deviation:
            part[...] = random.standard_normal(shape.shape, np.float32) * np.float32(shape.deviation)
        if shape.name == "tokens":
            part[config.vocabulary :] = 0.0
        parts.append(part.ravel())
    return np.concatenate(parts)


def _views(flat: Array, shapes: tuple[ParameterShape, ...]) -> dict[str, Array]:
    found, start = {}, 0
    for shape in shapes:
        found[shape.name] = flat[start : start + shape.size].reshape(shape.shape)
        start += shape.size
    return found
