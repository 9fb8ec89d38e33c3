"""The record: written whole, read back equal, valid against its schema, refused where damaged."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.errors import EnvironmentInvalidError, ExitCode, InputError
from reports import store
from reports.command import main
from reports.standing import standing
from reports.store import dumps, load_history, load_records, load_run, loads, write_baseline, write_run
from reports.values.machine import Machine, machine_of
from reports.values.measurement import CaseResult, Measurement, Outcome
from reports.values.record import RunRecord
from reports.values.seal import digests_of
from suites.support.sample_record import VALIDATOR, sample_record

pytestmark = pytest.mark.requirement("RE-1")
ROOT = Path(__file__).parents[3]
SAMPLES = [sample_record(gpu=gpu, faults=faults) for gpu in (True, False) for faults in (True, False)]


def with_figure(measurement: Measurement) -> RunRecord:
    case = CaseResult("case", "stage6", ("BE-5",), Outcome.PASSED, measurements=(measurement,))
    return replace(SAMPLES[3], cases=(case,), judgements=())


@pytest.mark.parametrize("record", SAMPLES)
def test_round_trip_and_schema(record: RunRecord) -> None:
    text = store.dumps(record)
    VALIDATOR.validate(json.loads(text))
    again = store.loads(text)
    assert store.dumps(again) == text
    assert again.judgements == record.judgements
    assert again.stages == record.stages


@settings(deadline=None)
@given(
    st.one_of(st.none(), st.floats()),
    st.lists(st.floats(), max_size=4),
    st.one_of(st.text(), st.floats(), st.integers(), st.booleans()),
)
def test_any_figure_survives(value: float | None, samples: list[float], condition: str | float | bool) -> None:
    record = with_figure(Measurement("m", value, "ms", tuple(samples), {"condition": condition}))
    text = store.dumps(record)
    VALIDATOR.validate(json.loads(text))
    (case,) = store.loads(text).cases
    (found,) = case.measurements
    assert repr(found.value) == repr(value)
    assert len(found.samples) == len(samples)
    for got, given_sample in zip(found.samples, samples, strict=True):
        assert got == given_sample or (math.isnan(got) and not math.isfinite(given_sample))


def test_schema_refuses_an_unmarked_gap() -> None:
    document = json.loads(store.dumps(with_figure(Measurement("m", math.nan, "ms"))))
    document["cases"][0]["measurements"][0]["validity"] = "ok"
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)


def test_run_folder(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text("<testsuites/>")
    (tmp_path / "benchmark.json").write_text("{}")
    written = write_run(tmp_path, SAMPLES[0], ["junit.xml", "benchmark.json"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "benchmark.json",
        "junit.xml",
        "record.json",
        "report.html",
    ]
    assert load_run(tmp_path).attachments == written.attachments
    junit = written.attachments[0]
    assert (junit.sha256, junit.size_bytes) == (hashlib.sha256(b"<testsuites/>").hexdigest(), 13)
    document = json.loads((tmp_path / "record.json").read_text())
    assert document["summary"] == {"verdict": "FAIL", "exit_code": 1}


@pytest.mark.parametrize(("folder", "called"), [("baselines", "one"), ("runs", "plan")])
def test_what_lies_under_baselines_is_called_by_its_folder(folder: str, called: str, tmp_path: Path) -> None:
    """The run may have been called ``plan`` where it was made; it stays the same run as its baseline."""
    record = loads(dumps(replace(sample_record(), run_id="plan")))
    write_baseline(tmp_path / folder / "one", record)
    kept = load_run(tmp_path / folder / "one")
    assert (kept.run_id, kept.origin) == (called, record.origin)
    (listed,) = load_history(tmp_path / folder).machines[0].runs
    assert listed.run_id == called
    assert standing(record, [kept]) == standing(record, [])


@pytest.mark.parametrize("name", ["absent.xml", "../outside.xml"])
def test_attachment_must_be_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.xml").write_text("x")
    folder = tmp_path / "run"
    with pytest.raises(InputError, match="attachment"):
        write_run(folder, SAMPLES[0], [name])
    assert not (folder / "record.json").exists()


def nested(levels: int) -> list[object]:
    return [nested(levels - 1)] if levels else []


def measured(document):
    """The first measurement of the first case that has one."""
    return next(case["measurements"][0] for case in document["cases"] if case["measurements"])


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda d: d.update(schema_version=99), "schema version"),
        (lambda d: d.pop("cases"), "digests.*'cases', 'samples'"),
        (lambda d: d.pop("run_id"), "run_id"),
        (lambda d: d.update(extra=1), "extra"),
        (lambda d: d["cases"][0].update(outcome="fine"), r"cases\[0\].outcome"),
        (lambda d: d["stages"][2].update(gate_open=1), r"stages\[2\].gate_open"),
        (lambda d: d["cases"][0].update(duration_s="long"), r"cases\[0\].duration_s"),
        (lambda d: d["cases"][0].update(duration_s=10**400), "a number of 401 digits"),
        (lambda d: d["hardware"].update(nested=nested(20)), "hardware: nested too deeply"),
        (lambda d: d["cases"][0].update(reason="\ud800"), "not a record.*surrogates"),
        (lambda d: measured(d).update(validity=[]), r"measurements\[0\].validity"),
        (lambda d: measured(d).update(validity="fine"), r"measurements\[0\].validity"),
        (lambda d: d.update(command="pytest"), "command"),
        (lambda d: d["environment"].update(packages=[]), "environment.packages"),
    ],
)
def test_a_damaged_record_is_named(damage, named: str) -> None:
    document = json.loads(store.dumps(SAMPLES[0]))
    damage(document)
    with pytest.raises(InputError, match=named):
        store.loads(json.dumps(document))


@pytest.mark.parametrize("index", [-1, 1, 10**9])
def test_a_judgement_about_a_figure_that_its_case_does_not_have_is_refused(index: int) -> None:
    """Sealed anew, so that nothing but the index is wrong."""
    document = json.loads(store.dumps(SAMPLES[0]))
    alone = [case["case"] for case in document["cases"] if len(case["measurements"]) == 1]
    judged = next(one for one in document["judgements"] if one["case"] in alone)
    judged["index"] = index
    document["digests"] = digests_of(document)
    with pytest.raises(InputError) as refused:
        store.loads(json.dumps(document))
    assert judged["case"] in refused.value.problem
    assert (refused.value.got, refused.value.allowed) == (index, "0 to 0")


def test_a_record_that_unpacks_to_far_more_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LARGEST_RECORD_BYTES", 1000)
    (tmp_path / "record.json.gz").write_bytes(gzip.compress(bytes(1001)))
    with pytest.raises(InputError, match=r"too large.*1000 bytes"):
        load_run(tmp_path)


def test_a_record_may_grow_by_a_bounded_ratio(tmp_path: Path) -> None:
    """As text that repeats itself does; a record of real samples gives 7 to 31 bytes for one."""
    packed = gzip.compress(b" " * (8 << 20))
    (tmp_path / "record.json.gz").write_bytes(packed)
    allowed = max(1 << 20, 200 * len(packed))
    assert allowed < 8 << 20
    with pytest.raises(InputError, match=f"too large.*{allowed} bytes"):
        load_run(tmp_path)


HOSTILE = {
    "empty": b"",
    "a list": b"[]",
    "cut short": b"{",
    "null": b"null",
    "no fields": b'{"schema_version": 1}',
    "deep": b"[" * 100_000,
    "5000 digits": b'{"schema_version": ' + b"9" * 5000 + b"}",
    "an infinite number": b'{"schema_version": 1e999}',
    "NaN": b'{"schema_version": NaN}',
    "UTF-16": b"\xff\xfe{\0}\0",
    "Latin-1": b'{"run_id": "\xe9"}',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_record_is_one_sentence_and_exit_4(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "record.json").write_bytes(content)
    for action in ("render", "goals"):
        assert main([action, str(tmp_path)]) == ExitCode.USAGE
        said = capsys.readouterr()
        assert said.err.startswith(f"error: {tmp_path / 'record.json'}: ")
        assert said.err.count("\n") == 1


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_history_goes_on_beside_what_is_no_record(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "good", SAMPLES[0])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "record.json").write_bytes(content)
    assert main(["history", str(tmp_path)]) == ExitCode.PASS
    assert "could not be read: bad: " in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux alone")
def test_a_folder_whose_name_is_no_unicode_is_named_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "good", SAMPLES[0])
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xff"))
    odd.mkdir()
    (odd / "record.json").write_text("{", encoding="utf-8")
    assert main(["history", str(tmp_path)]) == ExitCode.PASS
    assert "could not be read: run\\udcff: " in capsys.readouterr().out


def test_a_reason_that_is_no_unicode_does_not_cost_the_record(tmp_path: Path) -> None:
    broken = replace(SAMPLES[0].cases[0], reason="a file named \udcff")
    write_run(tmp_path, replace(SAMPLES[0], cases=(broken, *SAMPLES[0].cases[1:])))
    assert load_run(tmp_path).cases[0].reason == "a file named \\udcff"


def test_a_file_beside_the_record_that_was_changed_is_named(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text("<testsuites/>")
    write_run(tmp_path, SAMPLES[0], ["junit.xml"])
    (tmp_path / "junit.xml").write_text("<testsuites></testsuites>")
    with pytest.raises(InputError, match=r"changed after.*'junit.xml'"):
        load_run(tmp_path)
    (tmp_path / "junit.xml").unlink()
    assert store.missing_attachments(tmp_path, load_run(tmp_path)) == ("junit.xml",)


def test_the_report_names_its_record(tmp_path: Path) -> None:
    written = write_run(tmp_path, SAMPLES[0])
    assert written == load_run(tmp_path)
    assert f'<meta name="record-seal" content="{written.seal}">' in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.thorough("seconds")
@pytest.mark.skipif(sys.platform == "win32", reason="a process is killed by a signal")
@pytest.mark.parametrize("before", ["record.json", "report.html"])
def test_a_run_killed_between_its_files_has_no_report_of_another_record(tmp_path: Path, before: str) -> None:
    write_run(tmp_path, SAMPLES[0])
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom reports import store\n"
        "from suites.support.sample_record import sample_record\nwrite = store.write_text\n"
        "def killed(path, text):\n"
        f"    os.kill(os.getpid(), signal.SIGKILL) if path.name == {before!r} else write(path, text)\n"
        "store.write_text = killed\nstore.write_run(Path(sys.argv[1]), sample_record(gpu=False))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "impl"), str(ROOT)])}
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    expected = SAMPLES[0] if before == "record.json" else sample_record(gpu=False)
    assert load_run(tmp_path).run_id == expected.run_id
    assert not (tmp_path / "report.html").exists()
    assert main(["render", str(tmp_path)]) == ExitCode.PASS
    assert load_run(tmp_path).seal in (tmp_path / "report.html").read_text("utf-8")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(EnvironmentInvalidError, match=f"{folder}.*cannot be made"):
            store.write_run(folder, SAMPLES[0])


def test_write_leaves_the_old_file_on_failure(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    store.write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        store.write_text(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_attachment_that_no_file_system_can_hold_is_refused_and_stops_no_history(tmp_path: Path) -> None:
    document = json.loads(dumps(sample_record()))
    document["attachments"] = [{"path": "a" * 5000, "sha256": "0" * 64, "size_bytes": 1}]
    document["digests"] = digests_of(document)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "record.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot be read: .*too long"):
        load_run(tmp_path / "bad")
    assert [name for name, _ in load_records(tmp_path)[1]] == ["bad"]


def test_of_machines_of_other_classes_nothing_is_read(tmp_path: Path) -> None:
    """Neither are their records taken, nor is what is wrong with them told; what names no machine is looked at."""
    with_gpu, without = sample_record(), sample_record(gpu=False)
    for name, record in (("gpu", with_gpu), ("cpu", without)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text(dumps(replace(record, attachments=())), encoding="utf-8")
    for name, hardware in (("changed", with_gpu.hardware), ("nameless", None)):
        document = json.loads(dumps(sample_record())) | {"run_id": "changed since", "hardware": hardware}
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text(json.dumps(document), encoding="utf-8")

    def read(*machines: Machine) -> tuple[list[bool], list[str]]:
        records, unreadable = load_records(tmp_path, machines)
        return [bool(record.hardware["gpus"]) for record in records], [name for name, _ in unreadable]

    assert read() == ([False, True], ["changed", "nameless"])
    assert read(machine_of(without)) == ([False], ["nameless"])
    assert read(machine_of(with_gpu)) == ([True], ["changed", "nameless"])
    assert read(machine_of(with_gpu), machine_of(without)) == read()
