"""Attention against its definition in float64: both backends, every head size, gradients, refusals (TO-5, TO-11)."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, dtype_name
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.attention.operation import Attended, attention, attention_backward, standard_attention
from burstproof.tensor.ops.nn_reference import narrowed, widened
from suites.support.accuracy import bound_of

pytestmark = pytest.mark.requirement("TO-5", "TO-11")

DTYPES = (FLOAT64, FLOAT32, FLOAT16, BFLOAT16)
PLACES = ["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))]
SIZES = {"tiles": (192, 192, True), "odd": (83, 83, True), "one": (1, 1, False), "cross": (50, 131, False)}


@pytest.fixture(params=PLACES)
def place(request) -> Backend:
    return backend(request.param)


def problem(queries: int, keys: int, head: int, seed: int = 0) -> list[np.ndarray]:
    """q, k, v and the gradient of the result, float64."""
    random = np.random.default_rng(seed)
    return [random.standard_normal((1, 2, rows, head)) for rows in (queries, keys, keys, queries)]


def definition(q, k, v, dout, causal):
    """Result, logarithm of the sums and gradients, one row at a time, as equation 1 has it; float64."""
    out, lse = np.zeros_like(q), np.zeros(q.shape[:3])
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    scale = 1.0 / np.sqrt(q.shape[3])
    for b, h, i in np.ndindex(*q.shape[:3]):
        seen = i + 1 if causal else k.shape[2]
        scores = k[b, h, :seen] @ q[b, h, i] * scale
        powers = np.exp(scores - scores.max())
        chance = powers / powers.sum()
        lse[b, h, i] = scores.max() + np.log(powers.sum())
        out[b, h, i] = chance @ v[b, h, :seen]
        dscores = chance * (v[b, h, :seen] @ dout[b, h, i] - dout[b, h, i] @ out[b, h, i]) * scale
        dq[b, h, i] = dscores @ k[b, h, :seen]
        dk[b, h, :seen] += np.outer(dscores, q[b, h, i])
        dv[b, h, :seen] += np.outer(chance, dout[b, h, i])
    return out, lse, (dq, dk, dv)


def error(found, expected, least: float = 0.0) -> float:
    """Relative to ‖expected‖, or to ``least`` where a result that should be 0 is smaller than its terms."""
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), least))


@pytest.mark.measures("accuracy.relative_error", dtype=..., tf32=False, operation=...)
@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("head", [32, 64, 128])
def test_results_and_gradients(place, dtype, size, head, measure) -> None:
    queries, keys, causal = SIZES[size]
    given = [
        narrowed(array.astype(FLOAT64 if dtype == FLOAT64 else FLOAT32), dtype)
        for array in problem(queries, keys, head)
    ]
    wide = [widened(array).astype(FLOAT64) for array in given]
    out, lse, gradients = definition(*wide, causal)
    q, k, v, dout = (place.from_host(array) for array in given)
    attended = attention(q, k, v, causal=causal)
    found = (attended.out, *attention_backward(dout, q, k, v, attended, causal=causal))
    assert float(np.abs(place.to_host(attended.lse) - lse).max()) < (1e-12 if dtype == FLOAT64 else 2e-5)
    where = {"backend": place.name, "dtype": dtype_name(dtype), "tf32": False, "head": head, "shape": size}
    for name, array, expected in zip(("out", "dq", "dk", "dv"), found, (out, *gradients), strict=True):
        off = error(widened(place.to_host(array)), expected, 1.0)
        bound = bound_of("attention" if name == "out" else "attention_backward", dtype_name(dtype))
        conditions = {"operation": f"attention {name}", **where}
        measure("accuracy.relative_error", off, "1", conditions=conditions, note=f"promised: at most {bound:.1e}")
        assert off < bound, name


@pytest.mark.parametrize("head", [32, 64, 128])
def test_with_a_single_key_gradients_cancel_to_the_bit(place, head) -> None:
    """Its probability is 1 whatever the query: both sums of the difference run in one order, so nothing is left."""
    q, k, v, dout = (place.from_host(array.astype(FLOAT32)) for array in problem(1, 1, head))
    attended = attention(q, k, v)
    dq, dk, dv = (place.to_host(array) for array in attention_backward(dout, q, k, v, attended))
    assert not dq.any()
    assert not dk.any()
    np.testing.assert_allclose(dv, place.to_host(dout), rtol=1e-6)


def test_gradients_are_finite_differences() -> None:
    q, k, v, dout = problem(7, 7, 8)
    gradients = attention_backward(dout, q, k, v, attention(q, k, v, causal=True), causal=True)
    step = 1e-6
    for array, gradient in zip((q, k, v), gradients, strict=True):
        for place in np.random.default_rng(1).choice(array.size, 12, replace=False):
            kept = array.flat[place]
            values = []
            for moved in (kept + step, kept - step):
                array.flat[place] = moved
                values.append(float((attention(q, k, v, causal=True).out * dout).sum()))
            array.flat[place] = kept
            assert gradient.flat[place] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-6, abs=1e-8)


def test_interleaved_heads_in_place(place) -> None:
    """Queries, keys and values in one array, results into views: as the packed arrays give them, bit by bit."""
    random = np.random.default_rng(2)
    packed = place.from_host(narrowed(random.standard_normal((2, 70, 3, 4, 32)).astype(FLOAT32), BFLOAT16))
    q, k, v = packed.transpose(2, 0, 3, 1, 4)
    joined = place.empty((2, 70, 4, 32), BFLOAT16)
    attended = attention(q, k, v, causal=True, out=joined.transpose(0, 2, 1, 3))
    with place.use():
        apart = [place.xp.ascontiguousarray(array) for array in (q, k, v)]
    expected = attention(*apart, causal=True)
    assert np.array_equal(place.to_host(attended.out), place.to_host(expected.out))
    dpacked = place.empty(packed.shape, BFLOAT16)
    attention_backward(attended.out, q, k, v, attended, causal=True, gradients=tuple(dpacked.transpose(2, 0, 3, 1, 4)))
    direct = attention_backward(expected.out, *apart, expected, causal=True)
    for found, wanted in zip(dpacked.transpose(2, 0, 3, 1, 4), direct, strict=True):
        assert np.array_equal(place.to_host(found), place.to_host(wanted))


def test_runs_are_the_same_bits(place) -> None:
    q, k, v, dout = (place.from_host(array.astype(FLOAT16)) for array in problem(200, 200, 64))
    runs = []
    for _ in range(3):
        attended = attention(q, k, v, causal=True)
        results = (attended.out, attended.lse, *attention_backward(dout, q, k, v, attended, causal=True))
        runs.append([place.to_host(array).tobytes() for array in results])
    assert runs[0] == runs[1] == runs[2]


def test_large_scores_do_not_overflow(place) -> None:
    q, k, v, _ = (place.from_host(100.0 * array.astype(FLOAT32)) for array in problem(40, 40, 32))
    expected = definition(
        *(array.astype(FLOAT64) for array in (*map(place.to_host, (q, k, v)), place.to_host(q))), True
    )
    assert error(place.to_host(attention(q, k, v, causal=True).out), expected[0]) < 1e-4


def test_mask_hides_keys(place) -> None:
    q, k, v, _ = (place.from_host(array) for array in problem(5, 9, 16))
    mask = np.zeros((1, 1, 5, 9))
    mask[..., 6:] = -np.inf
    mask[:, :, 2] = -np.inf
    found = place.to_host(standard_attention(q, k, v, mask=place.from_host(mask)).out)
    seen = place.to_host(standard_attention(q, k[:, :, :6], v[:, :, :6]).out)
    assert np.all(found[:, :, 2] == 0.0)
    rest = [0, 1, 3, 4]
    np.testing.assert_allclose(found[:, :, rest], seen[:, :, rest], rtol=1e-12)


def _refusals(place):
    def array(*shape, dtype=FLOAT32):
        return place.zeros(shape, dtype)

    good = array(1, 2, 8, 32)
    yield "axes", lambda: attention(array(2, 8, 32), good, good)
    yield "empty", lambda: attention(array(1, 2, 0, 32), good, good)
    yield "empty keys", lambda: attention(good, array(1, 2, 0, 32), array(1, 2, 0, 32))
    yield "dtype", lambda: attention(array(1, 2, 8, 32, dtype=np.int32), good, good)
    yield "dtypes", lambda: attention(good, array(1, 2, 8, 32, dtype=FLOAT16), good)
    yield "heads", lambda: attention(good, array(1, 3, 8, 32), array(1, 3, 8, 32))
    yield "values", lambda: attention(good, good, array(1, 2, 9, 32))
    yield "causal", lambda: attention(good, array(1, 2, 9, 32), array(1, 2, 9, 32), causal=True)
    yield "scale", lambda: attention(good, good, good, scale=float("nan"))
    yield "negative scale", lambda: attention(good, good, good, scale=-1.0)
    yield "out", lambda: attention(good, good, good, out=array(1, 2, 8, 64))
    yield "gradient", lambda: attention_backward(array(1, 2, 9, 32), good, good, good, Attended(good, array(1, 2, 8)))
    nan = place.from_host(np.full((8, 8), np.nan))
    yield "NaN mask", lambda: standard_attention(good, good, good, mask=nan)
    yield "mask shape", lambda: standard_attention(good, good, good, mask=array(3, 8))
    yield "no array", lambda: attention([1.0], good, good)


def test_refusals_name_the_cure_and_leave_the_next_call_working(place) -> None:
    for what, call in _refusals(place):
        with pytest.raises(ArrayError) as caught:
            call()
        assert caught.value.where, what
    good = place.ones((1, 2, 8, 32))
    np.testing.assert_allclose(place.to_host(attention(good, good, good).out), 1.0, rtol=1e-6)


@pytest.mark.gate("gpu")
def test_refusals_of_the_kernels() -> None:
    place = backend("cupy")
    odd = place.zeros((1, 2, 8, 40), FLOAT16)
    with pytest.raises(ArrayError, match="head size"):
        attention(odd, odd, odd)
    apart = place.zeros((1, 2, 8, 64), FLOAT16)[..., ::2]
    with pytest.raises(ArrayError, match="adjacent"):
        attention(apart, apart, apart)
    with pytest.raises(ArrayError, match="different devices"):
        attention(place.zeros((1, 2, 8, 32)), np.zeros((1, 2, 8, 32), FLOAT32), place.zeros((1, 2, 8, 32)))
