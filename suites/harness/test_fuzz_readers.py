"""The fuzzer of the readers: it finds planted faults, and nothing in the readers that are there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from burstproof.errors import ExitCode, InputError
from suites.support.commit import commit_of_today
from suites.support.fuzz_readers import __main__, campaign
from suites.support.fuzz_readers.campaign import fuzz
from suites.support.fuzz_readers.mutate import any_bytes, change_json
from suites.support.fuzz_readers.readers import READERS, NotTheSameError, Reader

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.requirement("BE-2", "RE-2")

each_reader = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)


def campaign_of(reader: Reader, inputs: int, seed: int, folder: Path) -> None:
    """Every input is read or refused, and there are inputs of both kinds."""
    tally = fuzz(reader, inputs, seed, folder)
    assert tally.findings == []
    assert (tally.inputs, tally.accepted + tally.refused) == (inputs, inputs)
    assert tally.accepted
    assert tally.refused


@each_reader
def test_a_few_inputs_are_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    campaign_of(reader, 60, 0, tmp_path)


@each_reader
@pytest.mark.thorough("reads ten thousand files")
def test_ten_thousand_inputs_are_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    campaign_of(reader, 10_000 // len(READERS), 1, tmp_path)


@each_reader
@pytest.mark.parametrize("part", range(10))
@pytest.mark.nightly("reads a million files")
def test_a_million_inputs_are_read_or_refused(reader: Reader, part: int, tmp_path: Path) -> None:
    campaign_of(reader, 100_000 // len(READERS), 2 + part, tmp_path)


def planted(fault: Callable[[bytes], object]) -> Reader:
    """A reader of a short text, which refuses what is no text, with ``fault`` behind that."""

    def check(folder: Path) -> None:
        content = (folder / "a").read_bytes()
        if not content.isascii():
            raise InputError("no text")
        fault(content)

    return Reader("planted", lambda _: [{"a": b'{"numbers": [1, 2, 3]}'}], {"a": (any_bytes, change_json)}, check)


def _short(content: bytes) -> object:
    return content[4]


def _endless(content: bytes) -> object:
    return time.sleep(3) if content == b"" else None


def _changed(content: bytes) -> object:
    if b'"numbers"' not in content:
        raise NotTheSameError("what was written does not read as the same")
    return None


def _message(content: bytes) -> object:
    if len(content) < 5:
        error = InputError("x")
        error.args = ("\x1b[2J",)
        raise error
    return None


_hoard: list[int] = []
"""Sizes of what a greedy reader took, which stand for the process's own."""


def _greedy(content: bytes) -> object:
    return _hoard.append(campaign.MOST_GROWTH_BYTES + 1) if len(content) < 5 else None


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (_short, "IndexError in test_fuzz_readers.py"),
        pytest.param(_endless, "_HangingError", marks=pytest.mark.thorough("waits for seconds")),
        (_changed, "NotTheSameError"),
        (_message, "control characters"),
        (_greedy, "takes too much memory"),
    ],
)
def test_a_planted_fault_is_found_and_kept(
    fault: Callable[[bytes], object], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "MOST_WALL_S", 1)
    monkeypatch.setattr(campaign, "_largest_bytes", lambda: sum(_hoard))
    tally = fuzz(planted(fault), 300, 0, tmp_path)
    _hoard.clear()
    (finding,) = (one for one in tally.findings if problem in one.problem)
    kept = Path(finding.folder) / "a"
    assert kept.exists()
    again = fuzz(planted(fault), finding.number + 1, 0, tmp_path / "again")
    _hoard.clear()
    assert (tmp_path / "again" / f"planted-{finding.number}" / "a").read_bytes() == kept.read_bytes()
    assert again.findings[0].number == tally.findings[0].number


def test_the_command_writes_a_summary(tmp_path: Path) -> None:
    asked = f"--inputs 5 --seed 3 --readers plan,record --processes 2 --out {tmp_path}/summary.json"
    done = subprocess.run(
        [sys.executable, "-m", "suites.support.fuzz_readers", *asked.split(), "--findings", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'impl'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["seed"], summary["inputs"], summary["findings"]) == (3, 10, 0)
    assert [one["reader"] for one in summary["readers"]] == ["plan", "record"]
    assert summary["commits"] == {commit_of_today(): 10}


def test_the_committed_campaign_is_of_a_million_inputs_of_every_reader() -> None:
    """Its counts add up, and nothing was found."""
    summary = json.loads((ROOT / "suites" / "data" / "fuzz_readers.json").read_text(encoding="utf-8"))
    assert {row["reader"] for row in summary["readers"]} == {reader.name for reader in READERS}
    assert all(row["accepted"] + row["refused"] == row["inputs"] for row in summary["readers"])
    assert sum(row["inputs"] for row in summary["readers"]) == sum(summary["commits"].values()) == summary["inputs"]
    assert (summary["inputs"] >= 1_000_000, summary["findings"]) == (True, 0)


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In sittings: each input once, the numbers of all sittings in one summary, which names the commit of each."""
    drawn: list[tuple[str, int]] = []

    def noted(reader: Reader, inputs: int, seed: int, kept: Path, first: int = 0) -> campaign.Tally:
        drawn.extend((reader.name, number) for number in range(first, first + inputs))
        return campaign.Tally(reader.name, inputs, accepted=inputs)

    monkeypatch.setattr(__main__, "fuzz", noted)
    monkeypatch.setattr(__main__, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(__main__, "ROUND", 4)
    out = tmp_path / "summary.json"
    for commit, inputs, more in (("a" * 40, 6, []), ("b" * 40, 10, ["--resume"]), ("b" * 40, 11, ["--resume"])):
        monkeypatch.setattr(__main__, "commit_of_today", lambda commit=commit: commit)
        asked = ["--inputs", str(inputs), "--readers", "plan,record", "--out", str(out), *more]
        monkeypatch.setattr(sys, "argv", ["fuzz_readers", *asked])
        assert __main__.main() == ExitCode.PASS
    assert sorted(drawn) == [(name, number) for name in ("plan", "record") for number in range(11)]
    summary = json.loads(out.read_text())
    assert (summary["inputs"], summary["commits"]) == (22, {"a" * 40: 12, "b" * 40: 10})
    monkeypatch.setattr(sys, "argv", ["fuzz_readers", *asked, "--seed", "1"])
    with pytest.raises(InputError, match="another seed"):
        __main__.main()
