"""Faults planted in forks: what a fault changes is made anew, and what cannot be planted so is refused."""

from __future__ import annotations

import importlib
import os
import py_compile
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from burstproof.engine.compiler import compiler
from suites.support.mutation import trial
from suites.support.parity.planted import cuda, forks, workshop
from suites.support.parity.planted.fault import SIMULATOR, Fault
from suites.support.parity.planted.forks import Problems, answer_in_fork, try_in_fork
from suites.support.parity.planted.reuse import functions_made_once

pytestmark = pytest.mark.requirement("SU-5")

SOURCE = """
from functools import cache

from burstproof.engine.compiler import compiler, inner_compiler

LIMIT = 5


@inner_compiler
def doubled(value):
    return 2 * value


@cache
def offset():
    return 1


def make_inner(factor):
    @inner_compiler
    def inner(value):
        return value * factor

    return inner


def make_outer(inner):
    @compiler
    def outer(value):
        return doubled(inner(value)) + LIMIT

    return outer


def result(value):
    return int(make_outer(make_inner(3))(value)) + offset()
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module as those of the CPU engine, imported, and its functions compiled."""
    (tmp_path / "planted_engine.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(Fault, "module", "planted_engine")
    with functions_made_once():
        module = importlib.import_module("planted_engine")
        assert module.result(7) == 48
        yield module
    del sys.modules["planted_engine"]


def tried(engine: ModuleType, old: str, new: str) -> tuple[int, list[str]] | str:
    """Under an edit: the result of 7, and the functions that are not those from before; or why there is none."""
    file = Path(str(engine.__file__))
    inner = engine.make_inner(3)
    outer = engine.make_outer(inner)

    def work() -> Problems:
        again = engine.make_inner(3)
        made = {"inner": again is not inner, "outer": engine.make_outer(again) is not outer}
        return {str(engine.result(7)): [name for name, anew in made.items() if anew]}

    problems, error = try_in_fork(file.parent, Fault("", file.name, old, new, ()), work)
    assert file.read_text(encoding="utf-8") == SOURCE, "the fault is taken back"
    assert engine.result(7) == 48
    return error or next((int(result), names) for result, names in problems.items())


def test_what_a_fault_changes_is_made_anew_and_what_calls_it(engine: ModuleType) -> None:
    assert tried(engine, "value * factor", "value + factor") == (26, ["inner", "outer"])
    assert tried(engine, "+ LIMIT", "- LIMIT") == (38, ["outer"])
    assert tried(engine, "int(", "-int(") == (-46, []), "a function of the host"


def test_what_was_remembered_before_is_forgotten(engine: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "suites.planted_engine", engine)
    assert tried(engine, "return 1", "return 2") == (49, [])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("LIMIT = 5", "LIMIT = 6", "the fault changes no function of it alone"),
        ("@cache\ndef offset():\n    return 1", "def offset():\n    return 2", "no function of it alone"),
        ("def result(value):\n    return int", "def result(value, more=1):\n    return more + int", "of it alone"),
        ("2 * value", "4 * value", "planted_engine.doubled was compiled before"),
    ],
)
def test_what_a_fork_cannot_exchange_is_refused(engine: ModuleType, old: str, new: str, why: str) -> None:
    said = tried(engine, old, new)
    assert isinstance(said, str)
    assert why in said


@pytest.mark.parametrize("fault", ["value * factor", "no such text"])
def test_a_text_has_to_stand_there_once(fault: str) -> None:
    with pytest.raises(ValueError, match=f"holds the text [02] times: '{fault}'".replace("*", "[*]")):
        Fault("", "", fault, "", ()).edited(2 * SOURCE)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_was_compiled_of_a_source_does_not_outlive_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """The suites of a run keep it in the run's folder. Python tells two sources by their size and second."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled") if elsewhere else None)
    for write in (forks._write, trial._write):
        (tmp_path / "a.py").write_text("A = 1\n", encoding="utf-8")
        compiled = Path(str(py_compile.compile(str(tmp_path / "a.py"))))
        assert compiled.is_relative_to(tmp_path / "compiled") == elsewhere
        write(tmp_path / "a.py", "A = 2\n")
        assert not compiled.exists()


def test_values_that_are_equal_may_differ() -> None:
    def made(value: object) -> Any:
        @compiler
        def function() -> object:
            return value

        return function

    with functions_made_once():
        values = [0, 0.0, -0.0, False, np.float32(0), np.float64(0)]
        assert len({id(made(value)) for value in (*values, *values)}) == len(values)


def test_a_fork_that_ends_without_an_answer_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "TIME_LIMIT_S", 1)
    assert answer_in_fork(lambda: {"a check": ["a problem"]}) == ({"a check": ["a problem"]}, "")
    assert "ZeroDivisionError" in answer_in_fork(lambda: {str(1 // 0): []})[1]
    assert answer_in_fork(lambda: os.kill(os.getpid(), signal.SIGKILL) or {}) == ({}, "no answer (signal 9)")
    assert answer_in_fork(lambda: time.sleep(60) or {}) == ({}, "no answer within 1 s")


@pytest.mark.thorough("processes that import the simulator: seconds")
@pytest.mark.xdist_group("simulator")
def test_faults_of_devices_are_found_in_processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator stands for a device; two copies of the package share the faults."""
    monkeypatch.setattr(workshop, "IN_FORKS", ())
    healthy, outcomes = workshop.plant(SIMULATOR, cuda.KERNELS[:2], jobs=2)
    assert healthy == {}
    assert [(outcome.fault, outcome.caught) for outcome in outcomes] == [(fault, True) for fault in cuda.KERNELS[:2]]
