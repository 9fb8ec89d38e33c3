"""Kernels loaded on a device and launched with checked arguments.

cuda.core loads a kernel. CuPy's compiled binding of ``cuLaunchKernel`` launches it with the arguments in one prepared
block: it takes plain integers, so it costs the host less than NVIDIA's own, which makes an object for each.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from burstproof.compile.numba_cubin import Image, runs_on
from burstproof.compile.parameters import MISFITS, ArgumentBlock, ArgumentChecker, Parameter, size_of
from burstproof.device.cupy_door import cupy_or_error, device_refused
from burstproof.errors import BackendUnavailableError, BurstproofError, CompileError, InputError

if TYPE_CHECKING:
    from cuda.core import Kernel

Extent = int | tuple[int, ...]
"""Blocks or threads: a number, or up to three of them for x, y, z."""

_AXES = "xyz"
_KEPT_GEOMETRIES = 256
_WITHOUT_OPT_IN = 48 << 10


@dataclass(frozen=True)
class LaunchLimits:
    """What device and kernel allow.

    Attributes
    ----------
    grid : (int, int, int)
        Most blocks along x, y, z.
    block : (int, int, int)
        Most threads of a block along x, y, z.
    threads : int
        Most threads per block; the kernel's registers may lower it.
    static_shared_bytes : int
        Shared memory that the kernel declares with a fixed size.
    shared_bytes : int
        Most shared memory per block, static and dynamic, with opt-in.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    threads: int
    static_shared_bytes: int
    shared_bytes: int


