"""GPT-2 (Radford et al. 2019): loss, gradients and a training step, on the operations of this package.

Activations and matrices are bfloat16 (or float32, float64), sums, weights, gradients and moments float32 (float64).
Arrays are (tokens, values) throughout, tokens being batch x length. Memory comes from the backend's pool: what a
block's backward pass has used up serves the next block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy.typing as npt

from burstproof.tensor.array.protocol import Array, Backend
from burstproof.tensor.attention.operation import Attended, attention, attention_backward
from burstproof.tensor.gpt.batch import Batch, placed_batch
from burstproof.tensor.gpt.config import GptConfig
from burstproof.tensor.gpt.parameters import GptParameters
from burstproof.tensor.ops.adamw import AdamW
from burstproof.tensor.ops.cross_entropy import cross_entropy_in_place
from burstproof.tensor.ops.embedding import embed, embed_backward
from burstproof.tensor.ops.linalg import matmul
from burstproof.tensor.ops.linear import add_bias, add_residual, bias_gradient
from burstproof.tensor.ops.nn import LayerNorm, bias_gelu, bias_gelu_backward, layer_norm, layer_norm_backward


@dataclass(frozen=True)
class BlockActivations:
    """What a transformer block keeps for its backward pass; (tokens, values) each.

    Attributes
    ----------
    x, middle : array
        What entered the block, and what entered its second half.
    normed1, normed2 : LayerNorm
        Both after their layer norm.
    qkv : array
        Queries, keys and values, interleaved by token.
    attended : Attended
        Result of the attention, as (batch, heads, length, head) views.
    joined : array
        The same memory as (tokens, values).
    wide, active : array
        Hidden layer before and after its bias and GELU.
    """

    x: Array
    normed1: LayerNorm
    qkv: Array
    attended: Attended
    joined: Array
    middle: Array
    normed2: LayerNorm
    wide: Array
    active: Array


class Gpt:
    """A model with its parameters.

    Parameters
    ----------
    config : GptConfig
    place : Backend
    precision : {"bfloat16", "float32", "float64"}
    seed : int
        Of the initial weights.

    Attributes
    ----------
    parameters : GptParameters
    activation_bytes : int
        Memory that the last forward pass kept for the backward pass, logits included.
    """

    def __init__(self, config: GptConfig, place: Backend, precision: str = "bfloat16", seed: int = 0) -> None:
        self.config = config
        self.parameters = GptParameters(config, place, precision, seed)
        self.activation_bytes = 0
        self._place = place
        self._steps = 0

    def step(self, tokens: npt.ArrayLike, targets: npt.ArrayLike, optimiser: AdamW) -> Array:
        """One training step: gradients of the mean loss, then AdamW; the loss, an array of one value.

        Parameters
        ----------
        tokens, targets : array_like of int, (batch, length)
            Tokens on the host, and for each the one that follows; a negative target does not count.
        optimiser : AdamW

        Raises
        ------
        ArrayError
            Shapes that differ, sequences longer than the context, tokens outside the vocabulary.
        OutOfMemoryError
            No room for the activations.
        """
        loss = self.gradients(tokens, targets)
        self._steps += 1
        held = self.parameters
        optimiser.step(self._steps, held.weights, held.gradients, held.moments, decayed=held.decayed, copy=held.copy)
        return loss

    def gradients(self, tokens: npt.ArrayLike, targets: npt.ArrayLike) -> Array:
        """Mean loss, an array of one value; its gradients go to ``parameters.gradients``. Arguments as ``step``."""
        batch = placed_batch(self.config, tokens, targets, self._place)
        with self._place.use():
            x, shape = self._embedded(batch)
            kept = []
            for block in range(self.config.layers):
                activations, x = self._forward(block, x, shape)
                kept.append(activations)
            loss, dx = self._head(x, batch, kept)
            for block in reversed(range(self.config.layers)):
                dx = self._backward(block, dx, kept.pop(), shape)
            gradients = (self.parameters.gradient("tokens"), self.parameters.gradient("places"))
            embed_backward(dx.reshape(*batch.tokens.shape, -1), batch.tokens, *gradients, order=batch.order)
        return loss

    def loss(self, tokens: npt.ArrayLike, targets: npt.ArrayLike) -> Array:
        """Mean loss without gradients, an array of one value; keeps no activations. Arguments as ``step``."""
        batch = placed_batch(self.config, tokens, targets, self._place)
        with self._place.use():
            x, shape = self._embedded(batch)
            for block in range(self.config.layers):
                x = self._forward(block, x, shape)[1]
            losses = self._losses(self._logits(self._norm("norm", x)), batch)
            return losses.sum() / losses.dtype.type(batch.counted)

    def _embedded(self, batch: Batch) -> tuple[Array, tuple[int, ...]]:
        """What enters the first block, and (batch, length, heads, head)."""
        matrix = self.parameters.matrix
        x = embed(batch.tokens, matrix("tokens"), matrix("places")).reshape(-1, self.config.width)
        return x, (*batch.tokens.shape, self.config.heads, self.config.head)

    def _logits(self, normed: LayerNorm) -> Array:
        return matmul(normed.values, self.parameters.matrix("tokens"), transpose_b=True)

    def _losses(self, logits: Array, batch: Batch) -> Array:
        """Losses of the tokens; the logits become the gradient of their mean."""
        return cross_entropy_in_place(logits, batch.targets, self.config.vocabulary, 1.0 / batch.counted)

    def _head(self, x: Array, batch: Batch, kept: list[BlockActivations]) -> tuple[Array, Array]:
        """Final norm, logits, mean loss; gradient of ``x``."""
        normed = self._norm("norm", x)
        logits = self._logits(normed)
        self.activation_bytes = _bytes([*kept, normed, logits])
        losses = self._losses(logits, batch)
        self._product("tokens", logits, normed.values)
        dnormed = matmul(logits, self.parameters.matrix("tokens"))
        return losses.sum() / losses.dtype.type(batch.counted), self._norm_backward("norm", dnormed, x, normed)

    def _forward(self, block: int, x: Array, shape: tuple[int, ...]) -> tuple[BlockActivations, Array]:
        """Activations of one block, and what leaves it."""
        matrix, vector = self.parameters.matrix, self.parameters.vector
        normed1 = self._norm(f"{block}.norm1", x)
        qkv = add_bias(matmul(normed1.values, matrix(f"{block}.qkv")), vector(f"{block}.qkv_bias"))
        joined = self._place.empty(x.shape, x.dtype)
        attended = attention(*_heads(qkv, shape), causal=True, out=_by_head(joined, shape))
        mixed = matmul(joined, matrix(f"{block}.joined"))
        middle = add_residual(x, mixed, vector(f"{block}.joined_bias"))
        normed2 = self._norm(f"{block}.norm2", middle)
        wide = matmul(normed2.values, matrix(f"{block}.wide"))
        active = bias_gelu(wide, vector(f"{block}.wide_bias"), "tanh")
        narrow = matmul(active, matrix(f"{block}.narrow"))
        out = add_residual(middle, narrow, vector(f"{block}.narrow_bias"))
        return BlockActivations(x, normed1, qkv, attended, joined, middle, normed2, wide, active), out

    def _backward(self, block: int, dx: Array, kept: BlockActivations, shape: tuple[int, ...]) -> Array:
        """Gradient of what entered a block from that of what left it; gradients of the block's parameters."""
        matrix, vector, gradient = self.parameters.matrix, self.parameters.vector, self.parameters.gradient
        bias_gradient(dx, gradient(f"{block}.narrow_bias"))
        self._product(f"{block}.narrow", kept.active, dx)
        dactive = matmul(dx, matrix(f"{block}.narrow"), transpose_b=True)
        dwide = bias_gelu_backward(dactive, kept.wide, vector(f"{block}.wide_bias"), "tanh")
        gradient(f"{block}.wide_bias")[...] = dwide.bias
        self._product(f"{block}.wide", kept.normed2.values, dwide.values)
        dnormed = matmul(dwide.values, matrix(f"{block}.wide"), transpose_b=True)
        dx = add_residual(dx, self._norm_backward(f"{block}.norm2", dnormed, kept.middle, kept.normed2))

        bias_gradient(dx, gradient(f"{block}.joined_bias"))
        self._product(f"{block}.joined", kept.joined, dx)
        djoined = matmul(dx, matrix(f"{block}.joined"), transpose_b=True)
        dqkv = self._place.empty(kept.qkv.shape, kept.qkv.dtype)
        attention_backward(
            _by_head(djoined, shape),
            *_heads(kept.qkv, shape),
            kept.attended,
            causal=True,
            gradients=_heads(dqkv, shape),
        )
        bias_gradient(dqkv, gradient(f"{block}.qkv_bias"))
        self._product(f"{block}.qkv", kept.normed1.values, dqkv)
        dnormed = matmul(dqkv, matrix(f"{block}.qkv"), transpose_b=True)
        return add_residual(dx, self._norm_backward(f"{block}.norm1", dnormed, kept.x, kept.normed1))

    def _norm(self, name: str, x: Array) -> LayerNorm:
        return layer_norm(x, self.parameters.vector(f"{name}_scale"), self.parameters.vector(f"{name}_shift"))

    def _norm_backward(self, name: str, gradient: Array, x: Array, normed: LayerNorm) -> Array:
        found = layer_norm_backward(gradient, x, self.parameters.vector(f"{name}_scale"), normed)
        self.parameters.gradient(f"{name}_scale")[...] = found.scale
        self.parameters.gradient(f"{name}_shift")[...] = found.shift
        return found.values

    def _product(self, name: str, entered: Array, gradient: Array) -> None:
        """Gradient of a matrix: what entered it, transposed, times the gradient of what left it."""
        target = self.parameters.gradient(name)
        matmul(entered, gradient, transpose_a=True, dtype=target.dtype, out=target)


def _by_head(array: Array, shape: tuple[int, ...]) -> Array:
    """(tokens, values) as a (batch, heads, length, head) view."""
    return array.reshape(shape).transpose(0, 2, 1, 3)


def _heads(qkv: Array, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Views (batch, heads, length, head) of the interleaved queries, keys and values."""
    batch, length, heads, head = shape
    parts = qkv.reshape(batch, length, 3, heads, head).transpose(2, 0, 3, 1, 4)
    return parts[0], parts[1], parts[2]


def _bytes(kept: Any) -> int:
    """Memory of all arrays in a tree of dataclasses and lists; what several views share counts once."""
    return sum({id(root): int(root.nbytes) for root in _roots(kept)}.values())


def _roots(kept: Any) -> Iterator[Array]:
    """The arrays that own the memory behind a tree of dataclasses and lists."""
    if isinstance(kept, list):
        for part in kept:
            yield from _roots(part)
    elif is_dataclass(kept):
        for field in fields(kept):
            yield from _roots(getattr(kept, field.name))
    else:
        while kept.base is not None:
            kept = kept.base
        yield kept
