"""Programmatic dependent launch: a kernel's blocks start while the previous kernel still runs (capability 9.0).

A kernel launched with ``DeviceRuntime.launch(..., overlapped=True)`` may start as soon as every block of the previous
kernel has called ``let_next_start`` or has ended. It must call ``wait_for_last`` before it touches memory; that returns
once the previous kernel has ended and its writes are visible. This hides most of the gap between two kernels.

Source: CUDA C++ Programming Guide, "Programmatic Dependent Launch"; PTX ISA, ``griddepcontrol``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.device.protocol import Kernel
from burstproof.errors import BackendUnavailableError

if TYPE_CHECKING:
    from cuda.core import Stream

OVERLAP_CAPABILITY = (9, 0)
"""Lowest compute capability with these instructions."""


@cache
def make_wait_for_last(overlapped: bool) -> Callable[..., Any]:
    """``wait_for_last()``: wait for the end of the previous kernel; does nothing unless ``overlapped``."""
    return _make(overlapped, "griddepcontrol.wait;")


@cache
def make_let_next_start(overlapped: bool) -> Callable[..., Any]:
    """``let_next_start()``: allow the next kernel's blocks to start; does nothing unless ``overlapped``."""
    return _make(overlapped, "griddepcontrol.launch_dependents;")


@cache
def make_stay() -> Callable[..., Any]:
    """``stay()``: a compiler barrier, without an instruction: loads before it are not moved behind it."""
    return _make(not SIMULATED, "// what was loaded above is on its way")


def _make(overlapped: bool, instruction: str) -> Callable[..., Any]:
    if overlapped:
        return _instruction(instruction)

    def nothing() -> None:
        return

    return cuda.jit(device=True)(nothing)  # type: ignore[no-any-return]


def _instruction(text: str) -> Callable[..., Any]:
    """A device function of one PTX instruction without operands; memory accesses are not moved across it."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    def typed(_typing: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(ir.InlineAsm(kind, text, "~{memory}", side_effect=True), [])
            return context.get_dummy_value()

        return types.void(), emit

    return cuda.extending.intrinsic(typed)  # type: ignore[no-any-return]


def core_stream(handle: int) -> Stream:
    """The stream ``handle`` as a cuda.core stream, which does not own it."""
    from cuda.core import Stream

    return Stream.from_handle(handle)


def flattened(values: Sequence[Any]) -> list[Any]:
    """``values`` (arrays, numpy scalars, and tuples of these) as the flat list that a kernel compiled by numba takes.

    A contiguous one-dimensional array becomes seven values: two unused pointers, number of elements, bytes of an
    element, address, and again the number and the bytes as shape and stride. A tuple becomes the values of its fields.
    """
    flat: list[Any] = []
    for value in values:
        if isinstance(value, tuple):
            flat += flattened(value)
        elif hasattr(value, "__cuda_array_interface__"):
            count, step = value.size, value.dtype.itemsize
            flat += [0, 0, count, step, value.__cuda_array_interface__["data"][0], count, step]
        else:
            flat.append(value)
    return flat


def launch_compiled(
    kernel: Kernel,
    grid: int,
    block: int,
    stream: Stream,
    values: Sequence[Any],
    overlapped: bool,
    cooperative: bool = False,
    shared_bytes: int = 0,
) -> None:
    """Queue a cuda.core ``kernel`` on a ``core_stream``; ``values`` are ``flattened``.

    ``overlapped``: it may start before the previous kernel has ended. ``cooperative``: all its blocks are resident at
    once. ``shared_bytes``: dynamic shared memory of a block.
    """
    from cuda.core import LaunchConfig, launch

    if shared_bytes:
        _opt_in(kernel, shared_bytes)
    config = LaunchConfig(
        grid=grid,
        block=block,
        shmem_size=shared_bytes,
        programmatic_stream_serialization=overlapped,
        is_cooperative=cooperative,
    )
    launch(stream, config, kernel, *values)


def _opt_in(kernel: Any, shared_bytes: int) -> None:
    """Allow ``kernel`` this much dynamic shared memory; CUDA requires an opt-in above 48 KB."""
    from cuda.bindings import driver

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    error, function = driver.cuKernelGetFunction(int(kernel.handle))
    if not error:
        (error,) = driver.cuFuncSetAttribute(function, attribute, shared_bytes)
    if error:
        raise BackendUnavailableError(
            "the device does not allow so much shared memory", where="kernel", got=f"{shared_bytes} bytes: {error.name}"
        )
