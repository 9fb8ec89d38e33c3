"""No case is lost on the way to the record: none dropped by options, conftests or plugins, none lost from results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from reports.judge.summary import first_line
from reports.judge.verdict import run_verdict
from reports.store import load_run
from reports.values.measurement import CaseResult, Outcome, Verdict
from stages.collected import Collection, unaccounted
from stages.command import main
from stages.results import ResultLines, numbered, read_lines
from suites.support.small_plan import MARK, Checkout, run

pytestmark = [pytest.mark.requirement("RE-2"), pytest.mark.thorough("starts runs of its own: seconds each")]

TWO = MARK + "def test_one(): pass\ndef test_two(): pass\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PYTEST_ADDOPTS", "-k one"),
        ("PYTEST_PLUGINS", "no_such_plugin"),
        ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"),
        ("PYTHONOPTIMIZE", "1"),
        ("PYTHONWARNINGS", "error"),
        ("PYTHONINSPECT", "1"),
        ("PYTHONIOENCODING", "utf-16"),
    ],
)
def test_variables_neither_narrow_nor_alter_a_run(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """What was ignored stands in the record."""
    monkeypatch.setenv(name, value)
    source = TWO + "def test_timed(benchmark): benchmark.pedantic(sum, ([1],), rounds=1)\ndef test_assertions(): "
    code, _, record = run(checkout(source + "assert __debug__\n"))
    assert code == ExitCode.PASS
    assert [case.outcome for case in record.cases] == [Outcome.PASSED] * 4
    assert (record.stages[0].collected, record.stages[0].deselected) == (4, ())
    assert record.environment.variables[name] == f"{value} (ignored)"


def test_option_files_and_conftests_of_others_have_no_say(checkout: Checkout) -> None:
    """A ``pytest.ini`` beside ``pyproject.toml``, and a conftest above the checkout."""
    root, plan = checkout(TWO)
    (root / "pytest.ini").write_text("[pytest]\naddopts = -k one\n", encoding="utf-8")
    (root.parent / "conftest.py").write_text("collect_ignore_glob = ['*']\n", encoding="utf-8")
    code, _, record = run((root, plan))
    assert (code, len(record.cases)) == (ExitCode.PASS, 2)


DROPS = {
    "slice": "def pytest_collection_modifyitems(items): del items[1:]\n",
    "hook": "def pytest_collection_modifyitems(config, items):\n"
    "    config.hook.pytest_deselected(items=items[1:])\n    items[:] = items[:1]\n",
    "wrapper": "import pytest\n@pytest.hookimpl(wrapper=True, tryfirst=True)\n"
    "def pytest_collection_modifyitems(items):\n    del items[1:]\n    return (yield)\n",
}


@pytest.mark.parametrize("drop", DROPS.values(), ids=DROPS)
def test_a_conftest_that_drops_cases_narrows_the_run(
    checkout: Checkout, capsys: pytest.CaptureFixture[str], drop: str
) -> None:
    """The run cannot be judged; its first line, the console and the stage name the dropped cases."""
    root, plan = checkout(TWO)
    (root / "part1" / "conftest.py").write_text(drop, encoding="utf-8")
    code, _, record = run((root, plan))
    assert (code, run_verdict(record)) == (ExitCode.UNDECIDED, Verdict.ERROR)
    assert record.stages[0].deselected == ("part1/test_part1.py::test_two",)
    assert "part1/conftest.py" in record.stages[0].plugins
    said = "a narrowed run: 1 of 2 cases were left out: part1/test_part1.py::test_two; "
    assert first_line(record).startswith(f"ERROR: {said}")
    assert first_line(record) in capsys.readouterr().out


@pytest.mark.parametrize(
    "drop",
    [
        "collect_ignore_glob = ['*other*']\n",
        "def pytest_pycollect_makeitem(name): return [] if 'two' in name else None\n",
    ],
    ids=["file", "function"],
)
def test_what_the_sources_define_and_nobody_collects_is_missed(checkout: Checkout, drop: str) -> None:
    root, plan = checkout(TWO)
    (root / "part1" / "test_other.py").write_text(TWO, encoding="utf-8")
    (root / "part1" / "conftest.py").write_text(drop, encoding="utf-8")
    code, _, record = run((root, plan))
    assert code == ExitCode.UNDECIDED
    assert "2 test functions were not collected: part1/test_other.py::" in record.stages[0].problem


@pytest.mark.parametrize(
    "hidden",
    [
        "if False:\n    def test_hidden(): assert False\n",
        "try:\n    import no_such_module\n    def test_hidden(): assert False\nexcept ImportError: pass\n",
        "for _ in ():\n    def test_hidden(): assert False\n",
    ],
    ids=["if", "try", "for"],
)
def test_a_case_that_a_statement_hides_is_missed(checkout: Checkout, hidden: str) -> None:
    """It would be neither run nor skipped with a reason."""
    code, _, record = run(checkout(TWO + hidden))
    assert code == ExitCode.UNDECIDED
    assert record.stages[0].problem == "1 test functions were not collected: part1/test_part1.py::test_hidden"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def test_one(): assert False\ndef test_one(): pass\n", "test_one"),
        ("class TestIt:\n    def test_one(self): assert False\n    def test_one(self): pass\n", "TestIt::test_one"),
    ],
    ids=["module", "class"],
)
def test_a_case_that_another_of_its_name_hides_is_missed(checkout: Checkout, source: str, name: str) -> None:
    code, _, record = run(checkout(MARK + source))
    assert code == ExitCode.UNDECIDED
    missed = f"part1/test_part1.py::{name}, defined twice"
    assert record.stages[0].problem == f"1 test functions were not collected: {missed}"


def test_a_suite_that_removes_its_folder_is_an_error_with_a_record(checkout: Checkout) -> None:
    source = MARK + "import shutil\ndef test_removes(): shutil.rmtree('run')\n"
    code, _, record = run(checkout(source, TWO))
    assert code == ExitCode.UNDECIDED
    assert record.stages[0].problem == "pytest.log was removed while the stage ran"
    assert [case.outcome for case in record.cases] == [Outcome.PASSED] * 2


def test_modules_without_cases_are_not_missed(checkout: Checkout) -> None:
    """A module that skips itself, with its reason, and fixtures and helpers that look like cases."""
    source = (
        MARK + "@pytest.fixture\ndef test_data(): return 1\nclass TestGroup:\n    def test_it(self, test_data): pass\n"
    )
    root, plan = checkout(source)
    skips = "import pytest\npytest.skip('no board', allow_module_level=True)\ndef test_it(): pass\n"
    (root / "part1" / "test_skips.py").write_text(skips, encoding="utf-8")
    code, _, record = run((root, plan))
    assert (code, record.stages[0].problem) == (ExitCode.PASS, "")


def cut_last(lines: list[str]) -> list[str]:
    return lines[:-1]


def without_a_case(lines: list[str]) -> list[str]:
    return [line for line in lines if "test_one" not in line]


def renumbered(lines: list[str]) -> list[str]:
    """Without a case, and with everything that the format knows put right."""
    kept = [json.loads(line) for line in lines if "test_one" not in line]
    contents = [{key: value for key, value in one.items() if key not in ("line", "crc32")} for one in kept]
    return [numbered(number, content) for number, content in enumerate(contents, 1)]


def turned(lines: list[str]) -> list[str]:
    return [line.replace('"failed"', '"passed"') for line in lines]


def of_another_run(lines: list[str]) -> list[str]:
    """As a run whose cases all passed would have left it."""
    contents = [json.loads(line.replace('"failed"', '"passed"')) for line in lines]
    kept = [{key: value for key, value in one.items() if key not in ("line", "crc32")} for one in contents]
    return [numbered(number, content) for number, content in enumerate(kept, 1)]


def with_line_ends(lines: list[str]) -> list[str]:
    return [f"{line}\r" for line in lines]


def with_more(lines: list[str]) -> list[str]:
    return [*lines, '{"line": 9, "outcome": "failed"']


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (of_another_run, "results.jsonl changed after the stage ended"),
        (with_line_ends, "results.jsonl changed after the stage ended"),
        (with_more, "results.jsonl is damaged: line 6 is not what was written"),
        (cut_last, "the results are cut short after 2 cases"),
        (without_a_case, "results.jsonl is damaged: line 1 is not what was written; 0 cases precede it"),
        (renumbered, "2 cases collected, 0 deselected, 1 reported; part1/test_part1.py::test_one without a result"),
        (turned, "results.jsonl is damaged: line 2"),
    ],
)
def test_results_that_lost_or_changed_a_line_are_an_error(
    checkout: Checkout, change: Callable[[list[str]], list[str]], said: str
) -> None:
    where = checkout(MARK + "def test_one(): assert 1 == 2\ndef test_two(): pass\n")
    _, folder, _ = run(where)
    results = folder / "stages/stage1/results.jsonl"
    lines = change(results.read_text(encoding="utf-8").splitlines())
    results.write_text("\n".join([*lines, ""]), encoding="utf-8")
    (folder / "record.json").unlink()
    assert main(["record", str(folder)], *where) != ExitCode.PASS
    record = load_run(folder)
    assert said in record.stages[0].problem
    assert run_verdict(record) in (Verdict.ERROR, Verdict.FAIL)


def test_a_collection_that_was_changed_is_an_error(checkout: Checkout) -> None:
    where = checkout(TWO)
    _, folder, _ = run(where)
    collected = folder / "stages/stage1/collected.json"
    text = collected.read_text(encoding="utf-8").replace("test_two", "test_too")
    collected.write_text(text, encoding="utf-8")
    (folder / "record.json").unlink()
    assert main(["record", str(folder)], *where) == ExitCode.UNDECIDED
    assert "collected.json is missing or was changed" in load_run(folder).stages[0].problem


def test_each_way_of_not_adding_up_is_named() -> None:
    collection = Collection(("a::x", "a::y", "a::z"), ("a::z",), (), None, "")
    assert unaccounted(collection, ["a::x", "a::y", "b.py"]) == ""
    assert unaccounted(collection, ["a::x"]).endswith(
        "3 cases collected, 1 deselected, 1 reported; a::y without a result"
    )
    assert unaccounted(collection, ["a::x", "a::y", "a::y"]).endswith("a::y reported twice")
    assert unaccounted(collection, ["a::x", "a::y", "a::z"]).endswith("a::z never collected")


def test_a_file_of_results_is_continued_after_a_crash(tmp_path: Path) -> None:
    """The second process goes on where the first was cut off in the middle of a line."""
    path = tmp_path / "results.jsonl"
    first = ResultLines(path)
    first.started("a")
    path.write_text(path.read_text(encoding="utf-8") + '{"line": 2, "sta', encoding="utf-8")
    assert read_lines(path).unfinished == ("a",)
    second = ResultLines(path)
    second.finished(CaseResult("b", "stage1", (), Outcome.PASSED))
    second.close()
    lines = read_lines(path)
    assert ([case.case for case in lines.cases], lines.unfinished) == (["b"], ("a",))
    assert (lines.damage, lines.closed) == ("", True)
