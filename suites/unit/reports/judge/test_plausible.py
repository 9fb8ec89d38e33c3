"""Efficiencies above 100 % and speed-ups above the number of devices: possible, and told for what they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.judge.plausible import more_than_linear
from reports.judge.summary import remarks
from reports.rows import measurement_rows
from reports.values.measurement import CaseResult, Measurement, Outcome, Scalar
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-3")


@pytest.mark.parametrize(
    ("name", "value", "unit", "conditions", "more"),
    [
        ("scaling.efficiency", 351.5, "%", {"gpus": 2}, True),
        ("scaling.efficiency", 102.0, "%", {"gpus": 2}, False),
        ("shard.weak_efficiency", 1.2, "1", {"devices": 4}, True),
        ("shard.weak_efficiency", 0.98, "1", {"devices": 4}, False),
        ("scaling.speedup", 7.03, "x", {"gpus": 2}, True),
        ("scaling.speedup", 1.98, "x", {"gpus": 2}, False),
        ("burst.thread_speedup", 8.0, "x", {"threads": 32, "gpus": 1}, False),
        ("attention.speedup", 5.9, "x", {"gpus": 1}, False),
        ("gpt2.speedup", 5.9, "x", {}, False),
        ("scaling.latency", 60.0, "ms", {"gpus": 2}, False),
    ],
)
def test_more_than_linear(name: str, value: float, unit: str, conditions: dict[str, Scalar], more: bool) -> None:
    assert bool(more_than_linear(Measurement(name, value, unit, conditions=conditions))) is more


def test_it_stands_beside_the_figure_and_on_top_of_the_page() -> None:
    figure = Measurement("scaling.efficiency", 351.5, "%", conditions={"gpus": 2}, note="60 ms on one")
    case = CaseResult("case", "stage7", ("MG-7",), Outcome.PASSED, measurements=(figure,))
    record = replace(sample_record(faults=False), cases=(case,), judgements=())
    (row,) = measurement_rows(record)
    assert row.note == "60 ms on one. More than linear: the base is slow, not the many fast."
    assert any(one.endswith("not that the many are fast: scaling.efficiency 351.5 %.") for one in remarks(record))
    assert not any("linear" in one for one in remarks(replace(record, cases=())))
