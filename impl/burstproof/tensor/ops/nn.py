"""Softmax, layer norm and bias + GELU, forward and backward, on NumPy and CuPy arrays.

On a CUDA device each is one kernel that reads and writes every element once (the gradients of parameters take a small
second one); rows too long for registers are left to CuPy. On the CPU, NumPy computes the same formulas.
Rows are float32, float64, float16 or bfloat16 (``dtypes.BFLOAT16``); scale, shift, bias and their gradients are
float64 for float64 rows, else float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import (
    check_contiguous,
    check_dimensions,
    check_dtype,
    check_same_dtype,
    check_shape,
)
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops import nn_kernels, nn_reference
from burstproof.tensor.ops.nn_kernels import computing_dtype
from burstproof.tensor.ops.row_plan import KINDS

GeluForm = Literal["erf", "tanh"]


@dataclass(frozen=True)
class LayerNorm:
    """Result of ``layer_norm``.

    Attributes
    ----------
    values : array
        Normalised, scaled and shifted rows; shape and dtype of the input.
    mean, inverse : array
        Mean and 1 / sqrt(variance + epsilon) of each row, (...,), which the backward pass needs.
    """

    values: Array
    mean: Array
    inverse: Array


@dataclass(frozen=True)
class LayerNormGradients:
    """Gradients with respect to the rows (their shape and dtype), the scale and the shift (columns,)."""

    values: Array
    scale: Array
    shift: Array


@dataclass(frozen=True)
class BiasGeluGradients:
    """Gradients with respect to the input (its shape and dtype) and the bias (columns,)."""

    values: Array
    bias: Array


def softmax(x: Array) -> Array:
    """exp(x - max) / sum(exp(x - max)) along the last axis.

    Parameters
    ----------
    x : array, (..., columns), float32, float64, float16 or bfloat16, contiguous
        Rows. A row with a NaN, with +inf or with nothing but -inf becomes NaN.

    Returns
    -------
    array
        Shape and dtype of ``x``.

    Raises
    ------
    ArrayError
        Another dtype, no axis, not contiguous.
    """
    place = backend_of(x)
    _check_rows(x, "softmax")
    if place.name == "numpy" or not x.size:
        return nn_reference.softmax(x)
    with place.use():
        result = place.xp.empty_like(x)
        plan = nn_kernels.plan_softmax(result, x)
        if plan is None:
            return nn_reference.softmax(x)
        nn_kernels.softmax_forward(result, x, plan)
    return result


def softmax_backward(gradient: Array, output: Array) -> Array:
    """Gradient with respect to softmax's input: ``y * (dy - sum(dy * y))``.

    Parameters
    ----------
    gradient, output : array, (..., columns)
        Gradient of the result, and the result; one shape, dtype and device.

    Raises
    ------
    ArrayError
        As ``softmax``, or shapes or dtypes that differ.
    """
    place = backend_of(gradient, output)
    _check_rows(output, "softmax_backward")
    _check_like(gradient, output, "softmax_backward")
    if place.name == "numpy" or not output.size:
        return nn_reference.softmax_backward(gradient, output)
    with place.use():
        result = place.xp.empty_like(output)
        plan = nn_kernels.plan_softmax(result, gradient, output)
        if plan is None:
            return nn_reference.softmax_backward(gradient, output)
        nn_kernels.softmax_backward(result, gradient, output, plan)
    return result


def layer_norm(x: Array, scale: Array, shift: Array, epsilon: float = 1e-5) -> LayerNorm:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift along the last axis (Ba, Kiros and Hinton, 2016).

    Parameters
    ----------
    x : array, (..., columns), contiguous
        Rows.
    scale, shift : array, (columns,)
        float64 for float64 rows, else float32.
    epsilon : float
        Added to the variance; positive.

    Raises
    ------
    ArrayError
        Shapes, dtypes or devices that do not fit, rows without columns, an epsilon that is not positive.
    """
    place = backend_of(x, scale, shift)
    _check_normed(x, scale, "layer_norm")
    check_shape(shift, tuple(scale.shape), "layer_norm, shift")
    check_dtype(shift, (scale.dtype,), "layer_norm, shift")
    if not epsilon > 0:
        raise ArrayError("epsilon must be positive", where="layer_norm", got=epsilon)
    if place.name == "numpy" or not x.size:
        return LayerNorm(*nn_reference.layer_norm(x, scale, shift, epsilon))
    with place.use():
        result = place.xp.empty_like(x)
        plan = nn_kernels.plan_layer_norm(result, x, backward=False)
        if plan is None:
            return LayerNorm(*nn_reference.layer_norm(x, scale, shift, epsilon))
        mean, inverse = (place.xp.empty(x.shape[:-1], scale.dtype) for _ in range(2))
        nn_kernels.layer_norm_forward(result, mean, inverse, x, scale, shift, epsilon, plan)
    return LayerNorm(result, mean, inverse)


