"""The table of goals: what it takes from a record, as text, on the console and in the report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode, InputError
from reports.command import main
from reports.html import render
from reports.judge.goals import HEADS, GoalRow, goal_lines, goal_rows, goal_table, open_goals
from reports.judge.rightness import rightness
from reports.judge.targets import Comparison, Other, later_goals, load_targets, parse_targets
from reports.judge.verdict import judge_cases
from reports.store import load_run, write_run
from reports.values.measurement import CaseResult, Measurement, Outcome
from reports.values.record import RunRecord, StageRun
from reports.view import build_view
from stages.console import closing
from suites.support.plans import only, thinned
from suites.support.report_page import Page
from suites.support.sample_record import latency, sample_record

pytestmark = pytest.mark.requirement("RE-3", "ST-6")

LARGEST = "reads and draws the largest records"
MILLION = "1 M neurons × 100, 1 % firing"


def record_of(centre_us: float, floor_us: float | None = 11.9) -> RunRecord:
    """A run that measured the million at 1 %."""
    more = {} if floor_us is None else {"floor": floor_us / 1e3}
    figure = latency("cuda", 1_000_000, centre_us / 1e3, device="NVIDIA H200", **more)
    case = CaseResult("suites/stage6_performance/case", "stage6", (), Outcome.PASSED, measurements=(figure,))
    return replace(sample_record(faults=False), cases=(case,), judgements=judge_cases([case]))


def row_of(record: RunRecord, name: str = MILLION) -> GoalRow:
    (row,) = (row for row in goal_rows(record) if row.row == name)
    return row


def test_a_goal_that_is_met() -> None:
    """15 us against 16: PASS, 3.4 times as fast as the best other, 79 % of the floor; units of the goal throughout."""
    row = row_of(record_of(14.8))
    assert (row.verdict, row.goal, row.other) == ("PASS", "≤ 16 µs", "51.2 µs brainevent")
    assert row.measured == "15.03 µs"
    assert (row.against_other, row.floor, row.of_floor) == ("3.4×", "11.9 µs", "79 %")
    assert "NEST GPU: 220 µs (issue 3, measured on the same card)" in row.sources


def test_another_program_that_the_run_timed_takes_the_place_of_older_figures() -> None:
    """The best of those on the same network; on another size, or another kind, it stands beside another goal."""

    def peer(name: str, us: float, **more: str | int) -> Measurement:
        same = {"neurons": 1_000_000, "synapses_per_neuron": 100, "firing_rate": 0.01, "device": "NVIDIA H200"}
        return Measurement("peer.latency", us / 1e3, "ms", conditions={**same, "against": name, **more})

    record = record_of(14.8)
    others = [
        peer("JAX", 60.0),
        peer("brainevent", 45.0),
        peer("tiny", 9.0, neurons=7),
        peer("kind", 9.0, kind="areas"),
    ]
    case = replace(record.cases[0], measurements=(*record.cases[0].measurements, *others))
    row = row_of(replace(record, cases=(case,)))
    assert (row.other, row.other_from, row.against_other) == ("45 µs brainevent", "this run", "3×")
    assert row.sources == "brainevent: 45 µs (this run)"
    (line,) = (line for line in goal_lines([row]) if line.startswith(MILLION))
    assert "15.03 µs (3×)" in line
    assert "  45 µs brainevent  " in line
    assert row_of(record_of(14.8)).other_from.startswith("elsewhere")


def test_a_goal_that_is_missed_shows_its_floor() -> None:
    row = row_of(record_of(19.3))
    assert (row.verdict, row.floor, row.of_floor) == ("FAIL", "11.9 µs", "61 %")
    assert row.decided == "FAIL, by 22.5 %"
    assert row_of(record_of(19.3, floor_us=None)).decided == "FAIL, by 22.5 %, no floor"
    assert row_of(record_of(14.8, floor_us=None)).decided == "PASS"
    assert "no floor</div>" in render(record_of(19.3, floor_us=None))
    assert "by 22.5 %</div>" in render(record_of(19.3))


def test_a_missed_goal_says_by_how_much_before_its_share_of_the_floor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """16.42 us against 16, at 61 % of the floor: in the table of the command, below it, and on the page's head."""
    record = record_of(16.17, floor_us=10.0)
    write_run(tmp_path / "run", record)
    first, _, *lines = printed(capsys, "goals", tmp_path / "run").splitlines()
    assert first == rightness(record)[1]
    assert any(line.startswith(MILLION) and line.endswith("  FAIL by 2.6 %") for line in lines)
    assert f"1 goal measured: 1 missed; worst miss by 2.6 %: {MILLION}" in lines
    head = " ".join("".join(Page(render(record)).text).partition("What is not PASS")[0].split())
    assert f"1 goal missed, by 2.6 %: {MILLION}; " in head
    assert re.search(r"FAIL by 2.6 %, goal ≤ 16 µs.*, 61 % of what the hardware allows", head)


