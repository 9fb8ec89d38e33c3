"""How far a stage is: what has been written is read once, and the time left follows from an earlier run."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from stages.collected import CollectionNotes
from stages.console import Console
from stages.progress import Progress, earlier_durations, keep_durations
from suites.support.homeless import leave_home

pytestmark = pytest.mark.requirement("RE-7")


def finished(case: str, duration_s: float) -> str:
    return json.dumps({"case": case, "duration_s": duration_s}) + "\n"


def test_lines_are_read_once_and_half_a_line_waits(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    collection = tmp_path / "collected.json"
    progress = Progress(results, collection)
    progress.look()
    assert progress.line(1.0) == "0 cases"
    notes = CollectionNotes(collection)
    for name in "abcde":
        notes.pytest_itemcollected(cast(pytest.Item, SimpleNamespace(nodeid=name)))
    config = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugins=lambda: ()))
    items = [SimpleNamespace(nodeid=name, get_closest_marker=lambda _: None) for name in "abcde"]
    notes.pytest_collection_finish(cast(pytest.Session, SimpleNamespace(items=items, config=config)))
    results.write_text('{"started": "a"}\n' + finished("t.py::a", 2.0) + '{"case": "t.py::b"', encoding="utf-8")
    progress.look()
    assert progress.done == {"t.py::a": 2.0}
    with results.open("a", encoding="utf-8") as file:
        file.write(', "duration_s": 5.0}\n')
    progress.look()
    assert progress.done == {"t.py::a": 2.0, "t.py::b": 5.0}
    assert progress.line(7.0) == "2 of 5 cases, slowest b (5 s), about 10 s left"


def test_the_time_left_follows_from_the_earlier_run(tmp_path: Path) -> None:
    """Half of the earlier time took 20 s here, so 20 s are left; a machine twice as slow takes twice as long."""
    progress = Progress(tmp_path / "none", tmp_path / "none", {"a": 5.0, "b": 5.0, "c": 10.0})
    assert progress.left_s(0.0) == 20.0
    progress.done = {"a": 9.0, "b": 11.0}
    assert progress.left_s(20.0) == pytest.approx(20.0)
    assert progress.line(20.0) == "2 of 3 cases, slowest b (11 s), about 20 s left"


def test_cases_skipped_at_the_start_say_nothing_of_the_pace(tmp_path: Path) -> None:
    """A hundred skipped cases took 0.1 s of 100 s once; 30 s into the first long case nothing is known but the rest."""
    progress = Progress(tmp_path / "none", tmp_path / "none", {"a": 0.1, "b": 100.0}, done={"a": 0.1})
    assert progress.left_s(30.0) == pytest.approx(100.0)


def test_without_an_earlier_run_the_rate_tells(tmp_path: Path) -> None:
    progress = Progress(tmp_path / "none", tmp_path / "none", done={"a": 1.0})
    assert progress.left_s(10.0) is None
    progress.collected = 20
    assert progress.line(10.0) == "1 of 20 cases, slowest a (1 s), about 3 min left"


def test_durations_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert earlier_durations("stage4", "quick") == {}
    keep_durations("stage4", "quick", {"a": 1.23456})
    assert earlier_durations("stage4", "quick") == {"a": 1.235}
    assert earlier_durations("stage4", "thorough") == {}


def _in_its_place(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text, encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize(
    "damage",
    [
        _in_its_place('{"a": "x"}'),
        _in_its_place("[" * 200_000),
        _in_its_place('{"a": 1' + "0" * 400 + "}"),
        _in_its_place('{"a": 1' + "0" * 5000 + "}"),
        _in_its_place('{"a": NaN}'),
        _in_its_place('{"a": 1e999}'),
        _in_its_place('{"a": -1.0}'),
        _in_its_place('{"a": 1.0}' + " " * 2**24),
        lambda file: file.write_bytes(b'{"\xff": 1.0}'),
        lambda file: file.mkdir(),
        lambda file: file.symlink_to("/dev/zero"),
        lambda file: os.mkfifo(file),
    ],
    ids=["text", "deep", "large", "digits", "nan", "inf", "negative", "long", "bytes", "folder", "zeros", "pipe"],
)
def test_a_damaged_file_of_durations_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_durations("stage4", "quick", {"a": 1.0})
    (file,) = tmp_path.rglob("stage4-quick.json")
    file.unlink()
    damage(file)
    assert earlier_durations("stage4", "quick") == {}


def test_without_a_home_no_durations_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_home(monkeypatch)
    keep_durations("stage4", "quick", {"a": 1.0})
    assert earlier_durations("stage4", "quick") == {}


def test_a_log_gets_a_line_now_and_then(tmp_path: Path) -> None:
    out = io.StringIO()
    console = Console(out, every_s=30.0)
    progress = Progress(tmp_path / "none", tmp_path / "none", collected=9)
    for elapsed in (0.5, 29.0, 30.0, 45.0, 61.0):
        console.stage_goes_on(progress, elapsed)
    assert out.getvalue() == "  0 of 9 cases\n" * 2


def test_a_terminal_has_one_line_that_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the case is cut, so that it stays one line and shows the time left; what is said next replaces it."""
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    progress = Progress(tmp_path / "none", tmp_path / "none", done={"t.py::" + "long" * 20: 3.0}, collected=3)
    console = Console(out)
    for _ in range(2):
        console.stage_goes_on(progress, 1.0)
    first, second = out.getvalue().split("\r")[1:]
    assert first == second == "  1 of 3 cases, slowest longlonglo... (3 s), about 2 s left\x1b[K"
    console.say("Interrupted")
    assert out.getvalue().endswith("\x1b[K\r\x1b[KInterrupted\n")
