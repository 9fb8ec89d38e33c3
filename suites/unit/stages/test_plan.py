"""The plan as data, and its agreement with the requirements and the folders."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from burstproof.errors import InputError
from hardware.gates import GATE_NAMES
from reports.values.requirements import load_requirements
from stages.command import select
from stages.plan import PLAN, stage_of

pytestmark = pytest.mark.requirement("RE-2", "RE-6")

ROOT = Path(__file__).parents[3]


def test_the_plan_needs_nothing_but_the_standard_library() -> None:
    """The noxfile makes its sessions from it before anything is installed."""
    modules = "from stages import bootstrap, driver, plan, run_folder; assert bootstrap.STAGES == plan.STAGES"
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {modules}"
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)


def test_every_name_is_there_once() -> None:
    names = [stage.name for stage in PLAN]
    assert len(set(names)) == len(names)


def test_requirements_are_proven_by_stages_of_the_plan() -> None:
    named = {name for row in load_requirements() for name in row.stages}
    assert named <= {stage.name for stage in PLAN}
    planned = {name for stage in PLAN for name in stage.requirements}
    assert planned == {row.id for row in load_requirements()}
    assert all(f"stage{row.id[3:]}" in row.stages for row in load_requirements() if re.match(r"ST-\d", row.id))


def test_every_suite_folder_exists_and_belongs_to_one_stage() -> None:
    folders = [folder for stage in PLAN for folder in stage.suites]
    assert len(set(folders)) == len(folders)
    assert all((ROOT / folder).is_dir() for folder in folders)
    tested = {path.relative_to(ROOT).as_posix() for path in (ROOT / "suites").rglob("test_*.py")}
    assert [path for path in sorted(tested) if stage_of(path) is None] == []


def test_gates_are_those_of_the_hardware_room() -> None:
    assert {stage.gate for stage in PLAN} <= set(GATE_NAMES)


def test_select_keeps_the_order_of_the_plan() -> None:
    assert [stage.name for stage in select(["stage5", "stage1", "stage5"])] == ["stage1", "stage5"]
    assert select([]) == PLAN
    with pytest.raises(InputError, match=r"no such stage.*'stage8'.*allowed: harness, stage1"):
        select(["stage8"])


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("suites/stage5_parity/test_a.py::test_b[suites/stage1]", "stage5"),
        ("suites/harness/test_a.py", "harness"),
        ("suites/harness_more/test_a.py", None),
        ("test_a.py", None),
    ],
)
def test_a_case_belongs_to_the_stage_of_its_folder(path: str, stage: str | None) -> None:
    assert stage_of(path) == stage
