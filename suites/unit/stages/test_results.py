"""Lines of results and notes of a collection, written and read in this process: what is lost or changed is found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from reports.values.measurement import CaseResult, Outcome
from stages.collected import (
    Collection,
    CollectionNotes,
    loaded_plugins,
    longest_limit_s,
    read_collection,
    unaccounted,
    uncollected,
)
from stages.results import CaseLines, ResultLines, read_lines, reopen

pytestmark = pytest.mark.requirement("RE-2")

GOOD = CaseResult("a", "stage1", (), Outcome.PASSED)
ROOT = Path("/checkout")


def session(*kept: str, plugins: tuple[object, ...] = (), limit_s: float | None = None) -> pytest.Session:
    """A session that keeps these cases; the first has a time limit of its own, if one is given."""

    def mark(place: int) -> pytest.Mark | None:
        return pytest.mark.time_limit(limit_s).mark if limit_s is not None and place == 0 else None

    items = [
        SimpleNamespace(nodeid=name, get_closest_marker=lambda _, place=place: mark(place))
        for place, name in enumerate(kept)
    ]
    manager = SimpleNamespace(get_plugins=lambda: plugins)
    return cast(
        pytest.Session, SimpleNamespace(items=items, config=SimpleNamespace(pluginmanager=manager, rootpath=ROOT))
    )


def noted(path: Path, found: list[str], finished: pytest.Session, begun: tuple[str, ...] = ()) -> Collection | None:
    notes = CollectionNotes(path, begun)
    for name in found:
        notes.pytest_itemcollected(cast(pytest.Item, SimpleNamespace(nodeid=name)))
    notes.pytest_collection_finish(finished)
    return read_collection(path)


def test_a_whole_file_reads_as_written(tmp_path: Path) -> None:
    path = tmp_path / "run" / "stage1" / "results.jsonl"
    assert read_lines(path) == CaseLines()
    lines = ResultLines(path)
    lines.started("a")
    lines.started("b")
    assert read_lines(path) == CaseLines(unfinished=("a", "b"))
    lines.finished(GOOD)
    assert read_lines(path) == CaseLines((GOOD,), ("b",))
    lines.finished(replace(GOOD, case="b"))
    lines.close()
    assert read_lines(path) == CaseLines((GOOD, replace(GOOD, case="b")), closed=True)
    assert json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["end"] == 4


@pytest.mark.parametrize("closed", [True, False])
def test_a_file_goes_on_with_all_its_cases(tmp_path: Path, closed: bool) -> None:
    """What never ended is forgotten: it begins again."""
    path = tmp_path / "results.jsonl"
    lines = ResultLines(path)
    lines.started("a::z")
    for name in "a::x", "a::y":
        lines.started(name)
        lines.finished(replace(GOOD, case=name))
    if closed:
        lines.close()
    else:
        lines.let_go()
    reopen(path, ["a::z"])
    found = read_lines(path)
    assert ([case.case for case in found.cases], found.damage, found.closed) == (["a::x", "a::y"], "", False)
    assert found.unfinished == ()


def test_a_case_without_a_beginning_counts(tmp_path: Path) -> None:
    lines = ResultLines(tmp_path / "results.jsonl")
    lines.finished(GOOD)
    assert read_lines(tmp_path / "results.jsonl").cases == (GOOD,)


@pytest.mark.parametrize(
    "change",
    ["", "no JSON", "[1]", '{"line": 3}', "[" * 100_000],
    ids=["number", "text", "list", "no checksum", "nested"],
)
def test_reading_stops_at_the_first_damaged_line(tmp_path: Path, change: str) -> None:
    path = tmp_path / "results.jsonl"
    lines = ResultLines(path)
    lines.finished(GOOD)
    lines.started("b")
    lines.finished(replace(GOOD, case="c"))
    lines.finished(replace(GOOD, case="d"))
    written = path.read_text(encoding="utf-8").splitlines()
    written[2] = change or written[3]
    path.write_text("\n".join([*written, ""]), encoding="utf-8")
    found = read_lines(path)
    assert (found.cases, found.unfinished, found.closed) == ((GOOD,), ("b",), False)
    assert found.damage == "results.jsonl is damaged: line 3 is not what was written; 1 cases precede it"


def test_nothing_may_follow_the_end(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    closed = ResultLines(path)
    closed.close()
    with pytest.raises(ValueError, match="closed file"):
        closed.started("a")
    ResultLines(path).started("a")
    found = read_lines(path)
    assert "line 2" in found.damage
    assert not found.closed


def test_what_was_collected_and_left_out_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "collected.json"
    assert read_collection(path) is None
    found = noted(path, ["a::x", "a::y", "a::z"], session("a::x"), begun=("a::z",))
    assert found is not None
    assert (found.collected, found.deselected) == (("a::x", "a::y", "a::z"), ("a::y",))
    assert (found.plugins, found.longest_limit_s) == ((), None)
    assert [file.name for file in path.parent.iterdir()] == ["collected.json"]
    assert noted(path, ["a::x"], session("a::x")) == replace(
        found, collected=("a::x",), deselected=(), sha256=json.loads(path.read_text(encoding="utf-8"))["sha256"]
    )


def gated(gates: dict[str, str]) -> list[pytest.Item]:
    return [
        cast(pytest.Item, SimpleNamespace(nodeid=name, iter_markers=lambda _, gate=gate: [pytest.mark.gate(gate).mark]))
        for name, gate in gates.items()
    ]


def test_what_was_begun_is_not_run_again_and_what_waits_for_a_later_process_not_yet(tmp_path: Path) -> None:
    items = gated({"a::x": "gpu", "a::y": "gpu", "a::z": "multi_gpu"})
    CollectionNotes(tmp_path / "collected.json", ["a::x"]).pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["a::y", "a::z"]
    CollectionNotes(tmp_path / "collected.json", later="multi_gpu").pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["a::y"]


def test_a_process_for_what_is_asked_for_first_runs_the_cases_of_its_gate_that_are_named(tmp_path: Path) -> None:
    items = gated({"a::x": "gpu", "a::y": "multi_gpu", "a::z": "multi_gpu", "b::z": "gpu"})
    notes = CollectionNotes(tmp_path / "collected.json", sooner="multi_gpu", first=("::z", "no such"))
    notes.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["a::z"]


def test_notes_that_were_changed_are_none(tmp_path: Path) -> None:
    path = tmp_path / "collected.json"
    assert noted(path, ["a::x", "a::y"], session("a::x")) is not None
    text = path.read_text(encoding="utf-8")
    for changed in (text.replace('"a::y"', '"a::z"', 1), text.replace("collected", "selected", 1), text[:-9]):
        path.write_text(changed, encoding="utf-8")
        assert read_collection(path) is None


def test_the_longest_limit_is_the_cases_or_the_default(tmp_path: Path) -> None:
    path = tmp_path / "collected.json"
    assert longest_limit_s(path, 60.0) == 60.0
    assert longest_limit_s(path, 0.5) == 0.5
    noted(path, ["a::x"], session("a::x", "a::y"))
    assert longest_limit_s(path, 60.0) == 60.0
    noted(path, ["a::x"], session("a::x", "a::y", limit_s=90.0))
    assert longest_limit_s(path, 60.0) == 90.0
    assert longest_limit_s(path, 120.0) == 120.0


def test_plugins_of_others_are_named() -> None:
    def module(name: str, file: str | None) -> ModuleType:
        made = ModuleType(name)
        made.__file__ = file
        return made

    plugins = (
        module("_pytest.main", "/p/main.py"),
        module("stages.plugin", "/checkout/stages/plugin.py"),
        module("xdist.plugin", "/p/xdist/plugin.py"),
        module("xdist.looponfail", None),
        module("conftest", "/checkout/part1/conftest.py"),
        module("conftest", "/elsewhere/conftest.py"),
        object(),
        GOOD,
    )
    found = loaded_plugins(session(plugins=plugins).config)
    assert found == ("/elsewhere/conftest.py", "part1/conftest.py", "reports", "xdist")


def test_each_count_that_does_not_add_up_is_said_once() -> None:
    collection = Collection(("a::v", "a::w", "a::x", "a::y", "a::z"), ("a::z",), (), None, "")
    assert unaccounted(collection, ["a::v", "a::w", "a::x", "a::y"]) == ""
    assert unaccounted(collection, ["a::q", "a::y", "a::y", "b.py"]) == (
        "5 cases collected, 1 deselected, 3 reported; a::v and 2 more without a result; "
        "a::q never collected; a::y reported twice"
    )


@pytest.mark.parametrize(
    ("reported", "said"),
    [
        (["a::x"], "a::y without a result"),
        (["a::x", "a::y", "a::q"], "a::q never collected"),
        (["a::x", "a::y", "a::y"], "a::y reported twice"),
    ],
)
def test_one_count_alone_that_does_not_add_up_is_said(reported: list[str], said: str) -> None:
    assert unaccounted(Collection(("a::x", "a::y"), (), (), None, ""), reported).endswith(f"; {said}")


def test_functions_that_nobody_collected(tmp_path: Path) -> None:
    suite = tmp_path / "part1"
    suite.mkdir()
    (suite / "test_a.py").write_text(
        "import pytest\n"
        "@pytest.fixture\ndef test_data(): ...\n"
        "@pytest.mark.parametrize('n', [1])\ndef test_one(n): ...\n"
        "def test_two(): ...\ndef helper(): ...\n"
        "class TestGroup:\n    def test_in(self): ...\n    def other(self): ...\n"
        "class Helper:\n    def test_no(self): ...\n",
        encoding="utf-8",
    )
    (suite / "test_broken.py").write_text("def test_it(:\n", encoding="utf-8")
    (suite / "test_skipped.py").write_text("def test_it(): ...\n", encoding="utf-8")
    (suite / "tools.py").write_text("def test_it(): ...\n", encoding="utf-8")
    collection = Collection(("part1/test_a.py::test_one[1]",), (), (), None, "")
    found = uncollected(tmp_path, ["part1"], collection, ["part1/test_skipped.py"])
    assert found == ("part1/test_a.py::test_two", "part1/test_a.py::TestGroup::test_in")


def test_functions_that_another_of_their_name_hides(tmp_path: Path) -> None:
    """However often a name is defined, one of its functions is collected."""
    (tmp_path / "part1").mkdir()
    source = "def test_one(): ...\n" * 2 + "def test_two(): ...\n" * 3 + "def test_three(): ...\n"
    (tmp_path / "part1" / "test_a.py").write_text(source, encoding="utf-8")
    names = [f"part1/test_a.py::test_{number}" for number in ("one", "two", "three")]
    found = uncollected(tmp_path, ["part1"], Collection(tuple(names), (), (), None, ""), [])
    assert found == (f"{names[0]}, defined twice", f"{names[1]}, defined twice")