def test_a_case_that_passed_with_a_figure_that_did_not_is_told(tmp_path: Path) -> None:
    """Its line names the figure, and its stage the goals missed beside the cases that their figures fail."""
    said = closing(record_of(19.3), tmp_path)
    figure = record_of(19.3).judgements[0].measurement
    assert any(line.startswith("  FAIL ") and f": {figure}: " in line for line in said)
    assert any("1 failed by figures; 1 goal missed" in line for line in said)


@pytest.mark.thorough(LARGEST)
def test_the_console_cuts_no_goal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All rows of the largest committed record; those that it did not measure in number, and by name when asked."""
    folder = Path(__file__).parents[4] / "reports" / "baselines" / "h200"
    record = load_run(folder)
    rows = goal_rows(record)
    measured = [row for row in rows if row.is_measured]
    reasons = sum(len(found) > 1 for _, found in open_goals(rows))
    assert 20 < len(measured) < len(rows) - 20
    for said in ("\n".join(closing(record, tmp_path)), printed(capsys, "goals", folder)):
        assert all(row.row in said for row in measured)
        assert all(f"not measured: {why}" in said for why, _ in open_goals(rows))
        assert len(re.findall(r"^ *\d+ goals not measured: ", said, re.MULTILINE)) == reasons >= 3
    every = printed(capsys, "goals", folder, "--all")
    assert all(row.row in every for row in rows)


@pytest.mark.parametrize("more", [(), ("--all",)], ids=["measured", "all"])
@pytest.mark.parametrize(
    "run", thinned(["h200-owners", "h200-loads", "h200", "h200-x4", "h200-x4-shards"], LARGEST, keep=only("h200-loads"))
)
def test_the_table_fits_160_columns(run: str, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Of a whole run with every figure in it; below it stand counts and reasons, whatever was asked for."""
    folder = Path(__file__).parents[4] / "reports" / "baselines" / run
    said = printed(capsys, "goals", folder, *more)
    assert re.search(r"\n\d+ goals measured: .*\n\d+ goals? not measured: ", said)
    table = said.split("\n\n")[1].splitlines()
    assert table[0].split() == " ".join(HEADS).split()
    assert len(table) > 8
    assert max(map(len, table)) <= 160


def test_what_cells_mean_is_said_once_below_the_table() -> None:
    """Where figures of others come from, and why a figure counts for nothing, each once however many rows have it."""
    row = replace(row_of(record_of(14.8)), earlier="")
    wrong = replace(row, row="x" * 80, verdict="FAIL", doubt="the result was not right")
    assert wrong.of_figure == "PASS"
    lines = goal_table([row, row, wrong])
    assert [line.endswith("PASS") for line in lines[1:3]] == [True, True]
    assert lines[3] == "x" * 80
    assert lines[4].startswith("   ")
    assert lines[4].endswith("  met, not counted [2]")
    assert goal_table([replace(wrong, of_figure="FAIL")])[2].endswith("  FAIL [2]")
    assert all("51.2 µs brainevent [1]  " in lines[place] for place in (1, 2, 4))
    assert lines[-2:] == [f"[1] {row.other_from}", "[2] the result was not right"]
    assert sum("share: " in line for line in lines) == 1


