"""Comparison of runs, and the command that draws it."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from burstproof.errors import ExitCode, InputError
from hardware.inventory import take_inventory
from reports.command import main
from reports.compared import (
    MARKDOWN_LINES,
    change_text,
    counts_text,
    describe,
    describe_across,
    folded,
    interval_text,
    leading,
    markdown,
    sentence,
    strict_text,
    thermometer_lines,
)
from reports.judge.across import across
from reports.judge.compare import Comparison, Relation, Row, compare
from reports.judge.difference import Change, Difference
from reports.judge.direction import lower_is_better
from reports.judge.findings import CaseChange
from reports.judge.parts import Part
from reports.judge.thermometer import Kind
from reports.judge.variation import pair_difference, seen_variation
from reports.store import load_records, load_run, write_run
from reports.values.judgement import Interval
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from reports.values.record import Judging, RunRecord
from suites.support.sample_record import sample_record
from suites.support.sample_runs import BASE, figure, on, run, timed

_BARE = """
import runpy, sys
sys.path.insert(0, {checkout!r})
sys.argv = [{room!r}]
runpy.run_module({room!r}, run_name="__main__")
"""
pytestmark = pytest.mark.requirement("RE-4")
BASELINES = Path(__file__).parents[4] / "reports" / "baselines"
NAMES = tuple(f"a{number}.time" for number in range(10))
STEADY_ERRORS = [replace(figure("gpt2.error", 1.0, "1"), samples=(1.0, 1.0))] * 6
EDGE = replace(figure("a.time", 1000.0, "ms"), samples=(1000.0, 1000.0))


def sides(factor: float, *, count: int = 5, spread: float = 0.005) -> tuple[list[RunRecord], list[RunRecord]]:
    """Runs ABAB..., each with an offset of its own; the new ones take ``factor`` as long at 100 K neurons."""
    generator = np.random.default_rng(7)
    taken: tuple[list[RunRecord], list[RunRecord]] = ([], [])
    for place in range(2 * count):
        new = place % 2
        offset = 1.0 + spread * generator.standard_normal()
        first = timed(0.01 * offset * (factor if new else 1.0), place)
        others = [timed(0.01 * n * offset, place + n, neurons=100_000 * n) for n in (2, 3, 4)]
        taken[new].append(run(place, first, *others, commit="ab"[new]))
    return taken


def the_row(comparison: Comparison, name: str = "burst.latency", part: str = "neurons 100000") -> Row:
    (row,) = (row for row in comparison.rows if row.name == name and part in row.conditions)
    return row


@pytest.mark.parametrize(
    ("factor", "change", "code"),
    [(1.0, Change.SAME, ExitCode.PASS), (1.05, Change.SLOWER, ExitCode.FAIL), (0.95, Change.FASTER, ExitCode.PASS)],
)
def test_interleaved_runs_confirm(factor: float, change: Change, code: ExitCode) -> None:
    comparison = compare(*sides(factor))
    row = the_row(comparison)
    assert (row.change, row.confirmed) == (change, change is not Change.SAME)
    assert comparison.exit_code() is code
    assert comparison.slower + comparison.faster == ((row,) if row.confirmed else ())
    assert (comparison.faster == (row,)) is (change is Change.FASTER)
    assert (comparison.base.label, comparison.new.label) == ("5 runs at aaaaaaaa", "5 runs at bbbbbbbb")
    assert all(other.change in (Change.SAME, Change.UNKNOWN) for other in comparison.rows if other is not row)
    assert comparison.rows[0] is row or change is Change.SAME


def test_runs_that_were_not_taken_in_turns_confirm_nothing() -> None:
    base, new = sides(1.3)
    after = [replace(r, started_utc=r.started_utc.replace("T10", "T11")) for r in new]
    comparison = compare(base, after)
    assert the_row(comparison).change is Change.UNKNOWN
    assert "in turns" in the_row(comparison).difference.reason
    assert the_row(comparison).difference.ratio == pytest.approx(1.3, rel=0.02)
    assert comparison.exit_code() is ExitCode.PASS


def test_a_change_without_the_drift_stands_beside_that_of_the_figures_shown() -> None:
    """A session that slows by 2 % a run, 3 runs a side: the figures shown differ by 2 % of nothing but drift."""
    taken: tuple[list[RunRecord], list[RunRecord]] = ([], [])
    for place in range(6):
        noise = 1.0 + 0.001 * (-1) ** (place // 2)
        taken[place % 2].append(run(place, timed(0.01 * 1.02**place * noise, place), commit="ab"[place % 2]))
    row = the_row(compare(*taken))
    assert row.difference.ratio == pytest.approx(1.0, abs=0.004)
    assert "a drift over the session taken out" in row.difference.reason
    assert re.search(r"% to \+?-?[\d.]+ %; \+[12]\.\d % as shown$", interval_text(row))
    assert "as shown" not in interval_text(the_row(compare(*sides(1.05))))


@pytest.mark.parametrize(
    ("ratio", "shown", "said"), [(2.0, 2.5, "2.5\xd7 as shown"), (2.0, 2.0, ""), (0.25, 0.4, "2.5\xd7 as shown")]
)
def test_factors_that_differ_from_the_figures_beside_them_say_so(ratio: float, shown: float, said: str) -> None:
    row = the_row(compare(*sides(2.0)))
    difference = replace(row.difference, ratio=ratio, interval=None)
    assert interval_text(replace(row, difference=difference, shown_ratio=shown)) == said


def test_an_interval_has_the_unit_of_the_change_beside_it() -> None:
    """A change in per cent and an interval from a third to three times: both in per cent."""
    found = Difference(Change.UNKNOWN, 1.175, Interval(0.395, 3.49, 0.98))
    row = replace(the_row(compare(*sides(1.05))), difference=found, shown_ratio=1.175)
    assert (change_text(row), interval_text(row)) == ("+17.5 %", "-60.5 % to +249.0 %")


def test_three_runs_a_side_are_enough_for_a_large_change() -> None:
    assert the_row(compare(*sides(1.5, count=3, spread=0.001))).confirmed
    assert not the_row(compare(*sides(1.5, count=2, spread=0.001))).confirmed


def test_one_pair_cannot_tell_without_a_history() -> None:
    comparison = compare([run(0, timed(0.01))], [run(1, timed(0.013), commit="b")])
    row = the_row(comparison)
    assert (row.change, row.confirmed) == (Change.UNKNOWN, False)
    assert "nothing shows how much runs of this machine vary" in row.difference.reason
    assert comparison.exit_code(strict=True) is ExitCode.UNDECIDED
    assert "Exit code 2 for --strict: cannot tell 1; 3 runs a side or more" in strict_text(comparison)
    assert sentence(comparison).startswith("One run a side confirms nothing: of 1 figure ")


@pytest.mark.parametrize(
    ("factor", "strict"), [(1.0, ExitCode.PASS), (0.95, ExitCode.PASS), (1.06, ExitCode.UNDECIDED)]
)
def test_strict_lets_nothing_undecided_pass_that_looks_worse(factor: float, strict: ExitCode) -> None:
    """Offsets of 5 % hide 6 %: nobody can tell, which is no failure, and no pass either."""
    base, new = sides(factor, spread=0.05)
    comparison = compare(base, new)
    assert the_row(comparison).change is Change.UNKNOWN
    assert comparison.exit_code() is ExitCode.PASS
    others = replace(comparison, rows=(the_row(comparison),))
    assert others.exit_code(strict=True) is strict
    assert ("cannot tell 1; take more runs" in strict_text(others)) is (strict is ExitCode.UNDECIDED)
    row = the_row(comparison)
    edge = replace(row, difference=replace(row.difference, change=Change.UNKNOWN, ratio=1.25))
    assert replace(comparison, rows=(edge,), noise=0.25).undecided == ()
    assert replace(comparison, rows=(edge,), noise=0.24).undecided == (edge,)
    late = [replace(run, started_utc=run.started_utc.replace("T10", "T11")) for run in new]
    one_by_one = compare(base, late)
    assert one_by_one.exit_code(strict=True) is ExitCode.UNDECIDED
    assert "3 runs a side or more, in turns" in strict_text(one_by_one)
    elsewhere = compare(
        [on(run, "NVIDIA H200", "GPU-1") for run in base], [on(run, "NVIDIA H100", "GPU-2") for run in new]
    )
    assert elsewhere.exit_code(strict=True) is not ExitCode.UNDECIDED


def test_a_pair_shows_an_interval_where_both_sides_have_samples() -> None:
    def interval(new: Measurement) -> Interval | None:
        return the_row(compare([run(0, timed(0.01))], [run(1, new, commit="b")])).difference.interval

    assert interval(timed(0.013, 1)) is not None
    assert interval(replace(timed(0.013, 1), samples=())) is None


def test_one_pair_tells_what_runs_of_the_machine_have_not_varied_by() -> None:
    """Six A/A runs within 1 %: 30 % is slower, though not confirmed; 1 % is not told from the noise."""
    history = [run(place, timed(0.01 * (1.0 + 0.002 * place), place)) for place in range(6)]
    slow = compare(history[:1], [run(9, timed(0.013), commit="b")], history=history)
    assert (the_row(slow).change, the_row(slow).confirmed) == (Change.SLOWER, False)
    assert "between runs of this machine" in the_row(slow).difference.reason
    assert slow.exit_code() is ExitCode.PASS
    assert slow.exit_code(strict=True) is ExitCode.FAIL
    steady = compare(history[:1], [run(9, timed(0.0102), commit="b")], history=history)
    assert the_row(steady).change is Change.UNKNOWN


def test_the_interval_of_one_pair_holds_the_ratio_beside_it() -> None:
    """Where a third of the samples are outliers, the centre moves, and the shift between the series does not."""
    calm = replace(timed(0.01), samples=timed(0.01).samples * 3)
    torn = tuple(value * (1.0 if place % 3 else 40.0) for place, value in enumerate(calm.samples))
    found = the_row(compare([run(0, calm)], [run(1, replace(calm, samples=torn), commit="b")])).difference
    assert found.interval is not None
    assert found.interval.low <= found.ratio <= found.interval.high
    assert found.ratio > 10.0


def test_a_few_figures_do_not_stand_for_the_variation_of_all() -> None:
    """One limit of the machine that moved a hundredfold between two runs says nothing of the others' noise."""
    copies = [replace(figure("roofline.copy", value, "GB/s"), samples=(value,) * 10) for value in (4000.0, 40.0)]
    comparison = compare([run(0, copies[0], timed(0.01))], [run(1, copies[1], timed(0.02), commit="b")])
    assert "nothing shows how much" in the_row(comparison).difference.reason


