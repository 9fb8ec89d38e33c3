"""Whatever is taken for a record can be drawn, followed, thinned and judged; what cannot is refused on the way in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path as File

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.errors import BurstproofError, ExitCode
from reports import store
from reports.command import main
from reports.compared import markdown
from reports.html import render
from reports.judge.admit import reasons_against
from reports.judge.compare import compare
from reports.judge.goals import goal_lines, goal_rows
from reports.judge.history import history_of
from reports.judge.summary import first_line
from reports.judge.thinning import thin
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-1", "RE-3")

Path = tuple[str | int, ...]
NUMBERS = (0, -1, 1e308, -1e308, 5e-324, 10**300)
TEXTS = ("", "\x1b[31m", "<script>", "x" * 5000, "\u202e", "NaN")
OTHERS = (None, True, [], {}, [None], [[]], {"a": {"b": [1, [2]]}})


def unsealed() -> dict[str, object]:
    """A record of version 1: nobody has to seal it to have it read."""
    document = json.loads(store.dumps(sample_record()))
    for name in ("digests", "invocations", "judged", "thinned_from", "plan"):
        del document[name]
    return {**document, "schema_version": 1}


def places(value: object, path: Path = ()) -> Iterator[Path]:
    """The path of every value in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


DOCUMENT = unsealed()
BY_SHAPE: dict[Path, list[Path]] = {}
for place in places(DOCUMENT):
    BY_SHAPE.setdefault(tuple("#" if isinstance(step, int) else step for step in place), []).append(place)
SHAPES = sorted((shape for shape in BY_SHAPE if shape not in ((), ("schema_version",))), key=repr)


def edited(document: dict[str, object], place: Path, value: object) -> None:
    inner: object = document
    for step in place[:-1]:
        inner = inner[step]  # type: ignore[index]
    inner[place[-1]] = value  # type: ignore[index]


def check(place: Path, value: object) -> None:
    """The sample record with another value at ``place`` is refused, or read by everything that reads records."""
    document = deepcopy(DOCUMENT)
    edited(document, place, value)
    try:
        record = store.loads(json.dumps(document))
    except BurstproofError:
        return
    for drawn in (render(record), first_line(record), *goal_lines(goal_rows(record)), store.dumps(thin(record))):
        assert isinstance(drawn, str)
    assert reasons_against(record)
    assert history_of([record]).machines


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.data())
@pytest.mark.thorough("draws forty records")
def test_a_record_with_one_odd_value_is_refused_or_read_whole(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(BY_SHAPE[data.draw(st.sampled_from(SHAPES))]))
    before: object = DOCUMENT
    for step in place:
        before = before[step]  # type: ignore[index]
    alike = NUMBERS if isinstance(before, int | float) else TEXTS if isinstance(before, str) else OTHERS
    check(place, data.draw(st.sampled_from(alike)))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("hardware",), {}),
        (("hardware",), {"gpus": [{"uuid": 1}, 3], "host": []}),
        (("judgements", 40, "judgement", "interval", "low"), 5e-324),
        (("judgements", 0, "case"), "gone"),
        (("judgements", 0, "index"), 10**30),
    ],
)
def test_values_that_fit_their_type_and_nothing_else(place: Path, value: object) -> None:
    check(place, value)


def test_no_control_character_of_a_record_reaches_a_page_or_markdown() -> None:
    record = replace(sample_record(), run_id="a\x1b[31m\u202e<b>`\n# x")
    for text in (render(record), markdown(compare([record], [sample_record()]))):
        assert "\\x1b[31m\\u202e&lt;b" in text
        assert not {"\x1b", "\u202e"} & set(text)
        assert "<b>" not in text


@pytest.mark.parametrize("name", ["record.json", "record.json.gz"])
def test_a_page_never_takes_the_place_of_a_record(
    tmp_path: File, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write_run(tmp_path, sample_record())
    before = (tmp_path / "record.json").read_bytes()
    assert main(["render", str(tmp_path), "--out", str(tmp_path / name)]) == ExitCode.USAGE
    assert "a record is written by its run alone" in capsys.readouterr().err
    assert (tmp_path / "record.json").read_bytes() == before
