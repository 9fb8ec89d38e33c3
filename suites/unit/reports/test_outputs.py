"""Where ``python -m reports`` writes: never over the evidence of a run, and never two texts into one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from reports.command import main
from reports.store import load_run, write_run
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-1")

EVIDENCE = ("plan.json", "judged.json", "stages/stage2/results.jsonl", "stages/stage2/log")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder with evidence, and a link to it."""
    folder = tmp_path / "run"
    write_run(folder, sample_record())
    for name in EVIDENCE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("", encoding="utf-8")
    (tmp_path / "linked").symlink_to(folder, target_is_directory=True)
    return folder


def commands(run: Path, file: Path) -> list[list[str]]:
    """Every command that writes a file of the user's choice."""
    one = str(run)
    return [
        ["render", one, "--out", str(file)],
        ["compare", one, one, "--out", str(file)],
        ["compare", one, one, "--markdown", str(file)],
        ["compare", "--across", "backend", one, "--out", str(file)],
        ["history", str(run.parent), "--out", str(file)],
    ]


@pytest.mark.parametrize("name", EVIDENCE)
@pytest.mark.parametrize("way", ["run/{}", "linked/{}", "run/stages/../{}", "link.html"])
def test_no_evidence_of_a_run_is_overwritten(
    run: Path, name: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it is called, and through links."""
    (run.parent / "link.html").symlink_to(run / name)
    path = run.parent / way.format(name)
    for command in commands(run, path):
        assert main(command) == ExitCode.USAGE, command
        said = capsys.readouterr().err
        assert f"{command[-2]}: this file is evidence of a run (got '{path}'). Name a new file, or one" in said
    assert (run / name).read_bytes() == b""
    assert load_run(run).run_id == sample_record().run_id


@pytest.mark.parametrize("mark", ["plan.json", "record.json", "record.json.gz"])
def test_each_mark_makes_a_folder_that_of_a_run(run: Path, tmp_path: Path, mark: str) -> None:
    """Also where a run has no more than its plan, or was thinned to a baseline."""
    (tmp_path / "other").mkdir()
    for name in (mark, "file"):
        (tmp_path / "other" / name).write_text("", encoding="utf-8")
    assert main(["render", str(run), "--out", str(tmp_path / "other" / "file")]) == ExitCode.USAGE


def test_what_lies_behind_a_link_of_a_run_is_its_evidence(run: Path, tmp_path: Path) -> None:
    """Also where the folder of the stages lies on another disk, and where a page's name leads to evidence."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "results.jsonl").write_text("", encoding="utf-8")
    (run / "stages" / "stage3").symlink_to(tmp_path / "disk", target_is_directory=True)
    (tmp_path / "page.html").symlink_to(run / "record.json")
    before = (run / "record.json").read_bytes()
    for path in (run / "stages" / "stage3" / "results.jsonl", tmp_path / "page.html"):
        assert main(["render", str(run), "--out", str(path)]) == ExitCode.USAGE
    assert (tmp_path / "disk" / "results.jsonl").read_bytes() == b""
    assert (run / "record.json").read_bytes() == before


def test_pages_and_new_files_are_written(run: Path, tmp_path: Path) -> None:
    """Pages of a run again and again, new files anywhere, and what is no run's."""
    (tmp_path / "old.txt").write_text("", encoding="utf-8")
    for path in (run / "report.html", run / "PAGE.HTML", run / "page.md", run / "page", tmp_path / "old.txt"):
        for _ in range(1 if path.name == "page" else 2):
            assert main(["render", str(run), "--out", str(path)]) == ExitCode.PASS, path
        assert path.read_text(encoding="utf-8").startswith("<!")
    assert main(["render", str(run)]) == ExitCode.PASS


@pytest.mark.parametrize("other", ["one.html", "./one.html", "link", "linked/../run/../one.html"])
def test_page_and_markdown_are_two_files(
    run: Path, tmp_path: Path, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "one.html"
    (tmp_path / "link").symlink_to(page)
    both = ["--out", str(page), "--markdown", f"{tmp_path}/{other}"]
    compared = ["compare", str(run), str(run), "--history", str(run.parent)]
    assert main([*compared, *both]) == ExitCode.USAGE
    assert "one file given as --out and as --markdown" in capsys.readouterr().err
    assert not page.exists()
    assert main([*compared, *both[:3], str(tmp_path / "two.md")]) == ExitCode.PASS
    assert page.exists()
