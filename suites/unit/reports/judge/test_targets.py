"""Targets: complete, checked on the way in, matched by what they hold for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from burstproof.errors import InputError
from reports.judge.targets import load_targets, match, mismatch, parse_targets
from reports.values.measurement import Measurement, Scalar
from suites.support.sample_record import latency

pytestmark = pytest.mark.requirement("RE-2")
ROW: dict[str, object] = {
    "id": "x",
    "measurement": "burst.latency",
    "metric": "a burst",
    "comparison": "<=",
    "limit": 1.0,
    "unit": "ms",
    "source": "A",
    "status": "estimate",
    "date": "2026-11-20",
}


def test_every_source_has_its_rows() -> None:
    sources = Counter(target.source for target in load_targets())
    assert set(sources) == {"A", "B", "C", "D", "E", "F", "goal"}
    assert sources["B"] == 12
    assert sources["goal"] >= 10


def test_contradicting_notes_stand_side_by_side() -> None:
    figure = latency("cuda", 1_000_000, 12.0, scope="launch to download", device="NVIDIA H100 80GB HBM3")
    assert {(target.id, target.high) for target in match(figure)} == {
        ("A-burst-1m-h100", 20.0),
        ("B-burst-1m-h100", 15.0),
        ("C-burst-1m-h100", 10.0),
    }


@pytest.mark.parametrize(
    ("neurons", "limit_us"), [(100_000, 4.5), (500_000, 9.0), (1_000_000, 16.0), (5_000_000, 80.0), (20_000_000, 380.0)]
)
def test_goals_of_the_h200(neurons: int, limit_us: float) -> None:
    (target,) = match(latency("cuda", neurons, 1.0, device="NVIDIA H200"))
    assert (target.source, target.high, target.unit) == ("goal", limit_us, "us")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"device": "NVIDIA A10"}, "device"),
        ({"device": ""}, "device"),
        ({"neurons": 200_000}, "neurons"),
        ({"firing_rate": 0.02}, "firing_rate"),
        ({"scope": "step, downloaded"}, "scope"),
        ({"gpus": 8}, "gpus"),
    ],
)
def test_what_does_not_match_is_not_judged(change: dict[str, Scalar], word: str) -> None:
    figure = latency("cuda", 100_000, 1.0, scope="launch to download", device="NVIDIA H100 PCIe")
    assert match(figure)
    other = replace(figure, conditions={**figure.conditions, **change})
    assert match(other) == ()
    target = next(target for target in load_targets() if target.id == "A-burst-100k-h100")
    assert word in mismatch(other, target)


def test_a_number_may_lie_in_a_span() -> None:
    target = next(target for target in load_targets() if target.id == "C-scaling-latency-4")
    near = Measurement("scaling.latency", 3.0, "ms", conditions={"gpus": 4, "single_gpu_ms": 10.4})
    far = Measurement("scaling.latency", 3.0, "ms", conditions={"gpus": 4, "single_gpu_ms": 2.0})
    assert mismatch(near, target) == ""
    assert "9 to 11" in mismatch(far, target)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"limits": 1.0}, "limits"),
        ({"unit": "furlong"}, "furlong"),
        ({"limit": float("nan")}, "finite"),
        ({"limit": True}, "limit"),
        ({"comparison": "=="}, "=="),
        ({"comparison": "range"}, "high and low"),
        ({"source": "G"}, "source"),
        ({"status": "hope"}, "hope"),
        ({"marginal": 1.0}, "marginal"),
        ({"id": ""}, "id"),
        ({"conditions": {"neurons": {"least": 1}}}, "conditions.neurons"),
        ({"conditions": {"device": []}}, "conditions.device"),
        ({"conditions": {"neurons": {"min": 2, "max": 1}}}, "conditions.neurons"),
        ({"floor": float("inf")}, "finite"),
        ({"note": 3}, "note"),
    ],
)
def test_a_faulty_row_is_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named) as caught:
        parse_targets({"target": [ROW | change]})
    assert "target 1" in str(caught.value)


def test_faults_between_rows_are_named() -> None:
    with pytest.raises(InputError, match="same id"):
        parse_targets({"target": [ROW, ROW]})
    with pytest.raises(InputError, match="limited in ms by x and in GB/s"):
        parse_targets({"target": [ROW, ROW | {"id": "y", "unit": "GB/s"}]})
    crossed = {key: value for key, value in ROW.items() if key != "limit"}
    crossed |= {"comparison": "range", "low": 2.0, "high": 1.0}
    with pytest.raises(InputError, match="low must lie below high"):
        parse_targets({"target": [crossed]})
