"""All planted faults by engine."""

from __future__ import annotations

from suites.support.parity.planted import (
    cpu,
    cpu_features,
    cuda,
    cuda_features,
    shard_features,
    shared,
    wgpu,
    wgpu_features,
)
from suites.support.parity.planted.fault import (
    CPU,
    CUDA,
    FEATURES,
    LISTS,
    LISTS_OF_THREADS,
    SHARDS,
    SHARED,
    SIMULATED_SHARDS,
    SIMULATOR,
    THREADS,
    WGPU,
    Fault,
)

CATALOGUE: dict[str, tuple[Fault, ...]] = {
    CPU: (*cpu.KERNELS, *cpu.ROWS),
    FEATURES: cpu_features.FEATURED,
    SHARED: shared.HELPERS,
    THREADS: cpu.THREADED,
    LISTS: cpu.LISTED,
    LISTS_OF_THREADS: cpu.LISTED_BY_THREADS,
    SHARDS: (*cpu.SHARDED, *shard_features.ON_CPU),
    WGPU: (*wgpu.SHADERS, *wgpu_features.FEATURED),
    SIMULATOR: (*cuda.KERNELS, *cuda_features.FEATURED),
    SIMULATED_SHARDS: shard_features.ON_CUDA,
    CUDA: (*cuda.KERNELS, *cuda_features.FEATURED, *shared.HELPERS),
}
"""What is planted in each engine; what all share runs on the host, so one backend without a GPU is enough for it."""
