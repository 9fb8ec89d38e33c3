"""An open device: its probe, its compiled shaders and its buffers; one for each adapter of the process."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.machine import WgpuAdapter
from burstproof.engine.wgpu.adapters import request_device
from burstproof.engine.wgpu.probe import ANSWERS, check_adapter
from burstproof.engine.wgpu.probe_cases import Words
from burstproof.engine.wgpu.shaders import Variant, burst_shader, operations_shader, probe_shader
from burstproof.errors import OutOfMemoryError

if TYPE_CHECKING:
    from wgpu import GPUBindGroup, GPUBuffer, GPUCommandEncoder, GPUComputePipeline, GPUQueue

READ_ONLY = (0, 3, 4, 7)
"""Bindings of ``burst.wgsl`` that shaders only read."""

BINDINGS = 8
UNIFORM_STRIDE = 256
"""Bytes from one burst's uniforms to the next: the alignment that every adapter takes."""

UNIFORM_BYTES = 80
_SMALLEST_BUFFER = 16


class Pipelines(NamedTuple):
    """The compiled shaders of a variant."""

    stimulus: GPUComputePipeline
    count: GPUComputePipeline
    dynamics: GPUComputePipeline
    propagate: GPUComputePipeline
    modulate: GPUComputePipeline


class Device:
    """A device whose float32 has passed the probe.

    Parameters
    ----------
    adapter : WgpuAdapter
    operations : str, optional
        WGSL of the operations on float32 in place of ``operations.wgsl``, such as those of another adapter.
    """

    def __init__(self, adapter: WgpuAdapter, operations: str | None = None) -> None:
        import wgpu

        self.adapter = adapter
        self._operations = operations or operations_shader()
        self._device = request_device(adapter)
        self._usage = wgpu.BufferUsage
        check_adapter(adapter.name, self.answers)
        self._data_layout = self._device.create_bind_group_layout(entries=[_storage(n) for n in range(BINDINGS)])
        self._burst_layout = self._device.create_bind_group_layout(entries=[_uniform()])
        layouts = [self._data_layout, self._burst_layout]
        self._pipeline_layout = self._device.create_pipeline_layout(bind_group_layouts=layouts)
        self._pipelines: dict[Variant, Pipelines] = {}

    @property
    def queue(self) -> GPUQueue:
        """Where work is submitted."""
        return self._device.queue

    def pipelines(self, variant: Variant) -> Pipelines:
        """The shaders for ``variant``, compiled once."""
        if variant not in self._pipelines:
            module = self._device.create_shader_module(code=burst_shader(variant, self._operations))
            self._pipelines[variant] = Pipelines(
                *(
                    self._device.create_compute_pipeline(
                        layout=self._pipeline_layout, compute={"module": module, "entry_point": name}
                    )
                    for name in Pipelines._fields
                )
            )
        return self._pipelines[variant]

    def storage(self, size: int) -> GPUBuffer:
        """A buffer of ``size`` bytes that shaders are given and the host writes and reads.

        Raises
        ------
        OutOfMemoryError
            The driver has no room for it.
        """
        usage = self._usage.STORAGE | self._usage.COPY_DST | self._usage.COPY_SRC
        return self._create(max(size, _SMALLEST_BUFFER), usage)

    def uniforms(self, bursts: int) -> GPUBuffer:
        """A buffer for the uniforms of that many bursts."""
        return self._create(bursts * UNIFORM_STRIDE, self._usage.UNIFORM | self._usage.COPY_DST)

    def _create(self, size: int, usage: int) -> GPUBuffer:
        import wgpu

        try:
            return self._device.create_buffer(size=size, usage=usage)
        except (wgpu.GPUOutOfMemoryError, MemoryError) as error:
            raise OutOfMemoryError(
                "the adapter has no room for a buffer of the network",
                where=f"WGPU adapter {self.adapter.name}",
                got=f"{size} bytes",
                cure="Take a smaller network, or --backend cpu",
            ) from error

    def data_group(self, buffers: tuple[GPUBuffer, ...]) -> GPUBindGroup:
        """The bind group of the eight storage buffers, in the order of ``burst.wgsl``."""
        entries = [{"binding": n, "resource": {"buffer": buffer}} for n, buffer in enumerate(buffers)]
        return self._device.create_bind_group(layout=self._data_layout, entries=entries)

    def burst_group(self, uniforms: GPUBuffer) -> GPUBindGroup:
        """The bind group of one burst's uniforms, at an offset that the dispatch names."""
        resource = {"buffer": uniforms, "offset": 0, "size": UNIFORM_BYTES}
        return self._device.create_bind_group(layout=self._burst_layout, entries=[{"binding": 0, "resource": resource}])

    def encoder(self) -> GPUCommandEncoder:
        """A recorder of commands for ``queue``."""
        return self._device.create_command_encoder()

    def write(self, buffer: GPUBuffer, values: npt.NDArray[Any], offset: int = 0) -> None:
        """Put ``values`` into ``buffer`` from byte ``offset`` on."""
        if values.size:
            self.queue.write_buffer(buffer, offset, np.ascontiguousarray(values))

    def read(self, buffer: GPUBuffer, dtype: npt.DTypeLike, count: int, first: int = 0) -> npt.NDArray[Any]:
        """A copy of ``count`` elements of ``buffer``, once all that was submitted is done."""
        kind = np.dtype(dtype)
        if not count:
            return np.empty(0, kind)
        data = self.queue.read_buffer(buffer, first * kind.itemsize, count * kind.itemsize)
        return np.frombuffer(data, kind).copy()

    def answers(self, cases: Words) -> Words:
        """What the rules make of ``cases``, (C, 6) uint32 as in ``Probe``: (C, 10) uint32."""
        module = self._device.create_shader_module(code=probe_shader(self._operations))
        pipeline = self._device.create_compute_pipeline(
            layout="auto", compute={"module": module, "entry_point": "probe"}
        )
        given, answers = self.storage(cases.nbytes), self.storage(len(cases) * len(ANSWERS) * 4)
        self.write(given, cases)
        entries = [{"binding": n, "resource": {"buffer": buffer}} for n, buffer in enumerate((given, answers))]
        group = self._device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
        encoder = self.encoder()
        work = encoder.begin_compute_pass()
        work.set_pipeline(pipeline)
        work.set_bind_group(0, group)
        work.dispatch_workgroups(-(-len(cases) // 64))
        work.end()
        self.queue.submit([encoder.finish()])
        found = self.read(answers, np.uint32, len(cases) * len(ANSWERS))
        given.destroy()
        answers.destroy()
        return found.reshape(len(cases), len(ANSWERS))


def _storage(binding: int) -> dict[str, Any]:
    import wgpu

    kind = "read-only-storage" if binding in READ_ONLY else "storage"
    return {"binding": binding, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}


def _uniform() -> dict[str, Any]:
    import wgpu

    buffer = {"type": "uniform", "has_dynamic_offset": True, "min_binding_size": UNIFORM_BYTES}
    return {"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": buffer}


@cache
def open_device(adapter: WgpuAdapter) -> Device:
    """The device of ``adapter``, opened and probed once.

    Raises
    ------
    BackendUnavailableError
        The adapter gives no device, or its float32 does not pass the probe.
    """
    return Device(adapter)