@pytest.mark.requirement("RE-8")
def test_another_machine_is_no_regression() -> None:
    """Everything twice as slow, on another card: compared as machines, exit 0, also with five runs a side."""
    base, new = sides(2.0)
    for gpu, relation in (("NVIDIA H100", Relation.OTHER), ("NVIDIA H200", Relation.CLASS)):
        one = [on(r, "NVIDIA H200", "GPU-1") for r in base]
        other = [on(r, gpu, "GPU-2") for r in new]
        comparison = compare(one, other)
        assert comparison.relation is relation
        assert not any(row.confirmed for row in comparison.rows)
        assert comparison.exit_code() is ExitCode.PASS
        assert "compared as machines; nothing counts as a regression" in sentence(comparison)
        assert "GPU-1" in describe(comparison)
        assert "GPU-2" in describe(comparison)
        asked = compare(one, other, any_machine=True)
        assert asked.exit_code() is ExitCode.FAIL
    assert ("GPU UUIDs", "GPU-1", "GPU-2") in comparison.environment
    assert set(asdict(take_inventory().host)) >= {"cpu", "usable_cores", "name"}


@pytest.mark.requirement("RE-8")
@pytest.mark.thorough("reads the largest records")
def test_records_of_two_cards_give_no_regression() -> None:
    """The committed records that gave 60 confirmed regressions: two cards of one class, told apart by name."""
    history, _ = load_records(BASELINES)
    comparison = compare([load_run(BASELINES / "h200")], [load_run(BASELINES / "h200-rev2")], history=history)
    assert comparison.relation is Relation.CLASS
    assert comparison.regressions == ()
    assert comparison.exit_code() is ExitCode.PASS
    kinds = {row.name: row.kind for row in comparison.thermometer}
    assert kinds["roofline.copy"] is Kind.LIMIT
    assert kinds["gpt2.step_of_pytorch"] is Kind.PEER
    ours = {(row.name, row.conditions) for row in comparison.rows}
    assert not [name for name, where in ours if name.startswith("roofline.") or "scope PyTorch" in where]
    lines = describe(comparison).splitlines()
    first = next(place for place, line in enumerate(lines) if "limits of the machine" in line)
    assert first < next(place for place, line in enumerate(lines) if "burst." in line and place > 0)
    paired = len(comparison.rows) + len(comparison.thermometer)
    assert paired + sum(len(row.also) for row in (*comparison.rows, *comparison.thermometer)) > 490


@pytest.mark.requirement("RE-8")
def test_the_thermometer_is_never_a_regression() -> None:
    """On one machine, the card's copy rate and another program's step became 20 and 44 % worse in five runs a side."""
    base, new = sides(1.0)

    def add(record: RunRecord, factor: float) -> RunRecord:
        copy = figure("roofline.copy", 4000.0 / factor, "GB/s", device="NVIDIA H200")
        step = figure("gpt2.step_of_pytorch", 24.0 * factor**2, "ms", backend="cuda", scope="PyTorch eager")
        more = [CaseResult(f"case::{m.name}", "stage6", (), Outcome.PASSED, measurements=(m,)) for m in (copy, step)]
        return replace(record, cases=(*record.cases, *more))

    comparison = compare([add(r, 1.0) for r in base], [add(r, 1.2) for r in new])
    assert [row.change for row in comparison.thermometer] == [Change.SLOWER] * 2
    assert [row.name for row in comparison.thermometer] == ["gpt2.step_of_pytorch", "roofline.copy"]
    assert comparison.exit_code(strict=True) is ExitCode.PASS
    (said,) = (line for line in describe(comparison).splitlines() if "limits of the machine" in line)
    assert "16.7 % worse at the median of 1 figure" in said
    assert said.endswith("so much of a difference may be the machine's")


@pytest.mark.thorough("reads the largest records")
def test_every_figure_of_the_records_has_a_direction() -> None:
    """329 of 605 figures were never compared, since their unit had no direction."""
    records, _ = load_records(BASELINES)
    measured = {(m.name, m.unit): m for record in records for m in record.measurements}
    assert len(measured) > 100
    assert [key for key, m in measured.items() if lower_is_better(m) is None] == []
    ways = {name: lower_is_better(m) for (name, _), m in measured.items()}
    assert ways["accuracy.relative_error"] is ways["gpt2.memory"] is ways["parity.disagreements"] is True
    assert ways["burst.fraction_of_floor"] is ways["roofline.random_reductions"] is ways["burst.speedup"] is False


