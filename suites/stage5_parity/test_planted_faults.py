"""Faults planted in the source of every real engine: the cases and mixes of this stage find each of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hardware.host import take_host
from stages.measuring import Measure
from suites.support.parity.backends import NEEDS_ADAPTER
from suites.support.parity.planted import cpu_features, cuda_features, wgpu_features
from suites.support.parity.planted.catalogue import CATALOGUE
from suites.support.parity.planted.fault import CPU, CUDA, SIMULATED_SHARDS, SIMULATOR, WGPU, Fault
from suites.support.parity.planted.workshop import PACKAGE, plant

pytestmark = [pytest.mark.requirement("BE-4", "SU-5", "ST-5"), pytest.mark.not_proof("BE-4", "ST-5")]

MOST_JOBS = 8
SIMULATED = pytest.mark.xdist_group("simulator")
MARKS = {WGPU: [NEEDS_ADAPTER], SIMULATOR: [SIMULATED], SIMULATED_SHARDS: [SIMULATED], CUDA: [pytest.mark.gate("gpu")]}
BACKENDS = [pytest.param(name, id=name, marks=MARKS.get(name, [])) for name in CATALOGUE]


def _plant(backend: str, faults: Sequence[Fault], measure: Measure) -> None:
    """Plant the faults and state the share that is found; one that is not is named."""
    jobs = max(1, min(MOST_JOBS, take_host().usable_cores // 2)) if backend == CUDA else 1
    healthy, outcomes = plant(backend, faults, jobs)
    assert healthy == {}, "the checks fail without a fault"
    missed = [str(outcome) for outcome in outcomes if not outcome.caught]
    share = 100 * (len(outcomes) - len(missed)) / len(outcomes)
    note = "; ".join(missed) or f"found: {'; '.join(outcome.fault.name for outcome in outcomes)}"
    conditions = {"backend": backend, "planted": len(outcomes)}
    measure("parity.faults_caught", share, "%", conditions=conditions, note=note)
    assert not missed, "; ".join(missed)


@pytest.mark.parametrize("backend", CATALOGUE)
def test_every_fault_can_be_planted(backend: str) -> None:
    """The text that a fault edits stands in its file exactly once: a change of the engine takes its faults along."""
    found = {fault.name: (PACKAGE / fault.file).read_text("utf-8").count(fault.old) for fault in CATALOGUE[backend]}
    assert {name: times for name, times in found.items() if times != 1} == {}


@pytest.mark.parametrize(
    ("faults", "sections"),
    [(cpu_features.FEATURED, 8), (cuda_features.FEATURED, 8), (wgpu_features.FEATURED, 6)],
    ids=[CPU, CUDA, WGPU],
)
def test_every_section_that_an_engine_models_has_a_fault(faults: Sequence[Fault], sections: int) -> None:
    assert {int(fault.name[0]) for fault in faults} == set(range(1, sections + 1))


@pytest.mark.measures("parity.faults_caught", backend=list(CATALOGUE), planted=...)
@pytest.mark.thorough("what a fault changes is compiled by itself")
@pytest.mark.time_limit(1800)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_planted_fault_is_found(backend: str, measure: Measure) -> None:
    """One edited line each in a copy of the package, kernels and shaders included."""
    _plant(backend, CATALOGUE[backend], measure)
