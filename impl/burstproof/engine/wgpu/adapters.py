"""The one door to wgpu: which adapters there are, and a device of one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from burstproof.engine.machine import INSTALL_WGPU, Obstacle, WgpuAdapter, WgpuFacts
from burstproof.errors import BackendUnavailableError

if TYPE_CHECKING:
    from wgpu import GPUAdapter, GPUDevice

_APIS = ("Vulkan", "Metal", "D3D12")
_KINDS = {"DiscreteGPU", "IntegratedGPU", "CPU"}
_STORAGE_BUFFERS = 8
_SOCKETS = "XDG_RUNTIME_DIR"
_LOADER = "libvulkan.so.1"


@cache
def _adapters() -> tuple[GPUAdapter, ...]:
    """wgpu's own adapter objects, of the interfaces that this engine runs on."""
    with _no_word_of_displays():
        return _ask()


@contextlib.contextmanager
def _no_word_of_displays() -> Iterator[None]:
    """Name a folder for sockets of displays where there is none: drivers look for one and complain on stderr."""
    if _SOCKETS in os.environ:
        yield
        return
    os.environ[_SOCKETS] = tempfile.gettempdir()
    try:
        yield
    finally:
        del os.environ[_SOCKETS]


def _ask() -> tuple[GPUAdapter, ...]:
    if sys.platform == "linux" and not _is_loadable(_LOADER):
        return ()  # Vulkan is the only one of these interfaces there, and wgpu takes long to be imported
    import wgpu
    from wgpu.backends.wgpu_native.extras import set_instance_extras

    # a program that has an instance of wgpu already keeps it; it may show other interfaces too
    with contextlib.suppress(RuntimeError):
        set_instance_extras(backends=["Vulkan", "Metal", "DX12"])
    return tuple(a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] in _APIS)


def _is_loadable(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _describe(number: int, adapter: GPUAdapter) -> WgpuAdapter:
    info, limits = adapter.info, adapter.limits
    kind = str(info["adapter_type"])
    return WgpuAdapter(
        number,
        str(info["device"]),
        kind if kind in _KINDS else "Unknown",
        str(info["backend_type"]),
        int(limits["max-buffer-size"]),
        int(limits["max-storage-buffer-binding-size"]),
    )


def list_adapters() -> WgpuFacts:
    """Every adapter with the limits of its buffers, or why there is no answer."""
    try:
        found = _adapters()
    except (ImportError, OSError) as error:
        return WgpuFacts(Obstacle(f"wgpu cannot be loaded: {error}", INSTALL_WGPU))
    except Exception as error:  # the native library's answer, whatever its type, is the reason that is reported
        return WgpuFacts(Obstacle(f"wgpu failed: {error}", "Check the graphics driver, or use --backend cpu"))
    return WgpuFacts(None, tuple(_describe(number, adapter) for number, adapter in enumerate(found)))


def chosen_adapter(facts: WgpuFacts, number: int | None) -> WgpuAdapter:
    """The adapter of that number, or the preferred one.

    Raises
    ------
    BackendUnavailableError
        wgpu or an adapter is missing, or there is none of that number.
    """
    found = facts.found()
    if isinstance(found, Obstacle):
        raise BackendUnavailableError(
            f"the backend wgpu cannot start: {found.why}", where="WGPU engine", cure=found.cure
        )
    if number is None:
        return facts.preferred()
    if not 0 <= number < len(facts.adapters):
        raise BackendUnavailableError(
            "there is no such adapter",
            where="WgpuOptions.adapter",
            got=number,
            allowed=f"0...{len(facts.adapters) - 1}",
            cure="`burstproof info` lists the adapters",
        )
    return facts.adapters[number]


def request_device(adapter: WgpuAdapter) -> GPUDevice:
    """A wgpu device of ``adapter`` with the largest buffers that it offers.

    Raises
    ------
    BackendUnavailableError
        The adapter binds fewer than 8 storage buffers, or gives no device.
    """
    found = _adapters()[adapter.number]
    bindings = int(found.limits["max-storage-buffers-per-shader-stage"])
    if bindings < _STORAGE_BUFFERS:
        raise BackendUnavailableError(
            "the adapter binds too few storage buffers to a shader",
            where=f"WGPU adapter {adapter.name}",
            got=bindings,
            allowed=f"{_STORAGE_BUFFERS} or more",
            cure="Take another adapter, or --backend cpu",
        )
    limits = {
        "max-buffer-size": adapter.largest_buffer_bytes,
        "max-storage-buffer-binding-size": adapter.largest_binding_bytes,
    }
    try:
        with _no_word_of_displays():
            return found.request_device_sync(required_limits=limits)
    except Exception as error:  # whatever the driver says is the reason
        raise BackendUnavailableError(
            f"the adapter gives no device: {error}",
            where=f"WGPU adapter {adapter.name}",
            cure="Check the graphics driver, or use --backend cpu",
        ) from error
