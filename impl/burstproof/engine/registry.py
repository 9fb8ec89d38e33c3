"""The table of backends: all code that lists, chooses or creates a backend reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from burstproof.engine.buffers import Planned
from burstproof.engine.machine import Machine, Obstacle, Usable
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import CreateEngine, Engine
from burstproof.engine.sharded.engine import Links
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition
from burstproof.errors import InputError
from burstproof.network.model import Network


@dataclass(frozen=True)
class Backend:
    """One backend. Import paths are written ``module:name`` and loaded when first needed.

    Attributes
    ----------
    name, summary : str
        Its name for users, and a description in one sentence.
    engine : str
        Import path of the engine class, which has ``create(network, options)``.
    finds : callable
        (machine, CUDA device) -> what the backend would run on there, or why it cannot.
    shards : str
        Import path of the factory of a sharded engine, see ``create_sharded``; empty without one.
    gpu : bool
        Whether ``auto`` may take it for a network that is worth a GPU.
    probes : bool
        Whether unsuitable devices are detected only when the engine is created; ``auto`` then tries the next backend.
    plan : str
        Import path of (network, options) -> ``Planned``; empty if a plan needs the device.
    """

    name: str
    summary: str
    engine: str
    finds: Callable[[Machine, int], Usable | Obstacle]
    shards: str = ""
    gpu: bool = False
    probes: bool = False
    plan: str = ""


_ROWS = (
    Backend(
        "cuda",
        "NVIDIA GPUs, one or several",
        "burstproof.engine.cuda.engine:CudaEngine",
        lambda machine, device: machine.cuda.found(device),
        shards="burstproof.engine.cluster.cuda_ranks:cuda_shards",
        gpu=True,
        plan="burstproof.engine.cuda.plan.budget:planned",
    ),
    Backend(
        "wgpu",
        "any device of Vulkan, Metal or DX12 whose float32 is exact",
        "burstproof.engine.wgpu.engine:WgpuEngine",
        lambda machine, _: machine.wgpu.found(),
        gpu=True,
        probes=True,
    ),
    Backend(
        "cpu",
        "numba on one core or all",
        "burstproof.engine.cpu.engine:CpuEngine",
        lambda machine, _: Usable(f"numba on {machine.cpu_cores} core{'s' if machine.cpu_cores != 1 else ''}"),
        shards="burstproof.engine.sharded.cpu_shard:cpu_shards",
        plan="burstproof.engine.cpu.threads:planned",
    ),
    Backend(
        "reference",
        "the executable specification: plain NumPy, slow",
        "burstproof.engine.reference:ReferenceEngine",
        lambda *_: Usable("plain NumPy, the executable specification; slow"),
    ),
)

BACKENDS = {row.name: row for row in _ROWS}
"""All backends by name, in order of preference: the fallback of a backend is the next one."""

AUTO = "auto"
"""The name that stands for automatic choice."""


def backend_names() -> tuple[str, ...]:
    """Names that a user may choose a backend by."""
    return AUTO, *BACKENDS


def backend_named(name: str, where: str = "backend") -> Backend:
    """The row of a backend.

    Raises
    ------
    InputError
        Not a backend; ``auto`` must be resolved first.
    """
    if name not in BACKENDS:
        raise InputError("no such engine in this build", where=where, got=name, allowed=", ".join(BACKENDS))
    return BACKENDS[name]


def engine_factory(name: str) -> CreateEngine:
    """The ``create`` of a backend's engine; imports only that engine.

    Raises
    ------
    InputError
        Not a backend.
    """
    create: CreateEngine = load(backend_named(name).engine).create
    return create


def create_sharded(
    network: Network,
    options: EngineOptions,
    partition: Partition,
    backend: str = "cpu",
    exchange: Exchange | None = None,
    threads: int = 1,
    links: Links | None = None,
) -> Engine:
    """An engine over ``network`` on the shards of ``partition``.

    Parameters
    ----------
    backend : str
        The backend of the shards. ``cuda`` takes one device per shard, or with ranks one device per rank.
    exchange : Exchange, optional
        Connects several processes; by default all shards are in this one.
    threads : int
        Threads that step the CPU shards of this process.
    links : Links, optional
        Links that devices may use; by default all.

    Raises
    ------
    InputError
        A backend without shards, or a partition that does not fit.
    NetworkError
        A network that the profile refuses, or a contribution that is not finite.
    """
    row = backend_named(backend)
    if not row.shards:
        allowed = ", ".join(with_shards())
        raise InputError("no sharded engine on this backend", where="backend", got=backend, allowed=allowed)
    engine: Engine = load(row.shards)(network, options, partition, exchange, threads, links or Links())
    return engine


def planned(network: Network, options: EngineOptions, backend: str) -> Planned:
    """The memory plan of the engine of ``backend`` over ``network``, and its choices; uses no device.

    Raises
    ------
    InputError
        A backend without memory plans.
    NetworkError
        A network that the profile refuses.
    """
    row = backend_named(backend, "--backend")
    if not row.plan:
        allowed = ", ".join(name for name, one in BACKENDS.items() if one.plan)
        raise InputError("this backend makes no plan of its memory", where="--backend", got=backend, allowed=allowed)
    found: Planned = load(row.plan)(network, options)
    return found


def with_shards() -> tuple[str, ...]:
    """Names of the backends that run shards."""
    return tuple(name for name, row in BACKENDS.items() if row.shards)


def load(path: str) -> Any:
    """Import the object at ``module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
