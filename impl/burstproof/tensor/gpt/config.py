"""Sizes of a GPT-2 model (Radford et al. 2019), and the parameters that follow from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm, prod, sqrt

from burstproof.errors import ArrayError

_COLUMN_MULTIPLE = 8
_VOCABULARY_MULTIPLE = 128


@dataclass(frozen=True)
class ParameterShape:
    """One parameter: its name, shape, standard deviation at the start (0: constant) and constant at the start."""

    name: str
    shape: tuple[int, ...]
    deviation: float = 0.0
    constant: float = 0.0

    @property
    def size(self) -> int:
        """Number of values."""
        return prod(self.shape)


@dataclass(frozen=True)
class GptConfig:
    """Sizes of a model.

    Attributes
    ----------
    layers, heads, width, context, vocabulary : int
        Transformer blocks, attention heads a block, values a token, most tokens a sequence, different tokens. The
        width is a multiple of 8 and of the heads; on a device a head has 32, 64 or 128 values.
    """

    layers: int = 12
    heads: int = 12
    width: int = 768
    context: int = 1024
    vocabulary: int = 50_257

    def __post_init__(self) -> None:
        sizes = (self.layers, self.heads, self.width, self.context, self.vocabulary)
        if min(sizes) < 1:
            raise ArrayError("every size of a model is at least 1", where="GptConfig", got=sizes)
        if self.width % self.heads or self.width % _COLUMN_MULTIPLE:
            step = lcm(self.heads, _COLUMN_MULTIPLE)
            raise ArrayError(
                f"the width must be a multiple of {_COLUMN_MULTIPLE} and of the heads",
                where="GptConfig",
                got=f"width {self.width}, {self.heads} heads",
                cure=f"Take a width of {-(-self.width // step) * step}, or other heads",
            )

    @property
    def head(self) -> int:
        """Values of one head."""
        return self.width // self.heads

    @property
    def padded_vocabulary(self) -> int:
        """Rows of the token table: the vocabulary, up to a multiple of 128, which matrix products like better."""
        return -(-self.vocabulary // _VOCABULARY_MULTIPLE) * _VOCABULARY_MULTIPLE

    @property
    def parameter_count(self) -> int:
        """Values of all parameters, without the padding of the vocabulary."""
        padding = (self.padded_vocabulary - self.vocabulary) * self.width
        return sum(shape.size for shape in (*self.matrices(), *self.vectors())) - padding

    def matrices(self) -> Iterator[ParameterShape]:
        """Parameters with two axes: they decay, and are multiplied in reduced precision. Applied as ``x @ w``."""
        width, plain = self.width, 0.02
        last = plain / sqrt(2 * self.layers)
        yield ParameterShape("tokens", (self.padded_vocabulary, width), plain)
        yield ParameterShape("places", (self.context, width), plain)
        for i in range(self.layers):
            yield ParameterShape(f"{i}.qkv", (width, 3 * width), plain)
            yield ParameterShape(f"{i}.joined", (width, width), last)
            yield ParameterShape(f"{i}.wide", (width, 4 * width), plain)
            yield ParameterShape(f"{i}.narrow", (4 * width, width), last)

    def vectors(self) -> Iterator[ParameterShape]:
        """Parameters with one axis: biases, and scale and shift of the layer norms."""
        width = self.width
        for i in range(self.layers):
            yield from _norm(f"{i}.norm1", width)
            yield ParameterShape(f"{i}.qkv_bias", (3 * width,))
            yield ParameterShape(f"{i}.joined_bias", (width,))
            yield from _norm(f"{i}.norm2", width)
            yield ParameterShape(f"{i}.wide_bias", (4 * width,))
            yield ParameterShape(f"{i}.narrow_bias", (width,))
        yield from _norm("norm", width)


def _norm(name: str, width: int) -> Iterator[ParameterShape]:
    yield ParameterShape(f"{name}_scale", (width,), constant=1.0)
    yield ParameterShape(f"{name}_shift", (width,))


GPT2_124M = GptConfig()
"""The smallest GPT-2: 124 million parameters."""
