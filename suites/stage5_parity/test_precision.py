"""Potentials in fp16, bf16 and int8: rounding by hand, then every engine against the reference bit for bit (BE-11)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.cuda.plan.budget import plan_memory
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.precision import Precision, Storage, precision_named, storage_for
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.errors import InputError
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.parity import backends
from suites.support.parity.large import OPTIONS, Large, large_network, large_plan
from suites.support.parity.mixed import Mix, compare_mix, mixed_network, mixed_options, mixed_plan
from suites.support.parity.reduced import REDUCED, REDUCED_MIXES
from suites.support.parity.simulator_check import recordings_differ
from suites.support.plans import thinned

pytestmark = pytest.mark.requirement("BE-11")

HALF, BRAIN = Storage(Precision.FP16), Storage(Precision.BF16)
WHOLE, FINE = Storage(Precision.INT8, 1.0), Storage(Precision.INT8, 0.25)

ROUNDED = [
    (HALF, 0.1, 0.0999755859375),
    (HALF, 2049.0, 2048.0),  # half-way between 2048 and 2050: to the even place
    (HALF, 2051.0, 2052.0),
    (HALF, 2.0**-24, 2.0**-24),
    (HALF, 2.0**-25, 0.0),
    (HALF, 1.5 * 2.0**-24, 2.0**-23),
    (HALF, 65519.0, 65504.0),
    (HALF, 70000.0, 65504.0),
    (HALF, -np.inf, -65504.0),
    (BRAIN, 257.0, 256.0),
    (BRAIN, 259.0, 260.0),
    (BRAIN, -1.00390625, -1.0),
    (BRAIN, 3.4028235e38, 3.3895314e38),
    (WHOLE, 0.5, 0.0),
    (WHOLE, 1.5, 2.0),
    (WHOLE, -2.5, -2.0),
    (WHOLE, 127.4, 127.0),
    (WHOLE, 1000.0, 127.0),
    (WHOLE, -np.inf, -127.0),
    (WHOLE, np.nan, 0.0),
    (FINE, 0.125, 0.0),
    (FINE, 0.375, 0.5),
    (FINE, 40.0, 31.75),
]
EDGES = np.array([value for _, value, _ in ROUNDED] + [0.0, -0.0, np.inf, -1e-30, 1e-45, -65520.0], np.float32)

CPU = backends.Backend("cpu, 1 thread", cpu=CpuOptions(threads=1))
CPU_MIXES = ("int8: fractions, delays to 7", "int8: plastic, windows 3 and 2, delays to 4, mp-driven")
"""Every format costs the CPU engine a compilation of seconds; ``test_cpu_rounds`` covers the others."""

PARITY = [
    *(pytest.param(CPU, mix, id=f"cpu, {mix.name}") for mix in REDUCED_MIXES if mix.name in CPU_MIXES),
    *(
        pytest.param(backend, mix, id=f"{backend.name}, {mix.name}", marks=pytest.mark.gate("gpu"))
        for backend in backends.CUDA_BACKENDS[1:4:2]
        for mix in REDUCED_MIXES
    ),
]


def _quick(place: int, _: object) -> bool:
    """One on the CPU engine, and one of each format on CUDA."""
    return place == 0 or (place >= len(CPU_MIXES) and place % 4 == len(CPU_MIXES) % 4)


@pytest.mark.parametrize(("storage", "value", "expected"), ROUNDED)
def test_rounding_by_hand(storage: Storage, value: float, expected: float) -> None:
    kept = storage.encode(np.array([value], np.float32))
    assert kept.dtype == storage.precision.dtype
    assert storage.decode(kept).tolist() == [np.float32(expected)]


def test_what_is_kept_stays() -> None:
    """Rounding twice is rounding once, fp32 changes nothing, and only int8 has no NaN."""
    for storage in (Storage(), HALF, BRAIN, WHOLE, FINE):
        once = storage.rounded(EDGES)
        np.testing.assert_array_equal(storage.rounded(once).view(np.uint32), once.view(np.uint32))
    np.testing.assert_array_equal(Storage().rounded(EDGES).view(np.uint32), EDGES.view(np.uint32))
    assert np.isnan(HALF.rounded(EDGES)).sum() == np.isnan(BRAIN.rounded(EDGES)).sum() == 1


@pytest.mark.parametrize(
    ("thresholds", "step"),
    [([1.0], 2.0**-6), ([127.0, -3.0], 1.0), ([127.5], 2.0), ([-254.0], 2.0), ([0.0], 2.0**-6), ([], 2.0**-6)],
)
def test_the_step_of_int8(thresholds: list[float], step: float) -> None:
    assert storage_for(Precision.INT8, np.array(thresholds, np.float32)) == Storage(Precision.INT8, step)
    assert storage_for(Precision.FP16, np.array(thresholds, np.float32)).step == 1.0


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InputError, match="fp32, fp16, bf16, int8"):
        precision_named("fp8")


@pytest.mark.parametrize(
    ("precision", "start", "amounts", "kept"),
    [
        (Precision.FP32, 2048.0, [1, 1, 1], [2049.0, 2050.0, 2051.0]),
        (Precision.FP16, 2048.0, [1, 1, 3], [2048.0, 2048.0, 2052.0]),  # 2049 and 2051 lie half-way
        (Precision.BF16, 2048.0, [7, 8, 9], [2048.0, 2048.0, 2064.0]),  # 2048 + 8 lies half-way
        (Precision.INT8, 2048.0, [31, 32, 33], [2048.0, 2048.0, 2112.0]),  # steps of 64: 127 x 64 > 5000
    ],
)
def test_a_potential_is_rounded_after_each_burst(
    precision: Precision, start: float, amounts: list[int], kept: list[float]
) -> None:
    """What a burst adds is lost where the format has no room for it; the sum that is tested is not rounded."""
    neurons = NeuronTable.build(1, thresholds=5000.0, membrane_potentials=start)
    engine = ReferenceEngine.create(Network(neurons, SynapseTable.build([], [])), EngineOptions(precision=precision))
    found = []
    for amount in amounts:
        engine.step(Stimulus(np.array([0], np.uint32), np.array([amount], np.float32)))
        found.append(float(engine.state().membrane_potentials[0]))
    assert found == kept


def test_the_sum_of_a_burst_is_tested_unrounded() -> None:
    """2048 + 1 reaches a threshold of 2049 in fp16 too, and the fired list says 2049."""
    neurons = NeuronTable.build(1, thresholds=2049.0, membrane_potentials=2048.0)
    options = EngineOptions(precision=Precision.FP16)
    engine = ReferenceEngine.create(Network(neurons, SynapseTable.build([], [])), options)
    burst = engine.step(Stimulus(np.array([0], np.uint32), np.array([1], np.float32)))
    assert burst.fired_potentials.tolist() == [2049.0]


def test_cpu_rounds() -> None:
    """The compiled rounding of the CPU engine equals the definition for every format."""
    import numba

    from burstproof.engine.cpu.rounding import make_rounded

    rng = np.random.default_rng(5)
    anything = rng.integers(0, 2**32, 2_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    values = np.concatenate([EDGES, anything, (rng.random(2_000) * 300 - 150).astype(np.float32)])
    for storage in (HALF, BRAIN, WHOLE, FINE):
        rounded = make_rounded(storage, numba.njit(error_model="numpy"))
        got = np.array([rounded(value) for value in values], np.float32)
        np.testing.assert_array_equal(got, storage.rounded(values), err_msg=str(storage))


@pytest.mark.measures("parity.disagreements", backend=..., network=...)
@pytest.mark.parametrize(("backend", "mix"), thinned(PARITY, "kernels for each format and mix", keep=_quick))
def test_engine_equals_reference(backend: backends.Backend, mix: Mix, measure) -> None:
    """All state after every burst, bit for bit: narrow storage on the device, rounded float32 on the CPU."""
    problems = compare_mix(mix, backend.create)
    measure("parity.disagreements", len(problems), "1", conditions={"backend": backend.name, "network": mix.name})
    assert problems == []


@pytest.mark.not_proof
@pytest.mark.parametrize("mix", REDUCED_MIXES, ids=lambda mix: mix.name)
def test_an_engine_that_ignores_the_format_is_found(mix: Mix) -> None:
    """fp32 in place of the asked-for format does not pass: the comparison can fail."""
    assert compare_mix(
        mix, lambda network, options: ReferenceEngine.create(network, replace(options, precision=Precision.FP32))
    )


@pytest.mark.measures("precision.state_bytes", precision=[precision.value for precision in Precision])
def test_the_device_stores_fewer_bytes(measure) -> None:
    """The plan of the device's memory has 4, 2, 2 and 1 bytes for a potential, and nothing else changes."""
    mix = REDUCED_MIXES[0]
    network, options = mixed_network(mix), mixed_options(mix)
    others = set()
    for precision in Precision:
        plan = plan_memory(network, replace(options, precision=precision))
        size = next(spec.bytes for spec in plan.buffers if spec.name == "potentials") / network.neuron_count
        measure("precision.state_bytes", size, "B", conditions={"precision": precision.value})
        assert size == precision.dtype.itemsize
        others.add(sum(spec.bytes for spec in plan.buffers if spec.name != "potentials"))
    assert len(others) == 1


