"""Attention on a GPU: checked, then timed beside the standard form and PyTorch's flash attention (TO-5)."""

from __future__ import annotations

from typing import Any

import pytest

from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT32
from burstproof.tensor.attention.operation import attention, attention_backward
from burstproof.tensor.ops.nn_reference import narrowed, widened
from stages.measuring import Measure
from suites.support.bench.attention_standards import standards
from suites.support.bench.card_limits import Card
from suites.support.bench.ceilings import ceiling
from suites.support.bench.steady import Timed
from suites.support.bench.training_bench import HAS_TORCH, NO_TORCH, as_torch, device_time

pytestmark = [pytest.mark.requirement("TO-5", "ST-6"), pytest.mark.gate("gpu")]

BATCH, HEADS, LENGTH, HEAD = 4, 16, 4096, 64
FORWARD_FLOP = 4 * BATCH * HEADS * LENGTH * LENGTH * HEAD / 2
"""Two products of which the mask leaves half."""

ALLOWED = 8e-3
"""‖out - ref‖ / ‖ref‖ in bfloat16, as in stage 5."""

SHAPE = {"batch": BATCH, "heads": HEADS, "length": LENGTH, "head": HEAD, "dtype": "bfloat16", "causal": True}


@pytest.fixture(scope="module")
def arrays() -> list[Any]:
    """q, k, v and the gradient of the result."""
    place = backend("cupy", 0)
    random = place.xp.random.default_rng(0)
    shape = (BATCH, HEADS, LENGTH, HEAD)
    return [narrowed(random.standard_normal(shape, dtype=FLOAT32), BFLOAT16) for _ in range(4)]


def assert_equal(found: Any, expected: Any) -> None:
    import cupy

    wide, exact = widened(found), widened(expected)
    assert float(cupy.linalg.norm((wide - exact).ravel()) / cupy.linalg.norm(exact.ravel())) < ALLOWED


def definition(q: Any, k: Any, v: Any, head: int) -> Any:
    """One head of one sequence in float32, with the whole matrix in memory."""
    import cupy

    wide = [widened(array[0, head]) for array in (q, k, v)]
    scores = wide[0] @ wide[1].T / HEAD**0.5
    scores[~cupy.tri(LENGTH, dtype=bool)] = -cupy.inf
    powers = cupy.exp(scores - scores.max(axis=1, keepdims=True))
    return narrowed((powers / powers.sum(axis=1, keepdims=True)) @ wide[2], BFLOAT16)


def put(
    measure: Measure, card: Card, name: str, timed: Timed, flop: float, what: str = "", **conditions: object
) -> None:
    where = {"backend": "cuda", "gpus": 1, "device": card.runtime.name, **SHAPE, **conditions}
    best = ceiling(card.runtime.name, "fp16_tensor_tflops")
    rate = flop / timed.put(measure, name, "ms", where, what) / 1e9
    measure(f"{name}_rate", rate, "TFLOP/s", conditions=where | best, note="arithmetic that the causal mask leaves")


def put_ratio(measure: Measure, card: Card, name: str, against: str, times: tuple[Timed, Timed], note: str) -> None:
    """How many times as fast as the other the package is; times of the other and of its own."""
    value = times[0].samples.estimate / times[1].samples.estimate
    where = {"backend": "cuda", "gpus": 1, "device": card.runtime.name, "against": against, **SHAPE}
    measure(name, value, "x", conditions=where, note=note)


@pytest.mark.measures("attention.forward", "attention.forward_rate", backend="cuda", scope=..., **SHAPE)
@pytest.mark.measures("attention.speedup", backend="cuda", against="standard", device=..., **SHAPE)
def test_forward(card: Card, arrays: list[Any], measure: Measure) -> None:
    """Against the definition; then beside every standard form, whose whole result must be the same function's.

    The row that is judged is the speedup over the fastest of them.
    """
    import cupy

    q, k, v, _ = arrays
    out = attention(q, k, v, causal=True).out
    for head in (0, HEADS - 1):
        assert_equal(out[0, head], definition(q, k, v, head))
    own = device_time(card, lambda: attention(q, k, v, causal=True, out=out))
    put(measure, card, "attention.forward", own, FORWARD_FLOP, scope="flash")
    times: dict[str, Timed] = {}
    for form in standards(q, k, v):
        assert_equal(form.bits(form.work()), out)
        times[form.name] = device_time(card, form.work)
        put(measure, card, "attention.forward", times[form.name], FORWARD_FLOP, form.what, scope=form.name)
        cupy.get_default_memory_pool().free_all_blocks()
    fastest = min(times, key=lambda name: times[name].samples.estimate)
    found = ", ".join(f"{name} {timed.samples.estimate:.3f} ms" for name, timed in times.items())
    note = f"the fastest of the forms through memory with scale and causal mask is {fastest!r}; {found}"
    put_ratio(measure, card, "attention.speedup", "standard", (times[fastest], own), note)


@pytest.mark.skipif(not HAS_TORCH, reason=NO_TORCH)
@pytest.mark.measures("attention.forward", "attention.forward_rate", scope="PyTorch flash", **SHAPE)
@pytest.mark.measures("attention.backward", "attention.backward_rate", scope=["flash", "PyTorch flash"], **SHAPE)
@pytest.mark.measures("attention.speedup", "attention.backward_speedup", against="pytorch", device=..., **SHAPE)
def test_forward_and_backward_beside_pytorch(card: Card, arrays: list[Any], measure: Measure) -> None:
    """PyTorch's flash attention on the same memory: equal results, then both are timed, forward and backward."""
    import cupy
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v, dout = arrays
    tensors = [as_torch(array).detach().requires_grad_() for array in (q, k, v)]
    dtensor = as_torch(dout)

    def forward() -> Any:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=True)

    other = forward()
    others = torch.autograd.grad(other, tensors, dtensor, retain_graph=True)
    attended = attention(q, k, v, causal=True)
    gradients = attention_backward(dout, q, k, v, attended, causal=True)
    for found, expected in zip((attended.out, *gradients), (other.detach(), *others), strict=True):
        assert_equal(found, cupy.from_dlpack(expected.contiguous().view(torch.int16)).view(BFLOAT16))
    own = device_time(card, lambda: attention(q, k, v, causal=True, out=attended.out))
    with torch.no_grad():
        torchs = device_time(card, forward)
    put(measure, card, "attention.forward", torchs, FORWARD_FLOP, scope="PyTorch flash", version=torch.__version__)
    note = f"flash attention of PyTorch {torch.__version__}"
    put_ratio(measure, card, "attention.speedup", "pytorch", (torchs, own), note)

    def backward() -> Any:
        return torch.autograd.grad(other, tensors, dtensor, retain_graph=True)

    own = device_time(card, lambda: attention_backward(dout, q, k, v, attended, causal=True, gradients=gradients))
    torchs = device_time(card, backward)
    put(measure, card, "attention.backward", own, 2.5 * FORWARD_FLOP, scope="flash")
    put(
        measure,
        card,
        "attention.backward",
        torchs,
        2.5 * FORWARD_FLOP,
        scope="PyTorch flash",
        version=torch.__version__,
    )
    note = "ours repeats to the bit: no atomics, seven products instead of five"
    put_ratio(measure, card, "attention.backward_speedup", "pytorch", (torchs, own), note)
