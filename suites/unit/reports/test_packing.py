"""The packed form of a record: smaller, declared in the schema, and whole again when it is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.errors import InputError
from reports import packing, serialise
from reports.measurement import CaseResult, Measurement, Outcome
from reports.record import RunRecord
from reports.store import load_run
from suites.support.sample_record import sample_record
from suites.unit.reports.test_record import SCHEMA

pytestmark = pytest.mark.requirement("RE-1", "RE-4")

BASELINES = Path(serialise.__file__).parent / "baselines"
COMMITTED = sorted(path.parent for path in BASELINES.glob("*/record.json"))
MOST_BYTES = 400_000
NAMES = st.text(alphabet="abc[]-: ", min_size=1, max_size=12)


def _passed(name: str, **more: object) -> CaseResult:
    return CaseResult(name, "stage4", ("BE-1",), Outcome.PASSED, **more)  # type: ignore[arg-type]


def _by_id(record: RunRecord) -> RunRecord:
    return replace(record, cases=tuple(sorted(record.cases, key=lambda case: case.case)))


@pytest.mark.parametrize("gpu", [True, False])
def test_a_packed_record_is_read_whole(gpu: bool) -> None:
    record = sample_record(gpu=gpu)
    text = serialise.dumps_packed(record)
    jsonschema.validate(json.loads(text), SCHEMA)
    again = serialise.loads(text)
    assert repr(_by_id(again)) == repr(_by_id(record))
    assert serialise.dumps_packed(again) == text
    assert len(text) < 0.5 * len(serialise.dumps(record))


def test_unpacked_it_fits_the_schema_of_a_whole_record() -> None:
    document = json.loads(serialise.dumps_packed(sample_record()))
    whole = packing.unpack(document, 1, "record")
    jsonschema.validate(whole, SCHEMA)
    function = {"$ref": "#/$defs/function", "$defs": SCHEMA["$defs"]}
    reader = packing.pack(whole)
    assert reader == document
    plain = [case for case in whole["cases"] if packing.is_plain(case)]
    for item in packing.functions(plain):
        jsonschema.validate(item, function)


@settings(deadline=None, max_examples=60)
@given(st.lists(NAMES, unique=True, max_size=12), st.lists(st.sampled_from([(), ("BE-1",), ("BE-5", "ST-6")])))
def test_any_ids_and_requirements_survive(names: list[str], own: list[tuple[str, ...]]) -> None:
    figures = tuple(Measurement("m", 1.0, "ms", requirements=ids, note="a note that stands often") for ids in own)
    cases = (*(_passed(name, duration_s=0.5) for name in names), _passed("last", measurements=figures))
    record = replace(sample_record(), cases=cases, judgements=())
    again = serialise.loads(serialise.dumps_packed(record))
    assert _by_id(again) == _by_id(record)


def test_cases_that_did_not_pass_stand_in_words() -> None:
    document = json.loads(serialise.dumps_packed(sample_record()))
    whole = serialise.loads(json.dumps(document))
    bad = [case for case in whole.cases if case.outcome is not Outcome.PASSED]
    assert len(document["cases"]) >= len(bad) > 0
    assert all(case.reason for case in bad)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda d: d.pop("shared"), "list shared"),
        (lambda d: d.update(shapes={}), "list shapes"),
        (lambda d: d["cases"].append({"$": 10_000}), "reference to nothing"),
        (lambda d: d["cases"].append({"$": -1}), "reference to nothing"),
        (lambda d: d["cases"].append({"$x": []}), "reference to nothing"),
        (lambda d: d["cases"].append({"$0": []}), "reference to nothing"),
        (lambda d: d.update(shared=[{"$": 0}]) or d["cases"].append({"$": 0}), "reference to nothing"),
        (lambda d: d["cases"].append("text"), "not a case"),
        (lambda d: d["passed"].append({"test": "t"}), "not a test function"),
        (lambda d: d["passed"].append({"test": "t", "stage": "s", "requirements": [], "parameters": [["a", "b"]],
                                       "durations_s": []}), "not a test function"),
    ],
)  # fmt: skip
def test_a_damaged_one_is_named(damage, named: str) -> None:
    document = json.loads(serialise.dumps_packed(sample_record()))
    damage(document)
    with pytest.raises(InputError, match=named):
        serialise.loads(json.dumps(document))


def test_a_name_that_looks_like_a_reference_is_refused() -> None:
    case = _passed("a", measurements=(Measurement("m", 1.0, "ms", conditions={"$0": 1}),))
    with pytest.raises(InputError, match="must not begin"):
        serialise.dumps_packed(replace(sample_record(), cases=(case,), judgements=()))


@pytest.mark.parametrize("folder", COMMITTED, ids=lambda path: path.name)
def test_committed_records_fit_the_schema_and_are_small(folder: Path) -> None:
    text = (folder / "record.json").read_text(encoding="utf-8")
    jsonschema.validate(json.loads(text), SCHEMA)
    assert len(text.encode()) <= MOST_BYTES
    assert load_run(folder).cases
