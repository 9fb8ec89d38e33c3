"""Whether a run is slower than the baseline of its machine, or of its class, in one sentence."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from reports.command import main
from reports.standing import standing
from reports.store import BASELINES, load_run, standing_of
from reports.values.record import RunRecord
from stages.console import closing
from suites.support.sample_runs import figure, on, run, timed

pytestmark = pytest.mark.requirement("ST-6", "RE-8")


def history() -> list[RunRecord]:
    """Four runs of one commit on one card, within 0.6 %."""
    return [on(run(place, timed(0.01 * (1.0 + 0.002 * place), place)), "NVIDIA H200", "GPU-1") for place in range(4)]


def test_slower_than_the_baseline_of_this_machine() -> None:
    slow = on(run(9, timed(0.02), commit="b"), "NVIDIA H200", "GPU-1")
    said = standing(slow, history())
    assert said.startswith(
        "Performance against a3-GPU-1 at aaaaaaaa, of this machine: 1 figure slower, most burst.latency ("
    )
    steady = on(run(9, timed(0.01), commit="b"), "NVIDIA H200", "GPU-1")
    assert standing(steady, history()).endswith("of this machine: not slower; 1 of 1 figure could be told.")


def test_the_class_serves_where_the_machine_has_no_baseline() -> None:
    other = on(run(9, timed(0.01), commit="b"), "NVIDIA H200", "GPU-2")
    assert "of another machine of this class: " in standing(other, history())
    unknown = on(run(9, timed(0.01), commit="b"), "NVIDIA H100", "GPU-3")
    assert standing(unknown, history()).startswith("Performance: no older baseline of this machine or its class")


def test_a_run_is_not_held_against_what_came_after_it() -> None:
    first, *later = history()
    assert standing(first, later).startswith("Performance: no older baseline")
    assert standing(later[0], [first, *later]).startswith("Performance against a0-GPU-1 at ")


def test_a_run_without_stage_6_says_nothing() -> None:
    bare = run(9, figure("a.latency", 1.0, "ms"))
    other = replace(bare, cases=tuple(replace(case, stage="stage5") for case in bare.cases))
    assert standing(other, history()) == ""


@pytest.mark.thorough("draws reports for seconds")
def test_console_and_report_say_it(tmp_path: Path) -> None:
    """A committed record stands against another H200; the sentence stands in the report that a run writes, too."""
    record = load_run(BASELINES / "h200-owners")
    said = standing_of(record)
    assert said.startswith("Performance against ")
    assert "of another machine of this class" in said
    assert said in closing(record, tmp_path)
    assert main(["render", str(BASELINES / "h200-owners"), "--out", str(tmp_path / "report.html")]) == 0
    assert said in unescape((tmp_path / "report.html").read_text())
