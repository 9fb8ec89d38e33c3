"""The record: written whole, read back equal, valid against its schema, refused where damaged."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.errors import EnvironmentInvalidError, InputError
from reports import store
from reports.store import load_run, write_run
from reports.values.measurement import CaseResult, Measurement, Outcome
from reports.values.record import RunRecord
from suites.support.sample_record import VALIDATOR, sample_record

pytestmark = pytest.mark.requirement("RE-1")
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


@pytest.mark.parametrize("name", ["absent.xml", "../outside.xml"])
def test_attachment_must_be_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.xml").write_text("x")
    folder = tmp_path / "run"
    with pytest.raises(InputError, match="attachment"):
        write_run(folder, SAMPLES[0], [name])
    assert not (folder / "record.json").exists()


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
        (lambda d: d["cases"][0].update(duration_s=10**400), r"cases\[0\].duration_s"),
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


def test_json_of_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match="not a record"):
        load_run(tmp_path)


def test_a_record_that_unpacks_to_far_more_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LARGEST_RECORD_BYTES", 1000)
    (tmp_path / "record.json.gz").write_bytes(gzip.compress(bytes(1001)))
    with pytest.raises(InputError, match=r"too large.*1000 bytes"):
        load_run(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"schema_version": 1}', "[" * 100_000])
def test_no_record_at_all(text: str) -> None:
    with pytest.raises(InputError):
        store.loads(text)


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
