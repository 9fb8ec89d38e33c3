"""Sharded engines on the CPU as the parity suites take them, and what they are compared on."""

from __future__ import annotations

from pathlib import Path

from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.registry import create_sharded
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import make_partition
from burstproof.network.model import Network
from suites.support.parity.builder import CreateEngine
from suites.support.parity.mixed import MIXES, Mix

TRACES = Path(__file__).parents[2] / "data" / "golden" / "traces"
TRACE_NAMES = sorted(path.stem for path in TRACES.glob("*.npz"))

EVERYTHING_LEARNS = "plastic, windows 3 and 2, delays to 4, mp-driven"
"""The mix with most that crosses shards: potentials, delays, and plastic synapses whose ends lie apart."""


def sharded(strategy: str, shards: int, exchange: Exchange | None = None, threads: int = 1) -> CreateEngine:
    """What creates an engine on ``shards`` CPU shards, a whole number of them in every process of ``exchange``."""

    def create(network: Network, options: EngineOptions) -> Engine:
        partition = make_partition(network, shards, strategy)
        return create_sharded(network, options, partition, exchange=exchange, threads=threads)

    return create


def mix_named(name: str) -> Mix:
    """The mix of that name."""
    return next(mix for mix in MIXES if mix.name == name)
