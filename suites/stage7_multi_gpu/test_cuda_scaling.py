"""How a network scales over GPUs (MG-7): strong, weak, the largest that fits four cards, and the notes' table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pytest
from _pytest.mark.structures import ParameterSet

from burstproof.device.open import open_device
from burstproof.engine.cuda.exchange.devices import device_count
from burstproof.errors import OutOfMemoryError
from stages.measuring import Measure
from suites.support.bench.capacity import put_capacity
from suites.support.bench.card_limits import Card, measure_limits
from suites.support.bench.floors import CardLimits, burst_floor_us
from suites.support.bench.scaling import rate_for
from suites.support.shards.cuda_rows import Network, Timing, one_device, sharded

pytestmark = [pytest.mark.requirement("MG-7", "BE-3", "ST-7"), pytest.mark.gate("multi_gpu")]

ONE_MILLION, TWENTY_MILLION = Network(1_000_000), Network(20_000_000)
SLOW = Network(50_000_000, 0.1)
"""A burst of several ms on one GPU, 6 ms on an H200."""
TEN_MS = 10.0
"""What the burst of the notes' table takes on one GPU; its row is judged where that is 9 to 11 ms."""
LARGEST = {"sparse": Network(100_000_000), "dense": Network(12_500_000, synapses=1000)}
"""The largest network of each density for one GPU; several hold as many times more."""
PROJECTED = 8
STRONG = [ONE_MILLION.neurons, TWENTY_MILLION.neurons]
GAIN, SHARE = ("shard.speedup", "shard.strong_efficiency"), "shard.share_alone"
_MOST = 4


def _with(devices: int, names: Sequence[str], neurons: int | list[int]) -> ParameterSet:
    """A number of devices, on which a case delivers ``names`` besides what it delivers on any."""
    marks = pytest.mark.measures(*names, devices=devices, neurons=neurons, firing_rate=0.01)
    return pytest.param(devices, marks=marks)


@lru_cache(maxsize=8)
def _timing(network: Network, devices: int) -> Timing:
    """The timing on ``devices`` devices; on one by the engine for one device."""
    return one_device(network) if devices == 1 else sharded(network, devices)


def _devices(wanted: int) -> None:
    if device_count() < wanted:
        pytest.skip(f"needs {wanted} GPUs, {device_count()} are here")


@pytest.fixture(scope="module")
def limits() -> CardLimits:
    """What device 0 allows, measured in this run: the floors follow from it."""
    runtime = open_device(0)
    card = Card(runtime, runtime.stream(), None)
    return measure_limits(card, [ONE_MILLION.neurons]).card(runtime)


def _floor_ms(timing: Timing, limits: CardLimits) -> float:
    """Least time of the burst if the devices share it equally: reductions, bytes, graph nodes; nothing to exchange."""
    return burst_floor_us(timing.network.row, limits, timing.devices) / 1e3


def _put(timing: Timing, measure: Measure, limits: CardLimits, name: str = "shard.burst") -> None:
    """The latency of a burst, and its parts where it has several kernels."""
    assert timing.problems == (), f"differs from the reference in {timing.problems}"
    assert timing.burst is not None
    conditions = {"devices": timing.devices, **timing.network.conditions}
    note = f"{timing.network.checked} bursts equal the implicit reference's"
    timing.burst.put(measure, name, "ms", {**conditions, "floor": _floor_ms(timing, limits)}, note)
    for part, value in timing.split_us.items():
        measure("shard.part", value, "us", conditions={"part": part, **conditions}, note="mean over the bursts")
    measure("shard.memory", timing.memory_bytes / 1e9, "GB", conditions=conditions)


def _put_share(network: Network, timing: Timing, measure: Measure) -> None:
    """Of the burst, what the engine for one device takes for one shard's load alone, by offsets and without packets."""
    alone = one_device(network.share(timing.devices))
    assert alone.problems == (), f"differs from the reference in {alone.problems}"
    note = f"{1e3 * alone.ms:.2f} us for {alone.network.conditions} on one device: no packets, no padded rows"
    conditions = {"devices": timing.devices, **network.conditions}
    measure("shard.share_alone", alone.ms / timing.ms, "1", conditions=conditions, note=note)


