"""What is mutated, which cases have to notice, and which mutants nobody can tell from the original."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True)
class Group:
    """Modules and the cases that decide about their mutants: paths and node ids relative to the checkout."""

    name: str
    modules: tuple[str, ...]
    cases: tuple[str, ...]


GROUPS = (
    Group(
        "verdict",
        ("reports/judge/verdict.py",),
        ("suites/unit/reports/judge",),
    ),
    Group("statistics", ("reports/judge/statistics.py",), ("suites/unit/reports/judge",)),
    Group("compare", ("reports/judge/compare.py",), ("suites/unit/reports/judge",)),
    Group(
        "gating",
        ("hardware/gates.py", "stages/gating.py"),
        ("suites/stage2_detect", "suites/harness/test_plugin.py"),
    ),
    Group("recovery", ("stages/recovery.py",), ("suites/unit/stages",)),
    Group(
        "rules",
        ("impl/burstproof/engine/rules.py", "impl/burstproof/engine/cpu/dynamics.py"),
        ("suites/stage5_parity/test_cases.py", "suites/stage5_parity/test_mixed.py"),
    ),
    Group("reference", ("impl/burstproof/engine/reference.py",), ("suites/stage5_parity/test_cases.py",)),
)


@cache
def equivalent() -> dict[str, dict[str, str]]:
    """By module, the names of mutants that behave as the original does, each with the reason."""
    with EQUIVALENT.open("rb") as stream:
        return tomllib.load(stream)