def test_a_large_gain_reads_as_one() -> None:
    comparison = compare(
        [run(0, timed(0.3))],
        [run(1, timed(0.01), commit="b")],
        history=[run(2, timed(0.3, 3)), run(3, timed(0.301, 4))],
    )
    assert "30\N{MULTIPLICATION SIGN} faster" in describe(comparison)
    assert "regression" not in sentence(comparison)


def test_time_and_rate_of_one_measurement_are_one_row() -> None:
    def pair(factor: float) -> tuple[Measurement, Measurement]:
        return (
            figure("matmul.latency", 2.0 * factor, "ms", backend="cublas", size=128),
            replace(
                figure("matmul.throughput", 50.0 / factor, "GFLOP/s", backend="cublas", size=128),
                samples=(50.0 / factor,) * 12,
            ),
        )

    comparison = compare([run(0, *pair(1.0))], [run(1, *pair(1.1), commit="b")])
    (row,) = comparison.rows
    assert row.name == "matmul.throughput"
    assert row.also == ("latency 2 ms → 2.2 ms",)


def test_time_and_rate_of_two_sizes_are_two_rows() -> None:
    steady = figure("matmul.latency", 2.0, "ms", size=128), figure("matmul.throughput", 50.0, "GFLOP/s", size=256)
    comparison = compare([run(0, *steady)], [run(1, *steady, commit="b")])
    assert sorted(row.name for row in comparison.rows) == ["matmul.latency", "matmul.throughput"]


@pytest.mark.parametrize(("time", "rate"), [(2.2, 50.0), (2.0, 51.0)])
def test_a_rate_that_is_no_reciprocal_of_the_time_has_its_own_row(time: float, rate: float) -> None:
    def pair(time: float, rate: float) -> tuple[Measurement, Measurement]:
        return figure("matmul.latency", time, "ms"), figure("matmul.throughput", rate, "GFLOP/s")

    comparison = compare([run(0, *pair(2.0, 50.0))], [run(1, *pair(time, rate), commit="b")])
    assert sorted(row.name for row in comparison.rows) == ["matmul.latency", "matmul.throughput"]


@pytest.mark.parametrize(("time", "rate", "rows"), [(0.0, 50.0, 2), (2.0, 0.0, 2), (0.01, 50.0, 1)])
def test_a_time_and_a_rate_of_zero_do_not_belong_together(time: float, rate: float, rows: int) -> None:
    steady = figure("matmul.latency", time, "ms"), figure("matmul.throughput", rate, "GFLOP/s")
    assert len(compare([run(0, *steady)], [run(1, *steady, commit="b")]).rows) == rows


def test_a_faster_cpu_makes_nothing_slower() -> None:
    """The GPU is as fast as before, so its speedup over the CPU fell: that figure is not compared."""
    gpu, cpu = (figure("burst.latency", 1.0, "ms", backend=name) for name in ("cuda", "cpu"))
    speedup = figure("burst.speedup", 4.0, "x", backend="cuda", against="cpu")
    now = [gpu, replace(cpu, value=0.5), replace(speedup, value=2.0)]
    comparison = compare([run(0, gpu, cpu, speedup)], [run(1, *now, commit="b")])
    assert [(row.name, row.new) for row in comparison.rows] == [("burst.latency", "0.5 ms"), ("burst.latency", "1 ms")]


def test_counts_follow_times_and_no_confirmed_change_is_hidden() -> None:
    """30 times changed by less than the bytes, which on one machine are confirmed."""
    times = [figure(f"a{n}.latency", 1.0, "ms") for n in range(30)]
    spilled = figure("kernel.local_bytes", 8.0, "B", capability="8.6")
    moved = [*(replace(one, value=1.5) for one in times), replace(spilled, value=32.0)]
    comparison = compare([run(0, *times, spilled)], [run(1, *moved, commit="b")])
    assert [row.is_counted for row in comparison.rows] == [False] * 30 + [True]
    assert "  confirmed worse: kernel.local_bytes" in describe(comparison)
    assert "  and 10 more changes: 10 cannot tell; " in describe(comparison)


@pytest.mark.parametrize(
    ("old", "new", "word", "ratio"),
    [
        (-2.0, -1.0, "better", 0.5),
        (1.0, -2.0, "worse", 2.0),
        (-1.0, 1.0, "same", 1.0),
        (0.5, 0.0, "better", 0.0),
        (0.0, 0.5, "worse", math.inf),
    ],
)
def test_the_size_of_a_signed_error_counts(old: float, new: float, word: str, ratio: float) -> None:
    sides = (replace(figure("gpt2.error", value, "1"), samples=(value, value)) for value in (old, new))
    base, fresh = (run(place, one, commit="ab"[place]) for place, one in enumerate(sides))
    (row,) = compare([base], [fresh], history=[run(n, one, commit="c") for n, one in enumerate(STEADY_ERRORS)]).rows
    assert (row.word, row.difference.ratio) == (word, pytest.approx(ratio))


def test_the_environment_names_clocks_and_what_is_absent() -> None:
    there, absent = sample_record(gpu=True), sample_record(gpu=False)
    rows = {name: (old, new) for name, old, new in compare([there], [absent]).environment}
    assert rows["GPU clocks, MHz"][1] == rows["GPUs"][1] == "none"
    assert "/" in rows["GPU clocks, MHz"][0]
    assert rows["driver"][1] == "none" != rows["driver"][0]
    assert rows["GPU memory"] == ("140 GiB", "none")


def test_the_environment_names_host_and_clock() -> None:
    bare, full = ({"name": name, "cpu": "Xeon", "cpu_max_mhz": mhz} for name, mhz in ((None, None), ("a", 2600.0)))
    one, other = (run(0, hardware={"host": host}) for host in (bare, full))
    rows = {name: (old, new) for name, old, new in compare([one], [other]).environment}
    assert rows["host"] == ("not recorded", "a")
    assert rows["CPU clock, MHz"] == ("not recorded", "2600.0")


def test_a_change_beyond_all_doubt_is_confirmed() -> None:
    """Runs without noise: the p-value of one claim is 0 and of the other 1."""
    steady = [replace(figure("a.time", value, "ms"), samples=(value, value)) for value in (1.0, 1.5)]
    base, new = ([run(2 * n + side, one, commit="ab"[side]) for n in range(5)] for side, one in enumerate(steady))
    (row,) = compare(base, new).rows
    assert (row.change, row.confirmed) == (Change.SLOWER, True)
    assert (row.difference.p_higher, row.difference.p_lower) == (0.0, 1.0)


def test_a_share_below_zero_keeps_its_sign() -> None:
    sides = (replace(figure("a.efficiency", value, "1"), samples=(value, value)) for value in (2.0, -1.0))
    (row,) = compare(*([run(place, one, commit="ab"[place])] for place, one in enumerate(sides))).rows
    assert (row.word, row.difference.ratio) == ("worse", -0.5)


def test_a_run_is_of_its_own_machine_whatever_is_known_of_it() -> None:
    nameless = run(0, timed(0.01), hardware={})
    assert compare([nameless], [nameless]).relation is Relation.SAME
    assert compare([nameless], [run(1, timed(0.01), hardware={})]).relation is not Relation.SAME


def test_a_rate_that_fits_two_times_stands_at_one() -> None:
    times = [figure(f"matmul.{name}", 2.0, "ms", size=128) for name in ("alone", "together")]
    rate = figure("matmul.rate", 50.0, "GFLOP/s", size=128)
    comparison = compare([run(0, *times, rate)], [run(1, *times, rate, commit="b")])
    assert [(row.name, len(row.also)) for row in comparison.rows] == [("matmul.alone", 1), ("matmul.together", 0)]
    named = replace(rate, name="matmul.together_rate")
    comparison = compare([run(0, *times, named)], [run(1, *times, named, commit="b")])
    assert [(row.name, len(row.also)) for row in comparison.rows] == [("matmul.alone", 0), ("matmul.together", 1)]