def layer_norm_backward(gradient: Array, x: Array, scale: Array, forward: LayerNorm) -> LayerNormGradients:
    """Gradients of ``layer_norm`` with respect to rows, scale and shift; sums in an order that is always the same.

    Parameters
    ----------
    gradient : array
        Gradient of the result; shape and dtype of ``x``.
    x, scale : array
        As they went into ``layer_norm``.
    forward : LayerNorm
        What it returned; only ``mean`` and ``inverse`` are read.

    Raises
    ------
    ArrayError
        As ``layer_norm``.
    """
    where = "layer_norm_backward"
    place = backend_of(gradient, x, scale, forward.mean, forward.inverse)
    _check_normed(x, scale, where)
    _check_like(gradient, x, where)
    for statistic in (forward.mean, forward.inverse):
        check_shape(statistic, tuple(x.shape[:-1]), where)
        check_dtype(statistic, (scale.dtype,), where)
    arguments = (gradient, x, scale, forward.mean, forward.inverse)
    if place.name == "numpy" or not x.size:
        return LayerNormGradients(*nn_reference.layer_norm_backward(*arguments))
    with place.use():
        result = place.xp.empty_like(x)
        plan = nn_kernels.plan_layer_norm(result, gradient, x, backward=True)
        if plan is None:
            return LayerNormGradients(*nn_reference.layer_norm_backward(*arguments))
        to_parameters = place.xp.empty((2, scale.size), scale.dtype)
        nn_kernels.layer_norm_backward(result, to_parameters, gradient, x, forward.mean, forward.inverse, scale, plan)
        return LayerNormGradients(result, to_parameters[0], to_parameters[1])


def bias_gelu(x: Array, bias: Array, form: GeluForm = "erf") -> Array:
    """``gelu(x + bias)`` with one bias per column.

    Parameters
    ----------
    x : array, (..., columns), contiguous
        Rows.
    bias : array, (columns,)
        float64 for float64 rows, else float32.
    form : {"erf", "tanh"}
        x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh, which GPT-2 uses (Hendrycks and Gimpel, 2016).

    Raises
    ------
    ArrayError
        Shapes, dtypes, devices or a form that do not fit.
    """
    place = backend_of(x, bias)
    _check_normed(x, bias, "bias_gelu")
    tanh = _is_tanh(form, "bias_gelu")
    if place.name == "numpy" or not x.size:
        return nn_reference.bias_gelu(x, bias, tanh)
    with place.use():
        result = place.xp.empty_like(x)
        nn_kernels.bias_gelu_forward(result, x, bias, tanh)
    return result


def bias_gelu_backward(gradient: Array, x: Array, bias: Array, form: GeluForm = "erf") -> BiasGeluGradients:
    """Gradients of ``bias_gelu`` with respect to ``x`` and ``bias``; the input is read again, nothing was kept.

    Raises
    ------
    ArrayError
        As ``bias_gelu``.
    """
    place = backend_of(gradient, x, bias)
    _check_normed(x, bias, "bias_gelu_backward")
    _check_like(gradient, x, "bias_gelu_backward")
    tanh = _is_tanh(form, "bias_gelu_backward")
    if place.name == "numpy" or not x.size:
        return BiasGeluGradients(*nn_reference.bias_gelu_backward(gradient, x, bias, tanh))
    with place.use():
        result, to_bias = place.xp.empty_like(x), place.xp.empty_like(bias)
        nn_kernels.bias_gelu_backward(result, to_bias, gradient, x, bias, tanh)
    return BiasGeluGradients(result, to_bias)


def _check_rows(x: Array, where: str) -> None:
    check_dtype(x, KINDS, where)
    check_dimensions(x, 1, where)
    check_contiguous(x, where)


def _check_like(gradient: Array, x: Array, where: str) -> None:
    check_same_dtype(gradient, x, where)
    check_shape(gradient, tuple(x.shape), where)
    check_contiguous(gradient, where)


def _check_normed(x: Array, parameter: Array, where: str) -> None:
    _check_rows(x, where)
    if not x.shape[-1]:
        raise ArrayError("rows without columns", where=where, got=tuple(x.shape), allowed="at least one column")
    check_dtype(parameter, (computing_dtype(x.dtype),), f"{where}, parameter of the columns")
    check_shape(parameter, (x.shape[-1],), f"{where}, parameter of the columns")
    check_contiguous(parameter, where)


def _is_tanh(form: str, where: str) -> bool:
    if form not in ("erf", "tanh"):
        raise ArrayError("there is no such form of GELU", where=where, got=form, allowed="erf, tanh")
    return form == "tanh"