@pytest.mark.parametrize("precision", REDUCED, ids=lambda precision: precision.value)
def test_a_state_of_fp32_is_taken_rounded(precision: Precision) -> None:
    """An engine that continues from a state of another format starts from its potentials rounded."""
    mix = next(mix for mix in REDUCED_MIXES if mix.precision is precision)
    network, options = mixed_network(mix), mixed_options(mix)
    exact = ReferenceEngine.create(network, replace(options, precision=Precision.FP32))
    exact.run(3, mixed_plan(mix, network))
    engine = ReferenceEngine.create(network, options)
    engine.restore(exact.state())
    storage = storage_for(precision, network.neurons.thresholds)
    expected = storage.rounded(exact.state().membrane_potentials)
    assert not np.array_equal(expected, exact.state().membrane_potentials)
    np.testing.assert_array_equal(engine.state().membrane_potentials, expected)


@pytest.mark.measures("parity.disagreements", backend="cuda", network=...)
@pytest.mark.gate("gpu")
@pytest.mark.parametrize("precision", REDUCED, ids=lambda precision: precision.value)
def test_cuda_equals_the_cpu_on_a_large_network(precision: Precision, measure) -> None:
    """200 K neurons with every rule at work, 200 bursts in trains: recordings and state."""
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.cuda.engine import CudaEngine

    large = Large(f"rich, 200 K, {precision.value}", 200_000, 200)
    network, options = large_network(large), replace(OPTIONS, precision=precision)
    plan = large_plan(large, network)
    trusted, engine = CpuEngine.create(network, options), CudaEngine.create(network, options)
    try:
        expected = trusted.run(large.bursts, plan)
        problems = recordings_differ(expected, engine.run(large.bursts, plan))
        problems += trusted.state().differences(engine.state())
        measure("parity.disagreements", len(problems), "1", conditions={"backend": "cuda", "network": large.name})
        assert problems == []
        assert expected.fired_counts.sum() > large.neurons
    finally:
        engine.close()
        trusted.close()