def test_no_figure_is_lost_in_folding() -> None:
    """A time that leads one rate does not follow another."""
    steady = [figure("matmul.latency", 2.0, "ms"), figure("matmul.rate", 50.0, "GFLOP/s")]
    steady.append(replace(figure("matmul.speed", 5.0, "GB/s"), samples=(5.0,) * 12))
    comparison = compare([run(0, *steady)], [run(1, *steady, commit="b")])
    assert [(row.name, row.also) for row in comparison.rows] == [
        ("matmul.latency", ("rate 50 GFLOP/s → 50 GFLOP/s",)),
        ("matmul.speed", ()),
    ]


def test_bytes_and_counts_need_no_samples() -> None:
    base = run(0, figure("gpt2.memory", 5.0, "GB"), figure("gpt2.activations", 3.0, "GB"))
    more = run(1, figure("gpt2.memory", 6.0, "GB"), figure("gpt2.activations", 2.0, "GB"), commit="b")
    comparison = compare([base], [more])
    assert [(row.name, row.word, row.confirmed) for row in comparison.rows] == [
        ("gpt2.activations", "better", True),
        ("gpt2.memory", "worse", True),
    ]
    assert comparison.exit_code() is ExitCode.FAIL


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ((timed(0.01),), (), "in the old run only"),
        ((), (timed(0.01),), "in the new run only"),
        ((timed(0.01),), (timed(0.01, neurons=200_000),), "conditions changed"),
        ((replace(EDGE, value=1001.1),), (EDGE,), "value and samples disagree"),
        ((EDGE,), (replace(EDGE, value=998.9),), "value and samples disagree"),
        ((figure("a.rate", 5.0, "GB/s"),), (figure("a.rate", 5.0, "ms"),), "unit changed"),
        ((figure("parity.disagreements", 0.0, "1"),), (figure("parity.disagreements", 3.0, "1"),), "zero in one run"),
        ((figure("parity.disagreements", 3.0, "1"),), (figure("parity.disagreements", 0.0, "1"),), "zero in one run"),
        ((figure("a.thing", 1.0, "1"),), (figure("a.thing", 2.0, "1"),), "no direction"),
        ((timed(0.01),), (replace(timed(0.01), value=0.005),), "value and samples disagree"),
        ((replace(timed(0.01), value=0.005),), (timed(0.01),), "value and samples disagree"),
    ],
)
def test_what_cannot_be_held_together_is_named(
    old: tuple[Measurement, ...], new: tuple[Measurement, ...], kind: str
) -> None:
    steady = figure("a.latency", 5.0, "ms")
    comparison = compare([run(0, steady, *old)], [run(1, steady, *new, commit="b")])
    found = {finding.kind for finding in comparison.findings} - {"case disappeared"}
    assert found == {kind}
    assert comparison.exit_code() in (ExitCode.PASS, ExitCode.FAIL if kind == "zero" else ExitCode.PASS)
    assert comparison.exit_code(strict=True) is ExitCode.FAIL
    assert f"{kind}: 1: " in describe(comparison)
    assert f"{kind}: 1: " in markdown(comparison)


def in_turns(old: Sequence[Sequence[Measurement]], new: Sequence[Sequence[Measurement]]) -> Comparison:
    """Sides whose runs each measured the figures given for them, taken in turns."""
    steady = replace(EDGE, name="steady.time")
    runs = (
        [run(2 * n + side, steady, *measured, commit="ab"[side]) for n, measured in enumerate(taken)]
        for side, taken in enumerate((old, new))
    )
    return compare(*runs)


def of(name: str, unit: str, *values: float) -> list[list[Measurement]]:
    """A figure without samples in each of so many runs."""
    return [[figure(name, value, unit)] for value in values]


def said(comparison: Comparison) -> list[tuple[str, str]]:
    """Kinds and texts of what was found, but for cases: :func:`run` has one for each figure."""
    return [(f.kind, f.text) for f in comparison.findings if not f.kind.startswith("case ")]


SOME = [
    (
        of("parity.disagreements", "1", *[0.0] * 5),
        of("parity.disagreements", "1", 0.0, 0.0, 7000.0, 0.0, 7000.0),
        [("zero in some runs", "parity.disagreements: in 5 of 5 runs → in 3 of 5 runs")],
    ),
    (
        of("gpt2.memory", "B", *[100.0] * 5),
        of("gpt2.memory", "B", 100.0, 0.0, 100.0, 1e12, 1e12),
        [
            ("zero in some runs", "gpt2.memory: in 0 of 5 runs → in 1 of 5 runs"),
            ("counts of a side differ", "gpt2.memory of the new side: 0 B, up to 1000 GB in 4 of 5 runs"),
        ],
    ),
    (
        of("gpt2.memory", "B", *[100.0] * 5),
        of("gpt2.memory", "B", 100.0, 103.0, 100.0, 103.1, 100.0),
        [("counts of a side differ", "gpt2.memory of the new side: 0.1 KB, up to 0.1031 KB in 1 of 5 runs")],
    ),
    (
        of("a.efficiency", "1", *[3.0] * 5),
        of("a.efficiency", "1", 3.0, -3.0, 3.0, 3.0, 3.0),
        [("zero in some runs", "a.efficiency: in 0 of 5 runs → in 1 of 5 runs")],
    ),
    (
        of("a.thing", "1", *[3.0] * 5),
        of("a.thing", "1", 3.0, 3.0, 3.0, 4.0, 3.0),
        [("no direction", "a.thing in 1: nothing says which way is better")],
    ),
    (
        [[EDGE]] * 5,
        [[EDGE], [], [], [], []],
        [("missing in some runs", "a.time: there in 5 of 5 runs → in 1 of 5 runs")],
    ),
    (
        [[EDGE], [], [EDGE], [EDGE], [EDGE]],
        [[EDGE], [], [], [], []],
        [("missing in some runs", "a.time: there in 4 of 5 runs → in 1 of 5 runs")],
    ),
    ([[]] * 5, [[], [EDGE], [], [], [EDGE]], [("in the new run only", "a.time in 2 of 5 runs")]),
    (
        [[timed(0.01)]] * 3,
        [[timed(0.01)], *([[timed(0.01, neurons=200_000)]] * 2)],
        [("in the new run only", "neurons 200000"), ("missing in some runs", "there in 3 of 3 runs → in 1 of 3 runs")],
    ),
]


@pytest.mark.parametrize(("old", "new", "found"), SOME)
def test_what_some_runs_of_a_side_have_otherwise_is_named(
    old: Sequence[Sequence[Measurement]], new: Sequence[Sequence[Measurement]], found: list[tuple[str, str]]
) -> None:
    """Whichever runs and whichever side; runs that disagree alike on both sides say nothing."""
    comparison = in_turns(old, new)
    assert [kind for kind, _ in said(comparison)] == [kind for kind, _ in found]
    assert all(text in long for (_, text), (_, long) in zip(found, said(comparison), strict=True))
    assert (comparison.exit_code(), comparison.exit_code(strict=True)) == (ExitCode.PASS, ExitCode.FAIL)
    backwards = in_turns(new[::-1], old)
    assert len(backwards.findings) == len(comparison.findings)
    assert backwards.exit_code(strict=True) is ExitCode.FAIL
    for side in (old, new):
        assert in_turns(side, side[::-1]).findings == ()
        assert in_turns(side, side).exit_code(strict=True) is ExitCode.PASS


