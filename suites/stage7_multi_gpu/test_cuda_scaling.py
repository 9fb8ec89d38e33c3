"""How a network scales over GPUs (MG-7): strong, weak, the largest that fits four cards, and the notes' table."""

from __future__ import annotations

from functools import lru_cache

import pytest

from burstproof.sharding.cuda_devices import device_count
from stages.measuring import Measure
from suites.stage7_multi_gpu.cuda_rows import Network, Timing, one_device, sharded

pytestmark = [pytest.mark.requirement("MG-7", "BE-3", "ST-7"), pytest.mark.gate("multi_gpu")]

ONE_MILLION, TWENTY_MILLION = Network(1_000_000), Network(20_000_000)
SLOW = Network(50_000_000, 0.1)
"""A burst that takes about 10 ms on one GPU, as in the first row of the notes' table."""
LARGEST = Network(400_000_000)
PROJECTED = 8


@lru_cache(maxsize=8)
def _timing(network: Network, devices: int) -> Timing:
    """The timing on ``devices`` devices; on one by the engine for one device."""
    return one_device(network) if devices == 1 else sharded(network, devices)


def _devices(wanted: int) -> None:
    if device_count() < wanted:
        pytest.skip(f"needs {wanted} GPUs, {device_count()} are here")


def _put(timing: Timing, measure: Measure) -> None:
    """The latency of a burst, and its parts."""
    assert timing.problems == (), f"differs from the reference in {timing.problems}"
    assert timing.burst is not None
    conditions = {"devices": timing.devices, **timing.network.conditions}
    samples = [float(value) for value in timing.burst.samples.values]
    note = f"{timing.network.checked} bursts equal the implicit reference's; {timing.burst.how}"
    measure("shard.burst", timing.ms, "ms", samples=samples, conditions=conditions, note=note)
    for part, value in timing.split_us.items():
        measure("shard.part", value, "us", conditions={"part": part, **conditions}, note="mean over the bursts")
    measure("shard.memory", timing.memory_bytes / 1e9, "GB", conditions=conditions)


@pytest.mark.parametrize("devices", [1, 2, 4])
@pytest.mark.parametrize("network", [ONE_MILLION, TWENTY_MILLION], ids=["1M", "20M"])
def test_strong_scaling(network: Network, devices: int, measure: Measure) -> None:
    """The same network on more devices, against the engine for one, tiles included."""
    _devices(devices)
    timing = _timing(network, devices)
    _put(timing, measure)
    if devices > 1:
        single = _timing(network, 1)
        speedup = single.ms / timing.ms
        conditions = {"devices": devices, **network.conditions}
        note = f"{1e3 * single.ms:.2f} us on one device, {1e3 * timing.ms:.2f} us on {devices}"
        measure("shard.speedup", speedup, "x", conditions=conditions, note=note)
        measure("shard.strong_efficiency", speedup / devices, "1", conditions=conditions, note=note)


@pytest.mark.parametrize("devices", [2, 4])
def test_weak_scaling(devices: int, measure: Measure) -> None:
    """20 M neurons on every device."""
    _devices(devices)
    single, timing = _timing(TWENTY_MILLION, 1), _timing(Network(devices * TWENTY_MILLION.neurons), devices)
    _put(timing, measure)
    note = f"{1e3 * single.ms:.1f} us on one device, {1e3 * timing.ms:.1f} us on {devices}"
    conditions = {"devices": devices, "neurons_per_device": TWENTY_MILLION.neurons}
    measure("shard.weak_efficiency", single.ms / timing.ms, "1", conditions=conditions, note=note)


@pytest.mark.parametrize("devices", [2, 4])
def test_slow_burst(devices: int, measure: Measure) -> None:
    """The notes' table: a burst that takes about 10 ms on one device; eight devices projected from the model."""
    _devices(devices)
    single, timing = _timing(SLOW, 1), _timing(SLOW, devices)
    _put(single, measure)
    _put(timing, measure)
    conditions = {"devices": devices, **SLOW.conditions}
    note = f"{single.ms:.2f} ms on one device, {timing.ms:.2f} ms on {devices}"
    measure("shard.slow_speedup", single.ms / timing.ms, "x", conditions=conditions, note=note)
    if devices == 4:
        projected = _projected(timing)
        conditions = {"devices": PROJECTED, **SLOW.conditions, "projection": True}
        note = "a projection, not measured: parts that shrink with the share of a device halved, waiting as on four"
        measure("shard.slow_projection", single.ms / projected, "x", conditions=conditions, note=note)


def _projected(timing: Timing) -> float:
    """Milliseconds on twice the devices: propagation and dynamics halved, waiting as it is."""
    shrinking = timing.split_us["propagate"] + timing.split_us["dynamics"]
    return (shrinking / 2 + timing.split_us["wait"]) / 1e3


def test_largest_network(measure: Measure) -> None:
    """400 M neurons x 100 on four cards: 40 G synapses, each made where it is used."""
    _devices(4)
    timing = sharded(LARGEST, 4)
    _put(timing, measure)
    measure("shard.build_time", timing.build_s, "s", conditions={"devices": 4, **LARGEST.conditions})