def test_the_worst_of_many_figures_cannot_be_read_as_one_of_them() -> None:
    """How many there are stands beside the name, with the words; the measured value stands alone."""
    row = GoalRow("bursts that agree", "", "≥ 1", is_latency=False, measured="1", worst_of="worst of 1198")
    first = goal_table([row])[1]
    assert first.startswith("bursts that agree (worst of 1198)  ")
    assert first.split()[-7:] == ["≥", "1", "1", "-", "-", "not", "measured"]


def printed(capsys: pytest.CaptureFixture[str], action: str, *arguments: object) -> str:
    capsys.readouterr()
    assert main([action, *map(str, arguments)]) == ExitCode.PASS
    return capsys.readouterr().out


def test_goals_are_not_measured_for_one_reason_each() -> None:
    """Without a GPU the gate's, whatever the goal; on another machine what it lacks; else nothing measured it."""
    record = record_of(14.8)
    (measured,) = (one for one in record.cases if one.measurements)
    figure = replace(measured.measurements[0], name="burst.scaled")
    stages = tuple(replace(stage, gate_open=False, gate_reason="no NVIDIA driver") for stage in record.stages)

    def reasons(gates: tuple[StageRun, ...], **changed: object) -> dict[str, int]:
        other = replace(figure, conditions={**figure.conditions, **changed})
        cases = (replace(measured, measurements=(other,)),)
        rows = goal_rows(replace(record, stages=gates, cases=cases, judgements=()))
        return {why: len(goals) for why, goals in open_goals(rows)}

    on_cpu = reasons(stages, backend="cpu")
    assert max(on_cpu, key=lambda why: on_cpu[why]) == "no NVIDIA driver"
    assert on_cpu["no NVIDIA driver"] >= 42
    assert reasons(stages, backend="cuda")["no NVIDIA driver"] < 42, "those of stage 7 alone"
    assert any("wanted *H200*" in why for why in reasons(record.stages, device="NVIDIA A100"))
    assert "no case of this quick run measures it" in reasons(record.stages, neurons=7)
    unfinished = tuple(replace(stage, problem="cut off") for stage in record.stages if stage.stage != "stage7")
    left = reasons(unfinished, neurons=7)
    assert left["stage7 is not in this run"] >= 14
    assert left["stage6 did not finish"] > 40
    assert not any("measures it" in why for why in left)


@pytest.mark.parametrize(
    ("floor_us", "floor", "share"), [(None, "16 µs", "73 %"), (11.9, "16 µs", "73 %"), (18.0, "18 µs", "82 %")]
)
def test_the_floor_that_was_judged_with_is_shown(floor_us: float | None, floor: str, share: str) -> None:
    """The target's own where the figure states none, or a lower one."""
    more = {"connectivity": "uniform", "kind": "uniform", "gpus": 1, "device": "NVIDIA H200"}
    more |= {} if floor_us is None else {"floor": floor_us / 1e3}
    figure = latency("cuda", 100_000, 21.6 / 1e3, scope="launch to download", **more)
    case = CaseResult("suites/stage6_performance/case", "stage6", (), Outcome.PASSED, measurements=(figure,))
    record = replace(sample_record(faults=False), cases=(case,), judgements=judge_cases([case]))
    row = row_of(record, "100 K neurons × 100, 1 % firing, fired list downloaded")
    assert (row.decided, row.floor, row.of_floor) == ("FAIL, by 4.4 %", floor, share)