def test_all_runs_of_a_side_are_told_as_one_is() -> None:
    """Five runs without a figure, or of zeros, are told as a single one; a side may have fewer runs."""
    none, some, more = ([figure("parity.disagreements", value, "1")] for value in (0.0, 7.0, 8.0))
    for one, other, kinds in (
        ([EDGE], [], ["in the old run only"]),
        ([], [EDGE], ["in the new run only"]),
        ([timed(0.01)], [timed(0.01, neurons=200_000)], ["conditions changed"]),
        (none, some, ["zero in one run"]),
        (none, none, []),
        (some, more, []),
    ):
        assert said(in_turns([one] * 5, [other] * 3)) == said(in_turns([one], [other]))
        assert [kind for kind, _ in said(in_turns([one] * 5, [other] * 3))] == kinds


def test_small_figures_are_no_zeros_and_equal_ones_need_no_direction() -> None:
    steady, small = of("a.efficiency", "1", 3.0, 3.0, 3.0), of("a.efficiency", "1", 3.0, 0.5, 3.0)
    assert said(in_turns(steady, small)) == []
    assert said(in_turns(of("a.thing", "1", 3.0), of("a.thing", "1", 3.0, 3.0, 3.0))) == []


def test_a_part_of_the_runs_is_a_share_of_them() -> None:
    assert [Part(*part).share for part in ((0, 0), (1, 1), (1, 2), (3, 3))] == [0.0, 1.0, 0.5, 1.0]
    assert [Part(*part).is_some for part in ((0, 0), (1, 1), (1, 2), (0, 2))] == [False, False, True, False]


def test_values_and_units_that_some_runs_contradict_are_named() -> None:
    """On one side or on both: such figures are none."""
    wrong, bytes_ = replace(EDGE, value=50_000.0), replace(EDGE, unit="B")
    (found,) = in_turns([[EDGE]] * 5, [[EDGE], *([[wrong]] * 4)]).findings
    assert (found.kind, found.text) == ("value and samples disagree", "a.time of the new side in 4 of 5 runs")
    (found,) = in_turns([[EDGE], [wrong], [EDGE]], [[EDGE]] * 3).findings
    assert found.text == "a.time of the old side in 1 of 3 runs"
    for new, where in (([[wrong]], "new run"), ([[wrong], [EDGE]], "new side in 1 of 2 runs")):
        assert in_turns([[EDGE]], new).findings[-1].text == f"a.time of the {where}"
    comparison = in_turns([[EDGE]] * 3, [[EDGE], [bytes_], [EDGE]])
    (found,) = comparison.findings
    assert (found.kind, found.text) == ("unit changed", "a.time: ms → ms in 2 of 3 runs and B in 1 of 3 runs")
    assert [row.name for row in comparison.rows] == ["steady.time"]
    in_us = replace(EDGE, value=1e6, unit="us", samples=(1e6, 1e6))
    assert in_turns([[EDGE]] * 3, [[EDGE], [in_us], [EDGE]]).findings == ()


def test_a_rate_that_leaves_its_time_in_some_runs_has_its_own_row() -> None:
    time, rate = figure("matmul.latency", 2.0, "ms"), figure("matmul.rate", 50.0, "GFLOP/s")
    halved = replace(rate, value=25.0)
    assert [row.name for row in in_turns([[time, rate]] * 3, [[time, rate]] * 3).rows].count("matmul.rate") == 0
    for new in ([[time, rate], [time, halved], [time, halved]], [[time, rate], [time], [time, halved]]):
        assert [row.name for row in in_turns([[time, rate]] * 3, new).rows].count("matmul.rate") == 1


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("ppppp", "psssp", [("SKIPPED in some runs", "case::0: in 0 of 5 runs → in 3 of 5 runs")]),
        ("ppspp", "psssp", [("SKIPPED in some runs", "case::0: in 1 of 5 runs → in 3 of 5 runs")]),
        ("sssss", "sspss", [("SKIPPED in some runs", "case::0: in 5 of 5 runs → in 4 of 5 runs")]),
        ("ppp", "p--", [("case missing in some runs", "case::0: there in 3 of 3 runs → in 1 of 3 runs")]),
        ("---", "p--", [("case missing in some runs", "case::0: there in 0 of 3 runs → in 1 of 3 runs")]),
        ("---", "psp", [("SKIPPED in some runs", "case::0: in 0 of 0 runs → in 1 of 3 runs")]),
        (
            "ppp",
            "s-s",
            [
                ("case missing in some runs", "case::0: there in 3 of 3 runs → in 2 of 3 runs"),
                ("PASS became SKIPPED", "case::0"),
            ],
        ),
        ("p", "ps", [("SKIPPED in some runs", "case::0: in 0 of 1 run → in 1 of 2 runs")]),
        ("sps", "sss", [("PASS became SKIPPED", "case::0")]),
        ("pp-", "---", [("case disappeared", "case::0")]),
        ("fpp", "fff", [("fails in more runs", "case::0: in 1 of 3 runs → in 3 of 3 runs")]),
        ("fff", "fpp", []),
        ("ppp", "fpp", []),
        ("---", "ppp", []),
        ("---", "sss", []),
        ("sss", "ppp", []),
        ("fpsp-", "-psfp", []),
        ("ps", "psps", []),
    ],
)
def test_cases_that_end_otherwise_in_some_runs_are_named(old: str, new: str, found: list[tuple[str, str]]) -> None:
    """A case that passed, was skipped, failed, or was not there (``-``) in the runs of a side."""
    ways = {"p": Outcome.PASSED, "s": Outcome.SKIPPED, "f": Outcome.FAILED}
    sides: list[list[RunRecord]] = [
        [
            replace(one, cases=tuple(replace(case, outcome=ways[end]) for case in one.cases if end in ways))
            for one, end in ((run(2 * n + side, EDGE), end) for n, end in enumerate(ends))
        ]
        for side, ends in enumerate((old, new))
    ]
    comparison = compare(*sides)
    assert [(f.kind, f.text) for f in comparison.findings if not f.text.startswith("a.time")] == found


def test_a_value_may_be_rounded_beyond_its_samples() -> None:
    """By one thousandth of the largest, not more."""
    low, high = replace(EDGE, value=999.0), replace(EDGE, value=1001.0)
    assert compare([run(0, low)], [run(1, high, commit="b")]).findings == ()


def test_samples_alone_contradict_nothing() -> None:
    bare = replace(EDGE, value=None)
    assert compare([run(0, bare)], [run(1, bare, commit="b")]).findings == ()


def test_conditions_that_changed_are_told_case_by_case() -> None:
    """Two cases with a figure of one name each: either is the figure that it was."""
    old, new = ([timed(0.01, neurons=n), timed(0.02, neurons=2 * n)] for n in (1000, 3000))
    comparison = compare([run(0, *old)], [run(1, *new, commit="b")])
    assert [finding.kind for finding in comparison.findings] == ["conditions changed"] * 2


def test_figures_of_one_case_with_other_names_are_other_figures() -> None:
    """Only conditions may differ in what counts as one figure that changed."""
    comparison = compare([run(0, figure("a.time", 1.0, "ms"))], [run(1, figure("b.time", 1.0, "ms"), commit="b")])
    assert [finding.kind for finding in comparison.findings] == ["in the old run only", "in the new run only"]


def test_what_is_counted_is_confirmed_beside_what_is_timed() -> None:
    """Bytes have no p-value: the correction for many figures leaves them alone."""
    base, new = sides(1.0)

    def add(record: RunRecord, size: float) -> RunRecord:
        case = CaseResult("m", "stage6", (), Outcome.PASSED, measurements=(figure("gpt2.memory", size, "GB"),))
        return replace(record, cases=(*record.cases, case))

    comparison = compare([add(r, 5.0) for r in base], [add(r, 6.0) for r in new])
    assert [row.name for row in comparison.regressions] == ["gpt2.memory"]
    assert comparison.regressions[0].difference.ratio == pytest.approx(1.2)


