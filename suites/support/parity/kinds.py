"""Networks of every kind over many bursts: what a trusted engine makes of them, for engines on 1, 2 and 4 devices."""

from __future__ import annotations

from collections.abc import Sequence

from burstproof.config import MultiGpu
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.partition import make_partition
from burstproof.network.model import Network
from suites.support.bench.rows import PLASTIC, Row
from suites.support.parity.builder import CreateEngine
from suites.support.parity.trusted import Part, TrustedRun, trusted_run

OPTIONS = EngineOptions(cpu=CpuOptions(specialise=False))
"""The CPU engine does not compile for a network that it runs once."""


def run_of_kind(row: Row, parts: Sequence[int], create: CreateEngine) -> TrustedRun:
    """The network of ``row``, and what the engine that ``create`` makes does in ``parts`` bursts each.

    Columns of the synapses are compared where they learn.
    """
    network = row.network()
    learning = [Part(bursts, synapses=row.kind == PLASTIC) for bursts in parts]
    return trusted_run(f"{row.kind}, {network.neuron_count}", network, OPTIONS, row.start, learning, create)


def on_devices(row: Row, network: Network, devices: int) -> Engine:
    """The CUDA engine on the first ``devices`` devices, split as a configuration does that says nothing about it.

    The devices make the synapses themselves, where a formula gives them (``row.generated``).
    """
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice

    strategy = MultiGpu().sharding_strategy
    choice = ShardingChoice(tuple(range(devices)), strategy) if devices > 1 else None
    if row.generated:
        return CudaEngine.from_spec(row.spec, EngineOptions(), choice)
    partition = None if choice is None else make_partition(network, devices, strategy)
    return CudaEngine.create(network, EngineOptions(), partition, choice)
