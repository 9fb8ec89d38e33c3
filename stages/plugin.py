"""The pytest plugin of the test plan: markers, gates, measurements, and a result line for every case.

Loaded by ``conftest.py``, so that plain ``pytest suites`` has gates and reasons too. With ``--bp-results PATH`` every
case is written to ``PATH`` as it ends; under pytest-xdist the controller alone writes.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hardware.gates import GATE_NAMES
from reports.values.measurement import Measurement
from reports.values.record import PLAN_KINDS, THOROUGH
from reports.values.requirements import load_requirements
from stages import declaring, time_limit
from stages.asked_first import AskedFirst
from stages.collected import CollectionNotes
from stages.collecting import NEVER_RAN, CaseCollector, Findings, skip_reason
from stages.gating import Gatekeeper
from stages.measuring import Measure
from stages.plan import stage_of
from stages.results import ResultLines
from stages.signals import end_in_order
from stages.skipping import SkippedAtOnce
from stages.time_limit import CaseOverranError, SittingLimit, TimeLimit
from stages.witness import Witness, ran

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_GATEKEEPER = pytest.StashKey[Gatekeeper]()
_MEASUREMENTS = pytest.StashKey[Measure]()
_NEED_ARGUMENTS = ("requirement", "gate", declaring.MARKER, time_limit.MARKER, *PLAN_KINDS[1:])
_UNREASONED = ("", "unconditional skip")
_REFUSED = "burstproof_refused"
MAX_NODE_ID = 200  # characters; ids are in the report and in every results file


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the test plan."""
    group = parser.getgroup("burstproof", "test plan")
    group.addoption("--bp-results", metavar="PATH", default=None, help="append every case's result to PATH")
    group.addoption("--bp-collected", metavar="PATH", default=None, help="write what was collected to PATH")
    group.addoption("--bp-begun", metavar="PATH", default=None, help="leave out the cases that PATH lists")
    group.addoption("--bp-case-limit", metavar="S", type=float, default=None, help="end a case after S seconds")
    group.addoption("--bp-until", metavar="S", type=float, default=None, help="begin no case at S or later (monotonic)")
    group.addoption("--bp-stage-end", metavar="S", type=float, default=None, help="begin no case that may outlast S")
    group.addoption("--bp-later", metavar="GATE", default="", help="leave the cases of GATE to a later process")
    group.addoption(
        "--bp-sooner", metavar="GATE", default="", help="run the cases of GATE that --bp-first names, alone"
    )
    group.addoption("--bp-first", metavar="TEXT", action="append", default=[], help="begin with cases of such names")
    group.addoption("--bp-plan", choices=PLAN_KINDS, default=THOROUGH, help="leave out what a larger plan holds")
    group.addoption("--gpu-free", action="store_true", help="treat every hardware gate as closed")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, the gates and the other plugins of the test plan, some of them on request."""
    config.addinivalue_line("markers", "requirement(*ids): ids of REQUIREMENTS.md that the case proves")
    config.addinivalue_line("markers", "not_proof(*ids): the case bears on these (or all) of its ids, and proves none")
    config.addinivalue_line("markers", f"gate(name): what the case needs of the hardware: {', '.join(GATE_NAMES)}")
    config.addinivalue_line("markers", "measures(*names, **conditions): what the case delivers when it passes")
    config.addinivalue_line(
        "markers", f"{time_limit.MARKER}(seconds): the case may take so long, instead of what its stage says"
    )
    config.addinivalue_line("markers", "xdist_group(name): cases that share something costly stay in one process")
    config.addinivalue_line("markers", "file_group(name): the same of whole files, where files are spread")
    for kind in PLAN_KINDS[1:]:
        config.addinivalue_line("markers", f"{kind}(why): a smaller plan leaves the case out, for this reason")
    if not hasattr(config, "workerinput"):
        end_in_order()
    worker = getattr(config, "workerinput", {}).get("workerid", "").removeprefix("gw")
    number = int(worker) if worker.isdecimal() else 0
    config.stash[_GATEKEEPER] = Gatekeeper(gpu_free=config.getoption("--gpu-free"), worker=number)
    config.pluginmanager.register(Witness(), "burstproof-witness")
    if config.pluginmanager.hasplugin("xdist"):
        from stages.grouping import Grouping

        config.pluginmanager.register(Grouping(config), "burstproof-grouping")
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(SkippedAtOnce(why_skipped, findings_of), "burstproof-skipping")
    limit_s = config.getoption("--bp-case-limit")
    if limit_s is not None:
        config.pluginmanager.register(TimeLimit(limit_s), "burstproof-time-limit")
    config.pluginmanager.register(AskedFirst(config.getoption("--bp-first")), "burstproof-asked-first")
    until, stage_end = config.getoption("--bp-until"), config.getoption("--bp-stage-end")
    if until is not None or stage_end is not None:
        limit = SittingLimit(until or math.inf, stage_end or math.inf, why_skipped)
        config.pluginmanager.register(limit, "burstproof-sitting-limit")
    _configure_results(config)


def _configure_results(config: pytest.Config) -> None:
    """Register the plugins that write the collection and the results."""
    results, collected, begun = (config.getoption(f"--bp-{name}") for name in ("results", "collected", "begun"))
    if collected is not None:
        without = Path(begun).read_text(encoding="utf-8").splitlines() if begun is not None else ()
        parts = (config.getoption(f"--bp-{name}") for name in ("later", "sooner", "first"))
        notes = CollectionNotes(Path(collected), without, *parts)
        config.pluginmanager.register(notes, "burstproof-collection")
    if results is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(CaseCollector(ResultLines(Path(results))), "burstproof-collector")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while modules are imported, nor ever among their objects, which live to the end anyway."""
    outermost = gc.isenabled() and not gc.get_freeze_count()
    if outermost:
        gc.disable()
    try:
        return (yield)
    finally:
        if outermost:
            gc.enable()
            gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse cases with invalid markers or with ids that are too long."""
    known = {row.id for row in load_requirements()}
    problems = [*dict.fromkeys(problem for item in items for problem in _marker_problems(item, known))]
    if problems:
        if hasattr(config, "workeroutput"):
            config.workeroutput[_REFUSED] = problems
        raise pytest.UsageError(*problems)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Repeat the refusal of a worker: pytest-xdist would end in an internal error without the reason."""
    refused = getattr(node, "workeroutput", {}).get(_REFUSED)
    if refused:
        raise pytest.UsageError(*refused)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a case whose gate is closed, or that the plan leaves out, with the reason."""
    why = why_skipped(item)
    if why:
        pytest.skip(why)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip without a reason, a broken declaration, and a pass without running into failures.

    The findings that the collector needs are attached to the report.
    """
    raised = call.excinfo is not None
    report = yield
    unreasoned = report.skipped and skip_reason(report) in _UNREASONED
    if unreasoned:
        vars(report).pop("wasxfail", None)  # with it pytest would not count the failure
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped without a reason; say why it did not run"
    measured = item.stash.get(_MEASUREMENTS, None)
    taken = measured.taken if measured is not None else ()
    broken = breach_of(item, taken) if report.when == "call" and report.passed else ""
    if broken:
        report.outcome = "failed"
        report.longrepr = f"{broken}; see the marker {declaring.MARKER} of {item.nodeid}"
    empty = report.when == "call" and report.passed and not (raised or ran(item))
    if empty:
        report.outcome, report.longrepr = "failed", NEVER_RAN
    overran = call.excinfo is not None and call.excinfo.errisinstance(CaseOverranError)
    unjudged = bool(unreasoned or broken or empty or overran)
    found = replace(findings_of(item), measurements=taken, unjudged=unjudged, raised=raised, ran=ran(item))
    found.put_on(report)
    return report


