"""Facts about the computer around the GPUs."""

from __future__ import annotations

import os

import pytest

from hardware.host import CudaStack, find_cuda_stack, find_nccl_version, take_host, unpack_nccl_version

pytestmark = pytest.mark.requirement("ST-2")


def test_this_host_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    host = take_host()
    assert 1 <= host.usable_cores <= host.cores == os.cpu_count()
    assert host.memory_bytes is None or host.memory_bytes > 2**28
    assert host.cpu
    assert host.visible_devices == "1,0"


def test_an_unset_variable_is_not_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert take_host().visible_devices is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert take_host().visible_devices == ""


def test_a_container_is_recognised_by_its_orchestrator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert take_host().container == "kubernetes"


@pytest.mark.parametrize(
    ("packed", "version"), [(2708, "2.7.8"), (2804, "2.8.4"), (20903, "2.9.3"), (21602, "2.16.2"), (22703, "2.27.3")]
)
def test_nccl_packs_its_version_in_two_ways(packed: int, version: str) -> None:
    assert unpack_nccl_version(packed) == version


def test_the_nccl_wheel_is_found_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hardware.host._wheel_version", {"nvidia-nccl-cu13": "2.27.3"}.get)
    assert find_nccl_version() == "2.27.3"


def test_without_wheel_and_library_there_is_no_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise OSError(name)

    monkeypatch.setattr("hardware.host._wheel_version", lambda distribution: None)
    monkeypatch.setattr("hardware.host.ctypes.CDLL", missing)
    assert find_nccl_version() is None


def test_the_cupy_wheel_tells_the_cuda_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hardware.host.importlib.util.find_spec", lambda name: None if name == "cupy" else object())
    monkeypatch.setattr("hardware.host._wheel_version", {"cupy-cuda13x": "14.2.0"}.get)
    assert find_cuda_stack() == CudaStack(cupy=False, numba_cuda=True, cuda_major=13)
    assert find_cuda_stack().missing == ("cupy",)
    both = {"cupy-cuda12x": "14.2.0", "cupy-cuda13x": "14.2.0"}
    monkeypatch.setattr("hardware.host._wheel_version", both.get)
    assert find_cuda_stack().cuda_major is None, "two wheels at once say nothing"
