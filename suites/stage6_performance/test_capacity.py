"""What a GPU of 80 GB holds: the notes' networks, run within that much memory and checked (BE-9, BE-3)."""

from __future__ import annotations

from contextlib import closing

import pytest
from _pytest.mark.structures import ParameterSet

from burstproof.engine.cuda.plan.budget import RESERVE_BYTES
from burstproof.engine.options import CudaOptions, EngineOptions, SynapseMemory
from burstproof.errors import OutOfMemoryError
from stages.measuring import Measure
from suites.support.bench.capacity import put_capacity
from suites.support.bench.cuda_bench import disagreements
from suites.support.bench.implicit_reference import ImplicitReference
from suites.support.bench.rows import Row

pytestmark = [pytest.mark.requirement("BE-9", "BE-3", "ST-6"), pytest.mark.gate("gpu")]

MEMORY_GB = 80.0
HELD = EngineOptions(
    cuda=CudaOptions(memory_limit_bytes=int(MEMORY_GB * 1e9) - RESERVE_BYTES, synapse_memory=SynapseMemory.DEVICE)
)
"""A larger card is held to what one of 80 GB has."""

NETWORKS = {
    "": Row(5_000_000, 0.01, checked_bursts=3, generated=True),
    "dense": Row(10_000_000, 0.01, checked_bursts=3, synapses_per_neuron=1000, generated=True),
    "sparse": Row(40_000_000, 0.01, checked_bursts=3, synapses_per_neuron=150, generated=True),
}


def _declared(density: str, row: Row) -> ParameterSet:
    where = {"gpus": 1, "synapses_per_neuron": row.synapses_per_neuron, "device_memory_gb": MEMORY_GB}
    where |= {"density": density} if density else {}
    marks = [
        pytest.mark.measures("capacity.neurons", "capacity.bytes_per_synapse", **where),
        pytest.mark.measures("capacity.device_bytes", neurons=row.neurons, **where),
    ]
    marks += [pytest.mark.measures("capacity.synapses", **where)] if density else []
    return pytest.param(density, id=row.name, marks=marks)


@pytest.mark.thorough("makes networks of gigabytes")
@pytest.mark.parametrize("density", [_declared(*one) for one in NETWORKS.items()])
def test_capacity_of_80_gb(density: str, measure: Measure) -> None:
    """5 M x 100; 10 M x 1000, 10 G synapses; 40 M x 150, 6 G: made on the device, equal to the implicit reference."""
    from burstproof.engine.cuda.engine import CudaEngine

    row = NETWORKS[density]
    try:
        engine = CudaEngine.from_spec(row.spec, HELD)
    except OutOfMemoryError as error:
        pytest.skip(f"{row.name}: {error}")
    with closing(engine):
        judge = ImplicitReference(row.spec, engine.fixed_point)
        problems = disagreements(judge, engine, row.checked_bursts, row.start)
        assert problems == (), problems[0]
        put_capacity(measure, row, 1, engine.memory_plan.total_bytes, density, MEMORY_GB)