@pytest.mark.parametrize(("factor", "change"), [(2.0, Change.UNKNOWN), (1.0, Change.SAME)])
def test_without_a_better_side_a_change_is_neither(factor: float, change: Change) -> None:
    """Runs confirm that the figure moved; nothing says whether that is good."""
    things = [replace(figure("a.thing", value, "1"), samples=(value, value)) for value in (1.0, factor)]
    base, new = ([run(2 * n + side, one, commit="ab"[side]) for n in range(5)] for side, one in enumerate(things))
    (row,) = compare(base, new).rows
    assert row.change is change
    assert (row.difference.reason == "changed; nothing says which way is better") is (change is Change.UNKNOWN)


@pytest.mark.parametrize(
    ("old", "new", "change", "ratio"),
    [
        ((0.0, 1.0, 2.0), (0.0, 2.0, 1.0), Change.UNKNOWN, 1.0),
        ((0.0, 5.0, 5.0), (5.0, 6.0, 6.0), Change.UNKNOWN, 1.2),
        ((0.0, 0.5, 0.5), (0.5, 0.75, 0.75), Change.UNKNOWN, 1.5),
        ((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), Change.UNKNOWN, 1.0),
        ((0.0, 0.0, 0.0), (0.0, 1.0, 1.0), Change.SLOWER, math.inf),
        ((1.0, 1.0, 0.0), (0.0, 0.0, 0.0), Change.FASTER, 0.0),
    ],
)
def test_zero_in_some_runs_is_no_change_unless_the_middle_moved(
    old: tuple[float, ...], new: tuple[float, ...], change: Change, ratio: float
) -> None:
    sides = ([run(2 * n + s, figure("a.error", v, "1")) for n, v in enumerate(vs)] for s, vs in enumerate((old, new)))
    (row,) = compare(*sides).rows
    assert (row.change, row.difference.ratio) == (change, ratio)


def test_limits_of_the_machine_vary_whatever_the_commit() -> None:
    """Runs of six commits: the copy rate has its own variation, a figure of the code has none."""
    copies = [replace(figure("roofline.copy", 4000.0 + n, "GB/s"), samples=(4000.0 + n,) * 10) for n in range(6)]
    records = [run(n, copy, timed(0.01 + 0.001 * n), commit="abcdef"[n]) for n, copy in enumerate(copies)]
    seen = seen_variation(records, "this machine")
    (key,) = seen.spreads
    assert key[0] == "roofline.copy"
    assert seen.spreads[key] == (pytest.approx(np.std([math.log(4000.0 + n) for n in range(6)], ddof=1)), 5)
    assert (seen.runs, seen.largest) == (6, None)


def test_the_variation_of_a_figure_is_that_of_its_commits() -> None:
    """Two commits of two runs each and one of one: the spread about each commit's mean, and every gap."""
    values = {"a": (1.0, 1.1), "b": (2.0, 2.4), "c": (9.0,)}
    records = [
        run(place, *(replace(figure(name, value, "ms"), samples=(value, value)) for name in NAMES), commit=commit)
        for commit, taken in values.items()
        for place, value in enumerate(taken)
    ]
    seen = seen_variation(records, "this machine")
    gaps = math.log(1.1), math.log(1.2)
    (spread,) = set(seen.spreads.values())
    assert spread == (pytest.approx(math.sqrt(sum(gap**2 / 2 for gap in gaps) / 2)), 2)
    assert seen.largest == pytest.approx(math.log(1.2))
    key = next(iter(seen.spreads))
    bound, reason = seen.limit(key) or (0.0, "")
    assert bound == pytest.approx(6.9646 * math.sqrt(2) * seen.spreads[key][0], rel=1e-4)
    assert reason.startswith("this figure varies by a factor of ")
    other = seen.limit(("other", ()))
    assert other == (seen.largest, "5 runs of this machine differ by up to 20 %")
    dirty = [replace(r, environment=replace(r.environment, git_dirty=True)) for r in records]
    assert seen_variation(dirty, "this machine").spreads == {}
    assert seen_variation(records[:2], "this machine").limit(key) is None


def test_a_pair_is_told_by_what_is_known() -> None:
    found = pair_difference(1.5, (0.1, "why"), 0.03, True)
    assert (found.change, found.reason, found.ratio) == (Change.SLOWER, "why", 1.5)
    assert found.interval is not None
    ends = found.interval.low, found.interval.high
    assert ends == pytest.approx((1.5 * math.exp(-0.1), 1.5 * math.exp(0.1)))
    assert pair_difference(1.5, (0.5, "why"), 0.03, True).change is Change.UNKNOWN


def test_twice_as_much_is_said_as_a_factor() -> None:
    runs = [run(n, *(replace(figure(name, v, "ms"), samples=(v, v)) for name in NAMES)) for n, v in enumerate((1, 2))]
    more = run(2, *(replace(figure(name, 2.0, "ms"), samples=(2.0, 2.0)) for name in NAMES))
    _, reason = seen_variation([*runs, more], "this machine").limit(("other", ())) or (0.0, "")
    assert reason == "3 runs of this machine differ by up to a factor of 2"


def test_more_of_anything_in_a_second_is_better() -> None:
    assert lower_is_better(figure("camera.pace", 1.0, "frames/s")) is False


@pytest.mark.parametrize(("name", "unit", "lower"), [("scaling.overhead", "%", True), ("peer.ahead", "x", False)])
def test_targets_tell_which_side_is_better(name: str, unit: str, lower: bool) -> None:
    """Neither unit nor name says it: the target is an upper or a lower limit."""
    assert lower_is_better(figure(name, 1.0, unit)) is lower


@pytest.mark.parametrize(
    ("factor", "said"), [(1.0, "the same"), (0.5, "2\xd7 better"), (1.25, "20.0 % worse"), (0.01, "100\xd7 better")]
)
def test_the_thermometer_speaks_of_factors_beyond_two(factor: float, said: str) -> None:
    one, other = (figure("roofline.copy", value, "GB/s", device="NVIDIA H200") for value in (4000.0, 4000.0 / factor))
    lines = thermometer_lines(compare([run(0, one)], [run(1, other, commit="b")]))
    assert lines[0].partition(";")[0] == f"limits of the machine: {said} at the median of 1 figure"


def test_a_side_names_all_its_commits_and_machines() -> None:
    runs = [on(run(n, timed(0.01), commit=c), "NVIDIA H200", f"GPU-{n % 2}") for n, c in enumerate("abcd")]
    side = compare(runs, [run(9, timed(0.01), commit="e")]).base
    assert side.label == "4 runs at aaaaaaaa, bbbbbbbb, cccccccc and 1 more"
    assert "(GPU-0)" in side.machine.label
    assert side.machine.label.endswith("and on 1 more")


def test_regressions_come_first_among_cases() -> None:
    good, bad = sample_record(faults=False), sample_record(faults=True)
    ways = {c.case: c.regression for c in compare([good], [bad]).cases}
    (worse,) = (case for case, regression in ways.items() if regression)
    mended = next(case.case for case in good.cases if case.case != worse)
    old, new = ({case.case: case for case in record.cases} for record in (good, bad))
    failed = replace(old[mended], outcome=Outcome.FAILED)
    before = [failed if case.case == mended else case for case in good.cases]
    after = [new[case.case] if case.case == worse else case for case in good.cases]
    for cases in (list, lambda found: list(reversed(found))):
        found = compare([replace(good, cases=tuple(before))], [replace(good, run_id="b", cases=tuple(cases(after)))])
        assert [(c.case, c.regression) for c in found.cases] == [(worse, True), (mended, False)]