def check_launch(
    kernel: str, limits: LaunchLimits, grid: Extent, block: Extent, shared_bytes: int
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Blocks and threads along x, y, z, if device and kernel allow them.

    Raises
    ------
    InputError
        A grid or block with a zero, too many threads or blocks, too much shared memory.
    """
    blocks = _extent(kernel, "grid", grid, limits.grid)
    threads = _extent(kernel, "block", block, limits.block)
    count = threads[0] * threads[1] * threads[2]
    if count > limits.threads:
        raise InputError(
            "too many threads per block",
            where=f"kernel {kernel}, block",
            got=block,
            allowed=f"at most {limits.threads} threads for this kernel's registers",
            cure="Launch smaller blocks, or compile with max_registers",
        )
    room = limits.shared_bytes - limits.static_shared_bytes
    if not 0 <= shared_bytes <= room:
        raise InputError(
            "too much dynamic shared memory" if shared_bytes > 0 else "not a number of bytes",
            where=f"kernel {kernel}, shared_bytes",
            got=shared_bytes,
            allowed=f"0...{room} beside {limits.static_shared_bytes} bytes that the kernel declares",
            cure="Use smaller tiles",
        )
    return blocks, threads


def _extent(kernel: str, name: str, given: Extent, largest: tuple[int, int, int]) -> tuple[int, int, int]:
    sizes = given if isinstance(given, tuple) else (given,)
    if not 1 <= len(sizes) <= 3:
        raise InputError("not one to three sizes", where=f"kernel {kernel}, {name}", got=given)
    full = (*sizes, 1, 1)[:3]
    for axis, size, limit in zip(_AXES, full, largest, strict=True):
        if not 1 <= size <= limit:
            cure = "Skip the launch when there is nothing to do" if size == 0 else "Let each block or thread do more"
            raise InputError(
                f"{name} size along {axis} out of range",
                where=f"kernel {kernel}, {name}",
                got=given,
                allowed=f"1...{limit}",
                cure=cure,
            )
    return int(full[0]), int(full[1]), int(full[2])


class DeviceKernel:
    """A kernel on one device; call it to launch. Threads may share it.

    Attributes
    ----------
    name : str
    device_id : int
    limits : LaunchLimits
    registers : int
        Per thread.
    function : int
        The driver's handle (``CUfunction``), for launches by other means.
    """

    def __init__(self, name: str, parameters: tuple[Parameter, ...], kernel: Kernel, device_id: int) -> None:
        from cuda.bindings import driver

        self.name = name
        self.device_id = device_id
        self._kernel = kernel
        self._cupy = cupy_or_error()
        attributes = kernel.attributes[device_id]
        self.registers = int(attributes.num_regs)
        self.limits = _limits(device_id, attributes.max_threads_per_block, attributes.shared_size_bytes)
        self._check_declaration(parameters)
        self._checker = ArgumentChecker(name, parameters, device_id, self._cupy.ndarray, _device_of)
        self._values = self._checker.values
        self._block = ArgumentBlock(parameters)
        self._fill, self._addresses = self._block.fill, self._block.addresses
        self._lock = threading.Lock()
        self._extents: dict[tuple[Extent, Extent, int], tuple[int, ...]] = {}
        self._opted_in = _WITHOUT_OPT_IN - self.limits.static_shared_bytes
        self._driver = driver
        self._launch = self._cupy.cuda.driver.launchKernel
        self._refused = self._cupy.cuda.driver.CUDADriverError
        self._current_stream = self._cupy.cuda.get_current_stream
        self._current_device = self._cupy.cuda.runtime.getDevice
        self.function = int(_taken(driver.cuKernelGetFunction(kernel.handle), f"kernel {name}"))

    def __call__(
        self, grid: Extent, block: Extent, *arguments: object, shared_bytes: int = 0, stream: object = None
    ) -> None:
        """Queue one launch.

        Parameters
        ----------
        grid, block : int or tuple of up to three int
            Blocks, and threads per block.
        *arguments
            As declared: arrays on this device (CuPy, package buffers, anything with ``__cuda_array_interface__``),
            numbers.
        shared_bytes : int
            Dynamic shared memory per block; above 48 KiB the kernel opts in by itself.
        stream : optional
            A CuPy stream, a ``DeviceStream`` of this package, or anything with ``__cuda_stream__``; by default CuPy's
            current stream.

        Raises
        ------
        InputError
            Anything that does not fit, before the launch.
        BackendUnavailableError
            The driver refuses the launch.
        """
        if self._current_device() != self.device_id:
            with self._cupy.cuda.Device(self.device_id):
                self(grid, block, *arguments, shared_bytes=shared_bytes, stream=stream)
            return
        extents = self._extents.get((grid, block, shared_bytes)) or self._admit(grid, block, shared_bytes)
        values = self._values(arguments)
        queue = self._current_stream().ptr if stream is None else self._stream(stream)
        with self._lock:
            try:
                self._fill(*values)
            except MISFITS as error:
                raise self._checker.misfit(error, values) from error
            try:
                self._launch(self.function, *extents, shared_bytes, queue, self._addresses, 0)
            except self._refused as error:
                raise BackendUnavailableError(f"the driver refuses: {error}", where=f"kernel {self.name}") from error

    def blocks_per_multiprocessor(self, block: int) -> int:
        """Blocks of ``block`` threads, without dynamic shared memory, that one multiprocessor holds at once."""
        return int(self._kernel.occupancy.max_active_blocks_per_multiprocessor(block, 0))

    def _admit(self, grid: Extent, block: Extent, shared_bytes: int) -> tuple[int, ...]:
        """Check a geometry, opt in to its shared memory, and remember it."""
        blocks, threads = check_launch(self.name, self.limits, grid, block, shared_bytes)
        extents = (*blocks, *threads)
        with self._lock:
            if shared_bytes > self._opted_in:
                attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                _taken(self._driver.cuFuncSetAttribute(self.function, attribute, shared_bytes), f"kernel {self.name}")
                self._opted_in = shared_bytes
            if len(self._extents) >= _KEPT_GEOMETRIES:
                self._extents.clear()
            self._extents[grid, block, shared_bytes] = extents
        return extents

    def _stream(self, stream: object) -> int:
        own = getattr(stream, "cupy_stream", stream)
        if isinstance(own, self._cupy.cuda.Stream | self._cupy.cuda.ExternalStream):
            if getattr(own, "device_id", -1) not in (-1, None, self.device_id):
                raise InputError(
                    "a stream of another device",
                    where=f"kernel {self.name}, stream",
                    got=f"device {own.device_id}",
                    allowed=f"device {self.device_id}",
                )
            return int(own.ptr)
        if hasattr(own, "__cuda_stream__"):
            return int(own.__cuda_stream__()[1])
        raise InputError(
            "not a stream",
            where=f"kernel {self.name}, stream",
            got=type(stream).__name__,
            allowed="a CuPy stream, a DeviceStream, an object with __cuda_stream__, or None",
        )

    def _check_declaration(self, parameters: tuple[Parameter, ...]) -> None:
        """The sizes that the machine code expects against those declared; drivers before CUDA 12.4 do not tell them."""
        try:
            expected = [int(info.size) for info in self._kernel.arguments_info]
        except NotImplementedError:
            return
        declared = [size_of(code) for parameter in parameters for code in parameter.formats]
        if expected != declared:
            raise InputError(
                "the declared parameters are not those of the kernel",
                where=f"kernel {self.name}",
                got=f"{' '.join(map(str, parameters))} (bytes {declared})",
                allowed=f"bytes {expected}",
                cure="Declare the parameters as the source does",
            )


def load_kernel(image: Image, function: str, parameters: tuple[Parameter, ...], device_id: int) -> DeviceKernel:
    """The function ``function`` of ``image`` on device ``device_id``.

    Raises
    ------
    InputError
        The image is for another capability, has no such function, or its parameters are declared otherwise.
    CompileError
        The driver does not load the image.
    BackendUnavailableError
        No such device.
    """
    cupy = cupy_or_error()
    capability = device_capability(device_id)
    if not runs_on(image.capability, capability):
        raise InputError(
            "an image for another compute capability",
            where=f"{image.name} on device {device_id}",
            got=image.arch,
            allowed=f"sm_{capability[0]}{capability[1]}",
        )
    from cuda.core import ObjectCode

    name = image.symbols.get(function, function)
    with cupy.cuda.Device(device_id):
        cupy.cuda.runtime.free(0)  # makes the device's primary context
        try:
            kernel = ObjectCode.from_cubin(image.cubin, name=image.name).get_kernel(name)
        except Exception as error:
            raise _not_loaded(error, image, function) from error
        return DeviceKernel(function, parameters, kernel, device_id)


def _not_loaded(error: Exception, image: Image, function: str) -> BurstproofError:
    """What the driver said, as the package's own error with the cure that fits."""
    where = f"kernel {function} of {image.name}"
    if "NOT_FOUND" in str(error):
        cure = 'Declare it extern "C", or list its instance in templates'
        return InputError(f"the image has no such kernel: {error}", where=where, cure=cure)
    driver = int(cupy_or_error().cuda.runtime.driverGetVersion()) // 1000
    return CompileError(
        f"the driver does not load the image: {error}",
        where=where,
        got=f"an image for {image.arch}, a driver for CUDA {driver}",
        cure=f"Compile it with tools for CUDA {driver} (extra cuda{driver}), or update the driver",
    )


@lru_cache(maxsize=64)
def device_capability(device_id: int) -> tuple[int, int]:
    """Compute capability of a device.

    Raises
    ------
    BackendUnavailableError
        No driver, or no such device.
    """
    cupy = cupy_or_error()
    try:
        text = str(cupy.cuda.Device(device_id).compute_capability)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise device_refused(device_id, error) from error
    return int(text[:-1]), int(text[-1])


def _limits(device_id: int, threads: int, static_shared_bytes: int) -> LaunchLimits:
    runtime = cupy_or_error().cuda.runtime
    properties = runtime.getDeviceProperties(device_id)
    return LaunchLimits(
        grid=tuple(properties["maxGridSize"]),
        block=tuple(properties["maxThreadsDim"]),
        threads=int(threads),
        static_shared_bytes=int(static_shared_bytes),
        shared_bytes=int(properties["sharedMemPerBlockOptin"]),
    )


def _device_of(address: int) -> int:
    found = cupy_or_error().cuda.runtime.pointerGetAttributes(address)
    return int(found.device) if found.devicePointer else -1


def _taken(answer: tuple[Any, ...], where: str) -> Any:
    """Result of a driver call, or its error as the package's own."""
    from cuda.bindings import driver

    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        _, text = driver.cuGetErrorString(answer[0])
        raise BackendUnavailableError(
            f"the driver refuses: {text.decode() if text else answer[0]}", where=where, got=str(answer[0])
        )
    return answer[1] if len(answer) > 1 else None
