"""Standard attention, with the whole score matrix in memory, as careful users write it: what the flash kernel is
measured against. Every form computes softmax(scale q kᵀ) v with the causal mask, from the same bfloat16 arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource
from burstproof.tensor.array.dtypes import BFLOAT16
from burstproof.tensor.ops.elementwise import multiply
from burstproof.tensor.ops.linalg import matmul
from burstproof.tensor.ops.nn import softmax
from suites.support.bench.training_bench import HAS_TORCH, as_torch

MASK = Entry(CudaSource.beside(__file__, "causal_mask.cu"), "hide_later_keys", "uint16[] int32")
"""Writes the hidden half of the scores and reads none of them: no pass over all of them can be cheaper."""


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
    """Operations of the package, and a kernel of the user's for the mask."""
    batch, heads, length, head = q.shape
    flat_q, flat_k, flat_v = (array.reshape(batch * heads, length, head) for array in (q, k, v))
    hide = MASK.on(q.device.id)

    def work() -> Any:
        scores = matmul(multiply(flat_q, head**-0.5), flat_k, transpose_b=True)
        hide((length, batch * heads), MASK.block, scores, length)
        return matmul(softmax(scores), flat_v).reshape(q.shape)

    return Standard(
        "standard", "q times the scale, cuBLAS, causal mask by its own kernel, softmax kernel, cuBLAS", work
    )


def of_pytorch(q: Any, k: Any, v: Any) -> list[Standard]:
    """PyTorch: the operations one by one in bfloat16, and its own unfused ``scaled_dot_product_attention``."""
    import cupy
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    length, head = q.shape[2:]
    own_q, own_k, own_v = (as_torch(array) for array in (q, k, v))
    flat_q, flat_k, flat_v = (tensor.flatten(0, 1) for tensor in (own_q, own_k, own_v))
    mask = torch.full((length, length), -torch.inf, dtype=torch.bfloat16, device="cuda").triu_(1)

    def step_by_step() -> Any:
        scores = torch.baddbmm(mask, flat_q, flat_k.transpose(1, 2), alpha=head**-0.5)
        return torch.bmm(torch.softmax(scores, dim=-1), flat_v).view_as(own_q)

    def unfused() -> Any:
        with sdpa_kernel(SDPBackend.MATH):
            return torch.nn.functional.scaled_dot_product_attention(own_q, own_k, own_v, is_causal=True)

    def bits(result: Any) -> Any:
        return cupy.from_dlpack(result.contiguous().view(torch.int16)).view(BFLOAT16)

    steps = f"PyTorch {torch.__version__}: baddbmm with scale and mask, softmax, bmm in bfloat16"
    one_call = f"PyTorch {torch.__version__}: scaled_dot_product_attention with SDPBackend.MATH"
    return [
        Standard("PyTorch unfused", steps, step_by_step, bits),
        Standard("PyTorch MATH", one_call, unfused, bits),
    ]
