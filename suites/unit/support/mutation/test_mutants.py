"""Mutants are what they say: one fault each, in code that decides something."""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from suites.support.mutation import __main__
from suites.support.mutation.__main__ import main, part_of, planted_in
from suites.support.mutation.groups import GROUPS, ROOT, Group, equivalent
from suites.support.mutation.mutants import mutants_of
from suites.support.mutation.trial import Planted
from suites.support.swapped_code import swapped_code

pytestmark = pytest.mark.requirement("RE-2", "SU-5")

SOURCE = '''
"""A module."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    LIMIT = 1


def within(value: int | None, limit: float = 2.0) -> bool:
    """Whether 1 + 1."""
    if value is None:
        raise ValueError("1 + 1" + str(limit))
    done = False
    for one in (value, -value):
        if one >= limit and not done:
            done = True
            continue
        print(f"{one + 1}")
    return done
'''


def test_every_fault_is_found_once() -> None:
    changes = [mutant.change for mutant in mutants_of(SOURCE)]
    assert sorted(changes) == sorted(
        [
            "2.0 -> 3.0",
            "value is None -> value is not None",
            "False -> True",
            "-value -> value",
            "one >= limit and (not done) -> one >= limit or not done",
            "one >= limit -> one > limit",
            "not done -> done",
            "True -> False",
            "continue -> pass",
            "print(f'{one + 1}') -> pass",
        ]
    )


def test_a_mutant_differs_in_one_place() -> None:
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants_of(SOURCE):
        lines = mutant.source.splitlines()
        changed = [line for line, (old, new) in enumerate(zip(plain, lines, strict=True)) if old != new]
        assert len(changed) == 1, mutant.name
        assert mutant.where == "within"


def test_a_change_that_occurs_twice_in_a_function_is_two_mutants() -> None:
    found = mutants_of("def far(x: int) -> bool:\n    return x > 9 or -x > 9\n")
    assert [mutant.name for mutant in found if mutant.change == "9 -> 10"] == ["far: 9 -> 10", "far: 9 -> 10 (2)"]
    assert len({mutant.source for mutant in found}) == len({mutant.name for mutant in found}) == len(found)


def test_a_fork_exchanges_the_code_of_one_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All faults but one in a default value, which no code of the function holds."""
    (tmp_path / "planted_here.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    plain = ast.unparse(ast.parse(SOURCE))
    found = {mutant.change: swapped_code("planted_here", plain, mutant.source) for mutant in mutants_of(SOURCE)}
    assert [change for change, swapped in found.items() if swapped is None] == ["2.0 -> 3.0"]
    swapped = found["one >= limit -> one > limit"]
    assert swapped is not None
    function, code = swapped
    assert function(2)
    function.__code__ = code
    assert not function(2)


def test_equivalent_mutants_are_mutants() -> None:
    """A line of the list that names no mutant of today hides nothing."""
    modules = {module for group in GROUPS for module in group.modules}
    assert set(equivalent()) <= modules
    for module, names in equivalent().items():
        assert set(names) <= {mutant.name for mutant in mutants_of((ROOT / module).read_text(encoding="utf-8"))}
        assert all(names.values())


@pytest.mark.thorough("six mutants, each a run of some cases")
@pytest.mark.parametrize("group", ["recovery", "rules"])
def test_a_few_faults_are_noticed(group: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All mutants are tried by hand: ``python -m suites.support.mutation``."""
    summary = tmp_path / "summary.json"
    assert main([group, "--sample", "3", "--summary", str(summary)]) == ExitCode.PASS, capfd.readouterr().out
    (row,) = json.loads(summary.read_text(encoding="utf-8"))
    assert (row["group"], row["tried"], row["survived_at_first"], row["survived"]) == (group, 3, 0, 0)


@pytest.mark.nightly("tries every mutant: hours of one core")
@pytest.mark.time_limit(2700)
@pytest.mark.parametrize(
    ("group", "part"),
    [pytest.param(group.name, f"{part}/{group.parts}") for group in GROUPS for part in range(1, group.parts + 1)],
)
def test_no_more_than_three_in_a_hundred_live(group: str, part: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([group, "--part", part]) == ExitCode.PASS, capfd.readouterr().out


@pytest.mark.parametrize("part", ["0/3", "4/3", "1", "a/b", "1/0"])
def test_a_part_is_one_of_several(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["recovery", "--part", part])
    assert ended.value.code == ExitCode.USAGE
    assert "I/N" in capsys.readouterr().err


def test_parts_are_large_enough_for_a_share_and_hold_every_mutant_once() -> None:
    """Of a part with fewer than 34 mutants none may live, so a group's parts never let more live than the group."""
    for group in GROUPS:
        whole = planted_in(group, None, 0)
        parts = [part_of(whole, (number, group.parts)) for number in range(1, group.parts + 1)]
        assert sorted(len(part) for part in parts)[-1] <= 60, group.name
        assert group.parts == 1 or min(map(len, parts)) >= 34, group.name
        assert Counter(id(one) for part in parts for one in part) == Counter(map(id, whole))


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> Group:
    """The only group: its cases look at nothing."""
    group = Group(
        "blind", ("stages/recovery.py",), ("suites/unit/support/mutation/test_mutants.py", "-k", "found_once")
    )
    monkeypatch.setattr(__main__, "GROUPS", (group,))
    return group


@pytest.mark.thorough("runs cases in processes of their own")
def test_what_nobody_notices_survives(blind: Group, tmp_path: Path) -> None:
    """Cases that look at nothing: every mutant lives, the command says so, and later numbers keep the first."""
    summary = tmp_path / "summary.json"
    assert main(["blind", "--sample", "2", "--summary", str(summary)]) == ExitCode.FAIL
    __main__.note(summary, argparse.Namespace(sample=2, seed=0), blind, 2, 0, 0)
    (row,) = json.loads(summary.read_text(encoding="utf-8"))
    assert (row["tried"], row["survived_at_first"], row["survived"]) == (2, 2, 0)


def test_a_pass_in_parts_goes_on_from_its_log(
    blind: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The parts are the whole, what was noticed is not tried again, and the numbers are those of the whole."""
    asked: list[Planted] = []

    def every_third_lives(
        group: Group, chosen: Sequence[Planted], workers: int, deadline: float
    ) -> Iterator[tuple[Planted, bool]]:
        asked.extend(chosen)
        yield from ((one, place % 3 == 0) for place, one in enumerate(chosen) if workers > 1 or place < 4)

    monkeypatch.setattr(__main__, "tried", every_third_lives)
    summary = tmp_path / "summary.json"
    options = ["blind", "--log", str(tmp_path / "log")]
    for part in "1/2", "2/2":
        main([*options, "--part", part])
        assert "2 of 4 mutants survive; " in capsys.readouterr().out
    everything = planted_in(blind, None, 0)
    assert sorted(one.mutant.name for one in asked) == sorted(one.mutant.name for one in everything)
    asked.clear()
    main([*options, "--workers", "2", "--summary", str(summary)])
    assert len(asked) == len(everything) - 4
    (row,) = json.loads(summary.read_text(encoding="utf-8"))
    lived = {line["mutant"] for line in map(json.loads, (tmp_path / "log").read_text().splitlines()) if line["lives"]}
    assert (row["tried"], row["survived_at_first"]) == (len(everything), len(lived))
    assert row["survived"] == len(range(0, len(asked), 3))
