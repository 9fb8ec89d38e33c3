"""Kernels on several devices of one host: loaded on each, launched from any, and never with another device's data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource
from burstproof.errors import InputError

pytestmark = [pytest.mark.requirement("KL-2", "ST-7"), pytest.mark.gate("multi_gpu")]

SCALE = 'extern "C" __global__ void scale(float* v, float f) { v[threadIdx.x] *= f; }'
ENTRY = Entry(CudaSource("scale.cu", SCALE), "scale", "float32[] float32")


def on_device(device_id: int) -> Any:
    import cupy

    with cupy.cuda.Device(device_id):
        return cupy.ones(32, cupy.float32)


def test_a_kernel_runs_on_each_device_whichever_is_current() -> None:
    import cupy

    for device_id in range(cupy.cuda.runtime.getDeviceCount()):
        values = on_device(device_id)
        for current in (0, device_id):
            with cupy.cuda.Device(current):
                ENTRY.on(device_id)(1, 32, values, 3.0)
                assert cupy.cuda.runtime.getDevice() == current
        with cupy.cuda.Device(device_id):
            np.testing.assert_array_equal(values.get(), np.full(32, 9.0, np.float32))
    assert ENTRY.on(0) is not ENTRY.on(1)


def test_data_and_streams_of_another_device_are_refused() -> None:
    import cupy

    from burstproof.device.memory import upload

    with pytest.raises(InputError, match=r"an array on another device .*device 1.*Copy it to device 0"):
        ENTRY.on(0)(1, 32, on_device(1), 3.0)
    with pytest.raises(InputError, match="an array on another device"):
        ENTRY.on(1)(1, 32, upload(np.ones(32, np.float32), device_id=0), 3.0)
    with cupy.cuda.Device(1):
        stream = cupy.cuda.Stream(non_blocking=True)
    with pytest.raises(InputError, match="a stream of another device"):
        ENTRY.on(0)(1, 32, on_device(0), 3.0, stream=stream)
