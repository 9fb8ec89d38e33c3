"""Stage 6 itself: throttled attempts, floors and the fitted costs, without a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hardware.roofline import profile_for
from reports.judge.targets import match
from reports.judge.verdict import judge
from reports.values.judgement import ReasonCode
from reports.values.measurement import Measurement, Scalar, Verdict
from stages.measuring import Measure
from suites.support.bench.card_limits import COPIED_BYTES, REDUCTIONS, g_per_s, gb_per_s
from suites.support.bench.cpu_clock import cpu_ghz
from suites.support.bench.floors import CardLimits, burst_floor, burst_floor_us, download_floor
from suites.support.bench.rows import BETWEEN_ROWS, BLOCKS, CUDA_ROWS, CURVE_ROWS, KIND_ROWS, OTHER_ROWS, POWER_LAW, Row
from suites.support.bench.scaling import fit_costs
from suites.support.bench.steady import ATTEMPTS, POWER_LIMIT, ReplacedClockError, Rule, ThrottledError, time_steadily
from suites.support.bench.timers import clock, host_ms

pytestmark = pytest.mark.requirement("ST-6")

QUICK = Rule(warmup=1, min_samples=6, max_samples=6, max_seconds=1.0)
MILLION = Row(1_000_000, 0.01)
H200 = CardLimits(
    "NVIDIA H200",
    l2_bytes=60 << 20,
    copy_gb_per_s=4180.0,
    reductions_g_per_s={row.neurons: 90.0 for row in CUDA_ROWS},
    graph_node_us=0.8,
    launch_to_download_us=16.0,
)

GOAL_CONDITIONS: dict[str, Scalar] = {"backend": "cuda", "device": "NVIDIA H200", "scope": "device-resident"}


class FakeWatch:
    """Telemetry that says what it was told to."""

    def __init__(self, throttled: bool, reason: str = "hardware slowdown") -> None:
        self._throttled, self._reason = throttled, reason

    def __enter__(self) -> FakeWatch:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def summary(self) -> dict[str, Scalar]:
        reasons = self._reason if self._throttled else "none"
        return {"available": True, "throttled": self._throttled, "clock_reasons": reasons}


def watches(*throttled: bool) -> Callable[[], FakeWatch]:
    answers: Iterator[bool] = iter(throttled)
    return lambda: FakeWatch(next(answers))


def test_throttled_attempts_are_discarded() -> None:
    """The figure is that of the first attempt that was not throttled; its samples alone are kept."""
    calls = iter(range(1, 1000))
    timed = time_steadily(lambda: float(next(calls)), QUICK, watches(True, False))
    assert timed.discarded == 1
    assert timed.samples.values == (9.0, 10.0, 11.0, 12.0, 13.0, 14.0)
    assert timed.telemetry["throttled"] is False
    assert "1 throttled" in timed.how


def test_a_card_that_stays_throttled_gives_no_figure() -> None:
    with pytest.raises(ThrottledError, match="hardware slowdown"):
        time_steadily(lambda: 1.0, QUICK, watches(*[True] * ATTEMPTS))


def test_work_at_full_power_may_reach_the_power_limit() -> None:
    """Only where the work is said to draw all power, and only that reason, beside those that hold nothing back."""

    def at_limit() -> FakeWatch:
        return FakeWatch(True, POWER_LIMIT)

    def idle_before() -> FakeWatch:
        return FakeWatch(True, f"gpu idle, {POWER_LIMIT}")

    def slowed_too() -> FakeWatch:
        return FakeWatch(True, f"{POWER_LIMIT}, hardware slowdown")

    timed = time_steadily(lambda: 1.0, QUICK, at_limit, full_power=True)
    assert (timed.discarded, timed.telemetry["clock_reasons"]) == (0, POWER_LIMIT)
    assert time_steadily(lambda: 1.0, QUICK, idle_before, full_power=True).discarded == 0
    with pytest.raises(ThrottledError, match=POWER_LIMIT):
        time_steadily(lambda: 1.0, QUICK, at_limit)
    with pytest.raises(ThrottledError, match="hardware slowdown"):
        time_steadily(lambda: 1.0, QUICK, slowed_too, full_power=True)


def test_a_throttled_card_is_an_error_of_the_case(pytester: pytest.Pytester) -> None:
    """What a fixture raises is an ERROR, not a FAIL: the card was at fault, not the engine."""
    pytester.makepyfile(
        """
        import pytest
        from suites.support.bench.steady import ThrottledError

        @pytest.fixture
        def result():
            raise ThrottledError("throttled")

        def test_latency(result):
            pass
        """
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(errors=1)


def test_floor_of_a_burst_by_hand() -> None:
    """A million additions at 95 G/s take 10.53 us, more than reading their targets; two nodes of 0.77 us follow."""
    assert burst_floor_us(MILLION, H200) == pytest.approx(1e6 / 95e3 + 2 * 0.77)
    assert download_floor(MILLION, H200).us == pytest.approx(16.0 + 1e6 / 95e3)


def test_the_floor_is_the_least_over_the_ways_to_deliver() -> None:
    """At 10 % queues, then a gather, undercut 10 M additions; what was not measured is no way."""
    busy = replace(MILLION, firing_rate=0.1)
    assert burst_floor(busy, H200).way == "reductions"
    queued = replace(H200, shared_additions_g_per_s=500.0)
    assert burst_floor(busy, queued).way == "queues per owner"
    assert burst_floor(busy, queued).us == pytest.approx(40.0 + 2 * 0.77), "two additions for each of 10 M"
    assert burst_floor(MILLION, replace(queued, reductions_g_per_s={1: 50.0})).us == pytest.approx(4.0 + 2 * 0.77)
    gathered = replace(queued, gathered_g_per_s=1e5)
    most = replace(MILLION, firing_rate=0.5)
    assert burst_floor(most, gathered).way == "gather"
    assert burst_floor(most, gathered).us == pytest.approx((4e8 - (60 << 20)) / 4.8e6 + 2 * 0.77)


def test_the_best_form_of_a_reduction_bounds_a_burst_on_two_devices() -> None:
    """A record had 402.5 M contributions a device in 4.177 ms, 96.4 G/s, against a floor from one form at 95 G/s."""
    row = Row(50_000_000, 0.161)
    assert burst_floor_us(row, H200, devices=2) > 4177 * 1.01
    assert burst_floor_us(row, replace(H200, reductions_g_per_s={MILLION.neurons: 97.0}), devices=2) < 4177


def test_floor_takes_the_better_of_run_and_profile() -> None:
    profile = profile_for(H200.device)
    assert profile is not None
    faster = replace(H200, reductions_g_per_s={MILLION.neurons: 120.0}, graph_node_us=0.5)
    assert burst_floor_us(MILLION, faster) == pytest.approx(1e6 / 120e3 + 2 * 0.5)
    unknown = replace(H200, device="another card")
    assert burst_floor_us(MILLION, unknown) == pytest.approx(1e6 / 90e3 + 2 * 0.8)


def test_floor_by_bytes_where_reductions_are_cheap() -> None:
    """At a boundless rate of additions the targets' bytes count: 4 MB, of which L2 may hold the share it can."""
    limits = replace(H200, reductions_g_per_s={MILLION.neurons: 1e9}, graph_node_us=1e-9)
    assert burst_floor_us(MILLION, limits) == pytest.approx(4e6 * (1 - (60 << 20) / 4e8) / 4.8e6, rel=1e-3)


