"""Energy of a burst from the telemetry of its timing."""

from __future__ import annotations

import pytest

from hardware.stopwatch import measure_until_steady
from stages.measuring import Measure
from suites.support.bench.energy import energy_of
from suites.support.bench.steady import Rule, Timed

pytestmark = pytest.mark.requirement("ST-6")

RULE = Rule(warmup=2, min_samples=8, max_samples=8, max_seconds=1.0)
SAMPLES = measure_until_steady(lambda: 1.0, warmup=2, min_samples=8, max_samples=8, max_seconds=1.0, relative_noise=0.1)


def test_joules_are_those_of_all_bursts_of_the_timing() -> None:
    """Ten runs of 100 bursts, the two to warm up among them, drew 5 J: 5 mJ a burst, 50 nJ a contribution."""
    energy = energy_of(Timed(SAMPLES, {"energy_j": 5.0, "duration_s": 0.5}), 100, RULE)
    assert energy is not None
    measure = Measure(())
    energy.put(measure, 100_000.0, {"neurons": 7})
    burst, event = measure.taken
    assert (burst.name, burst.value, burst.unit) == ("burst.energy", pytest.approx(5000.0), "uJ")
    assert (event.name, event.value, event.unit) == ("event.energy", pytest.approx(50.0), "nJ")
    assert "over 1000 bursts in 0.50 s, 10 W" in burst.note
    assert burst.conditions == event.conditions == {"neurons": 7}


@pytest.mark.parametrize("telemetry", [{}, {"energy_j": 0.0, "duration_s": 1.0}])
def test_a_card_without_a_counter_gives_none(telemetry: dict[str, float]) -> None:
    assert energy_of(Timed(SAMPLES, telemetry), 100, RULE) is None
