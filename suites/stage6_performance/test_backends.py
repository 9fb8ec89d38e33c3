"""CPU, WGPU and CUDA side by side: the same networks, checked and timed alike, so that each row has all columns."""

from __future__ import annotations

import pytest

from stages.measuring import Measure
from suites.support.bench.columns import BATCH, STEP, Column, adapter, column
from suites.support.bench.cpu_rows import ROWS
from suites.support.bench.rows import SYNAPSES_PER_NEURON, Row
from suites.support.parity.backends import NEEDS_ADAPTER
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("ST-6", "BE-16", "RE-4")

NETWORKS = [row.neurons for row in ROWS]
BACKENDS = [
    "cpu",
    pytest.param("wgpu", marks=NEEDS_ADAPTER),
    pytest.param("cuda", marks=pytest.mark.gate("gpu")),
]
LAW = {"synapses_per_neuron": SYNAPSES_PER_NEURON, "firing_rate": 0.01}


def _checked(backend: str, row: Row) -> Column:
    found = column(backend, row)
    assert found.problems == (), f"{backend}: {found.problems[0]}"
    return found


@pytest.mark.measures(
    "backend.burst",
    backend=["cpu", "wgpu", "cuda"],
    device=...,
    neurons=NETWORKS,
    scope=[STEP, BATCH],
    **LAW,
)
@pytest.mark.parametrize(
    "row", thinned(ROWS, "a large network, timed for seconds", keep=first(1)), ids=lambda row: row.name
)
@pytest.mark.parametrize(
    "backend", thinned(BACKENDS, "seconds of a software adapter", keep=lambda place, _: place != 1)
)
def test_column(backend: str, row: Row, measure: Measure) -> None:
    """A burst on one backend: with its fired list, and in batches of which only counts are kept."""
    found = _checked(backend, row)
    note = f"{row.checked_bursts} bursts before equal the reference's; fired at {found.firing_rate:.3%}"
    for scope, timed in found.timings.items():
        conditions = {"backend": backend, "device": found.device, "scope": scope, **row.conditions}
        timed.put(measure, "backend.burst", "ms", conditions, note)


@pytest.mark.measures(
    "burst.speedup", backend="cuda", against="wgpu", device=..., neurons=NETWORKS, scope=[STEP, BATCH], **LAW
)
@NEEDS_ADAPTER
@pytest.mark.gate("gpu")
@pytest.mark.thorough("measures for seconds")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_cuda_against_wgpu(row: Row, measure: Measure) -> None:
    """CUDA against WGPU on a GPU: the notes say 2 to 10 times, 5.9 times at 100 K neurons."""
    name, kind = adapter()
    if kind == "CPU":
        pytest.skip(f"the only WGPU adapter is software: {name}; against it no speedup of a GPU can be stated")
    cuda, wgpu = _checked("cuda", row), _checked("wgpu", row)
    for scope in (STEP, BATCH):
        ours, theirs = (one.timings[scope].samples.estimate for one in (cuda, wgpu))
        note = f"CUDA {ours:.4f} ms on {cuda.device}, WGPU {theirs:.4f} ms on {name}"
        conditions = {"backend": "cuda", "against": "wgpu", "device": cuda.device, "scope": scope, **row.conditions}
        measure("burst.speedup", theirs / ours, "x", conditions=conditions, note=note)