@pytest.mark.parametrize(
    ("ceiling", "decided", "share"),
    [(0.95, "FAIL, by 11.1 %", "84 %"), (0.79, "ERROR", "101 %"), (None, "FAIL, by 11.1 %, no floor", "")],
)
def test_the_floor_of_a_share_is_the_most_that_can_be_reached(ceiling: float | None, decided: str, share: str) -> None:
    name = "element-wise operations and fused chains, share of copy bandwidth"
    conditions = {"backend": "cuda", "elements": 1 << 26} | ({} if ceiling is None else {"floor": ceiling})
    figure = Measurement("elementwise.copy_fraction", 0.8, "1", conditions=conditions)
    case = CaseResult("case", "stage6", ("TO-3",), Outcome.PASSED, measurements=(figure,))
    row = row_of(replace(sample_record(), cases=(case,), judgements=judge_cases([case])), name)
    assert (row.decided, row.of_floor) == (decided, share)


def test_the_share_of_a_time_within_a_range_is_below_100_percent() -> None:
    """A lower bound does not make more time the better."""
    record = record_of(19.3)
    goal = next(target for target in load_targets() if target.id == record.judgements[0].target)
    (row,) = goal_rows(record, [replace(goal, comparison=Comparison.RANGE, low=12.0)])
    assert (row.floor, row.of_floor) == ("11.9 µs", "61 %")


def test_a_figure_below_its_floor_is_an_error_in_the_table() -> None:
    assert row_of(record_of(10.0)).verdict == "ERROR"


def test_of_goals_that_are_no_latencies_the_worst_figure_is_shown() -> None:
    """Three figures against one goal, the worst in the middle; the table then also shows the goal without latencies."""
    conditions = {"backend": "cuda", "elements": 1 << 26}
    figures = tuple(
        Measurement("elementwise.copy_fraction", value, "1", conditions=conditions) for value in (1.04, 0.85, 0.97)
    )
    case = CaseResult("suites/stage6_performance/case", "stage6", (), Outcome.PASSED, measurements=figures)
    record = replace(sample_record(faults=False), cases=(case,), judgements=judge_cases([case]))
    row = row_of(record, "element-wise operations and fused chains, share of copy bandwidth")
    assert (row.measured, row.worst_of, row.verdict) == ("0.85", "worst of 3", "FAIL")
    page = "".join(Page(render(record)).text)
    assert "0.85 (worst of 3)" in page
    assert page.count("worst of 3") == 2
    assert [one for one in goal_rows(record) if one.is_measured] == [row]


def test_of_an_earlier_goal_and_the_one_in_its_place_one_is_shown() -> None:
    """The later one if the run has a figure for it, or for neither; else the earlier one, which says so."""
    record = record_of(14.8)
    earlier = row_of(record)
    assert (earlier.goal, earlier.verdict) == ("≤ 16 µs", "PASS")
    assert earlier.earlier == "a goal until 2026-11-22; for the one that took its place there is no figure"
    table = goal_lines([earlier])
    assert table[1].startswith(f"{MILLION} [2]  ")
    assert f"[2] {earlier.earlier}" in table
    assert "(a goal until 2026-11-22)" in "".join(Page(render(record)).text)
    (case,) = record.cases
    both = replace(case, measurements=(*case.measurements, replace(case.measurements[0], name="burst.scaled")))
    shown = goal_rows(replace(record, cases=(both,), judgements=judge_cases([both])))
    assert [(row.row, row.goal, row.earlier) for row in shown if row.is_measured] == [
        (f"{MILLION}, uniform", "≤ 14 µs", "")
    ]
    bare = {row.row for row in goal_rows(replace(record, cases=(), judgements=()))}
    assert f"{MILLION}, uniform" in bare
    assert MILLION not in bare


def test_an_earlier_goal_is_of_the_same_work() -> None:
    goals = {target.id: target for target in load_targets() if target.is_goal}
    later = later_goals(goals.values())
    assert len(later) >= 6
    assert all(goals[name].conditions == one.conditions and goals[name].date < one.date for name, one in later.items())