def test_what_got_worse_otherwise_comes_before_what_got_better() -> None:
    """A case that failed and passes, one that passed and was skipped, and one that passed and fails."""

    def record(*outcomes: Outcome, **changes: str) -> RunRecord:
        cases = tuple(CaseResult(f"case::{n}", "stage5", (), one) for n, one in enumerate(outcomes))
        return replace(run(0), cases=cases, judgements=(), **changes)  # type: ignore[arg-type]

    passed, failed, skipped = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED
    old, new = record(failed, passed, passed), record(passed, skipped, failed, run_id="b")
    assert not CaseChange("case", Verdict.PASS, Verdict.PASS).worse
    assert [(c.case, c.regression, c.worse) for c in compare([old], [new]).cases] == [
        ("case::2", True, True),
        ("case::1", False, True),
        ("case::0", False, False),
    ]


def test_cases_that_vanish_or_are_skipped_are_named() -> None:
    base = run(0, timed(0.01), timed(0.02, neurons=200_000))
    first, second = base.cases
    gone = compare([base], [replace(base, run_id="b", cases=(first,))])
    assert ("case disappeared", "case::1") in {(f.kind, f.text) for f in gone.findings}
    skipped = replace(second, outcome=Outcome.SKIPPED, reason="no", measurements=second.measurements)
    unrun = compare([base], [replace(base, run_id="b", cases=(first, skipped))])
    assert [(f.kind, f.text) for f in unrun.findings] == [("PASS became SKIPPED", "case::1")]
    assert (unrun.exit_code(), unrun.exit_code(strict=True)) == (ExitCode.PASS, ExitCode.FAIL)


@pytest.mark.thorough("compares records of thousands of cases a dozen times")
def test_a_stage_that_one_side_never_asked_for_is_not_compared(tmp_path: Path) -> None:
    """It is named in a line; of stages that both asked for, what vanished is told, and a whole plan asks for all."""

    def of(record: RunRecord, *stages: str) -> RunRecord:
        return replace(record, cases=tuple(case for case in record.cases if case.stage in stages), judgements=())

    whole = of(run(0, timed(0.01)), "stage6")
    parity = tuple(replace(case, case=f"parity::{n}", stage="stage5") for n, case in enumerate(whole.cases * 2))
    whole = replace(whole, asked=(), cases=(*whole.cases, *parity))
    part = replace(of(whole, "stage6"), run_id="b", asked=("stage6",))
    for base, new, side in (whole, part, "old"), (part, whole, "new"):
        found = compare([base], [new])
        line = f"stage5 only in the {side} run: not compared"
        assert (found.findings, found.exit_code(strict=True)) == ((), ExitCode.PASS)
        assert line in describe(found).splitlines()[2]
        assert line in markdown(found)
    assert "not compared" not in describe(compare([whole], [whole]))
    for asked in (), ("stage5", "stage6"):
        vanished = compare([whole], [replace(part, asked=asked)])
        assert [f.text for f in vanished.findings if f.kind == "case disappeared"] == ["parity::0", "parity::1"]
        assert vanished.exit_code(strict=True) is ExitCode.FAIL
    narrowed = compare([whole], [replace(part, cases=())])
    assert [f.text for f in narrowed.findings if f.kind == "case disappeared"] == [whole.cases[0].case]
    write_run(tmp_path / "whole", whole)
    write_run(tmp_path / "part", part)
    assert main(["compare", *map(str, (tmp_path / "whole", tmp_path / "part", "--out", tmp_path / "c.html"))]) == 0
    assert "stage5 only in the old run: not compared" in (tmp_path / "c.html").read_text(encoding="utf-8")


def test_other_targets_are_named() -> None:
    def judged(record: RunRecord, digest: str) -> RunRecord:
        return replace(record, judged=(Judging("2026-11-22T10:00:00Z", "a" * 40, False, digest * 64),))

    base, new = run(0, timed(0.01)), run(1, timed(0.01), commit="b")
    assert compare([judged(base, "1")], [judged(new, "1")]).findings == ()
    (found,) = compare([judged(base, "1")], [judged(new, "2")]).findings
    assert (found.kind, found.text) == ("targets changed", f"judged by targets {'1' * 12}, then by {'2' * 12}")


def test_a_case_that_now_fails_is_a_regression() -> None:
    comparison = compare([BASE], [replace(sample_record(faults=True), run_id="b")])
    assert [(c.before, c.after) for c in comparison.worse_cases] == [(Verdict.PASS, Verdict.FAIL)]
    assert comparison.exit_code() is ExitCode.FAIL
    assert "1 case that passed and now fails" in sentence(comparison)
    with pytest.raises(InputError, match="a run or more on each side"):
        compare([BASE], [])


def test_backends_of_one_real_record_stand_side_by_side() -> None:
    tables = across([load_run(BASELINES / "h200-acceptance")], "backend")
    table = next(t for t in tables if t.columns[0] == "cpu")
    latencies = [row for row in table.rows if row.name == "burst.latency"]
    assert len(latencies) >= 5
    (row,) = (r for r in latencies if "neurons 100000" in r.conditions)
    cpu, cuda = row.cells[:2]
    assert table.columns[:2] == ("cpu", "cuda")
    assert cpu
    assert cuda
    assert cuda.gain == pytest.approx(91.86 / 18.56, rel=0.01)
    assert "threads 16" in cpu.conditions
    assert "(4.95\N{MULTIPLICATION SIGN}, cold_l2 no" in describe_across(tables)


def test_three_backends_stand_side_by_side() -> None:
    """Conditions that one backend alone states choose its best figure: threads of the CPU, the adapter of WGPU."""
    slow, fast = (
        replace(timed(t, backend="cpu"), conditions={**timed(t, backend="cpu").conditions, "threads": n})
        for t, n in ((0.6, 1), (0.2, 2))
    )
    wgpu = replace(timed(0.1, backend="wgpu"), conditions={**timed(0.1, backend="wgpu").conditions, "adapter": "GPU"})
    (table,) = across([run(0, slow, timed(0.01), wgpu, fast)], "backend")
    assert table.columns == ("cpu", "wgpu", "cuda")
    (row,) = table.rows
    assert [cell.conditions for cell in row.cells if cell] == ["threads 2", "adapter GPU", ""]
    assert [round(cell.gain) for cell in row.cells if cell] == [1, 2, 20]


@pytest.mark.thorough("seconds")
def test_markdown_fits_a_pull_request() -> None:
    history, _ = load_records(BASELINES)
    text = markdown(compare([load_run(BASELINES / "h200")], [load_run(BASELINES / "h200-rev2")], history=history))
    lines = text.splitlines()
    assert 15 < len(lines) <= MARKDOWN_LINES
    assert lines[0].startswith("**Two machines of one class")
    assert sum(line.startswith("| ") for line in lines) > 8
    quoted = compare(
        [run(0, figure("a|b.latency", 1.0, "ms", x="<b>`"))], [run(1, figure("a|b.latency", 2.0, "ms", x="<b>`"))]
    )
    assert "a\\|b.latency (x &lt;b>')" in markdown(quoted)


def test_runs_without_a_common_figure_are_not_called_free_of_regressions() -> None:
    bare = replace(BASE, run_id="bare", hardware={"problem": "lost"}, cases=())
    comparison = compare([BASE], [bare])
    said = describe(comparison)
    assert said.startswith(f"Nothing could be compared with {BASE.run_id}")
    assert "Compare runs of the same stages and plan; stage 6 has most" in said.splitlines()[0]
    assert "differs: GPUs: NVIDIA H200 | none" in said
    assert comparison.exit_code() is ExitCode.UNDECIDED


