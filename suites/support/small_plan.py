"""Checkouts with a few cases and a plan of their own, for cases of the runner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hardware.gates import GATE_NAMES, Gate
from reports.store import load_run
from reports.values.record import RunRecord
from stages.command import main
from stages.plan import NO_GATE, Stage

ROOT = Path(__file__).parents[2]
MARK = "import pytest\npytestmark = pytest.mark.requirement('BE-1')\n"
GOOD = MARK + "def test_good(): assert 1 + 1 == 2\n"

Checkout = Callable[..., tuple[Path, tuple[Stage, ...]]]


def small_checkout(
    root: Path, *sources: str, gates: tuple[str, ...] = (), limit_s: float = 60.0
) -> tuple[Path, tuple[Stage, ...]]:
    """Write a checkout whose stages hold the given sources, in order; return it with its plan."""
    root.mkdir()
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", encoding="utf-8")
    (root / "conftest.py").write_text('pytest_plugins = ["stages.plugin"]\n', encoding="utf-8")
    stages = []
    for number, source in enumerate(sources, 1):
        folder = root / f"part{number}"
        folder.mkdir()
        (folder / f"test_part{number}.py").write_text(source, encoding="utf-8")
        gate = gates[number - 1] if gates else NO_GATE
        stages.append(Stage(f"stage{number}", "part", gate, "the CPU", (folder.name,), "it works", limit_s))
    return root, tuple(stages)


def no_gpu(_worker: int) -> dict[str, Gate]:
    """The gates of a machine that has no GPU, for any worker."""
    return {name: Gate(name, name == NO_GATE, f"no {name} here") for name in GATE_NAMES}


def run(where: tuple[Path, tuple[Stage, ...]], *arguments: str) -> tuple[int, Path, RunRecord]:
    """Run into the folder ``run`` beside the suites, or resume it, and read the record back."""
    root, plan = where
    folder = root / "run"
    at = [] if "--resume" in arguments else ["--run", str(folder)]
    code = main(["run", *arguments, *at], root, plan)
    return code, folder, load_run(folder)
