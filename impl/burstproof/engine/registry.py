"""The backends: one row each. Whatever lists, chooses or creates a backend reads these rows."""

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
    """One backend. Homes are written ``module:name`` and imported when they are first needed.

    Attributes
    ----------
    name, summary : str
        What users call it, and what it is in one sentence.
    engine : str
        Home of the engine class; its ``create(network, options)`` makes the engine.
    finds : callable
        (machine, CUDA device) to what the backend would run on there, or why it cannot.
    shards : str
        Home of what makes the engine over shards, see ``create_sharded``; empty if the backend has none.
    gpu : bool
        Whether ``auto`` may take it for a network that is worth a GPU.
    probes : bool
        Whether only creating the engine shows that the device cannot run the network; ``auto`` then goes on.
    plan : str
        Home of (network, options) to what is planned for it; empty if that needs the device.
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
"""All backends by name, the strongest first: a backend falls back to the next one."""

AUTO = "auto"
"""What a user names to have a backend chosen."""


def backend_names() -> tuple[str, ...]:
    """What a user may name as a backend."""
    return AUTO, *BACKENDS


def backend_named(name: str, where: str = "backend") -> Backend:
    """The row of a backend.

    Raises
    ------
    InputError
        No backend of this build; ``auto`` has to be resolved first.
    """
    if name not in BACKENDS:
        raise InputError("no such engine in this build", where=where, got=name, allowed=", ".join(BACKENDS))
    return BACKENDS[name]


def engine_factory(name: str) -> CreateEngine:
    """The ``create`` of a backend's engine; imports that engine only.

    Raises
    ------
    InputError
        No backend of this build.
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
        What runs a shard. ``cuda`` takes one device per shard, or over ranks one device per rank.
    exchange : Exchange, optional
        Joins several processes; by default all shards are in this one.
    threads : int
        Threads that step the CPU shards of this process.
    links : Links, optional
        What devices may use; by default all there is.

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
    """The buffers that the engine of ``backend`` over ``network`` takes, and its choices; touches no device.

    Raises
    ------
    InputError
        A backend that makes no plan.
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


def load(home: str) -> Any:
    """What stands at ``home``."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)
