"""Links between GPUs as matrices, and the loss curve: what the report draws of single measurements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reports.figures.links import link_matrices
from reports.figures.losses import loss_lines
from reports.html import render
from reports.store import load_run
from reports.values.measurement import CaseResult, Measurement, Outcome
from reports.values.record import RunRecord
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-3")

FOUR = Path(__file__).parents[4] / "reports" / "baselines" / "h200-x4"


def with_measurements(*measurements: Measurement) -> RunRecord:
    record = sample_record()
    case = CaseResult("suites/a.py::test", "stage7", (), Outcome.PASSED, measurements=measurements)
    return replace(record, cases=(*record.cases, case))


def link(pair: str, value: float, way: str = "kernel stores") -> Measurement:
    return Measurement("link.latency", value, "us", conditions={"pair": pair, "way": way})


def test_a_pair_measured_once_stands_in_both_directions() -> None:
    found = link_matrices(with_measurements(link("0-1", 0.5), link("1-0", 0.7), link("0-10", 2.0)))
    assert [(one.title, one.gpus) for one in found] == [("Latency, kernel stores", ("0", "1", "10"))]
    assert found[0].cells == (("", "0.5 µs", "2 µs"), ("0.7 µs", "", ""), ("2 µs", "", ""))
    assert found[0].heads == ["from GPU", "#0", "#1", "#10"]


def test_without_links_there_is_no_matrix() -> None:
    assert link_matrices(sample_record()) == ()


@pytest.mark.requirement("MG-6")
def test_four_gpus_fill_every_matrix() -> None:
    """The committed record of four GPUs: every pair has a figure in every matrix, and the page shows them."""
    record = load_run(FOUR)
    found = link_matrices(record)
    assert {one.title.split(",")[0] for one in found} == {
        "Bandwidth",
        "Share of the line rate of the links",
        "Latency",
        "NVLinks",
    }
    for matrix in found:
        assert matrix.gpus == ("0", "1", "2", "3")
        assert [bool(cell) for row in matrix.cells for cell in row] == [a != b for a in range(4) for b in range(4)]
    page = render(record)
    assert "Links between GPUs, from row to column: Bandwidth, copy engine" in page


@pytest.mark.requirement("TO-9")
def test_losses_are_drawn_over_their_steps() -> None:
    """A thinned series keeps the places of its samples; losses that cannot be drawn are left out."""
    losses = Measurement(
        "training.loss",
        1.0,
        "1",
        samples=(4.0, 2.0, 1.0),
        conditions={"backend": "cuda", "dtype": "bf16", "steps": 301},
    )
    broken = replace(losses, samples=(4.0, float("nan")))
    record = with_measurements(losses, broken)
    assert loss_lines(record) == {"cuda bf16": [(1.0, 4.0), (151.0, 2.0), (301.0, 1.0)]}
    assert "Loss of a small GPT per character, by step" in render(record)