def test_of_figures_that_decide_apart_the_worst_verdict_is_shown() -> None:
    """One lies further from the limit and is ambiguous, one misses it: the goal is missed."""
    sharp, wide = (
        Measurement("elementwise.copy_fraction", v, "1", samples, conditions={"backend": "cuda", "elements": 1 << 26})
        for v, samples in ((0.85, (0.849, 0.85, 0.851) * 9), (0.84, (0.7, 0.84, 0.95) * 9))
    )
    case = CaseResult("suites/stage6_performance/case", "stage6", (), Outcome.PASSED, measurements=(sharp, wide))
    record = replace(sample_record(faults=False), cases=(case,), judgements=judge_cases([case]))
    assert [one.judgement.verdict.value for one in record.judgements] == ["FAIL", "AMBIGUOUS"]
    row = row_of(record, "element-wise operations and fused chains, share of copy bandwidth")
    assert (row.measured, row.verdict) == ("0.85", "FAIL")


@pytest.mark.parametrize("ahead", [6.134, 1.8])
def test_a_goal_for_several_networks_is_met_so_far_until_its_stage_ends(ahead: float) -> None:
    """The program that comes nearest may not have been timed yet; the time of one network is what it is."""
    record = record_of(14.8)
    (case,) = record.cases
    peer = Measurement("peer.ahead", ahead, "x", conditions={"neurons": 100_000, "device": "NVIDIA H200"})
    case = replace(case, measurements=(*case.measurements, peer))
    stages = tuple(replace(stage, problem="cut off" if stage.stage == "stage6" else "") for stage in record.stages)
    record = replace(record, cases=(case,), judgements=judge_cases([case]), stages=stages)
    name = "ahead of every other program on the same network, up to 1 M neurons"
    met = ahead > 2.5
    row = row_of(record, name)
    assert (row.word, row.decided) == (
        ("PASS so far", "PASS, so far") if met else ("FAIL by 28.0 %", "FAIL, by 28.0 %, no floor")
    )
    assert row_of(record).decided == "PASS"
    lines = goal_lines(goal_rows(record))
    assert any("other cases may be held against it" in line for line in lines) is met
    counts = "1 met so far, 1 met" if met else f"1 missed, 1 met; worst miss by 28.0 %: {name}"
    assert f"2 goals measured: {counts}" in lines
    whole = replace(record, stages=tuple(replace(stage, problem="") for stage in stages))
    assert row_of(whole, name).word == ("PASS" if met else "FAIL by 28.0 %")


def test_what_is_not_there_is_said() -> None:
    """A figure without a floor has no share of it; goals that nothing measured say so; nothing is left out."""
    record = record_of(14.8, None)
    assert (row_of(record).floor, row_of(record).of_floor) == ("", "")
    rows = goal_rows(record)
    assert [row.verdict for row in rows].count("not measured") == len(rows) - 1 >= 9
    largest = row_of(record, f"{MILLION.replace('1 M', '100 M')}, uniform")
    assert (largest.other, largest.measured, largest.against_other) == ("none of them holds it", "", "")
    assert not any(row.is_measured for row in goal_rows(replace(record, cases=(), judgements=())))


def test_lines_are_aligned() -> None:
    lines = goal_table(goal_rows(record_of(14.8)))
    assert lines[0].split() == " ".join(HEADS).split()
    place = lines[0].index("verdict")
    rows = [line for line in lines[1 : lines.index("")] if len(line) > place]
    assert {line[place - 2 : place] for line in rows} == {"  "}
    (line,) = (line for line in lines if line.startswith(f"{MILLION} "))
    assert line.endswith("PASS")
    assert "15.03 µs (3.4×)" in line
    assert goal_table(()) == goal_lines(()) == []


def test_it_is_printed_after_a_run_and_by_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = record_of(14.8)
    printed = "\n".join(closing(record, tmp_path))
    assert all(line in printed for line in goal_lines(goal_rows(record)))
    assert "by their figures" not in printed
    write_run(tmp_path / "run", record)
    assert main(["goals", str(tmp_path / "run")]) == 0
    assert "15.03 µs (3.4×)" in capsys.readouterr().out
    write_run(tmp_path / "none", replace(record, cases=(), judgements=()))
    assert main(["goals", str(tmp_path / "none")]) == 2
    assert "Goals" not in "\n".join(closing(replace(record, cases=(), judgements=()), tmp_path))