def test_a_figure_faster_than_its_floor_is_an_error() -> None:
    """The verdict reads the floor from the measurement's conditions, in the target's unit too."""
    floor = burst_floor_us(MILLION, H200)
    conditions = {**GOAL_CONDITIONS, **MILLION.conditions}
    figure = Measurement("burst.latency", 0.9 * floor, "us", conditions={**conditions, "floor": floor})
    targets = match(figure)
    assert [target.id for target in targets] == ["goal-h200-burst-1m"]
    judgement = judge(figure, targets[0])
    assert (judgement.verdict, judgement.reason_code) == (Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR)
    assert judge(replace(figure, value=1.1 * floor), targets[0]).verdict is Verdict.PASS


def test_local_targets_lower_the_floor() -> None:
    """Only contributions to anywhere count as random additions: a fifth with local targets, half with hubs."""
    blocks, hubs = (replace(MILLION, connectivity=kind) for kind in (BLOCKS, POWER_LAW))
    assert blocks.scattered_events == pytest.approx(0.2 * MILLION.events)
    assert 0.4 * MILLION.events < hubs.scattered_events < 0.6 * MILLION.events
    assert burst_floor_us(blocks, H200) < burst_floor_us(hubs, H200) < burst_floor_us(MILLION, H200)
    for row in (blocks, hubs):
        figure = Measurement("burst.latency", 1.0, "us", conditions={**GOAL_CONDITIONS, **row.conditions})
        assert not [target for target in match(figure) if target.source == "goal"]


