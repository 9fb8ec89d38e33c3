"""``stages run --targets FILE``: the run keeps the file, is judged by it, and names its digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from reports.judge.judging import targets_sha256
from reports.judge.targets import load_targets
from stages.command import main
from suites.unit.stages.test_runner import MARK, Checkout, checkout, run

pytestmark = pytest.mark.requirement("RE-2", "RE-3", "RE-6")

__all__ = ["checkout"]
OWN = """
[[target]]
id = "mine"
measurement = "mine.size"
metric = "the size that I need"
comparison = ">="
limit = 5.0
unit = "B"
source = "own"
status = "goal"
date = "2026-11-22"
"""
TIMED = MARK + "def test_size(measure): measure('mine.size', 4.0, 'B')\n"


def test_a_run_is_judged_by_a_users_targets(
    checkout: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missed, named in the first line, in the table and in the report; a copy is evidence and serves --resume."""
    path = tmp_path / "mine.toml"
    path.write_text(OWN, encoding="utf-8")
    where = checkout(TIMED)
    code, folder, record = run(where, "--targets", str(path))
    assert code == ExitCode.FAIL
    assert [judged.target for judged in record.judgements] == ["mine"]
    assert record.judged[-1].targets_sha256 == targets_sha256(load_targets(path)) != targets_sha256()
    assert "targets.toml" in {one.path for one in record.attachments}
    said = capsys.readouterr().out
    assert "FAIL: 1 goal missed, by 25.0 %" in said
    assert "the size that I need" in said
    assert "the size that I need" in (folder / "report.html").read_text(encoding="utf-8")
    path.unlink()
    code, _, again = run(where, "--resume", str(folder))
    assert (code, again.judgements) == (ExitCode.FAIL, record.judgements)


def test_a_faulty_file_stops_the_run_before_it_has_a_folder(
    checkout: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OWN.replace('"B"', '"furlong"'), encoding="utf-8")
    root, plan = checkout(TIMED)
    assert main(["run", "--run", str(root / "run"), "--targets", str(path)], root, plan) == ExitCode.USAGE
    assert "mine.toml: target 1 (mine).unit" in capsys.readouterr().err
    assert not (root / "run").exists()
