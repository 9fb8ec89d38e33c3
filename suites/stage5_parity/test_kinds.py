"""Every kind of the goal table over a thousand bursts: all firings, potentials and states equal (BE-4, MG-4).

GPU-free: 20 K neurons on the CPU against the reference. With GPUs: 1 M neurons x 100 synapses on 1, 2 and 4 of them,
against one run of the CPU engine, which takes a minute or two for a kind.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.cuda.exchange.devices import device_count
from burstproof.engine.reference import ReferenceEngine
from stages.measuring import Measure
from suites.support.bench.rows import Row
from suites.support.parity.kinds import OPTIONS, on_devices, run_of_kind
from suites.support.parity.trusted import TrustedRun, differences
from suites.support.plans import only, thinned
from suites.support.shards.kind_rows import KINDS, SMALL, SMALL_KINDS, kind_row

pytestmark = pytest.mark.requirement("BE-4", "ST-5")

EVERY_KIND = (*KINDS, *SMALL_KINDS)
PARTS = (1, 99, 400, 500)
"""Bursts between states that are compared, 1000 in all."""
FEW, FEW_PARTS = 20_000, (1, 49, 100)

_OF_ONE = (pytest.mark.gate("gpu"), pytest.mark.requirement("BE-6", "BE-7"))
_OF_SEVERAL = (pytest.mark.gate("multi_gpu"), pytest.mark.requirement("MG-4"))
DEVICES = [pytest.param(count, marks=_OF_ONE if count == 1 else _OF_SEVERAL) for count in (1, 2, 4)]


@pytest.fixture(scope="module", params=thinned(EVERY_KIND, "a kind takes seconds", keep=only()))
def small(request: pytest.FixtureRequest) -> TrustedRun:
    """A network of 20 K neurons and what the reference makes of it."""
    return run_of_kind(kind_row(request.param, FEW), FEW_PARTS, ReferenceEngine.create)


def _of_a_process(kind: str) -> ParameterSet:
    """What is compared of ``kind`` stays in one process, which holds the network and the trusted run."""
    return pytest.param(kind, marks=pytest.mark.xdist_group(f"a million, {kind}"))


@pytest.fixture(scope="module", params=map(_of_a_process, EVERY_KIND))
def row(request: pytest.FixtureRequest) -> Row:
    """A million neurons."""
    return kind_row(request.param, SMALL)


@pytest.fixture(scope="module")
def large(row: Row) -> TrustedRun:
    """What the CPU engine makes of ``row``; one at a time is held."""
    return run_of_kind(row, PARTS, CpuEngine.create)


def _put(measure: Measure, trusted: TrustedRun, backend: str, devices: int, found: list[str]) -> None:
    conditions = {
        "backend": backend,
        "network": trusted.name,
        "devices": devices,
        "synapses": trusted.network.synapse_count,
        "bursts": trusted.bursts,
        "fired": trusted.fired,
    }
    measure("parity.disagreements", len(found), "1", conditions=conditions, note="; ".join(found[:3]))


@pytest.mark.measures("parity.disagreements", backend="cpu", network=...)
@pytest.mark.xdist_group("kinds")
def test_kind_on_the_cpu(small: TrustedRun, measure: Measure) -> None:
    """20 K neurons x 100 synapses, 150 bursts: the CPU engine against the reference."""
    with closing(CpuEngine.create(small.network, OPTIONS)) as engine:
        found = differences(small, engine)
    _put(measure, small, "cpu", 0, found)
    assert not found, found[0]


@pytest.mark.measures("parity.disagreements", backend="cuda", network=...)
@pytest.mark.thorough("a minute or two for a kind")
@pytest.mark.time_limit(1500)
@pytest.mark.parametrize("devices", DEVICES)
def test_kind_on_gpus(devices: int, row: Row, large: TrustedRun, measure: Measure) -> None:
    """1 M neurons x 100 synapses, 1000 bursts: CUDA against the CPU engine, whose run serves 1, 2 and 4 GPUs."""
    if device_count() < devices:
        pytest.skip(f"needs {devices} GPUs, {device_count()} are here")
    with closing(on_devices(row, large.network, devices)) as engine:
        found = differences(large, engine)
    _put(measure, large, "cuda", devices, found)
    assert not found, found[0]


@pytest.mark.not_proof
@pytest.mark.xdist_group("kinds")
def test_a_wrong_synapse_is_noticed(small: TrustedRun) -> None:
    """One neuron's weights are off by one: the comparison can fail."""
    synapses = small.network.synapses
    weights = synapses.weights.copy()
    weights[synapses.source_neurons == small.recordings[0].fired_ids[0]] += 1
    wrong = small.network.replace(synapses=replace(synapses, weights=weights.astype(np.float32)))
    with closing(CpuEngine.create(wrong, OPTIONS)) as engine:
        assert differences(small, engine)
