"""Every target has a case that measures what it limits, and every requirement cases that prove it."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import subprocess
import sys
import textwrap
from collections import defaultdict
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from reports.judge.absent import stage_of_target
from reports.judge.targets import Target, load_targets, parse_targets
from reports.judge.thermometer import Kind, thermometer_kind, thermometer_rows
from reports.judge.trace import proves
from reports.values.measurement import CaseResult, Measurement, Outcome
from reports.values.record import NIGHTLY, THOROUGH
from reports.values.requirements import load_requirements
from stages.declaring import Declared, declared_by
from stages.plan import PLAN, stage_of
from stages.plugin import gates_of, requirements_of

pytestmark = [pytest.mark.requirement("RE-2"), pytest.mark.xdist_group("reach")]
LONG = "collects the cases of all stages"

ROOT = Path(__file__).parents[2]
TARGETS = load_targets()
REQUIREMENTS = load_requirements()
UNPROVEN = {row.id for row in REQUIREMENTS if row.gap}
"""Requirements that no case proves, and say so; one that gets a case has a gap no longer."""


HELPERS = ("check", "agree", "expect", "compare", "prove", "assert", "same", "equal")


class Collected:
    """A pytest plugin that keeps what the cases of a session declare, who declares nothing, and what they prove."""

    def __init__(self) -> None:
        self.declared: list[Declared] = []
        self.silent: list[str] = []
        self.shown: set[str] = set()
        self.shown_quickly: set[str] = set()
        self.proofs: defaultdict[str, set[str]] = defaultdict(set)
        self.measured_in: defaultdict[str, set[str]] = defaultdict(set)
        self.figureless: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            found = declared_by(item)
            self.declared += found
            for name in (name for one in found for name in one.names):
                self.measured_in[name].add(stage_of(item.nodeid) or "")
            if not found and "measure" in getattr(item, "fixturenames", ()):
                self.silent.append(item.nodeid)
            if not gates_of(item) and item.get_closest_marker(NIGHTLY) is None:
                self.shown |= set(requirements_of(item))
                self.shown_quickly |= set(requirements_of(item)) if item.get_closest_marker(THOROUGH) is None else set()
            if found or compares(item):
                for name in proven_by(item):
                    self.proofs[name].add(stage_of(item.nodeid) or "")
            if not found and "ST-6" in proven_by(item):
                self.figureless.add(item.nodeid.partition("[")[0])


def proven_by(item: pytest.Item) -> list[str]:
    case = CaseResult(item.nodeid, stage_of(item.nodeid) or "", requirements_of(item), Outcome.PASSED)
    return [row.id for row in REQUIREMENTS if proves(case, row)]


def compares(item: pytest.Item) -> bool:
    """Whether a case does more than expect errors: it asserts, or calls a helper that does."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(item.function)))  # type: ignore[attr-defined]
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    helpers = {name for name in called if name.rpartition(".")[2].lstrip("_").startswith(HELPERS)}
    return bool(helpers) or any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def collect_into(path: str) -> None:
    """Collect the cases of all stages and pickle what they declare and show: a session of pytest of its own."""
    found = Collected()
    folders = [str(ROOT / folder) for stage in PLAN for folder in stage.suites]
    quiet = ("--collect-only", "-qq", "--gpu-free", "-p", "no:cacheprovider", f"--rootdir={ROOT}")
    assert pytest.main([*quiet, *folders], plugins=[found]) == pytest.ExitCode.OK
    Path(path).write_bytes(pickle.dumps(found))


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    """What the cases of all stages declare and show."""
    path = tmp_path_factory.mktemp("reach") / "collected.pickle"
    code = f"from {__name__} import collect_into; collect_into({str(path)!r})"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**kept, "PYTHONPATH": os.pathsep.join([*map(str, (ROOT / "impl", ROOT)), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found: Collected = pickle.loads(path.read_bytes())
    return found


@pytest.fixture
def declared(collected: Collected) -> list[Declared]:
    """The declarations of all cases."""
    return collected.declared


@pytest.mark.thorough(LONG)
def test_who_measures_declares_it(collected: Collected) -> None:
    """A case that takes ``measure`` says by the marker ``measures`` what it delivers, so that nothing is misspelt."""
    assert collected.silent == []


@pytest.mark.thorough(LONG)
@pytest.mark.requirement("RE-7")
def test_the_quick_plan_has_a_case_of_each_requirement(collected: Collected) -> None:
    """Of all that can be shown without a GPU; what only the nightly plan shows counts for none of the two."""
    assert collected.shown
    assert sorted(collected.shown - collected.shown_quickly) == []


@pytest.mark.thorough(LONG)
def test_every_requirement_is_proven_in_its_stages(collected: Collected) -> None:
    """By a case that measures or compares, in each stage that is to prove it; the others have a gap that says why."""
    owed = {row.id: set(row.stages) for row in REQUIREMENTS}
    missing = {name: where - collected.proofs[name] for name, where in owed.items() if where - collected.proofs[name]}
    assert missing == {name: owed[name] for name in UNPROVEN}


@pytest.mark.thorough(LONG)
def test_the_stage_that_measures_a_goal_is_known(collected: Collected) -> None:
    """A run without a figure for a goal names the stage that has it, so that it names the right one."""
    goals = [target for target in TARGETS if target.is_goal and not target.not_judged]
    wrong = {
        target.id: sorted(stages)
        for target in goals
        if stage_of_target(target) not in (stages := measuring(target, collected.measured_in))
    }
    assert wrong == {}


def measuring(target: Target, measured_in: Mapping[str, set[str]]) -> set[str]:
    """The stages whose cases declare what ``target`` judges."""
    return {stage for name, stages in measured_in.items() if fnmatchcase(name, target.measurement) for stage in stages}


@pytest.mark.thorough(LONG)
def test_performance_is_proven_by_figures(collected: Collected) -> None:
    """A case of stage 6 that measures nothing says so: it is no proof of that stage."""
    assert collected.figureless == set()


def closest(target: Target, declared: list[Declared]) -> str:
    """Why no case reaches ``target``: what the cases with that measurement declare otherwise."""
    reasons = dict.fromkeys(one.reaches(target) for one in declared)
    told = [reason for reason in reasons if not reason.endswith("is declared")]
    return "; ".join(told) or f"no case declares {target.measurement}"


@pytest.mark.thorough(LONG)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.id)
def test_some_case_reaches_the_target(target: Target, declared: list[Declared]) -> None:
    """A case declares a measurement with the target's name and conditions, on some machine at least."""
    assert any(one.reaches(target) == "" for one in declared), closest(target, declared)


ROW = """
id = "t"
measurement = "burst.latency"
metric = "a burst"
comparison = "<"
limit = 2.0
unit = "ms"
source = "goal"
status = "goal"
date = "2026-11-22"
"""


def target_with(**conditions: object) -> Target:
    import tomllib

    return parse_targets({"target": [{**tomllib.loads(ROW), "conditions": conditions}]})[0]


@pytest.mark.parametrize(
    ("conditions", "declared", "reason"),
    [
        ({"gpus": 8}, {"gpus": [1, 2, 8]}, ""),
        ({"gpus": 8}, {"gpus": [1, 2, 4]}, "gpus is 1 or 2 or 4, wanted 8"),
        ({"gpus": 1}, {}, ""),
        ({"gpus": 2}, {}, "gpus is 1, wanted 2"),
        ({"device": ["*A100*"]}, {"device": ...}, ""),
        ({"device": ["*A100*"]}, {}, "device is not declared, wanted *A100*"),
        ({"neurons": {"min": 1e6}}, {"neurons": 100_000}, "neurons is 100000, wanted at least 1e+06"),
        ({"backend": "cuda"}, {"backend": "cuda"}, ""),
    ],
)
def test_a_declaration_reaches_what_it_can_deliver(
    conditions: dict[str, object], declared: dict[str, object], reason: str
) -> None:
    mark = pytest.mark.measures("burst.latency", **declared).mark
    assert Declared.of(mark).reaches(target_with(**conditions)) == reason


def test_another_name_reaches_nothing() -> None:
    assert Declared.of(pytest.mark.measures("burst.speedup").mark).reaches(target_with()) != ""


@pytest.mark.parametrize(
    ("name", "conditions", "reason"),
    [
        ("burst.latency", {"gpus": 8, "device": "NVIDIA H200"}, ""),
        ("burst.latency", {"gpus": 2, "device": "NVIDIA H200"}, "gpus of burst.latency is 2, declared 4 or 8"),
        ("burst.latency", {"gpus": 4}, "burst.latency does not say its device, which is declared"),
        ("burst.speedup", {"gpus": 4}, "burst.speedup is not declared"),
    ],
)
def test_a_measurement_that_contradicts_its_declaration(
    name: str, conditions: dict[str, int | str], reason: str
) -> None:
    declared = Declared.of(pytest.mark.measures("burst.latency", gpus=[4, 8], device=...).mark)
    assert declared.allows(Measurement(name, 1.0, "ms", conditions=conditions)) == reason


@pytest.mark.parametrize("wrong", [{"names": ()}, {"names": (3,)}, {"gpus": []}, {"gpus": None}])
def test_a_marker_that_declares_nothing_is_refused(wrong: dict[str, object]) -> None:
    names = wrong.pop("names", ("burst.latency",))
    assert isinstance(names, tuple)
    with pytest.raises(pytest.UsageError, match="measures"):
        Declared.of(pytest.mark.measures(*names, **wrong).mark)


@pytest.mark.parametrize(
    ("name", "conditions", "kind"),
    [
        ("roofline.copy", {}, Kind.LIMIT),
        ("host.thread_speedup", {"threads": 8}, Kind.LIMIT),
        ("kernel.launch_overhead", {"way": "driver alone"}, Kind.LIMIT),
        ("kernel.launch_overhead", {"way": "checked"}, None),
        ("kernel.matmul_throughput", {"backend": "cublas"}, Kind.PEER),
        ("kernel.matmul_throughput", {"backend": "custom"}, None),
        ("attention.forward", {"scope": "PyTorch flash"}, Kind.PEER),
        ("attention.forward", {"scope": "flash"}, None),
        ("matmul.against_pytorch", {"backend": "cublas"}, None),
        ("burst.latency", {"backend": "cuda"}, None),
    ],
)
def test_figures_that_are_not_ours(name: str, conditions: dict[str, str], kind: Kind | None) -> None:
    assert thermometer_kind(Measurement(name, 1.0, "us", conditions=conditions)) is kind


def test_no_target_is_held_against_the_machine_alone() -> None:
    """Each row of the thermometer names its measurement once."""
    rows = [(row.measurement, tuple(sorted(row.conditions.items()))) for row in thermometer_rows()]
    assert len(rows) == len(set(rows))