def test_the_page_shows_large_changes_and_every_confirmed_one() -> None:
    figures = [figure(f"gpt2.memory{place}", 5.0, "GB") for place in range(40)]
    grown = [replace(one, value=5.0 * (1.5 + 0.01 * place)) for place, one in enumerate(figures)]
    shown, steady = folded(compare([run(0, *figures)], [run(1, *grown, commit="b")]))
    assert (len(shown), len(steady)) == (40, 0)
    first, rest = leading([replace(row, confirmed=place == 39) for place, row in enumerate(shown)])
    assert [row.key for row in first] == [row.key for row in (*shown[:25], shown[39])]
    assert [row.key for row in rest] == [row.key for row in shown[25:39]]
    assert counts_text(rest) == "14 worse"


def test_the_reason_that_most_figures_share_is_said_once(tmp_path: Path) -> None:
    """In text, Markdown and on the page; a figure with another reason says it itself."""
    timed = [figure(f"a{place}.latency", 1.0, "ms") for place in range(9)]
    slower = [replace(one, value=2.0) for one in timed]
    lost = figure("lost.latency", 1.0, "ms")
    runs = [run(0, *timed, lost), run(1, *slower, replace(lost, value=0.0), commit="b")]
    comparison = compare([runs[0]], [runs[1]])
    for record in runs:
        write_run(tmp_path / record.run_id, record)
    page = tmp_path / "compare.html"
    main(["compare", *(str(tmp_path / record.run_id) for record in runs), "--out", str(page)])
    for said in (describe(comparison), markdown(comparison), page.read_text(encoding="utf-8")):
        assert said.count("1 run a side, 3 in turns are needed; nothing shows how much runs of this machine vary") == 1
        assert "to zero" in said


def test_what_nobody_can_tell_is_not_counted_as_unchanged(tmp_path: Path) -> None:
    """Below what is listed: three figures are equal, two differ by less than the noise; 22 more changes are told."""
    equal, near, far = (
        [figure(f"{name}{n}.latency", 1.0, "ms") for n in range(count)]
        for name, count in (("e", 3), ("n", 2), ("f", 42))
    )
    moved = [*equal, *(replace(one, value=1.01) for one in near), *(replace(one, value=2.0) for one in far)]
    runs = [run(0, *equal, *near, *far), run(1, *moved, commit="b")]
    for record in runs:
        write_run(tmp_path / record.run_id, record)
    page, comparison = tmp_path / "compare.html", compare([runs[0]], [runs[1]])
    main(["compare", *(str(tmp_path / record.run_id) for record in runs), "--out", str(page)])
    for said in (describe(comparison), markdown(comparison), page.read_text(encoding="utf-8")):
        assert "2 cannot tell, 3 same, changed by 3 % at most" in said
        assert "unchanged" not in said
    assert "  and 22 more changes: 22 cannot tell; --out FILE writes all\n" in describe(comparison)
    assert "where a row says nothing else: equal" not in describe(comparison)


@pytest.mark.thorough("reads the largest records")
@pytest.mark.parametrize(("other", "whose"), [("h200-rev2", "this class"), ("h100-large", "the old side's class")])
def test_the_class_whose_runs_differ_is_named_once(other: str, whose: str) -> None:
    """Two cards of one class, and of two: it is said which class the runs are of, and not again in each row."""
    history, _ = load_records(BASELINES)
    comparison = compare([load_run(BASELINES / "h200-owners")], [load_run(BASELINES / other)], history=history)
    for said in (describe(comparison), markdown(comparison)):
        assert said.count(f"runs of machines of {whose} differ by up to") == 1


def test_text_shows_the_first_differences_and_counts_the_rest() -> None:
    packages = {f"package{n:03}": "1" for n in range(300)}
    comparison = compare([BASE], [replace(BASE, environment=replace(BASE.environment, packages=packages))])
    lines = [line for line in describe(comparison).splitlines() if line.startswith("  differs: ")]
    assert len(lines) == 13
    assert lines[-1] == f"  differs: and {len(comparison.environment) - 12} more; --out FILE writes all"


@pytest.mark.thorough("seconds")
def test_command_compares_sides_of_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = sides(1.2)
    for record in (*base, *new):
        write_run(tmp_path / record.run_id, record)
    old, fresh = ([str(tmp_path / r.run_id) for r in side] for side in (base, new))
    page, text = tmp_path / "compare.html", tmp_path / "compare.md"
    files = ["--out", str(page), "--markdown", str(text)]
    assert main(["compare", "--base", *old, "--new", *fresh, *files]) == 1
    assert (
        "1 confirmed regression: of 4 figures 1 slower or worse (most: burst.latency, +19.8 %), 0 faster"
        in capsys.readouterr().out
    )
    assert "confirmed slower" in page.read_text()
    assert text.read_text().startswith("**1 confirmed regression")
    assert main(["compare", old[0], old[0]]) == 0
    assert main(["compare", old[0], fresh[0], old[1]]) == 0
    assert main(["compare", "--across", "backend", old[0]]) == 2
    (tmp_path / base[0].run_id / "report.html").unlink()
    assert main(["render", old[0]]) == 0
    copied = shutil.copytree(old[0], tmp_path / "a copy under another name")
    for wrong in (
        ["compare", old[0]],
        ["compare", "--base", old[0]],
        ["compare", "--base", old[0], str(copied), "--new", *fresh],
        ["compare", "--base", *old, "--new", fresh[0], fresh[0]],
        ["compare", old[0], "--base", *old, "--new", *fresh],
        ["compare", "--across", "backend", old[0], "--strict"],
        ["compare", "--across", "backend", old[0], "--markdown", str(text)],
    ):
        assert main(wrong) == 4


@pytest.mark.parametrize("arguments", [["render", "absent"], ["history", "absent"], ["compare", "absent", "absent"]])
def test_command_answers_wrong_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 4
    assert "absent" in capsys.readouterr().err
    for unknown in (["unknown"], ["compare", "a", "b", "--noise", "-1"], ["detection", "--tries", "0"]):
        with pytest.raises(SystemExit) as ended:
            main(unknown)
        assert ended.value.code == 4


@pytest.mark.thorough("seconds")
@pytest.mark.parametrize(
    "arguments", [("reports", "goals", "reports/baselines/h200"), ("stages", "run", "--explain"), ("hardware",)]
)
def test_a_reader_that_leaves_is_no_traceback(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", *arguments]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[4], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        assert started.stderr.read() == ""
    assert started.returncode == 141


@pytest.mark.parametrize("room", ["reports", "hardware"])
def test_a_room_runs_from_a_clone_where_burstproof_is_not_installed(room: str) -> None:
    """With nothing but Python there is an answer too: `hardware` needs no package, `reports` names what it misses."""
    checkout = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _BARE.format(checkout=str(checkout), room=room)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if room == "hardware":
        assert done.returncode == 0, done.stderr
        assert "Gates:" in done.stdout
    else:
        assert done.returncode == 3, done.stderr
        assert "cannot be imported. pip install -e '.[test]'" in done.stderr


def test_strict_says_what_it_alone_fails_on() -> None:
    """The last line of the command: nothing where the exit code is the same without ``--strict``."""
    first, second = sample_record(faults=False), sample_record(faults=False)
    narrowed = compare([first], [replace(second, cases=second.cases[1:])])
    assert narrowed.exit_code() is not narrowed.exit_code(strict=True)
    assert "case disappeared 1" in strict_text(narrowed)
    assert strict_text(compare([first], [second])) == ""
