"""The examples of docs/compile.md, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from burstproof.cli.main import main
from suites.support.compile.tools import needs_tools

pytestmark = [pytest.mark.requirement("KL-1", "KL-2", "KL-4"), needs_tools]

PAGE = Path(__file__).parents[2] / "docs" / "compile.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(*arguments: str) -> str:
    """Standard output of Python with these arguments, with this process's import paths."""
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **paths}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's kernel and the script that launches it."""
    (source,) = blocks("cpp")
    (tmp_path / "saxpy.cu").write_text(source)
    (tmp_path / "run_saxpy.py").write_text(blocks("python")[0])
    return tmp_path


def test_the_kernel_of_the_page_compiles_as_it_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = re.search(r"\$ burstproof (.*) saxpy\.cu (.*)", blocks("console")[0])
    assert command is not None
    assert main([command[1], str(folder / "saxpy.cu"), *command[2].split()]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["saxpy.cu", "kernel", "saxpy"]


def test_the_templates_of_the_page_compile() -> None:
    assert "'fill<float>': '_Z4fillIfEvPT_'" in run("-c", blocks("python")[1])


@pytest.mark.gate("gpu")
def test_the_script_of_the_page_prints_what_it_says(folder: Path) -> None:
    script = folder / "run_saxpy.py"
    (expected,) = re.findall(r"# (\[.*\])$", script.read_text(), re.MULTILINE)
    assert run(str(script)).strip() == expected
