"""The backends under test: one parametrised list that every parity suite runs through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from burstproof.engine.ask_machine import ask_wgpu
from burstproof.engine.features.support import EVERYTHING, ONE_BURST, Section, sections_of
from burstproof.engine.machine import Obstacle
from burstproof.engine.options import CpuOptions, CudaOptions, EngineOptions, WgpuOptions
from burstproof.engine.protocol import Engine
from burstproof.network.model import Network


@dataclass(frozen=True)
class Backend:
    """A way to create an engine; ``name`` appears in the case id and in the conditions of measurements.

    ``shards`` of the CPU, or of CUDA devices with ``cuda``, by round robin, so that neighbours are always apart.
    """

    name: str
    cpu: CpuOptions | None = None
    cuda: CudaOptions | None = None
    wgpu: WgpuOptions | None = None
    shards: int = 0

    def create(self, network: Network, options: EngineOptions) -> Engine:
        """An engine over ``network`` on this backend."""
        if self.shards:
            from burstproof.engine.registry import create_sharded
            from burstproof.engine.sharded.partition import make_partition

            shards = max(1, min(self.shards, network.neuron_count))
            cut = make_partition(network, shards, "round_robin")
            return create_sharded(network, options, cut, "cpu" if self.cuda is None else "cuda")
        if self.cpu is not None:
            from burstproof.engine.cpu.engine import CpuEngine

            return CpuEngine.create(network, replace(options, cpu=self.cpu))
        if self.cuda is not None:
            from burstproof.engine.cuda.engine import CudaEngine

            return CudaEngine.create(network, replace(options, cuda=self.cuda))
        if self.wgpu is not None:
            from burstproof.engine.wgpu.engine import WgpuEngine

            return WgpuEngine.create(network, replace(options, wgpu=self.wgpu))
        from burstproof.engine.reference import ReferenceEngine

        return ReferenceEngine.create(network, options)

    @property
    def models(self) -> frozenset[Section]:
        """Features that this backend runs; it refuses all others by name."""
        return EVERYTHING if self.wgpu is None else ONE_BURST

    def refuses(self, network: Network) -> list[str]:
        """What the refusal of ``network`` has to name; empty where this backend runs it."""
        return [section.value for section in sections_of(network) if section not in self.models]


REFERENCE = Backend("reference")
ONE_THREAD = "cpu, 1 thread"
CPU_BACKENDS = (
    Backend(ONE_THREAD, cpu=CpuOptions(threads=1)),
    Backend("cpu, 2 threads", cpu=CpuOptions(threads=2)),
)
CPU_SHARDS = Backend("cpu, 2 shards", shards=2)
_LAUNCHES = tuple(
    Backend(
        f"cuda, {'graphs' if graphs else 'no graphs'}, block {block}", cuda=CudaOptions(graphs=graphs, block_size=block)
    )
    for graphs in (True, False)
    for block in (128, 256, 512)
)
CUDA_BACKENDS = (*_LAUNCHES, Backend("cuda, packed sums", cuda=CudaOptions(sum_bits=8)))
WGPU = Backend("wgpu", wgpu=WgpuOptions())
"""On whatever adapter is there, one in software too."""

_ADAPTER = ask_wgpu().found()
NEEDS_ADAPTER = pytest.mark.skipif(isinstance(_ADAPTER, Obstacle), reason=f"no WGPU adapter: {_ADAPTER.why}")


_QUICK_LAUNCHES = ("cuda, graphs, block 256", "cuda, no graphs, block 256", "cuda, packed sums")


def _parameter(backend: Backend) -> Any:
    marks: list[Any] = []
    if backend.cuda is not None:
        marks = [pytest.mark.gate("gpu")]
        if backend.name not in _QUICK_LAUNCHES:
            marks.append(pytest.mark.thorough("the same kernels in blocks of another size"))
    if backend.shards:
        marks = [pytest.mark.thorough("four more kernels; stage 7 has shards in the quick plan")]
    if backend.wgpu is not None:
        marks = [NEEDS_ADAPTER, pytest.mark.requirement("BE-16")]
    return pytest.param(backend, id=backend.name, marks=marks)


def own_kernels(backend: ParameterSet, *quick: str) -> list[pytest.MarkDecorator]:
    """Marks of a case that needs CPU kernels of its own: the quick plan compiles those of the backends ``quick``."""
    needed = backend.id in {one.name for one in CPU_BACKENDS} - {*quick}
    return [pytest.mark.thorough("kernels of its own for the CPU: ten seconds")] if needed else []


ALL = [_parameter(b) for b in (REFERENCE, *CPU_BACKENDS, CPU_SHARDS, *CUDA_BACKENDS, WGPU)]
FEATURED = [pytest.param(*b.values, id=b.id, marks=[*b.marks, *own_kernels(b, ONE_THREAD)]) for b in ALL]
"""For networks with features."""
ENGINES = [_parameter(b) for b in (*CPU_BACKENDS, *CUDA_BACKENDS)]
ENGINES_AND_WGPU = [*ENGINES, _parameter(WGPU)]
CUDA = [_parameter(b) for b in CUDA_BACKENDS]