@pytest.mark.parametrize(
    "row", [*CUDA_ROWS, *OTHER_ROWS, *CURVE_ROWS, *KIND_ROWS, *BETWEEN_ROWS], ids=lambda row: row.name
)
def test_every_row_can_be_driven_and_has_a_floor(row: Row) -> None:
    """The network of each row can hold its rate, and its goal, where there is one, lies above its floor."""
    assert row.spec.neurons == row.neurons
    floor = burst_floor_us(row, H200)
    conditions = {**GOAL_CONDITIONS, **row.conditions}
    for target in match(Measurement("burst.latency", 1.0, "us", conditions=conditions)):
        assert target.high > floor, target.id
    scaled = match(Measurement("burst.scaled", 1.0, "us", conditions=conditions))
    assert len(scaled) == 1 or row not in KIND_ROWS or row.kind in ("power-law", "areas")


def test_costs_are_found_again() -> None:
    """Latencies made from a fixed cost, 12 ps per event and 20 ps per neuron give these back."""
    latencies = [3.0 + 0.012 * row.events / 1000 + 0.02 * row.neurons / 1000 for row in CUDA_ROWS]
    model = fit_costs(CUDA_ROWS, latencies)
    assert (model.fixed_us, model.event_ns, model.neuron_ns) == pytest.approx((3.0, 0.012, 0.02))
    assert model.worst_deviation < 1e-9
    assert fit_costs(CUDA_ROWS, [2 * latencies[0], *latencies[1:]]).worst_deviation > 0.05
    with pytest.raises(ValueError, match="four or more"):
        fit_costs(CUDA_ROWS[:3], latencies[:3])


def test_rates_of_the_limits() -> None:
    assert gb_per_s(0.5) == pytest.approx(2 * COPIED_BYTES / 0.5e-3 / 1e9)
    assert g_per_s(0.5) == pytest.approx(REDUCTIONS / 0.5e-3 / 1e9)


def test_the_clock_is_read_where_the_system_states_it(tmp_path: Path) -> None:
    highest, info, nowhere = tmp_path / "max", tmp_path / "cpuinfo", tmp_path / "nowhere"
    highest.write_text("3700000\n")
    info.write_text("cpu MHz\t\t: 2445.430\nmodel\t: 1\ncpu MHz\t\t: 2600.000\n")
    assert cpu_ghz(info, highest) == pytest.approx(3.7)
    assert cpu_ghz(info, nowhere) == pytest.approx(2.6)
    assert cpu_ghz(nowhere, nowhere) is None


def test_a_timing_is_attached_with_all_that_belongs_to_it() -> None:
    """As a time and as a rate: figure and samples converted alike, telemetry and how steady it is beside them."""
    values = iter([9.0, 2.0, 4.0, 8.0, 2.0, 4.0, 4.0])
    timed = time_steadily(lambda: next(values), QUICK, lambda: FakeWatch(False))
    measure = Measure(("ST-6",))
    assert timed.put(measure, "a.time", "ms", {"n": 1}, "checked first") == 4.0
    assert timed.put(measure, "a.rate", "GB/s", {}, convert=lambda ms: 8.0 / ms) == 2.0
    time, rate = measure.taken
    assert (time.value, time.unit, time.samples) == (4.0, "ms", (2.0, 4.0, 8.0, 2.0, 4.0, 4.0))
    assert (rate.value, rate.unit, rate.samples) == (2.0, "GB/s", (4.0, 2.0, 1.0, 4.0, 2.0, 2.0))
    assert time.telemetry == rate.telemetry == FakeWatch(False).summary()
    assert time.note == f"checked first; {timed.how}"
    assert rate.note == timed.how
    assert (time.conditions, time.requirements) == ({"n": 1}, ("ST-6",))


def test_a_replaced_clock_gives_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed may assign to the clock's name: the clock in use is that of before, and there is no figure."""
    start = clock()

    def slowing() -> float:
        monkeypatch.setattr(time, "perf_counter", lambda: start)
        return host_ms(lambda: sum(range(1000)))()

    with pytest.raises(ReplacedClockError, match=r"^time\.perf_counter: the clock of the process was replaced"):
        time_steadily(slowing, Rule(warmup=0, min_samples=6, max_samples=6))
    assert host_ms(lambda: sum(range(1000)))() > 0