def findings_of(item: pytest.Item) -> Findings:
    """The findings that are known of a case before it runs."""
    return Findings(requirements_of(item), title_of(item), (), bears_on=bears_on(item))


def breach_of(item: pytest.Item, taken: Sequence[Measurement]) -> str:
    """How the measurements of a passing case break its declaration; a case of no stage needs no declaration."""
    declared = declaring.declared_by(item)
    return declaring.breach(declared, taken) if declared or stage_of(item.nodeid) is not None else ""


@pytest.fixture
def measure(request: pytest.FixtureRequest) -> Measure:
    """Attach measured figures to the running case: ``measure(name, value, unit, ...)``."""
    request.node.stash[_MEASUREMENTS] = taken = Measure(requirements_of(request.node))
    return taken


def why_skipped(item: pytest.Item) -> str:
    """Why a case does not run here: a closed gate, or the plan; empty if it runs."""
    for name in gates_of(item):
        reason = item.config.stash[_GATEKEEPER].closed_reason(name)
        if reason is not None:
            return f"gate {name} is closed: {reason}"
    return left_out(item)


def left_out(item: pytest.Item) -> str:
    """Why the plan leaves a case out; empty if it does not."""
    plan = item.config.getoption("--bp-plan")
    for kind in PLAN_KINDS[PLAN_KINDS.index(plan) + 1 :]:
        mark = item.get_closest_marker(kind)
        if mark is not None:
            return f"{plan} plan: left to --{kind}: {mark.args[0]}"
    return ""


