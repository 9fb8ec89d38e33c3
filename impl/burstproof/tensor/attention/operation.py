"""Scaled dot-product attention, forward and backward, checked: flash kernels on a device, the definition on the CPU.

On a device the score matrix is never in memory: 16-bit types run on tensor cores (compute capability 8.0 and newer),
float32 and older devices in float32 arithmetic; float64 takes the definition. No kernel uses atomics, so a result is
the same bits on every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check_dtype, check_same_dtype, check_shape
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.attention import standard
from burstproof.tensor.attention.flash import HEADS, TENSOR_CORES, FlashKernels

_DTYPES = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16)
_MOST_BLOCKS = 65_535


@dataclass(frozen=True)
class Attended:
    """What the forward pass leaves for the backward pass.

    Attributes
    ----------
    out : ndarray, shape (batch, heads, queries, head)
        Result, in the dtype of the arguments.
    lse : ndarray, shape (batch, heads, queries)
        Natural logarithm of each row's sum of exponentials, float32 (float64 for float64).
    """

    out: Array
    lse: Array


def attention(
    q: Array, k: Array, v: Array, *, causal: bool = False, scale: float | None = None, out: Array | None = None
) -> Attended:
    """softmax(scale q kᵀ) v, with keys behind the query hidden if ``causal``.

    Source: Dao 2023, "FlashAttention-2", algorithm 1, on a device; Vaswani et al. 2017, equation 1, on the CPU.

    Parameters
    ----------
    q : ndarray, shape (batch, heads, queries, head)
        float32, float64, float16 or bfloat16 (uint16). May be a strided view whose last axis is contiguous.
    k, v : ndarray, shape (batch, heads, keys, head)
        Same dtype; both with the same strides.
    causal : bool
        Query i sees keys 0 to i; takes as many queries as keys.
    scale : float, optional
        Positive; 1 / sqrt(head) by default.
    out : ndarray, optional
        Where the result goes; may be strided as ``q`` may.

    Returns
    -------
    Attended

    Raises
    ------
    ArrayError
        Shapes, dtypes, devices or strides that do not fit, an empty sequence, a head size without a kernel.
    OutOfMemoryError
        No room for the results.
    """
    where = "attention"
    factor = _check(where, q, k, v, causal, scale)
    here = backend_of(q, k, v)
    if out is not None:
        backend_of(q, out)
        _check_shaped(f"{where}, out", out, q)
    if here.device is None or q.dtype == FLOAT64:
        with here.use():
            result, lse = standard.forward(q, k, v, causal, factor)
            if out is not None:
                out[...] = result
        return Attended(result if out is None else out, lse)
    kernels = _kernels(where, here.device, q, k, v, causal)
    with here.use():
        lse = here.empty(q.shape[:3], FLOAT32)
        result = here.empty(q.shape, q.dtype) if out is None else out
        _check_rows(where, out=result)
        kernels.forward(q, k, v, result, lse, factor)
    return Attended(result, lse)


def attention_backward(
    dout: Array,
    q: Array,
    k: Array,
    v: Array,
    attended: Attended,
    *,
    causal: bool = False,
    scale: float | None = None,
    gradients: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array]:
    """Gradients of q, k and v.

    Source: Dao 2023, "FlashAttention-2", algorithm 2, split into a pass over queries and a pass over keys.

    Parameters
    ----------
    dout : ndarray, shape (batch, heads, queries, head)
        Gradient of the output, with the strides of ``attended.out``.
    q, k, v, causal, scale
        As given to ``attention``.
    attended : Attended
        What it returned.
    gradients : tuple of three ndarray, optional
        Where the results go; with the strides of q, k and v.

    Returns
    -------
    dq, dk, dv : ndarray
        Shapes and dtype of q, k and v.

    Raises
    ------
    ArrayError, OutOfMemoryError
        As ``attention``.
    """
    where = "attention_backward"
    factor = _check(where, q, k, v, causal, scale)
    here = backend_of(dout, q, k, v, attended.out, attended.lse)
    for name, array in (("dout", dout), ("attended.out", attended.out)):
        _check_shaped(f"{where}, {name}", array, q)
    check_shape(attended.lse, tuple(q.shape[:3]), f"{where}, attended.lse")
    if here.device is None or q.dtype == FLOAT64:
        with here.use():
            results = standard.backward(dout, q, k, v, causal, factor)
            for target, result in zip(gradients or (), results, strict=gradients is not None):
                target[...] = result
        return gradients or results
    kernels = _kernels(where, here.device, q, k, v, causal)
    with here.use():
        results = gradients or (_like(q), _like(k), _like(v))
        for name, array, model in zip(("dq", "dk", "dv"), results, (q, k, v), strict=True):
            _check_like(f"{where}, {name}", array, model)
        _check_like(f"{where}, dout", dout, attended.out)
        _check_rows(where, dout=dout)
        kernels.backward(dout, (q, k, v), attended.out, attended.lse, results, factor)
    return results


def standard_attention(
    q: Array, k: Array, v: Array, *, causal: bool = False, scale: float | None = None, mask: Array | None = None
) -> Attended:
    """The same by its definition, with the score matrix in memory, and with any additive mask.

    Parameters
    ----------
    q, k, v, causal, scale
        As for ``attention``; any head size.
    mask : ndarray, optional
        Broadcasts to (batch, heads, queries, keys); added to the scores. -infinity hides a key; a query whose keys are
        all hidden gets zeros.

    Raises
    ------
    ArrayError
        As ``attention``; a NaN or +infinity in the mask.
    """
    where = "standard_attention"
    factor = _check(where, q, k, v, causal, scale)
    with backend_of(q, k, v, *(() if mask is None else (mask,))).use():
        if mask is not None:
            _check_mask(f"{where}, mask", q, k, mask)
        return Attended(*standard.forward(q, k, v, causal, factor, mask))


def _check(where: str, q: Array, k: Array, v: Array, causal: bool, scale: float | None) -> float:
    """Refuse what no path computes; the scale of the scores."""
    backend_of(q, k, v)
    check_dtype(q, _DTYPES, f"{where}, q")
    for name, array in (("q", q), ("k", k), ("v", v)):
        check_same_dtype(q, array, f"{where}, {name}")
        if array.ndim != 4 or 0 in array.shape:
            raise ArrayError(
                "the array is empty" if 0 in array.shape else "the array must have four axes",
                where=f"{where}, {name}",
                got=tuple(array.shape),
                allowed="(batch, heads, rows, head), each at least 1",
            )
    batch, heads, _, head = q.shape
    check_shape(k, (batch, heads, k.shape[2], head), f"{where}, k")
    check_shape(v, tuple(k.shape), f"{where}, v")
    if causal and q.shape[2] != k.shape[2]:
        raise ArrayError(
            "a causal mask takes as many queries as keys",
            where=where,
            got=f"{q.shape[2]} queries, {k.shape[2]} keys",
        )
    factor = 1.0 / sqrt(head) if scale is None else float(scale)
    if not (isfinite(factor) and factor > 0.0):
        raise ArrayError("the scale of the scores must be positive and finite", where=where, got=scale)
    return factor


def _kernels(where: str, device: int, q: Array, k: Array, v: Array, causal: bool) -> FlashKernels:
    """The kernels for these arrays; refuses what they cannot read."""
    from burstproof.compile.launch import device_capability

    batch, heads, _, head = q.shape
    if head not in HEADS:
        raise ArrayError(
            "no kernel has this head size",
            where=where,
            got=head,
            allowed=", ".join(map(str, HEADS)),
            cure="Pad the heads with zeros, or use standard_attention",
        )
    if max(batch, heads) > _MOST_BLOCKS:
        raise ArrayError("too many heads or sequences", where=where, got=(batch, heads), allowed=f"{_MOST_BLOCKS} each")
    _check_rows(where, q=q, k=k, v=v)
    _check_like(f"{where}, v", v, k)
    cores = q.dtype != FLOAT32 and device_capability(device) >= TENSOR_CORES
    return FlashKernels(device, head, causal, q.dtype, cores)


def _check_rows(where: str, **arrays: Array) -> None:
    """Rows must be contiguous and begin at 16 bytes, since that is how much a thread copies."""
    for name, array in arrays.items():
        steps = (*array.strides[:3], array.data.ptr)
        if array.strides[3] != array.itemsize or any(step % 16 for step in steps):
            raise ArrayError(
                "the values of a head must be adjacent, and its rows begin at multiples of 16 bytes",
                where=f"{where}, {name}",
                got=f"strides {array.strides}",
                cure="Copy it with ascontiguousarray first",
            )


def _check_like(where: str, array: Array, model: Array) -> None:
    """Refuse an array that is not laid out as its counterpart."""
    _check_shaped(where, array, model)
    if array.strides != model.strides:
        raise ArrayError(
            "the array must have the strides of its counterpart", where=where, got=array.strides, allowed=model.strides
        )


def _check_shaped(where: str, array: Array, model: Array) -> None:
    check_shape(array, tuple(model.shape), where)
    check_same_dtype(model, array, where)


def _like(array: Array) -> Array:
    """An array with the shape and, if it is dense in some order of axes, the strides of ``array``."""
    order = sorted(range(4), key=lambda axis: -array.strides[axis])
    made = backend_of(array).empty([array.shape[axis] for axis in order], array.dtype)
    return made.transpose([order.index(axis) for axis in range(4)])


def _check_mask(where: str, q: Array, k: Array, mask: Array) -> None:
    xp = backend_of(q, k, mask).xp
    check_dtype(mask, (FLOAT32, FLOAT64), where)
    shape = (*q.shape[:3], k.shape[2])
    if mask.ndim > 4 or any(m not in (1, s) for m, s in zip(mask.shape[::-1], shape[::-1], strict=False)):
        raise ArrayError("the mask does not broadcast to the scores", where=where, got=mask.shape, allowed=str(shape))
    if bool((xp.isnan(mask) | (mask == xp.inf)).any()):
        raise ArrayError(
            "the mask holds NaN or +infinity",
            where=where,
            cure="Use 0 for keys that are seen and -infinity for keys that are hidden",
        )
