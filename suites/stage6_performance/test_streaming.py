"""Networks larger than the device: the share of the link that a burst reaches, checked first (BE-10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stages.measuring import Measure
from suites.support.bench.steady import Timed, Watch, telemetry_of
from suites.support.bench.streaming_bench import (
    COPIED_BYTES,
    STREAMED_ROWS,
    StreamedResult,
    StreamedRow,
    link_gb_per_s,
    measure_streamed,
)

pytestmark = [pytest.mark.requirement("ST-6", "BE-10"), pytest.mark.gate("gpu")]


@pytest.fixture(scope="module")
def watch() -> Callable[[], Watch]:
    """Telemetry of device 0, found by its PCI address."""
    import cupy

    return telemetry_of(cupy.cuda.Device(0).pci_bus_id)


@pytest.fixture(scope="module")
def link(watch: Callable[[], Watch]) -> Iterator[tuple[str, Timed]]:
    """The device's name, and what copies from page-locked memory reach on it, in GB/s."""
    from burstproof.device.open import open_device

    runtime = open_device(0)
    yield runtime.name, link_gb_per_s(runtime, watch)
    runtime.close()


@pytest.fixture(params=STREAMED_ROWS, ids=lambda row: row.name)
def result(request: pytest.FixtureRequest, watch: Callable[[], Watch]) -> StreamedResult:
    """The measured row; measuring happens here, so that a throttled card is an ERROR and not a FAIL."""
    row: StreamedRow = request.param
    return measure_streamed(row, watch)


@pytest.mark.measures(
    "parity.disagreements",
    "streaming.burst_time",
    "streaming.rate",
    "streaming.link_fraction",
    "streaming.reading_time",
    "streaming.fraction_of_floor",
    backend="cuda",
    gpus=1,
    device=...,
    synapse_memory="host",
    neurons=[row.neurons for row in STREAMED_ROWS],
    parity_bursts=[row.checked_bursts for row in STREAMED_ROWS],
)
@pytest.mark.measures(
    "streaming.times_the_memory", only_if="the row is given less memory than it needs", backend="cuda", given_bytes=...
)
@pytest.mark.thorough("measures for seconds")
def test_link_fraction(result: StreamedResult, link: tuple[str, Timed], measure: Measure) -> None:
    """Bytes of the rows of what fired, over the whole burst's time, against a copy over the same link.

    Beside it, as a floor, the time that only reading such rows takes: none of them fills its lines.
    """
    device, copy = link
    row = result.row
    conditions: dict[str, object] = {
        "backend": "cuda",
        "gpus": 1,
        "device": device,
        "neurons": row.neurons,
        "synapses_per_neuron": row.synapses_per_neuron,
        "firing_rate": row.firing_rate,
        "synapse_memory": "host",
        "synapse_bytes": result.synapse_bytes,
        "host_bytes": result.host_bytes,
        "parity_bursts": row.checked_bursts,
        "parity_against": row.judge,
        "given_bytes": row.given_bytes or "all",
    }
    measure("parity.disagreements", len(result.problems), "1", conditions=conditions)
    assert not result.problems, result.problems[0]
    assert result.burst is not None
    assert result.reading is not None
    if row.given_bytes:
        needed = result.device_bytes + result.host_bytes
        assert result.device_bytes <= row.given_bytes < needed
        note = f"{needed} bytes, of which {result.device_bytes} lie on the device and the synapses in host memory"
        measure("streaming.times_the_memory", needed / row.given_bytes, "1", conditions=conditions, note=note)

    burst, whole, reading = result.burst, copy.samples.estimate, result.reading.samples.estimate
    burst.put(measure, "streaming.burst_time", "ms", conditions)
    reached = burst.put(measure, "streaming.rate", "GB/s", conditions, convert=result.gb_per_s)
    compared = f"{reached:.4g} of {whole:.4g} GB/s, which copies of {COPIED_BYTES >> 20} MiB reach; {copy.how}"
    burst.put(measure, "streaming.link_fraction", "1", conditions, compared, lambda ms: result.gb_per_s(ms) / whole)
    result.reading.put(measure, "streaming.reading_time", "ms", conditions)
    only = f"reading the rows of a burst, and nothing else, takes {reading:.4g} ms"
    burst.put(measure, "streaming.fraction_of_floor", "1", conditions, only, lambda ms: reading / ms)
