"""The rows of the CPU engine, and what the reference makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import EngineState, Recording
from burstproof.network.model import Network
from hardware.host import take_host
from suites.support.bench.rows import Row
from suites.support.parity.large import slim

ROWS = (Row(10_000, 0.01, checked_bursts=20), Row(100_000, 0.01, checked_bursts=10))
ALL_CORES = take_host().usable_cores


@dataclass(frozen=True, eq=False)
class Checked:
    """A row's network, and what the reference, which is kept to judge later bursts, makes of its first ones."""

    row: Row
    network: Network
    reference: ReferenceEngine
    recording: Recording
    state: EngineState


@cache
def checked(row: Row) -> Checked:
    network = row.network()
    reference = ReferenceEngine.create(network, EngineOptions())
    recording = reference.run(row.checked_bursts, row.start)
    return Checked(row, network, reference, recording, slim(reference.state()))