def test_it_stands_on_top_of_the_performance_section() -> None:
    text = render(record_of(14.8))
    section = text[text.index('id="latency"') : text.index('id="parity"')]
    assert section.index("51.2 µs brainevent") < section.index("Every latency")
    assert "This run measured none of the goals." in render(replace(record_of(14.8), cases=(), judgements=()))


@pytest.mark.thorough(LARGEST)
def test_a_long_table_is_folded_and_keeps_every_goal() -> None:
    """A run with 55 latencies and missed goals shows 24 of them; the fold says what the verdicts of the others are."""
    record = load_run(Path(__file__).parents[4] / "reports" / "baselines" / "h200-owners")
    view = build_view(record)
    assert (len(view.goals), len(view.goals_more), len(view.goals_met)) == (24, 31, 22)
    assert {*view.goals, *view.goals_more, *view.goals_met} == {row for row in goal_rows(record) if row.is_measured}
    text = "".join(Page(render(record)).text)
    fold = re.search(r"31 more of them: \S AMBIGUOUS 2 \S FAIL 24 \S PASS 5\n", text)
    assert fold
    assert all(row.row in text[fold.end() :] for row in view.goals_more)


def test_a_ratio_on_an_impossible_base_and_a_figure_of_a_broken_case_are_not_missed() -> None:
    """Of a record with both: three ratios rest on a burst that beat its floor, one figure met its goal in vain."""
    record = load_run(Path(__file__).parents[4] / "reports" / "baselines" / "h200-x4-shards")
    rows = goal_rows(record)
    slow = [row for row in rows if row.row.startswith("a slow burst of one GPU")]
    why = "rests on what was measured wrongly: shard.burst, 2.898 ms is better than the floor of 3.238 ms"
    assert [(row.word, row.doubt) for row in slow] == [("ERROR", why)] * 3
    largest = row_of(record, "400 M neurons × 100 (40 G synapses), 1 % firing, 4 GPUs")
    assert (largest.word, largest.verdict) == ("met, not counted", "FAIL")
    counts = "16 goals measured: 5 missed, 3 not judged, 1 met by a figure that counts for nothing, 7 met so far"
    assert any(line.startswith(f"{counts}; worst miss by a factor of 3.4: ") for line in goal_lines(rows))
    page = "".join(Page(render(record)).text)
    assert "5 goals missed" in page
    assert "met, not counted, goal ≤ 5 ms" in page


def test_a_users_goal_says_what_it_lacks_and_no_stage() -> None:
    """Nobody knows which stage measures what a user names."""
    own = replace(next(one for one in load_targets() if one.measurement == "burst.latency"), id="mine", source="own")
    empty = replace(record_of(14.8), cases=(), judgements=(), stages=())
    (row,) = goal_rows(empty, [replace(own, measurement="mine.size")])
    assert row.absent == "nothing here measures it"


def test_goals_of_equal_name_are_told_apart() -> None:
    names = [row.row for row in goal_rows(replace(record_of(14.8), cases=(), judgements=()))]
    assert len(set(names)) == len(names)


def test_figures_of_others_are_checked_on_the_way_in() -> None:
    (target,) = (target for target in load_targets() if target.id == "goal-h200-burst-100m")
    assert target.others == (Other("none of them holds it", "issue 3, measured on the same card"),)
    base = {
        "id": "x",
        "measurement": "burst.latency",
        "metric": "m",
        "comparison": "<=",
        "limit": 1.0,
        "unit": "us",
        "source": "goal",
        "status": "goal",
        "date": "2026-11-21",
    }
    for bad in ({"name": "a"}, {"name": "a", "source": ""}, {"name": "a", "source": "b", "value": "c"}, "a"):
        with pytest.raises(InputError):
            parse_targets({"target": [{**base, "others": [bad]}]})
    with pytest.raises(InputError, match="list"):
        parse_targets({"target": [{**base, "others": "a"}]})