@pytest.mark.measures("shard.burst", "shard.memory", devices=[1, 2, 4], neurons=STRONG, firing_rate=0.01)
@pytest.mark.parametrize("devices", [1, _with(2, GAIN, neurons=STRONG), _with(4, (*GAIN, SHARE), neurons=STRONG)])
@pytest.mark.parametrize("network", [ONE_MILLION, TWENTY_MILLION], ids=["1M", "20M"])
def test_strong_scaling(network: Network, devices: int, limits: CardLimits, measure: Measure) -> None:
    """The same network on more devices, against the engine for one, tiles included."""
    _devices(devices)
    timing = _timing(network, devices)
    _put(timing, measure, limits)
    if devices > 1:
        single = _timing(network, 1)
        speedup = single.ms / timing.ms
        conditions = {"devices": devices, **network.conditions}
        ceiling = {"floor": single.ms / _floor_ms(timing, limits)}
        note = f"{1e3 * single.ms:.2f} us on one device, {1e3 * timing.ms:.2f} us on {devices}"
        measure("shard.speedup", speedup, "x", conditions=conditions | ceiling, note=note)
        measure("shard.strong_efficiency", speedup / devices, "1", conditions=conditions, note=note)
        if devices == _MOST:
            _put_share(network, timing, measure)


@pytest.mark.measures("shard.burst", "shard.memory", devices=[2, 4], neurons=[40_000_000, 80_000_000])
@pytest.mark.measures("shard.weak_efficiency", devices=[2, 4], neurons_per_device=TWENTY_MILLION.neurons)
@pytest.mark.parametrize("devices", [2, _with(4, (SHARE,), neurons=80_000_000)])
def test_weak_scaling(devices: int, limits: CardLimits, measure: Measure) -> None:
    """20 M neurons on every device."""
    _devices(devices)
    single, timing = _timing(TWENTY_MILLION, 1), _timing(Network(devices * TWENTY_MILLION.neurons), devices)
    _put(timing, measure, limits)
    note = f"{1e3 * single.ms:.1f} us on one device, {1e3 * timing.ms:.1f} us on {devices}"
    ceiling = {"floor": single.ms / _floor_ms(timing, limits)}
    conditions = {"devices": devices, "neurons_per_device": TWENTY_MILLION.neurons, **ceiling}
    measure("shard.weak_efficiency", single.ms / timing.ms, "1", conditions=conditions, note=note)
    if devices == _MOST:
        _put_share(timing.network, timing, measure)


@pytest.mark.measures("shard.burst", "shard.memory", devices=[1, 2, 4], neurons=SLOW.neurons, firing_rate=SLOW.rate)
@pytest.mark.measures("shard.slow_speedup", devices=[2, 4], neurons=SLOW.neurons, firing_rate=SLOW.rate)
@pytest.mark.measures("shard.slow_projection", only_if="four GPUs are measured", devices=PROJECTED, projection=True)
@pytest.mark.parametrize("devices", [2, 4])
def test_slow_burst(devices: int, limits: CardLimits, measure: Measure) -> None:
    """A burst of several ms on one device; eight devices projected from the model."""
    _devices(devices)
    single, timing = _timing(SLOW, 1), _timing(SLOW, devices)
    _put(single, measure, limits)
    _put(timing, measure, limits)
    conditions = {"devices": devices, **SLOW.conditions}
    note = f"{single.ms:.2f} ms on one device, {timing.ms:.2f} ms on {devices}"
    measure("shard.slow_speedup", single.ms / timing.ms, "x", conditions=conditions, note=note)
    if devices == 4:
        projected = _projected(timing, sharded(SLOW, devices, merged=False))
        conditions = {"devices": PROJECTED, **SLOW.conditions, "projection": True}
        note = "a projection, not measured: half of what four devices take but wait, and the same waiting"
        measure("shard.slow_projection", single.ms / projected, "x", conditions=conditions, note=note)


def _projected(timing: Timing, parts: Timing) -> float:
    """Milliseconds on twice the devices: all but waiting halved, which is taken from the burst in two kernels."""
    assert parts.problems == (), f"differs from the reference in {parts.problems}"
    wait = parts.split_us["wait"] / 1e3
    return (timing.ms - wait) / 2 + wait


