"""What may be quoted: a whole, clean, sealed run, and for each thing that it lacks a reason."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from reports import store
from reports.command import main
from reports.judge.admit import _same, reasons_against
from reports.judge.judging import targets_sha256
from reports.judge.targets import Status, load_targets
from reports.judge.verdict import judge_cases
from reports.store import load_run, reasons_against_run, write_baseline, write_run
from reports.values.judgement import JudgedMeasurement, Limits, ReasonCode
from reports.values.machine import machine_of
from reports.values.measurement import Measurement, Verdict
from reports.values.record import Invocation, Judging, RunRecord
from reports.values.seal import digests_of
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-9")

TARGETS = Path(store.__file__).with_name("targets.toml")
Change = Callable[[RunRecord], RunRecord]
NOISE = 1e-6
"""By how much of the largest sample a value may lie outside."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A commit with the targets of today."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "reports").mkdir()
    (root / "reports" / "targets.toml").write_bytes(TARGETS.read_bytes())
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


@pytest.fixture(scope="module")
def whole(checkout: Path) -> RunRecord:
    """A record that may be quoted, sealed."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, check=True, capture_output=True, text=True)
    record = sample_record(faults=False)
    environment = replace(record.environment, git_commit=head.stdout.strip(), git_dirty=False)
    counts = {stage.stage: sum(case.stage == stage.stage for case in record.cases) for stage in record.stages}
    stages = tuple(replace(stage, collected=counts[stage.stage]) for stage in record.stages if counts[stage.stage])
    names = tuple(stage.stage for stage in stages)
    return sealed(
        replace(
            floored(record, 0.5),
            stages=stages,
            environment=environment,
            plan="thorough",
            invocations=(Invocation(record.command, "now", environment, names, machine_of(record).label),),
            judged=(Judging("now", environment.git_commit, False, targets_sha256()),),
        )
    )


def sealed(record: RunRecord) -> RunRecord:
    return store.loads(store.dumps(record))


def with_environment(record: RunRecord, **changes: object) -> RunRecord:
    environment = replace(record.environment, **changes)
    return replace(
        record, environment=environment, invocations=(replace(record.invocations[0], environment=environment),)
    )


def with_stage(record: RunRecord, **changes: object) -> RunRecord:
    return replace(record, stages=(replace(record.stages[0], **changes), *record.stages[1:]))


def with_latencies(record: RunRecord, change: Callable[[Measurement], Measurement]) -> RunRecord:
    """``record``, judged anew, whose burst latencies on a GPU are others."""
    cases = tuple(
        replace(case, measurements=tuple(change(m) if _is_latency(m) else m for m in case.measurements))
        for case in record.cases
    )
    return replace(record, cases=cases, judgements=judge_cases(cases))


def _is_latency(measurement: Measurement) -> bool:
    return measurement.name == "burst.latency" and measurement.conditions["backend"] == "cuda"


def floored(record: RunRecord, share: float) -> RunRecord:
    """The floor of each latency at ``share`` of its value."""
    return with_latencies(record, lambda m: replace(m, conditions={**m.conditions, "floor": share * (m.value or 0.0)}))


def unfloored(record: RunRecord) -> RunRecord:
    return with_latencies(
        record, lambda m: replace(m, conditions={name: m.conditions[name] for name in m.conditions if name != "floor"})
    )


def throttled(record: RunRecord, reasons: str) -> RunRecord:
    telemetry = {"throttled": True, "clock_reasons": reasons}
    return with_latencies(record, lambda m: replace(m, telemetry=telemetry))


def failed(record: RunRecord) -> RunRecord:
    """Latencies fifty times what they were, judged: FAILs that the record states."""
    return with_latencies(
        record, lambda m: replace(m, value=50.0 * (m.value or 0.0), samples=tuple(50.0 * one for one in m.samples))
    )


def whitewashed(record: RunRecord) -> RunRecord:
    """A FAIL whose judgement was put right by hand, sealed anew."""
    bad = failed(record)
    judged = next(one for one in bad.judgements if one.judgement.verdict is Verdict.FAIL)
    good = replace(judged, judgement=replace(judged.judgement, verdict=Verdict.PASS))
    return replace(bad, judgements=tuple(good if one is judged else one for one in bad.judgements))


def revalued(record: RunRecord) -> RunRecord:
    """Another figure in a judgement, a millionth off, whose verdict holds."""
    first, *others = record.judgements
    value = 1.000001 * (first.judgement.value or 0.0)
    return replace(record, judgements=(replace(first, judgement=replace(first.judgement, value=value)), *others))


def test_a_whole_clean_run_may_be_quoted_and_so_may_one_that_fails(whole: RunRecord, checkout: Path) -> None:
    assert reasons_against(whole, checkout) == ()
    bad = sealed(failed(whole))
    assert any(one.judgement.verdict is Verdict.FAIL for one in bad.judgements)
    assert reasons_against(bad, checkout) == ()
    assert reasons_against(sealed(throttled(whole, "sw power cap")), checkout) == ()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda r: with_environment(r, git_dirty=True, git_changes=("?? conftest.py",)),
            "local changes: ?? conftest.py",
        ),
        (lambda r: with_environment(r, git_dirty=True, git_changes=tuple("abcd")), "local changes: a, b, c and 1 more"),
        (
            lambda r: replace(r, environment=replace(r.environment, git_dirty=True, git_changes=(" M a.py",))),
            "local changes:  M a.py",
        ),
        (lambda r: with_environment(r, git_commit=""), "outside a checkout"),
        (lambda r: with_environment(r, git_commit="0" * 40), "targets of commit 000000000000 cannot be read here"),
        (lambda r: replace(r, invocations=()), "does not say which invocations"),
        (
            lambda r: replace(
                r,
                invocations=(
                    *r.invocations,
                    replace(r.invocations[0], environment=replace(r.environment, git_commit="b" * 40)),
                ),
            ),
            "run at 2 commits",
        ),
        (
            lambda r: replace(r, invocations=(*r.invocations, replace(r.invocations[0], machine="another"))),
            "run on 2 machines",
        ),
        (
            lambda r: replace(
                r,
                invocations=(
                    *r.invocations,
                    replace(r.invocations[0], environment=replace(r.invocations[0].environment, python="3.99")),
                ),
            ),
            "other versions of Python or packages than the rest: ",
        ),
        (lambda r: replace(r, plan="quick"), "only the quick plan"),
        (lambda r: replace(r, asked=("stage6",)), "only stage6 of the plan"),
        (lambda r: replace(r, finished_utc=""), "did not finish"),
        (lambda r: replace(r, finished_utc="2001-01-01T00:00:00Z"), "before it began at "),
        (lambda r: replace(r, finished_utc="yesterday"), "when it finished: 'yesterday' is no time like 2026-"),
        (lambda r: replace(r, started_utc=""), "when it began: '' is no time like 2026-"),
        (lambda r: replace(r, hardware={}), "its hardware is that of no GPU, unknown CPU, 0 cores; its invocations"),
        (lambda r: replace(r, hardware={**r.hardware, "gpus": []}), "its hardware is that of no GPU, "),
        (
            lambda r: replace(r, stages=r.stages[:-1]),
            "lacks stages that its invocations or cases name: stage7",
        ),
        (
            lambda r: replace(
                r, stages=r.stages[:-1], cases=tuple(case for case in r.cases if case.stage != r.stages[-1].stage)
            ),
            "lacks stages that its invocations or cases name: stage7",
        ),
        (lambda r: with_stage(r, problem="it died"), "did not finish: it died"),
        (lambda r: with_stage(r, collected=0), "does not say how many cases"),
        (lambda r: with_stage(r, collected=99), "collected 99 cases and reports"),
        (lambda r: replace(r, cases=r.cases[1:]), "collected 8 cases and reports 7"),
        (lambda r: with_stage(r, deselected=("a::b",), collected=9), "1 case of stage1 left out: a::b"),
        (lambda r: replace(r, judged=()), "what it was judged with"),
        (
            lambda r: replace(r, judged=(*r.judged, replace(r.judged[0], commit="c" * 40))),
            "judged by commit cccccccccccc, not",
        ),
        (lambda r: replace(r, judged=(replace(r.judged[0], dirty=True),)), "with local changes, not"),
        (lambda r: replace(r, judged=(replace(r.judged[0], targets_sha256="0" * 64),)), "other targets"),
        (lambda r: replace(r, thinned_from="seal 1"), "thinned"),
        (
            lambda r: with_latencies(r, lambda m: replace(m, value=1.5 * max(m.samples))),
            "outside the range of the samples",
        ),
        (lambda r: floored(r, 2.0), "better than what the hardware can do: burst.latency"),
        (unfloored, "judged without a floor: burst.latency"),
        (
            lambda r: throttled(r, "sw power cap, sw thermal slowdown"),
            "throttled during 1 measurement: burst.latency (sw",
        ),
        (lambda r: throttled(r, ""), "throttled during 1 measurement"),
        (revalued, "judging the samples again gives another result for 1 figure"),
        (whitewashed, "judging the samples again gives another result for 1 figure: burst.latency"),
        (lambda r: replace(r, judgements=r.judgements[1:]), "gives another result for 1 figure"),
    ],
)
def test_each_lack_is_a_reason(whole: RunRecord, checkout: Path, change: Change, reason: str) -> None:
    assert reason in "\n".join(reasons_against(sealed(change(whole)), checkout))


@pytest.mark.parametrize(
    "commit", ["HEAD", "HEAD~0", "main@{0}", "", "a" * 39, "a" * 41, "A" * 40, "g" * 40, "--output={}", "a" * 40 + "\n"]
)
def test_a_commit_is_named_by_its_whole_digest(whole: RunRecord, checkout: Path, tmp_path: Path, commit: str) -> None:
    """Nothing else is handed to git, which would write where an option says so."""
    written = tmp_path / "written"
    named = commit.format(written) if commit.startswith("--") else commit
    record = replace(with_environment(whole, git_commit=named), judged=(replace(whole.judged[0], commit=named),))
    said = [reason for reason in reasons_against(sealed(record), checkout) if "no full digest of git" in reason]
    assert len(said) == bool(named)
    assert all(repr(named[:20])[1:-1] in reason for reason in said)
    assert list(tmp_path.iterdir()) == []


def test_a_commit_of_64_digits_is_looked_for(whole: RunRecord, checkout: Path) -> None:
    record = with_environment(whole, git_commit="0" * 64)
    assert "targets of commit 000000000000 cannot be read here" in "\n".join(reasons_against(sealed(record), checkout))


def test_the_environment_does_not_choose_the_repository(
    whole: RunRecord, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    assert reasons_against(whole, checkout) == ()


@pytest.mark.parametrize(("changes", "named"), [("abc", "a, b, c"), ("abcd", "a, b, c and 1 more")])
def test_three_changes_are_named(whole: RunRecord, checkout: Path, changes: str, named: str) -> None:
    record = with_environment(whole, git_dirty=True, git_changes=tuple(changes))
    assert any(reason.endswith(f"local changes: {named}") for reason in reasons_against(sealed(record), checkout))


@pytest.mark.parametrize(
    ("summary", "said"),
    [({"verdict": "PASS", "exit_code": 0}, "verdict PASS, exit_code 0"), ({}, "nothing"), (None, "nothing")],
)
def test_a_summary_that_does_not_follow_from_the_record_is_a_reason(
    whole: RunRecord, checkout: Path, summary: dict[str, object] | None, said: str
) -> None:
    """Put right by hand, or left out, and sealed anew."""
    document = json.loads(store.dumps(failed(whole)))
    del document["summary"]
    document |= {} if summary is None else {"summary": summary}
    document["digests"] = digests_of(document)
    (reason,) = reasons_against(store.loads(json.dumps(document)), checkout)
    assert reason.startswith(f"its summary says {said}; its stages, cases and judgements give verdict FAIL")


def test_a_machine_that_older_records_named_with_an_x_is_the_same(whole: RunRecord, checkout: Path) -> None:
    gpus = whole.hardware["gpus"]
    assert isinstance(gpus, list)
    record = replace(whole, hardware={**whole.hardware, "gpus": [*gpus, *gpus]})
    label = machine_of(record).label
    assert label.startswith("2 × ")
    for name, found in ((label, False), (label.replace(" × ", " x "), False), (label.replace("2 ×", "3 ×"), True)):
        renamed = replace(record, invocations=(replace(record.invocations[0], machine=name),))
        assert ("its hardware is that of" in "\n".join(reasons_against(sealed(renamed), checkout))) is found


@pytest.mark.parametrize("floor", [0.0, -1.0])
def test_a_floor_that_is_not_above_0_is_none(whole: RunRecord, checkout: Path, floor: float) -> None:
    record = with_latencies(whole, lambda m: replace(m, conditions={**m.conditions, "floor": floor}))
    assert "judged without a floor: burst.latency" in "\n".join(reasons_against(sealed(record), checkout))


def with_judgements(record: RunRecord, change: Callable[[JudgedMeasurement], JudgedMeasurement]) -> RunRecord:
    return replace(record, judgements=tuple(map(change, record.judgements)))


def test_a_floor_is_asked_of_goals_only(whole: RunRecord, checkout: Path) -> None:
    estimate = next(target.id for target in load_targets() if target.status is not Status.GOAL)
    record = with_judgements(unfloored(whole), lambda one: replace(one, target=estimate))
    assert "without a floor" not in "\n".join(reasons_against(sealed(record), checkout))


def test_a_floor_stands_beside_the_figure_or_in_the_judgement(whole: RunRecord, checkout: Path) -> None:
    def floor(one: JudgedMeasurement) -> JudgedMeasurement:
        limits = one.judgement.limits
        return replace(one, judgement=replace(one.judgement, limits=limits and replace(limits, floor=1e-9)))

    stated = with_judgements(unfloored(whole), floor)
    assert "without a floor" not in "\n".join(reasons_against(sealed(stated), checkout))
    beside = with_judgements(whole, lambda one: replace(one, judgement=replace(one.judgement, limits=None)))
    assert "without a floor" not in "\n".join(reasons_against(sealed(beside), checkout))


@pytest.mark.parametrize(
    ("samples", "value", "agrees"),
    [
        ((0.0, 0.0), 0.0, True),
        ((0.0, 0.0), 1e-9, False),
        ((0.0, 0.0), -1e-9, False),
        ((1.0, 2.0), 1.0 - NOISE, True),
        ((1.0, 2.0), 1.0 - 3 * NOISE, False),
        ((1.0, 2.0), 2.0 + NOISE, True),
        ((1.0, 2.0), 2.0 + 3 * NOISE, False),
    ],
)
def test_a_value_at_the_end_of_its_samples_agrees(
    whole: RunRecord, checkout: Path, samples: tuple[float, ...], value: float, agrees: bool
) -> None:
    """Rounding may move it by a share of the largest sample."""
    record = with_latencies(whole, lambda m: replace(m, value=value, samples=samples))
    assert ("outside the range of the samples" not in "\n".join(reasons_against(sealed(record), checkout))) is agrees


@pytest.mark.parametrize(("collected", "adds_up"), [(9, True), (8, False), (7, False)])
def test_cases_that_were_left_out_count_among_the_collected(
    whole: RunRecord, checkout: Path, collected: int, adds_up: bool
) -> None:
    """Eight are reported and one is left out, which is a reason of its own."""
    record = with_stage(whole, deselected=("a::b",), collected=collected)
    reasons = "\n".join(reasons_against(sealed(record), checkout))
    assert (f"collected {collected} cases and reports 8" not in reasons) is adds_up


def test_limits_are_held_against_the_judgement_where_they_are_stated(whole: RunRecord, checkout: Path) -> None:
    def limited(limits: Limits | None) -> str:
        record = with_judgements(whole, lambda one: replace(one, judgement=replace(one.judgement, limits=limits)))
        return "\n".join(reasons_against(sealed(record), checkout))

    assert "gives another result" not in limited(None)
    assert "gives another result" in limited(Limits("<=", None, 1e9))


def test_targets_are_those_of_the_checkout_of_this_package(whole: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def refuse(_: object, cwd: Path, **others: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(cwd)
        raise OSError("no git")

    monkeypatch.setattr(subprocess, "run", refuse)
    assert "cannot be read here: no git" in "\n".join(reasons_against(whole))
    assert (asked[0] / "reports" / "targets.toml").samefile(TARGETS)


@pytest.mark.thorough("edits and reads a run over and over")
def test_the_folder_counts_too(
    whole: RunRecord,
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(store, "reasons_against", lambda record: reasons_against(record, checkout))
    (tmp_path / "junit.xml").write_text("<testsuites/>")
    write_run(tmp_path, whole, ["junit.xml"])
    assert main(["admit", "--strict", str(tmp_path)]) == ExitCode.PASS
    assert capsys.readouterr().out == "may be quoted\n"
    (tmp_path / "report.html").write_text("another")
    (tmp_path / "junit.xml").unlink()
    assert [reason.split(":")[0] for reason in reasons_against_run(tmp_path)] == [
        "files of the run are not there",
        "report.html was drawn from another record; draw it again with",
    ]
    assert main(["admit", str(tmp_path)]) == ExitCode.PASS
    assert main(["admit", "--strict", str(tmp_path)]) == ExitCode.FAIL
    assert "not to be quoted, for 2 reasons:\n  files of the run" in capsys.readouterr().out


def test_an_edited_record_is_refused_with_what_was_edited(
    whole: RunRecord, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path, whole)
    path = tmp_path / "record.json"
    path.write_text(path.read_text("utf-8").replace('"git_dirty": false', '"git_dirty": true'), encoding="utf-8")
    assert main(["admit", "--strict", str(tmp_path)]) == ExitCode.FAIL
    assert "changed after it was written: its digests do not agree (got ['environment'])" in capsys.readouterr().out
    assert main(["admit", "--strict", str(tmp_path / "absent")]) == ExitCode.USAGE


def test_a_baseline_refers_to_the_whole_record(whole: RunRecord, checkout: Path, tmp_path: Path) -> None:
    write_baseline(tmp_path, whole)
    (reason,) = (one for one in reasons_against(load_run(tmp_path), checkout) if "thinned" in one)
    assert reason.endswith(f"seal {whole.seal}")


def test_of_a_thinned_record_verdicts_are_judged_again_and_intervals_are_not(
    whole: RunRecord, checkout: Path, tmp_path: Path
) -> None:
    """Samples of five digits give other ends; a verdict put right by hand is found all the same."""
    odd = with_latencies(whole, lambda m: replace(m, samples=tuple(one * 1.0000123 for one in m.samples)))
    bad = whitewashed(whole)
    for record, found in ((odd, False), (bad, True)):
        write_baseline(tmp_path, sealed(record))
        kept = load_run(tmp_path)
        assert ("gives another result" in "\n".join(reasons_against(kept, checkout))) is found
        assert "gives another result" in "\n".join(reasons_against(replace(kept, thinned_from=""), checkout))


def test_of_a_thinned_record_nobody_asks_whether_an_interval_straddles_the_limit(whole: RunRecord) -> None:
    """Its figures have to be the same, without the ends of the interval."""
    judgement = next(one.judgement for one in whole.judgements if one.judgement.interval is not None)
    assert judgement.interval is not None
    assert judgement.value is not None
    wider = replace(judgement.interval, high=2 * judgement.interval.high)
    code = ReasonCode.INTERVAL_STRADDLES_LIMIT
    straddling = replace(judgement, verdict=Verdict.AMBIGUOUS, reason_code=code, interval=wider)
    for said, again in ((judgement, straddling), (straddling, judgement)):
        assert _same(said, again, thinned=True)
        assert not _same(said, again, thinned=False)
        assert not _same(said, replace(again, value=2 * judgement.value), thinned=True)


def test_a_run_may_finish_in_the_second_in_which_it_began(whole: RunRecord, checkout: Path) -> None:
    record = sealed(replace(whole, finished_utc=whole.started_utc))
    assert "the clock was set" not in "\n".join(reasons_against(record, checkout))


def test_a_record_of_version_1_may_not_be_quoted() -> None:
    found = reasons_against(load_run(Path(store.__file__).parent / "baselines" / "h200-acceptance"))
    assert any("no digests" in reason for reason in found)
