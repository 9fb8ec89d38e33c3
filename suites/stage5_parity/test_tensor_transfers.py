"""Copies between host and devices keep every bit, whatever the element type; pieces on three streams (TO-7)."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.device.memory import copy
from burstproof.errors import ArrayError, OutOfMemoryError
from burstproof.tensor.array import transfers
from burstproof.tensor.array.backend import backend, backend_of
from burstproof.tensor.array.dtypes import COMPLEX128, DTYPES, FLOAT32, FLOAT64, dtype_name
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.ops import elementwise
from suites.support.tensor_operations import values

pytestmark = pytest.mark.requirement("TO-7")


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))])
def place(request: pytest.FixtureRequest) -> Backend:
    return backend(request.param)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
@pytest.mark.parametrize("shape", [(0,), (1,), (33, 7)], ids=str)
def test_there_and_back(place: Backend, dtype, shape) -> None:
    source, back = (transfers.pinned(place, shape, dtype) for _ in range(2))
    source.reshape(-1).view(np.uint8)[...] = np.random.default_rng(1).integers(0, 2, source.nbytes, np.uint8)
    there = place.empty(shape, dtype)
    copy(there, source)
    copy(back, there)
    place.synchronize()
    assert back.dtype == dtype
    assert back.tobytes() == source.tobytes()


def test_special_values_keep_their_bits(place: Backend) -> None:
    source = np.array([complex(-0.0, np.nan), complex(np.inf, 5e-324)], COMPLEX128)
    there = place.from_host(source)
    assert place.to_host(there).tobytes() == source.tobytes()


@pytest.mark.parametrize("piece", [1, 7, 1000, 5000])
def test_pieces(place: Backend, piece: int) -> None:
    """More pieces than streams, a last one cut short, one that is larger than all."""
    count = 70 if piece == 1 else 3333
    source, target = transfers.pinned(place, (count, 4), COMPLEX128), transfers.pinned(place, (count, 4), FLOAT64)
    source[...] = values((count, 4), COMPLEX128, 1)
    target.fill(0)
    transfers.stream_through(
        source, target, lambda a, out: elementwise.evaluate("abs(z) * 2", {"z": a}, out), place, piece
    )
    assert np.allclose(target, np.abs(source) * 2, rtol=1e-15)


def test_no_pieces(place: Backend) -> None:
    empty = transfers.pinned(place, (0, 4))
    transfers.stream_through(empty, empty.copy(), elementwise.negative, place)


def test_between_backends(place: Backend) -> None:
    host = values((5, 6), FLOAT32, 1)
    there = transfers.to_device(host, place)
    again = transfers.to_device(there, place)
    assert backend_of(again) is place
    assert np.array_equal(transfers.to_device(again, backend("numpy")), host)


def test_refusals(place: Backend) -> None:
    a, host = place.ones((2, 3)), np.ones((2, 3), np.float32)
    wrong = [
        (lambda: copy(a, host.astype(np.float64)), "differ in shape or element type"),
        (lambda: copy(a, np.ones((3, 2), np.float32)), "differ in shape or element type"),
        (lambda: copy(np.ones((3, 2), np.float32).T, a), "not contiguous"),
        (lambda: transfers.pinned(place, -1), "extents must be integers"),
        (lambda: transfers.pinned(place, 1, np.uint8), "no operation knows"),
        (lambda: transfers.stream_through(host, host[:1], elementwise.negative, place), "first extents differ"),
        (lambda: transfers.stream_through(host, host, elementwise.negative, place, 0), "a piece is empty"),
    ]
    for call, message in wrong:
        with pytest.raises(ArrayError, match=message):
            call()


@pytest.mark.gate("gpu")
def test_more_than_the_host_can_lock() -> None:
    place = backend("cupy")
    with pytest.raises(OutOfMemoryError, match="cannot lock"):
        transfers.pinned(place, 1 << 46)
    assert transfers.pinned(place, 10).shape == (10,)
