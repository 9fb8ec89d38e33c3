"""Kernels loaded once per device and launched on a GPU: what fits runs, what does not is an error before the launch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource
from burstproof.errors import CompileError, InputError, OutOfMemoryError

pytestmark = [pytest.mark.requirement("KL-2", "ST-3"), pytest.mark.gate("gpu")]

REVERSE = """
extern "C" __global__ void reverse(float* values, unsigned count, float factor, double added)
{
    extern __shared__ float held[];
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) held[i] = values[i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) values[i] = held[count - 1 - i] * factor + added;
}
"""
SOURCE = CudaSource("reverse.cu", REVERSE)
DECLARED = "float32[] uint32 float32 float64"
ENTRY = Entry(SOURCE, "reverse", DECLARED)


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


def reversed_twice_plus_one(count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return 2 * np.arange(count, dtype=np.float32)[::-1] + 1


def test_a_kernel_is_loaded_once(cupy: Any) -> None:
    assert ENTRY.on(0) is ENTRY.on(0)


@pytest.mark.parametrize("count", [4, 50_000])
def test_a_launch_opts_in_to_the_shared_memory_that_it_needs(count: int, cupy: Any) -> None:
    """50 000 floats are 200 000 bytes, above the 48 KiB that every launch gets."""
    values = cupy.arange(count, dtype=cupy.float32)
    if 4 * count > ENTRY.on(0).limits.shared_bytes:
        pytest.skip(f"this device gives a block {ENTRY.on(0).limits.shared_bytes} bytes of shared memory")
    ENTRY.on(0)(1, 256, values, count, 2.0, 1.0, shared_bytes=4 * count)
    np.testing.assert_array_equal(values.get(), reversed_twice_plus_one(count))


def test_streams_of_every_library_are_accepted(cupy: Any) -> None:
    from cuda.core import Device

    from burstproof.device.open import open_device

    Device(0).set_current()
    streams = (None, cupy.cuda.Stream(non_blocking=True), open_device(0).stream(), Device(0).create_stream())
    for stream in streams:
        values = cupy.arange(4, dtype=cupy.float32)
        cupy.cuda.Device().synchronize()
        ENTRY.on(0)(1, 32, values, 4, 2.0, 1.0, shared_bytes=16, stream=stream)
        cupy.cuda.Device().synchronize()
        np.testing.assert_array_equal(values.get(), reversed_twice_plus_one(4))


def test_a_launch_can_be_captured(cupy: Any) -> None:
    values, kernel = cupy.ones(4, dtype=cupy.float32), ENTRY.on(0)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        kernel(1, 32, values, 4, 2.0, 0.0, shared_bytes=16)
        graph = stream.end_capture()
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert values.tolist() == [8.0] * 4


@pytest.mark.parametrize("case", ["dtype", "strided", "host", "grid", "threads", "shared", "stream", "negative", "few"])
def test_what_does_not_fit_is_refused_and_the_next_launch_works(case: str, cupy: Any) -> None:
    values, kernel = cupy.arange(4, dtype=cupy.float32), ENTRY.on(0)
    numbers = (4, 2.0, 1.0)
    calls = {
        "dtype": lambda: kernel(1, 32, values.astype(cupy.float64), *numbers, shared_bytes=16),
        "strided": lambda: kernel(1, 32, cupy.zeros(8, cupy.float32)[::2], *numbers, shared_bytes=16),
        "host": lambda: kernel(1, 32, values.get(), *numbers, shared_bytes=16),
        "grid": lambda: kernel(0, 32, values, *numbers, shared_bytes=16),
        "threads": lambda: kernel(1, 1025, values, *numbers, shared_bytes=16),
        "shared": lambda: kernel(1, 32, values, *numbers, shared_bytes=1 << 20),
        "stream": lambda: kernel(1, 32, values, *numbers, shared_bytes=16, stream=5),
        "negative": lambda: kernel(1, 32, values, -4, 2.0, 1.0, shared_bytes=16),
        "few": lambda: kernel(1, 32, values, shared_bytes=16),
    }
    with pytest.raises(InputError, match="kernel reverse"):
        calls[case]()
    kernel(1, 32, values, *numbers, shared_bytes=16)
    np.testing.assert_array_equal(values.get(), reversed_twice_plus_one(4))


@pytest.mark.parametrize(
    ("function", "declared", "problem"),
    [
        ("reverse", "float32[] uint32", "declared parameters are not those of the kernel"),
        ("reverse", "float32[] uint32 float64 float64", "declared parameters are not those of the kernel"),
        ("nowhere", DECLARED, "the image has no such kernel"),
    ],
)
def test_a_declaration_that_the_machine_code_does_not_have(function: str, declared: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Entry(SOURCE, function, declared).on(0)


def test_what_is_not_machine_code_is_refused() -> None:
    from burstproof.compile.code import CubinCode
    from burstproof.compile.launch import device_capability

    with pytest.raises(CompileError, match=r"does not load the image.*Compile it with tools for CUDA \d+"):
        Entry(CubinCode("broken", {device_capability(0): b"no machine code"}), "reverse", DECLARED).on(0)


def test_an_image_of_another_capability_is_refused() -> None:
    from burstproof.compile.launch import device_capability, load_kernel

    other = (9, 0) if device_capability(0)[0] != 9 else (8, 0)
    with pytest.raises(InputError, match="another compute capability"):
        load_kernel(SOURCE.image(other), "reverse", ENTRY.declared, 0)


def test_a_source_with_an_error_is_refused_at_the_first_use() -> None:
    with pytest.raises(CompileError, match=r"bad\.cu, line 1"):
        Entry(CudaSource("bad.cu", 'extern "C" __global__ void k(int* a) { *a = b; }'), "k", "int32[]").on(0)


@pytest.mark.requirement("KL-4")
def test_occupancy_is_what_the_driver_says(cupy: Any) -> None:
    from burstproof.compile.launch import device_capability
    from burstproof.compile.proof import CATALOGUE
    from burstproof.compile.resources import MULTIPROCESSORS, occupancy

    capability = device_capability(0)
    if capability not in MULTIPROCESSORS:
        pytest.skip(f"the table has no multiprocessor of {capability}")
    for entry in CATALOGUE:
        kernel = entry.on(0)
        for block in (32, 96, 128, 256, 512, 1024):
            if block <= kernel.limits.threads:
                expected = kernel.blocks_per_multiprocessor(block)
                found = occupancy(capability, kernel.registers, kernel.limits.static_shared_bytes, block)
                assert found.blocks == expected, (entry.function, block)


@pytest.mark.requirement("KL-1", "KL-3")
def test_every_form_of_code_launches(cupy: Any) -> None:
    """PTX of an ISA that no tool knows yet is rebuilt; LTO-IR, a cubin and a numba function do what they say."""
    from numba import types

    from burstproof.compile.code import CubinCode, LtoirCode, PtxCode
    from burstproof.compile.launch import device_capability
    from burstproof.device.numba_cuda import cuda
    from suites.support.compile.code_forms import PTX, SCALE

    def add(a, b, factor):
        i = cuda.grid(1)
        if i < a.size:
            a[i] += factor * b[i]

    out = cupy.zeros(1, cupy.uint32)
    Entry(PtxCode("put", PTX.replace("9.4", "99.0"), rebuild=True), "put", "uint32[] uint32").on(0)(1, 1, out, 77)
    assert int(out[0]) == 77
    own, source = device_capability(0), CudaSource("scale.cu", SCALE)
    codes = (
        source,
        PtxCode("scale", source.ptx((7, 5))),
        LtoirCode("scale", source.ltoir((7, 5))),
        CubinCode("scale", {own: source.image(own).cubin}),
    )
    for code in codes:
        values = cupy.ones(32, cupy.float32)
        Entry(code, "scale", "float32[] float32").on(0)(1, 32, values, 3.0)
        assert values.tolist() == [3.0] * 32
    array = types.float32[::1]
    values = cupy.arange(1000, dtype=cupy.float32)
    Entry.of_numba(add, types.void(array, array, types.float32)).on(0)(4, 256, values, values.copy(), 2.0)
    np.testing.assert_array_equal(values.get(), 3 * np.arange(1000, dtype=np.float32))


@pytest.mark.requirement("KL-5")
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float64", "complex128"])
def test_arrays_go_up_and_come_back(dtype: str) -> None:
    from burstproof.device.memory import copy, download, upload

    host = np.random.default_rng(1).integers(0, 2, (3, 0 if dtype == "bool" else 5)).astype(dtype)
    array = upload(host)
    assert (array.shape, array.dtype, array.device.id, array.nbytes) == (host.shape, host.dtype, 0, host.nbytes)
    np.testing.assert_array_equal(download(array), host)
    filled = np.empty_like(host)
    copy(filled, array)
    array.device.synchronize()
    np.testing.assert_array_equal(filled, host)


@pytest.mark.requirement("KL-5")
def test_arrays_are_exchanged_without_a_copy(cupy: Any) -> None:
    """Each way out and back in keeps the address."""
    from burstproof.device.memory import adopt, download, upload

    array = upload(np.arange(6, dtype=np.float32).reshape(2, 3))
    address = array.data.ptr
    by_dlpack = SimpleNamespace(__dlpack__=array.__dlpack__, __dlpack_device__=array.__dlpack_device__)
    for other in (array, by_dlpack):
        assert adopt(other).data.ptr == address
    assert array.__cuda_array_interface__["data"][0] == address
    assert array.__dlpack_device__() == (2, 0)
    ENTRY.on(0)(1, 32, array, 6, 2.0, 1.0, shared_bytes=24)
    np.testing.assert_array_equal(download(array).ravel(), reversed_twice_plus_one(6))


@pytest.mark.requirement("KL-5")
def test_arrays_of_torch_are_taken_as_they_are() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to exchange with")
    from burstproof.device.memory import adopt, upload

    tensor = torch.arange(4, dtype=torch.float32, device="cuda")
    torch.cuda.synchronize()
    assert adopt(tensor).data.ptr == tensor.data_ptr()
    ENTRY.on(0)(1, 32, tensor, 4, 2.0, 1.0, shared_bytes=16)
    np.testing.assert_array_equal(tensor.cpu().numpy(), reversed_twice_plus_one(4))
    assert torch.from_dlpack(upload(np.ones(3, np.float32))).sum().item() == 3.0


@pytest.mark.requirement("KL-5")
def test_what_is_no_array_on_a_device_is_refused(cupy: Any) -> None:
    from burstproof.device.memory import adopt, allocate, copy, download, upload

    with pytest.raises(InputError, match="not an array on a device"):
        adopt(np.zeros(3))
    with pytest.raises(InputError, match="not contiguous"):
        adopt(cupy.zeros(8)[::2])
    with pytest.raises(InputError, match="a size below zero"):
        allocate((3, -1), np.float32)
    with pytest.raises(InputError, match="a dtype that no kernel takes"):
        allocate((3,), "U5")
    with pytest.raises(InputError, match=r"differ in shape or element type .*float64 \(3,\) to float32 \(3,\)"):
        copy(allocate((3,), np.float32), np.zeros(3))
    with pytest.raises(InputError, match="both arrays are on devices"):
        copy(cupy.zeros(3), cupy.zeros(3))
    with pytest.raises(OutOfMemoryError, match=r"cannot give memory for an array of shape \(1000000000000,\)"):
        allocate((10**12,), np.float64)
    assert download(upload(np.ones(3))).tolist() == [1.0, 1.0, 1.0]
