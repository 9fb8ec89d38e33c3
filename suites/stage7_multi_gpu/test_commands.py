"""The commands that a user runs on several GPUs: the record of any number of shards is the CPU's (BE-18, MG-4)."""

from __future__ import annotations

import pytest

from burstproof.engine.cuda.exchange.devices import device_count
from suites.support.cli_door import GENOMES, Door, door, recorded

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-18", "MG-4", "ST-7")

SOURCES = {
    "essential": ("--genome", GENOMES / "essential_genome.json"),
    "20K": ("--synthetic", "20K", "--synapses", "50", "--rate", "0.02"),
}
LONG = pytest.mark.thorough("runs for seconds")
SPLITS = [("20K", 2), pytest.param("20K", 8, marks=LONG), pytest.param("essential", 2, marks=LONG)]


def _assert_same_record(door: Door, source: str, backend: str, shards: int, *split: object) -> None:
    """The run that ``split`` splits over ``shards`` is recorded as one CPU records it, and its record verifies."""
    whole = recorded(door, "cpu", *SOURCES[source])
    parts = recorded(door, backend, *SOURCES[source], *split)
    assert whole.document["firings"] > 0
    assert parts.differs(whole) == []
    assert parts.document["shards"]["shards"] == shards
    assert parts.document["backend"]["fallback"] == ""
    assert door("verify", "--backend", backend, parts.path).code == 0


@pytest.mark.gate("multi_gpu")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("devices", [2, 4, 8])
def test_run_on_several_gpus(door: Door, devices: int, source: str) -> None:
    """``burstproof run --backend cuda --multi-gpu --num-gpus N``."""
    if device_count() < devices:
        pytest.skip(f"needs {devices} GPUs, {device_count()} are here")
    _assert_same_record(door, source, "cuda", devices, "--multi-gpu", "--num-gpus", devices)


@pytest.mark.parametrize(("source", "shards"), SPLITS)
def test_run_on_shards_of_the_cpu(door: Door, source: str, shards: int) -> None:
    """``burstproof run --backend cpu --shards N``: the same without a GPU."""
    _assert_same_record(door, source, "cpu", shards, "--shards", shards)
