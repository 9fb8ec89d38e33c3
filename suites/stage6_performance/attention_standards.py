"""Standard attention, with the whole score matrix in memory, as careful users write it: what the flash kernel is
measured against. Every form computes softmax(scale q kᵀ) v with the causal mask, from the same bfloat16 arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from burstproof.tensor.dtypes import BFLOAT16
from burstproof.tensor.elementwise import multiply
from burstproof.tensor.linalg import matmul
from burstproof.tensor.nn import softmax
from suites.stage6_performance.training_bench import HAS_TORCH, as_torch

MINUS_INFINITY = 0xFF80
"""Bits of bfloat16."""


@dataclass(frozen=True)
class Standard:
    """One form: its name in figures, what it is, and the work; the result has the shape of q, as uint16 bits."""

    name: str
    what: str
    work: Callable[[], Any]
    bits: Callable[[Any], Any] = lambda result: result


def standards(q: Any, k: Any, v: Any) -> list[Standard]:
    """The forms that can run here, for arrays of shape (batch, heads, length, head), bfloat16 as uint16."""
    return [of_the_package(q, k, v), *(of_pytorch(q, k, v) if HAS_TORCH else [])]


def of_the_package(q: Any, k: Any, v: Any) -> Standard:
    """Operations of the package; the mask, made once, is written into the scores by CuPy."""
    import cupy

    batch, heads, length, head = q.shape
    flat_q, flat_k, flat_v = (array.reshape(batch * heads, length, head) for array in (q, k, v))
    hidden = ~cupy.tri(length, dtype=bool)

    def work() -> Any:
        scores = matmul(multiply(flat_q, head**-0.5), flat_k, transpose_b=True)
        cupy.copyto(scores, cupy.uint16(MINUS_INFINITY), where=hidden)
        return matmul(softmax(scores), flat_v).reshape(q.shape)

    return Standard("standard", "q times the scale, cuBLAS, causal mask in place, softmax kernel, cuBLAS", work)


def of_pytorch(q: Any, k: Any, v: Any) -> list[Standard]:
    """PyTorch: the operations one by one in bfloat16, and its own unfused ``scaled_dot_product_attention``."""
    import cupy
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    length, head = q.shape[2:]
    own_q, own_k, own_v = (as_torch(array) for array in (q, k, v))
    hidden = torch.ones(length, length, dtype=torch.bool, device="cuda").triu_(1)

    def step_by_step() -> Any:
        scores = torch.matmul(own_q * head**-0.5, own_k.transpose(-2, -1)).masked_fill_(hidden, -torch.inf)
        return torch.matmul(torch.softmax(scores, dim=-1), own_v)

    def unfused() -> Any:
        with sdpa_kernel(SDPBackend.MATH):
            return torch.nn.functional.scaled_dot_product_attention(own_q, own_k, own_v, is_causal=True)

    def bits(result: Any) -> Any:
        return cupy.from_dlpack(result.contiguous().view(torch.int16)).view(BFLOAT16)

    steps = f"PyTorch {torch.__version__}: matmul, masked_fill_, softmax, matmul in bfloat16"
    one_call = f"PyTorch {torch.__version__}: scaled_dot_product_attention with SDPBackend.MATH"
    return [
        Standard("PyTorch unfused", steps, step_by_step, bits),
        Standard("PyTorch MATH", one_call, unfused, bits),
    ]