def requirements_of(item: pytest.Item) -> tuple[str, ...]:
    """Ids of the requirements that a case proves, each once, those of its own marker first."""
    return tuple(name for name in _carried(item) if name not in bears_on(item))


def bears_on(item: pytest.Item) -> tuple[str, ...]:
    """Ids that a case carries but does not prove: those that ``not_proof`` names, or all if it names none."""
    marks = list(item.iter_markers("not_proof"))
    named = {name for mark in marks for name in mark.args}
    return tuple(name for name in _carried(item) if name in named or (marks and not named))


def _carried(item: pytest.Item) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for mark in item.iter_markers("requirement") for name in mark.args))


def gates_of(item: pytest.Item) -> tuple[str, ...]:
    """Return the gates of a case, each once."""
    return tuple(dict.fromkeys(name for mark in item.iter_markers("gate") for name in mark.args))


def title_of(item: pytest.Item) -> str:
    """Return the first line of the test's docstring, or its name; a parametrised case adds its parameters."""
    doc = getattr(getattr(item, "obj", None), "__doc__", None)
    lines = (doc or "").strip().splitlines()
    if not lines:
        return item.name
    _, bracket, parameters = item.name.partition("[")
    return f"{lines[0]} [{parameters}" if bracket else lines[0]


def _marker_problems(item: pytest.Item, known: set[str]) -> Iterator[str]:
    ids, gates = _carried(item), gates_of(item)
    if len(item.nodeid) > MAX_NODE_ID:
        yield (
            f"{item.nodeid[:MAX_NODE_ID]}...: the case's id has {len(item.nodeid)} characters, at most {MAX_NODE_ID} "
            "are allowed; give the parameters short ones: parametrize(..., ids=[...])"
        )
    if not ids and stage_of(item.nodeid) is not None:
        yield f"{item.nodeid}: no requirement id; mark the case with @pytest.mark.requirement('BE-1')"
    for name in ids:
        if name not in known:
            yield f"{item.nodeid}: unknown requirement {name!r}; ids are those of reports/requirements.toml"
    for name in (name for mark in item.iter_markers("not_proof") for name in mark.args if name not in ids):
        yield f"{item.nodeid}: no proof of {name!r}, which it does not carry"
    for name in gates:
        if name not in GATE_NAMES:
            yield f"{item.nodeid}: unknown gate {name!r}; gates are {', '.join(GATE_NAMES)}"
    if any(not mark.args for kind in _NEED_ARGUMENTS for mark in item.iter_markers(kind)):
        yield f"{item.nodeid}: a marker without an argument"
