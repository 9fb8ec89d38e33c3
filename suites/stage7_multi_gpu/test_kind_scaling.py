"""Every kind of the goal table over several GPUs, against one GPU that does what one of them has to do (BE-21, MG-7).

The smallest networks come first: a run that is cut short has figures of every kind.
"""

from __future__ import annotations

import pytest

from burstproof.engine.cuda.exchange.devices import device_count
from burstproof.errors import OutOfMemoryError
from stages.measuring import Measure
from suites.support.bench.cuda_bench import RESIDENT
from suites.support.bench.steady import to_us
from suites.support.shards.kind_rows import KINDS, LARGE, SMALL, SMALL_KINDS, kind_row, measured, scaled_us, share_of

pytestmark = [pytest.mark.requirement("MG-4", "MG-7", "BE-21", "ST-7"), pytest.mark.gate("multi_gpu")]

DEVICES = (2, 4, 8)
CASES = [(SMALL, devices, kind) for devices in DEVICES for kind in (*KINDS, *SMALL_KINDS)]
CASES += [(LARGE, devices, kind) for devices in DEVICES for kind in KINDS]
RATE_TOLERANCE = 0.25
ON_EACH = {
    "devices": list(DEVICES),
    "kind": [*KINDS, *SMALL_KINDS],
    "neurons": [SMALL, LARGE],
    "synapses_per_neuron": 100,
    "firing_rate": 0.01,
}
WAITS = "; on several GPUs arrivals of 16 delays wait in a ring of slots, on one in a calendar"
"""What a small network with delays does otherwise on shards; its ratio says what that costs."""


@pytest.mark.measures("shard.kind_burst", "shard.kind_ratio", **ON_EACH)
@pytest.mark.thorough("builds and checks large networks")
@pytest.mark.time_limit(900)
@pytest.mark.parametrize(("neurons", "devices", "kind"), CASES)
def test_kind_over_devices(neurons: int, devices: int, kind: str, measure: Measure) -> None:
    """Bit for bit before and after, then the burst over that of one share on one GPU, each at its nominal rate."""
    if device_count() < devices:
        pytest.skip(f"needs {devices} GPUs, {device_count()} are here")
    row = kind_row(kind, neurons)
    share = share_of(row, devices)
    try:
        several, alone = measured(row, devices), measured(share, 1)
    except OutOfMemoryError as error:
        pytest.skip(f"{kind} on {devices} GPUs: {error}")
    for result in (several, alone):
        assert result.problems == (), f"{result.row.name}: {result.problems[0]}"
        off = abs(result.firing_rate / result.row.firing_rate - 1.0)
        assert off < RATE_TOLERANCE, f"{result.row.name} fired at {result.firing_rate:.3%} while it was timed"
    conditions = {"devices": devices, "connectivity": row.connectivity, **row.conditions, "kind": kind}
    factor = row.events / several.events
    note = f"{several.events:.0f} contributions as measured, scaled to {row.events:.0f}; {several.checked}"
    several.timings[RESIDENT].put(measure, "shard.kind_burst", "us", conditions, note, lambda ms: factor * to_us(ms))
    note = f"{scaled_us(several):.2f} us on {devices} GPUs, {scaled_us(alone):.2f} us for {share.name} on one"
    note += WAITS if row.spec.longest_delay > 1 and neurons == SMALL else ""
    measure("shard.kind_ratio", scaled_us(several) / scaled_us(alone), "x", conditions=conditions, note=note)
