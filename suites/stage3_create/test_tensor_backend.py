"""One protocol, NumPy and CuPy: the same cases judge both (TO-1); running out of memory is survived (TO-6)."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.errors import ArrayError, BackendUnavailableError, OutOfMemoryError
from burstproof.tensor.array import backend as door
from burstproof.tensor.array.backend import backend, backend_of, backends, device_count
from burstproof.tensor.array.dtypes import BFLOAT16, DTYPES, dtype_name, from_bfloat16, to_bfloat16
from burstproof.tensor.array.protocol import Backend

pytestmark = pytest.mark.requirement("TO-1")

SHAPES = [(), (0,), (7,), (3, 0, 5), (2, 3, 4)]


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))])
def place(request: pytest.FixtureRequest) -> Backend:
    return backend(request.param)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
def test_constructors(place: Backend, dtype) -> None:
    for shape in SHAPES:
        zeros, ones = place.zeros(shape, dtype), place.ones(shape, dtype)
        for array in (zeros, ones, place.empty(shape, dtype)):
            assert (tuple(array.shape), array.dtype) == (shape, dtype)
            assert array.flags.c_contiguous
            assert backend_of(array) is place
        values = place.to_host(ones)
        one = from_bfloat16(values) if dtype == BFLOAT16 else values
        assert np.all(one == 1)
        assert not place.to_host(zeros).any()


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
def test_host_and_back(place: Backend, dtype) -> None:
    values = np.random.default_rng(1).integers(0, 2, (5, 6)).astype(dtype)
    there = place.from_host(values)
    back = place.to_host(there)
    assert back.dtype == dtype
    assert np.array_equal(back, values)
    back[...] = 0
    assert np.array_equal(place.to_host(there), values)


def test_host_values_are_converted_and_made_contiguous(place: Backend) -> None:
    values = np.arange(12.0).reshape(3, 4)
    turned = place.from_host(values.T, np.float32)
    assert (turned.dtype, turned.flags.c_contiguous) == (np.float32, True)
    assert np.array_equal(place.to_host(turned), values.T)
    assert np.array_equal(place.to_host(place.from_host([[1, 2], [3, 4]], "complex128")), [[1, 2], [3, 4]])
    assert place.from_host(1.5).shape == ()
    halves = place.from_host(np.array([1.0, -2.5]), "bfloat16")
    assert halves.dtype == BFLOAT16
    assert np.array_equal(from_bfloat16(place.to_host(halves)), [1.0, -2.5])


@pytest.mark.parametrize("shape", [-1, (2, -3), (1.5,), (True, 2), ("2",)], ids=str)
def test_bad_shapes(place: Backend, shape) -> None:
    with pytest.raises(ArrayError, match="extents must be integers"):
        place.zeros(shape)


@pytest.mark.parametrize("dtype", [np.complex64, np.uint8, "nonsense", object, "M8[s]"], ids=str)
def test_bad_dtypes(place: Backend, dtype) -> None:
    with pytest.raises(ArrayError, match="no operation knows"):
        place.ones(3, dtype)
    if dtype != "nonsense":
        with pytest.raises(ArrayError, match="no operation knows"):
            place.from_host(np.zeros(3).astype(dtype))


@pytest.mark.requirement("TO-6")
def test_out_of_memory_is_an_error_of_its_own_and_the_next_call_works(place: Backend) -> None:
    for elements in (1 << 50, 1 << 65):
        with pytest.raises(OutOfMemoryError, match="cannot give") as caught:
            place.empty((elements,), np.float64)
        assert caught.value.cure
    assert np.all(place.to_host(place.ones(1000)) == 1)


def test_the_default_is_a_gpu_where_there_is_one() -> None:
    assert backend().name == backends()[0]
    assert (backend().device is not None) == (device_count() > 0)


def test_no_such_backend_or_device() -> None:
    with pytest.raises(ArrayError, match="no such backend"):
        backend("torch")
    with pytest.raises(ArrayError, match="no device number"):
        backend("numpy", 0)
    with pytest.raises(BackendUnavailableError, match="no such CUDA device"):
        backend("cupy", device_count())
    with pytest.raises(BackendUnavailableError, match="no such CUDA device"):
        backend(device=-1)


def test_without_a_device_cupy_is_refused_with_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "device_count", lambda: 0)
    door.default_device.cache_clear()
    try:
        with pytest.raises(BackendUnavailableError, match="no CUDA device") as caught:
            backend("cupy")
        assert caught.value.cure
        assert backend().name == "numpy"
    finally:
        door.default_device.cache_clear()


def test_what_is_no_array() -> None:
    with pytest.raises(ArrayError, match="NumPy and CuPy arrays only"):
        backend_of([1, 2])
    with pytest.raises(ArrayError, match="at least one array"):
        backend_of()


@pytest.mark.gate("gpu")
def test_arrays_on_two_devices_do_not_mix() -> None:
    with pytest.raises(ArrayError, match="different devices"):
        backend_of(backend("cupy").zeros(2), np.zeros(2))


def test_bfloat16_rounds_to_nearest_even_and_keeps_special_values() -> None:
    given = np.array([1.0, 1.00390625, 1.01171875, -0.0, np.inf, -np.inf, 3.4e38, 1e-40], np.float32)
    rounded = from_bfloat16(to_bfloat16(given))
    expected = np.array([1.0, 1.0, 1.015625, -0.0, np.inf, -np.inf, np.inf, 1e-40], np.float32)
    assert np.array_equal(rounded[:-1], expected[:-1])
    assert np.signbit(rounded[3])
    assert rounded[-1] == pytest.approx(1e-40, rel=0.01)
    assert np.isnan(from_bfloat16(to_bfloat16(np.array([np.nan, -np.nan], np.float32)))).all()
    assert np.array_equal(to_bfloat16(from_bfloat16(np.arange(0, 0x7F80, dtype=np.uint16))), np.arange(0x7F80))