def _burst_of_ten_ms() -> Network:
    """50 M neurons at the rate at which one GPU takes nearly 10 ms."""
    return Network(SLOW.neurons, rate_for(TEN_MS, SLOW.rate, _timing(SLOW, 1).ms))


@pytest.mark.measures("scaling.latency", gpus=[1, 2, 4, 8], scaling="strong", single_gpu_ms=...)
@pytest.mark.measures(
    "scaling.speedup",
    "scaling.efficiency",
    "scaling.overhead",
    only_if="there is more than one GPU to compare",
    gpus=[2, 4, 8],
    scaling="strong",
    single_gpu_ms=...,
)
@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_burst_of_ten_ms(devices: int, limits: CardLimits, measure: Measure) -> None:
    """The notes' table: 10 / 5.5 / 3 / 1.8 ms on 1 / 2 / 4 / 8 GPUs, and what the exchange costs (MG-7)."""
    _devices(devices)
    network = _burst_of_ten_ms()
    single, timing = _timing(network, 1), _timing(network, devices)
    assert single.problems + timing.problems == (), f"differs from the reference in {single.problems + timing.problems}"
    assert timing.burst is not None
    conditions = {"gpus": devices, "scaling": "strong", "single_gpu_ms": round(single.ms, 3), **network.conditions}
    floor_ms = _floor_ms(timing, limits)
    note = f"{network.checked} bursts equal the implicit reference's; {single.ms:.2f} ms on one GPU"
    timing.burst.put(measure, "scaling.latency", "ms", {**conditions, "floor": floor_ms}, note)
    if devices > 1:
        speedup, ceiling = single.ms / timing.ms, single.ms / floor_ms
        measure("scaling.speedup", speedup, "x", conditions={**conditions, "floor": ceiling}, note=note)
        measure("scaling.efficiency", 100 * speedup / devices, "%", conditions=conditions, note=note)
        parts = sharded(network, devices, merged=False)
        assert parts.problems == (), f"differs from the reference in {parts.problems}"
        note = "waiting for what other GPUs publish, exchange and imbalance together, in a burst of two kernels"
        overhead = parts.split_us["wait"] / 1e3 / parts.ms
        measure("scaling.overhead", 100 * overhead, "%", conditions=conditions, note=note)


@pytest.mark.measures("shard.burst_of_two_kernels", "shard.part", "shard.memory", devices=_MOST)
@pytest.mark.parametrize(("network", "devices"), [(ONE_MILLION, _MOST), (TWENTY_MILLION, _MOST)])
def test_time_split(network: Network, devices: int, limits: CardLimits, measure: Measure) -> None:
    """Where the time goes: dynamics, propagation and waiting, in a burst of two kernels, whose times can be told."""
    _devices(devices)
    _put(sharded(network, devices, merged=False), measure, limits, "shard.burst_of_two_kernels")


@pytest.mark.measures(
    "shard.burst", "shard.memory", devices=..., neurons=..., synapses_per_neuron=..., firing_rate=0.01
)
@pytest.mark.measures("shard.build_time", devices=[2, 4, 8])
@pytest.mark.measures("shard.part", only_if="a burst is several kernels", devices=[2, 4, 8])
@pytest.mark.measures("capacity.neurons", "capacity.synapses", gpus=[2, 4, 8], density=list(LARGEST))
@pytest.mark.measures("capacity.device_bytes", "capacity.bytes_per_synapse", gpus=[2, 4, 8], density=list(LARGEST))
@pytest.mark.thorough("makes networks of hundreds of gigabytes")
@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("density", LARGEST)
def test_largest_network(density: str, devices: int, limits: CardLimits, measure: Measure) -> None:
    """Made where it is used: on each GPU 100 M neurons x 100, or 12.5 M x 1000."""
    _devices(devices)
    alone = LARGEST[density]
    network = Network(devices * alone.neurons, synapses=alone.synapses)
    try:
        timing = sharded(network, devices)
    except OutOfMemoryError as error:
        pytest.skip(f"{density}, {devices} GPUs: {error}")
    _put(timing, measure, limits)
    measure("shard.build_time", timing.build_s, "s", conditions={"devices": devices, **network.conditions})
    put_capacity(measure, network.row, devices, timing.memory_bytes, density)
