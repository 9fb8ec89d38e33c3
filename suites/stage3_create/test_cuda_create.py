"""Creating the CUDA engine: the memory plan without a GPU; context, streams, buffers and refusals with one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from burstproof.device.protocol import ALIGNMENT, BufferSpec, arena_offsets
from burstproof.engine.cuda.plan.block_size import checked_block_size, default_block_size
from burstproof.engine.cuda.plan.budget import MemoryPlan, available_bytes, plan_memory
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.options import CudaOptions, EngineOptions, SynapseMemory
from burstproof.engine.state import Stimulus
from burstproof.errors import BackendUnavailableError, ConfigError, InputError, OutOfMemoryError
from burstproof.network.model import Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-6", "BE-9", "ST-3")


def ring(count: int, **columns: object) -> Network:
    ids = np.arange(count)
    return Network(NeuronTable.build(count, **columns), SynapseTable.build(ids, np.roll(ids, 1)))


def ring_of(**columns: object) -> Network:
    """Five neurons in a ring whose synapses have these columns."""
    ids = np.arange(5)
    return Network(NeuronTable.build(5), SynapseTable.build(ids, np.roll(ids, 1), **columns))


def test_the_plan_names_every_buffer_with_its_bytes() -> None:
    """Worked out by hand for 1000 neurons, 1000 synapses: two slots of int32 sums, uint32 targets."""
    plan = plan_memory(ring(1000), EngineOptions())
    sizes = {spec.name: spec.bytes for spec in plan.buffers}
    assert sizes["sums"] == 2 * 4000
    assert sizes["outside"] == 4
    assert sizes["potentials"] == 4000
    assert sizes["targets"] == 4000
    assert sizes["contributions"] == 2000  # int16, once per source
    assert sizes["offsets"] == 4004
    assert sizes["log_ids.0"] == sizes["log_ids.1"] == 4 * 17_000
    assert plan.total_bytes == sum(-(-max(size, 1) // ALIGNMENT) * ALIGNMENT for size in sizes.values())
    table = plan.table().splitlines()
    assert len(table) == len(plan.buffers) + 1
    assert table[-1].split() == ["total", str(plan.total_bytes)]


def test_packed_sums_take_a_quarter_and_stimulus_a_column_of_its_own() -> None:
    """1001 neurons take 1004 cells of 8 bits a slot, so that no 32-bit word belongs to two slots."""
    packed = plan_memory(ring(1001), EngineOptions(cuda=CudaOptions(sum_bits=8)))
    sizes = {spec.name: spec.bytes for spec in packed.buffers}
    assert sizes["sums"] == 2 * 1004
    assert sizes["outside"] == 4 * 1001


@pytest.mark.parametrize(
    ("network", "bits"),
    [
        ({"weights": 5.0}, 8),
        ({"weights": 255.0}, 8),
        ({"weights": 256.0}, 16),
        ({"weights": 65536.0}, 32),
        ({"weights": 200.0, "delay_bursts": 3}, 16),
        ({"weights": 0.5}, 8),
        ({"types": 1}, 32),
    ],
    ids=["5", "255", "256", "65536", "200 with delays", "a fraction", "inhibitory"],
)
def test_sums_are_packed_as_far_as_the_largest_allows(network: dict[str, float], bits: int) -> None:
    """A ring: every neuron gets one contribution. What may be 0 or negative is not packed."""
    options = EngineOptions(cuda=CudaOptions(sum_bits=8))
    assert pack_network(ring_of(**network), options).variant.word.bits == bits


def test_an_unknown_width_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"sum_bits.*24"):
        plan_memory(ring(10), EngineOptions(cuda=CudaOptions(sum_bits=24)))


def test_what_a_network_does_not_use_takes_no_memory() -> None:
    lean = {spec.name: spec.count for spec in plan_memory(ring(1000), EngineOptions()).buffers}
    for name in ("countdowns", "marks", "delays", "last_fired"):
        assert lean[name] == 1, name
    assert not {"weights", "thresholds", "excitabilities"} & lean.keys()
    excitabilities = np.linspace(0, 1, 1000)
    rich = plan_memory(ring(1000, excitabilities=excitabilities, refractory_periods=3), EngineOptions())
    counts = {spec.name: spec.count for spec in rich.buffers}
    assert counts["excitabilities"] == counts["countdowns"] == 1000
    assert "refractory_periods" not in counts


def test_the_arena_aligns_every_buffer() -> None:
    specs = [BufferSpec(f"b{n}", n, np.dtype(np.uint16)) for n in (0, 1, 127, 128, 129, 1000)]
    offsets, size = arena_offsets(specs)
    assert all(offset % ALIGNMENT == 0 for offset in offsets)
    ends = [*offsets[1:], size]
    assert all(end - start >= spec.bytes for spec, start, end in zip(specs, offsets, ends, strict=True))


def test_a_plan_that_does_not_fit_is_refused_with_what_would() -> None:
    plan = MemoryPlan((BufferSpec("targets", 1 << 20, np.dtype(np.uint32)),), neurons=1000, synapses=1 << 20)
    plan.check(plan.total_bytes, "device")
    with pytest.raises(OutOfMemoryError) as refused:
        plan.check(plan.total_bytes // 2, "device")
    message = str(refused.value)
    for figure in (plan.total_bytes, plan.total_bytes // 2, 500, 1 << 19):
        assert str(figure) in message
    assert refused.value.cure


def test_a_declared_limit_bounds_what_is_available() -> None:
    limited = EngineOptions(cuda=CudaOptions(memory_limit_bytes=1 << 20))
    assert available_bytes(1 << 40, limited) == 1 << 20
    assert available_bytes(1 << 10, limited) == 1 << 10
    assert 0 < available_bytes(1 << 40, EngineOptions()) < 1 << 40


@pytest.mark.requirement("BE-12")
def test_block_sizes_follow_the_size_class() -> None:
    assert [default_block_size(n) for n in (99_999, 100_000, 1_000_000, 1_000_001)] == [128, 256, 256, 512]
    assert checked_block_size(64, 10**6) == 64
    for wrong in (-32, 31, 100, 2048):
        with pytest.raises(ConfigError, match="block_size"):
            checked_block_size(wrong, 1000)


def test_a_batch_length_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="batch_length"):
        plan_memory(ring(10), EngineOptions(cuda=CudaOptions(batch_length=-1)))


@pytest.mark.gate("gpu")
def test_buffers_lie_aligned_on_the_device() -> None:
    from burstproof.device.cupy_runtime import CupyRuntime

    runtime = CupyRuntime.open(0)
    specs = [BufferSpec(f"b{n}", n, np.dtype(np.int32)) for n in (0, 1, 63, 64, 65, 100_000)]
    buffers = runtime.allocate(specs)
    stream = runtime.stream()
    for spec in specs:
        buffer = buffers[spec.name]
        assert buffer.array.data.ptr % ALIGNMENT == 0
        values = np.arange(spec.count, dtype=np.int32)
        runtime.upload(buffer, values, stream)
        back = np.full(spec.count, -1, np.int32)
        runtime.download(back, buffer, stream)
        stream.synchronize()
        np.testing.assert_array_equal(back, values)
    runtime.close()


@pytest.mark.gate("gpu")
def test_memory_comes_back_when_an_engine_closes() -> None:
    from burstproof.device.cupy_runtime import CupyRuntime
    from burstproof.engine.cuda.engine import CudaEngine

    network = ring(2_000_000)
    CudaEngine.create(network).close()
    runtime = CupyRuntime.open(0)
    before = runtime.memory_info()[0]
    engine = CudaEngine.create(network)
    taken = before - runtime.memory_info()[0]
    assert taken >= engine.memory_plan.total_bytes * 0.99
    engine.close()
    engine.close()
    assert runtime.memory_info()[0] >= before - (64 << 20)
    with pytest.raises(InputError, match="closed"):
        engine.run(1)


@pytest.mark.gate("gpu")
def test_a_network_that_does_not_fit_is_refused_before_anything_is_allocated() -> None:
    from burstproof.device.cupy_runtime import CupyRuntime
    from burstproof.engine.cuda.engine import CudaEngine

    network = ring(100_000)
    needed = plan_memory(network, EngineOptions()).total_bytes
    before = CupyRuntime.open(0).memory_info()[0]
    resident = CudaOptions(memory_limit_bytes=needed - 1, synapse_memory=SynapseMemory.DEVICE)
    with pytest.raises(OutOfMemoryError, match=str(needed)):
        CudaEngine.create(network, EngineOptions(cuda=resident))
    assert CupyRuntime.open(0).memory_info()[0] == before
    fits = CudaEngine.create(network, EngineOptions(cuda=CudaOptions(memory_limit_bytes=needed)))
    fits.close()


@pytest.mark.gate("gpu")
def test_a_device_that_is_not_there_is_named() -> None:
    from burstproof.engine.cuda.engine import CudaEngine

    with pytest.raises(BackendUnavailableError, match="device_id"):
        CudaEngine.create(ring(10), EngineOptions(cuda=CudaOptions(device_id=999)))


@pytest.mark.gate("gpu")
@pytest.mark.requirement("BE-7", "BE-8")
def test_two_engines_share_a_device() -> None:
    """Two engines stepped in turn do not disturb each other: a pulse travels around each ring."""
    from burstproof.engine.cuda.engine import CudaEngine

    engines = [CudaEngine.create(ring(count)) for count in (50, 70)]
    for engine in engines:
        engine.step(Stimulus(forced=np.array([0], np.uint32)))
    for burst in range(1, 200):
        for engine, count in zip(engines, (50, 70), strict=True):
            assert engine.step().fired_ids.tolist() == [-burst % count]
    for engine in engines:
        engine.close()


@pytest.mark.gate("gpu")
def test_the_timer_sees_the_device() -> None:
    """A sample is a positive time, and the work is done once per sample."""
    from burstproof.device.cupy_runtime import CupyRuntime
    from suites.support.bench.timers import DeviceTimer

    runtime = CupyRuntime.open(0)
    stream = runtime.stream()
    buffer = runtime.allocate([BufferSpec("data", 1 << 20, np.dtype(np.uint8))])["data"]
    launches = []

    def work(queue: Any) -> None:
        launches.append(queue)
        runtime.fill(buffer, len(launches), queue)

    timer = DeviceTimer(runtime, stream, work)
    assert all(timer() > 0 for _ in range(5))
    assert len(launches) == 5
    filled = np.zeros(1 << 20, np.uint8)
    runtime.download(filled, buffer, stream)
    stream.synchronize()
    assert (filled == 5).all()
    runtime.close()
