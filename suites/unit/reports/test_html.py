"""The report: self-contained, escaped, readable by machines that read to people; the matrix and the first line."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.errors import ExitCode
from reports import html
from reports.command import main
from reports.figures.limits import limit_rows
from reports.html import render
from reports.judge.summary import first_line
from reports.judge.trace import Status, reasons, trace, unknown_ids
from reports.judge.verdict import judge_cases
from reports.rows import lines_of, measurement_rows
from reports.store import load_run, write_run
from reports.values.measurement import SPAN, CaseResult, Measurement, Outcome
from reports.values.record import RunRecord
from reports.values.requirements import load_requirements
from reports.view import build_view
from stages.console import closing
from suites.support.plans import only, thinned
from suites.support.report_page import Page
from suites.support.sample_record import NO_GPU, sample_record

pytestmark = pytest.mark.requirement("RE-3")
BASELINES = Path(__file__).parents[3] / "reports" / "baselines"
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'>{{ 7*7 }}{% raw %}"


@pytest.fixture(scope="module", params=[(True, True), (True, False), (False, True), (False, False)])
def record(request: pytest.FixtureRequest) -> RunRecord:
    gpu, faults = request.param
    return sample_record(gpu=gpu, faults=faults)


def test_page_needs_nothing_else(record: RunRecord) -> None:
    text = render(record)
    page = Page(text)
    assert not page.every("script", "link", "iframe", "object", "embed", "img", "base", "form")
    assert not re.search(r"url\(|@import|https?://", text)
    links = [attributes["href"] for attributes in page.every("a")]
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert max(Counter(ids).values()) == 1
    assert {link for link in links if link} <= {f"#{name}" for name in ids}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


def test_page_can_be_read_aloud(record: RunRecord) -> None:
    page = Page(render(record))
    tags = [tag for tag, _ in page.elements]
    assert page.every("html")[0]["lang"] == "en"
    assert [tags.count(tag) for tag in ("header", "main", "nav", "footer", "h1")] == [1, 1, 1, 1, 1]
    assert tags.count("caption") == tags.count("table") > 5
    assert all(attributes.get("scope") in ("col", "row") for attributes in page.every("th"))
    drawings = [attributes for attributes in page.every("svg") if attributes.get("aria-hidden") != "true"]
    assert all(attributes.get("role") == "img" for attributes in drawings)
    for attributes in drawings:
        assert attributes.get("aria-label") or attributes.get("aria-labelledby")
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_dark_and_print_are_provided() -> None:
    text = render(sample_record())
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_verdict_comes_first_then_what_is_not_pass(record: RunRecord) -> None:
    text = render(record)
    order = [
        'class="verdict',
        'class="tiles"',
        'id="findings"',
        'id="stages"',
        'id="latency"',
        'id="parity"',
        'id="telemetry"',
    ]
    order += ['id="environment"', 'id="hardware"', 'id="trace"']
    places = [text.index(piece) for piece in order if piece in text or piece != 'class="tiles"']
    assert places == sorted(places)


def test_every_requirement_case_and_reason_is_on_the_page(record: RunRecord) -> None:
    words = "".join(Page(render(record)).text)
    for requirement in load_requirements():
        assert requirement.id in words
    for case in record.cases:
        assert case.case.removeprefix("suites/") in words or case.outcome is Outcome.PASSED
        assert case.reason in words


@pytest.mark.parametrize(
    "run",
    thinned(
        ["h200-owners", "h200-loads", "h200-acceptance"], "draws the largest records", keep=only("h200-acceptance")
    ),
)
def test_a_whole_run_is_little_more_than_two_megabytes(run: str) -> None:
    """With every figure on the page: its conditions stand in the line of its value, equal figures in one."""
    record = load_run(BASELINES / run)
    text = render(record)
    assert len(text.encode()) < 2_300_000
    rows = measurement_rows(record)
    lines = lines_of(rows)
    assert sum(len(line.conditions) for line in lines) == len(rows)
    words = set(Page(text).text)
    assert all(part in words for line in lines if line.row.name != SPAN for part in line.in_short if part)


def test_equal_figures_stand_in_one_line() -> None:
    figures = [
        Measurement("kernel.bytes", 0.0, "1", conditions={"kernel": n, "capability": c}) for n in "ab" for c in "12"
    ]
    sampled = [Measurement("kernel.bytes", 0.0, "1", (0.0, 0.0), {"kernel": n}) for n in "cd"]
    case = CaseResult("case", "stage1", (), Outcome.PASSED, measurements=(*figures, *sampled))
    record = replace(sample_record(), cases=(case,), judgements=())
    lines = lines_of(measurement_rows(record))
    assert [line.in_short for line in lines] == [
        ("{kernel a | kernel b}, {capability 1 | capability 2}",),
        ("kernel c",),
        ("kernel d",),
    ]
    words = "".join(Page(render(record)).text)
    assert "each of 4 figures{kernel a | kernel b}, {capability 1 | capability 2}" in words
    assert "kernel.bytes, 6 figures" in words


def test_telemetry_that_most_measurements_have_is_said_once() -> None:
    common = {"throttled": "no", "device": "0"}
    beside = [common, common, {"throttled": "yes", "device": "0"}, {**common, "power_w_max": "99"}]
    figures = [Measurement("a.rate", float(n), "GB/s", telemetry=one) for n, one in enumerate(beside)]
    case = CaseResult("case", "stage6", (), Outcome.PASSED, measurements=tuple(figures))
    view = build_view(replace(sample_record(), cases=(case,), judgements=()))
    assert view.usual_telemetry == common
    text = render(view.record)
    section = "".join(Page(text[text.index('<section id="telemetry"') : text.index('<section id="environment"')]).text)
    assert section.count("throttled no") == section.count("device 0") == 1
    assert section.count("throttled yes") == section.count("power_w_max 99") == 1
    alone = replace(case, measurements=(figures[0],))
    assert build_view(replace(view.record, cases=(alone,))).usual_telemetry == {}


def test_cases_that_fail_for_one_reason_are_one_finding() -> None:
    stage = sample_record().stages[0].stage
    cases = tuple(
        CaseResult(f"suites/a.py::{n}", stage, (f"BE-{n}",), Outcome.FAILED, "no package" if n < 4 else "other")
        for n in range(1, 5)
    )
    record = replace(sample_record(), cases=cases, judgements=())
    same, other = build_view(record).findings
    assert [case.case for case in (same.case, *same.others)] == ["suites/a.py::1", "suites/a.py::2", "suites/a.py::3"]
    assert same.requirements == ("BE-1", "BE-2", "BE-3")
    assert (other.case.case, other.others) == ("suites/a.py::4", ())
    assert "and 2 more cases for the same reason" in "".join(Page(render(record)).text)
    lines = closing(record, Path("runs/x"))
    assert "  FAIL suites/a.py::1 and 2 more: no package" in lines
    assert "  FAIL suites/a.py::4: other" in lines


def hostile_record() -> RunRecord:
    figure = Measurement(HOSTILE, 1.0, HOSTILE, (1.0, 2.0), {HOSTILE: HOSTILE}, (), {HOSTILE: HOSTILE}, HOSTILE)
    timed = Measurement("burst.latency", 1.0, "ms", (1.0, 2.0), {"neurons": HOSTILE, "backend": HOSTILE}, note=HOSTILE)
    cases = tuple(
        CaseResult(f"{HOSTILE}{n}", "stage5", ("BE-4",), outcome, HOSTILE, 0.0, HOSTILE, (figure, timed))
        for n, outcome in enumerate(Outcome)
    )
    base = sample_record()
    stage = replace(base.stages[0], stage="stage5", title=HOSTILE, gate_reason=HOSTILE, problem=HOSTILE)
    environment = replace(
        base.environment, packages={HOSTILE: HOSTILE}, variables={HOSTILE: HOSTILE}, git_commit=HOSTILE
    )
    hardware: dict[str, object] = {HOSTILE: [HOSTILE, {HOSTILE: None}], "gpus": [{"name": HOSTILE}], "problem": HOSTILE}
    return replace(
        base, run_id=HOSTILE, command=(HOSTILE,), stages=(stage,), environment=environment, hardware=hardware,
        cases=cases, judgements=judge_cases(cases),
    )  # fmt: skip


def test_hostile_text_stays_text() -> None:
    text = render(hostile_record())
    page = Page(text)
    assert not page.every("script", "img")
    assert HOSTILE in "".join(page.text)
    assert "49" not in re.findall(r"&#39;&gt;(\d+)", text)


def test_without_jinja2_the_command_says_what_to_install(tmp_path, monkeypatch, capsys) -> None:
    write_run(tmp_path, sample_record())
    html._environment.cache_clear()
    for package in ("jinja2", "markupsafe"):
        monkeypatch.setitem(sys.modules, package, None)
    assert main(["render", str(tmp_path)]) == ExitCode.INVALID_ENVIRONMENT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "jinja2 cannot be imported" in said
    assert "pip install" in said
    assert main(["goals", str(tmp_path)]) == ExitCode.PASS


@settings(max_examples=20, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8")), st.floats(), st.lists(st.floats(), max_size=4))
def test_any_figure_can_be_drawn(words: str, value: float, samples: list[float]) -> None:
    figure = Measurement(
        "burst.latency", value, "ms", tuple(samples), {"backend": words, "neurons": value, "scope": words}
    )
    case = CaseResult(words, "stage6", (), Outcome.PASSED, measurements=(figure,))
    page = Page(render(replace(sample_record(faults=False), cases=(case,), judgements=judge_cases([case]))))
    assert not page.every("script")


@pytest.mark.requirement("RE-1")
def test_matrix_keeps_every_requirement_in_sight() -> None:
    rows = {row.requirement.id: row for row in trace(sample_record(gpu=False, faults=False))}
    families = Counter(name.partition("-")[0] for name in rows)
    assert families == {"BE": 22, "MG": 8, "KL": 7, "TO": 14, "SU": 5, "ST": 7, "RE": 9, "OP": 4}
    assert rows["KL-4"].status is Status.PROVEN
    assert rows["BE-4"].status is Status.PARTLY
    assert NO_GPU in rows["BE-4"].reason
    assert rows["BE-6"].status is Status.NOT_PROVEN
    assert NO_GPU in rows["BE-6"].reason
    assert rows["TO-9"].status is Status.NOT_PROVEN
    assert rows["TO-9"].cases == ()


def test_matrix_names_what_failed() -> None:
    rows = {row.requirement.id: row for row in trace(sample_record(gpu=True, faults=True))}
    assert rows["BE-4"].status is Status.FAILED
    assert "stdp_w3" in rows["BE-4"].reason
    assert rows["BE-3"].status is Status.UNDECIDED
    assert rows["BE-4"].measurements == ("parity.disagreements",)


def test_misprinted_ids_are_reported() -> None:
    base = sample_record(faults=False)
    record = replace(base, cases=(replace(base.cases[0], requirements=("BE-99",)),))
    assert unknown_ids(record) == ("BE-99",)
    assert "BE-99" in render(record)


def test_a_pass_with_skips_says_so_in_the_verdict() -> None:
    record = sample_record(gpu=False, faults=False)
    whole = replace(record, cases=tuple(case for case in record.cases if case.outcome is Outcome.PASSED))
    assert "of what ran" in "".join(Page(render(record)).text)
    assert "of what ran" not in "".join(Page(render(whole)).text)


def test_the_first_screen_says_why_cases_were_skipped() -> None:
    """Above everything else that can be scrolled to: number, three reasons in short, and a link to all of them."""
    record = sample_record(gpu=False, faults=False)
    why = [
        "no browser",
        "too little memory " + "of the host " * 9,
        "no second GPU",
        "no adapter",
        "thorough plan: slow",
    ]
    cases = [CaseResult(f"a::{n}", "stage2", (), Outcome.SKIPPED, why[n % 5]) for n in range(5 * 5 - 2)]
    text = render(replace(record, cases=(*cases, cases[0]), judgements=()))
    header = text[: text.index("<nav")]
    line = "20 cases skipped: no browser (6); too little memory of the host of the host of the host of the host of "
    assert f"{line}the host … (5); no second GPU (5); and 1 other reason." in header
    assert '<a href="#not-run">' in header
    assert text.index('id="not-run"') < text.index(why[3], len(header))
    whole = replace(record, cases=tuple(case for case in record.cases if case.outcome is Outcome.PASSED))
    assert "#not-run" not in render(whole)


def test_gates_closed_for_one_cause_are_one_reason() -> None:
    gates = ["gate gpu is closed: no driver here."] * 3 + ["gate nvml is closed: no driver here."]
    cases = [CaseResult(f"a::{n}", "stage2", (), Outcome.SKIPPED, reason) for n, reason in enumerate(gates)]
    assert reasons(cases[:3]) == "gate gpu is closed: no driver here."
    assert reasons(cases) == "gates gpu, nvml are closed: no driver here."
    other = CaseResult("a::other", "stage2", (), Outcome.SKIPPED, "no driver here.")
    assert reasons([other, *cases]) == "gates gpu, nvml are closed: no driver here (4); no driver here (1)"


def test_a_requirement_without_a_case_blames_no_gate_of_a_stage_that_has_cases() -> None:
    record = sample_record(gpu=False)
    why = {row.requirement.id: row.reason for row in trace(record)}
    silent = [row for row in trace(record) if not row.cases and "stage4" in row.requirement.stages]
    assert any(case.stage == "stage4" for case in record.cases)
    assert silent
    assert all("stage4:" not in why[row.requirement.id] for row in silent)
    without = replace(record, cases=tuple(case for case in record.cases if case.stage != "stage4"))
    after = {row.requirement.id: row.reason for row in trace(without)}
    assert all(after[row.requirement.id].startswith("no case; ") for row in silent)


def test_the_limit_chart_leaves_out_what_is_right_or_wrong() -> None:
    judged = {one.measurement for one in sample_record().judgements}
    assert any(name.startswith("parity.") for name in judged)
    assert not any(row.label.startswith("parity.") for row in limit_rows(sample_record()))


def test_first_line_says_what_was_skipped_and_not_proven() -> None:
    line = first_line(sample_record(gpu=False, faults=False))
    assert line.startswith(
        "PASS: all 31 cases that ran passed; of 76 requirements 5 proven, 7 proven in part, 64 not proven; "
    )
    assert NO_GPU in line
    assert "; 14 cases skipped: " in line
    empty = replace(sample_record(), cases=(), judgements=(), finished_utc="")
    assert first_line(empty).startswith("ERROR: nothing ran; stage1 ran no case although its gate is open")
    assert "the run was interrupted" in first_line(empty)
