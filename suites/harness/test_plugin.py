"""The pytest plugin: markers, gates, reasons, measurements and result lines."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from hardware.gates import GATE_NAMES, Gate
from reports.values.measurement import CaseResult, Outcome
from stages import gating
from stages.plugin import MAX_NODE_ID
from stages.results import CaseLines, numbered, read_lines

pytestmark = pytest.mark.requirement("RE-2", "RE-1")

ROOT = Path(__file__).parents[2]
QUIET = ("-p", "no:cacheprovider", "-p", "no:benchmark", "-p", "no:xdist", "-p", "no:hypothesispytest")
MARK = "import pytest\npytestmark = pytest.mark.requirement('BE-1')\n"


@pytest.fixture
def closed_gpu(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A machine with NVML and without a usable GPU; the list grows with every evaluation."""
    asked: list[int] = []

    def gates(worker: int) -> dict[str, Gate]:
        assert worker == 0
        asked.append(1)
        return {n: Gate(n, n in ("none", "nvml"), f"{n} here" if n == "nvml" else f"no {n}") for n in GATE_NAMES}

    monkeypatch.setattr(gating, "machine_gates", gates)
    return asked


def load_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the processes that ``pytester`` starts load the plugin of this checkout."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "impl"), str(ROOT)]))
    pytester.makeconftest('pytest_plugins = ["stages.plugin"]')


def run_suite(pytester: pytest.Pytester, source: str, *args: str) -> tuple[pytest.RunResult, dict[str, CaseResult]]:
    pytester.makeconftest('pytest_plugins = ["stages.plugin"]')
    pytester.makepyfile(test_it=source)
    lines = pytester.path / "out" / "results.jsonl"
    result = pytester.runpytest_inprocess(*QUIET, f"--bp-results={lines}", *args)
    return result, {case.case.split("::")[-1]: case for case in read_lines(lines).cases}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return 1 == 2", "PytestReturnNotNoneWarning"),
        ("t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()", "PytestUnhandledThreadExceptionWarning"),
        ("type('X', (), {'__del__': lambda self: 1 / 0})()", "PytestUnraisableExceptionWarning"),
    ],
    ids=["returned", "in a thread", "in a finaliser"],
)
def test_a_fault_that_pytest_only_warns_of_is_no_pass(pytester: pytest.Pytester, body: str, reason: str) -> None:
    """With the options of this checkout."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    pytester.makeini("[pytest]\nfilterwarnings =\n" + "".join(f"    {one}\n" for one in options["filterwarnings"]))
    _, cases = run_suite(pytester, f"{MARK}import threading\ndef test_it(): {body}\n")
    assert cases["test_it"].outcome in (Outcome.FAILED, Outcome.ERROR)
    assert reason in cases["test_it"].reason


def test_every_outcome_is_recorded_with_its_reason(pytester: pytest.Pytester) -> None:
    result, cases = run_suite(
        pytester,
        MARK
        + """
@pytest.fixture
def broken(): raise OSError("no disk")
@pytest.fixture
def bad_end():
    yield
    raise OSError("no end")
def test_good():
    '''Says what it proves.

    And more.
    '''
def test_bad(): assert 1 == 2, "one is not two"
def test_setup(broken): pass
def test_teardown(bad_end): pass
def test_skip(): pytest.skip("no such board")
@pytest.mark.xfail(reason="known tie", strict=True)
def test_expected(): assert False
@pytest.mark.parametrize("size", [3])
def test_sized(size):
    '''Sized.'''
""",
    )
    result.assert_outcomes(passed=3, failed=1, errors=2, skipped=1, xfailed=1)
    outcomes = {name: (case.outcome, case.reason) for name, case in cases.items()}
    assert outcomes["test_good"] == (Outcome.PASSED, "")
    assert outcomes["test_bad"][0] is Outcome.FAILED
    assert "one is not two" in outcomes["test_bad"][1]
    assert outcomes["test_setup"] == (Outcome.ERROR, "setup: OSError: no disk")
    assert outcomes["test_teardown"] == (Outcome.ERROR, "teardown: OSError: no end")
    assert outcomes["test_skip"] == (Outcome.SKIPPED, "no such board")
    assert outcomes["test_expected"] == (Outcome.SKIPPED, "expected failure: known tie")
    assert cases["test_good"].title == "Says what it proves."
    assert cases["test_good"].requirements == ("BE-1",)
    assert cases["test_sized[3]"].title == "Sized. [3]"
    assert cases["test_bad"].title == "test_bad"
    assert all(case.duration_s > 0 for case in cases.values())


@pytest.mark.parametrize(
    "body",
    [
        "def test_it(): pytest.skip()",
        "@pytest.mark.skip\ndef test_it(): pass",
        "@pytest.mark.xfail\ndef test_it(): 1/0",
    ],
    ids=["skip", "mark", "xfail"],
)
def test_a_skip_without_a_reason_is_an_error(pytester: pytest.Pytester, body: str) -> None:
    result, cases = run_suite(pytester, MARK + body)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert cases["test_it"].outcome is Outcome.ERROR
    assert "without a reason" in cases["test_it"].reason


@pytest.mark.parametrize("order", ["", "tryfirst=True, ", "trylast=True, "])
def test_a_conftest_that_makes_passes_of_failures_is_caught(pytester: pytest.Pytester, order: str) -> None:
    folder = pytester.mkdir("part")
    (folder / "conftest.py").write_text(
        f"""import pytest
@pytest.hookimpl({order}wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        report.outcome, report.longrepr = "passed", None
    return report
""",
        encoding="utf-8",
    )
    bad = "@pytest.fixture\ndef broken(): 1 / 0\ndef test_bad(): assert 0\ndef test_setup(broken): pass\n"
    (folder / "test_part.py").write_text(MARK + bad + "def test_good(): pass\n", encoding="utf-8")
    result, cases = run_suite(pytester, MARK)
    assert cases["test_good"].outcome is Outcome.PASSED
    assert cases["test_bad"].outcome is Outcome.ERROR
    assert cases["test_bad"].reason.startswith("call: it raised, and a hook made a pass of that")
    assert cases["test_setup"].outcome is Outcome.ERROR
    result.assert_outcomes(passed=3)  # which contradicts the results: the stage is an ERROR


BODY = "getattr(getattr(obj, 'hypothesis', None), 'inner_test', obj)"
REPLACES = {
    "function": "def pytest_itemcollected(item): item.obj = lambda: None",
    "function_of_its_name": """import functools
def pytest_itemcollected(item): item.obj = functools.wraps(item.obj)(lambda: None)""",
    "code": f"""def pytest_pycollect_makeitem(collector, name, obj):
    if name.startswith('test'): {BODY}.__code__ = (lambda **_: None).__code__""",
    "code_of_its_line": f"""def pytest_runtest_setup(item):
    obj = item.obj
    code = {BODY}.__code__
    {BODY}.__code__ = (lambda **_: None).__code__.replace(co_filename=code.co_filename, co_name=code.co_name,
        co_qualname=code.co_qualname, co_firstlineno=code.co_firstlineno)""",
    "call": "def pytest_pyfunc_call(pyfuncitem): return True",
    "run": "def pytest_itemcollected(item): item.runtest = lambda: None",
    "kind": """import pytest
class Nothing(pytest.Item):
    def runtest(self): pass
def pytest_pycollect_makeitem(collector, name):
    return Nothing.from_parent(collector, name=name) if name.startswith('test') else None""",
    "exception": """import pytest
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call():
    try: return (yield)
    except BaseException: return True""",
    "exception_of_the_phase": """import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    try: return (yield)
    except BaseException: return None""",
    "phases": """from _pytest import runner
def pytest_runtest_protocol(item, nextitem):
    if 'phases' not in item.nodeid: return
    for phase in 'setup', 'teardown': runner.call_and_report(item, phase, nextitem=nextitem)
    return True""",
    "reports": """import pytest
def pytest_runtest_protocol(item, nextitem):
    if 'reports' not in item.nodeid: return
    for phase in 'setup', 'call', 'teardown':
        report = pytest.TestReport(item.nodeid, item.location, {}, 'passed', None, phase)
        item.ihook.pytest_runtest_logreport(report=report)
    return True""",
}
"""Hooks of a conftest file under which pytest reports a case as passed whose function fails."""


def test_a_conftest_that_replaces_what_a_case_does_is_caught(pytester: pytest.Pytester) -> None:
    """Plain cases and such with ``@given``; beside the hooks' folders both kinds pass."""
    source = MARK + "from hypothesis import given\nfrom hypothesis.strategies import none\n"
    source += "def test_plain{0}(): assert {1}\n@given(none())\ndef test_given{0}(none): assert {1}\n"
    for name, hook in REPLACES.items():
        folder = pytester.mkdir(name)
        (folder / "conftest.py").write_text(hook, encoding="utf-8")
        (folder / f"test_{name}.py").write_text(source.format(f"_{name}", 0), encoding="utf-8")
    _, cases = run_suite(pytester, source.format("", 1))
    assert len(cases) == 2 + 2 * len(REPLACES)
    assert {cases.pop(name).outcome for name in ("test_plain", "test_given")} == {Outcome.PASSED}
    assert {case.outcome for case in cases.values()} == {Outcome.ERROR}
    wrong = [name for name, case in cases.items() if "the source did not run to its end" not in case.reason]
    assert wrong == []


def test_a_closed_gate_skips_with_its_reason_and_is_evaluated_once(
    pytester: pytest.Pytester, closed_gpu: list[int]
) -> None:
    result, cases = run_suite(
        pytester,
        MARK
        + """
@pytest.fixture
def device(): raise AssertionError("touched the GPU")
@pytest.mark.gate("gpu")
def test_gpu(device): pass
@pytest.mark.gate("multi_gpu")
def test_multi(device): pass
@pytest.mark.gate("nvml")
def test_nvml(): pass
@pytest.mark.parametrize("backend", ["cpu", pytest.param("cuda", marks=pytest.mark.gate("gpu"))])
def test_both(backend): pass
""",
    )
    result.assert_outcomes(passed=2, skipped=3)
    assert cases["test_gpu"].reason == "gate gpu is closed: no gpu"
    assert cases["test_multi"].reason == "gate multi_gpu is closed: no multi_gpu"
    assert cases["test_both[cuda]"].outcome is Outcome.SKIPPED
    assert len(closed_gpu) == 1


def test_cases_that_were_asked_for_come_first_and_all_of_them_run(pytester: pytest.Pytester) -> None:
    source = MARK + "@pytest.mark.parametrize('size', ['1M', '5M', '20M', '100M'])\ndef test_row(size): pass\n"
    order = ["test_row[20M]", "test_row[1M]", "test_row[5M]", "test_row[100M]"]
    _, cases = run_suite(pytester, source, "--bp-first=[20M]", "--bp-first=nothing", "--bp-first=[1M]")
    assert list(cases) == order


@pytest.mark.thorough("starts pytest and a worker")
def test_cases_that_were_asked_for_come_first_where_units_are_handed_out(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before those with a time limit of their own."""
    load_plugin(pytester, monkeypatch)
    limited = "@pytest.mark.time_limit(9)\ndef test_limited(): pass\n"
    pytester.makepyfile(test_it=MARK + limited + "def test_free(): pass\ndef test_asked(): pass\n")
    lines = pytester.path / "results.jsonl"
    options = ("-n", "1", "--dist", "loadgroup", "--bp-first=asked", f"--bp-results={lines}")
    pytester.runpytest_subprocess(*QUIET[:4], "-p", "no:hypothesispytest", *options)
    names = [case.case.split("::")[-1] for case in read_lines(lines).cases]
    assert names == ["test_asked", "test_limited", "test_free"]


def test_gates_are_not_evaluated_where_no_case_has_one(pytester: pytest.Pytester, closed_gpu: list[int]) -> None:
    result, _ = run_suite(pytester, MARK + "def test_it(): pass")
    result.assert_outcomes(passed=1)
    assert closed_gpu == []


def test_gpu_free_closes_every_hardware_gate_without_asking(pytester: pytest.Pytester, closed_gpu: list[int]) -> None:
    body = "@pytest.mark.gate('nvml')\ndef test_it(): pass\n@pytest.mark.gate('none')\ndef test_free(): pass"
    result, cases = run_suite(pytester, MARK + body, "--gpu-free")
    result.assert_outcomes(passed=1, skipped=1)
    assert cases["test_it"].reason == f"gate nvml is closed: {gating.GPU_FREE_REASON}"
    assert closed_gpu == []


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("requirement('BE-99')", "unknown requirement 'BE-99'"),
        ("gate('tpu')", "unknown gate 'tpu'"),
        ("gate()", "a marker without an argument"),
    ],
)
def test_a_marker_that_means_nothing_stops_the_collection(pytester: pytest.Pytester, mark: str, said: str) -> None:
    result, cases = run_suite(pytester, f"import pytest\n@pytest.mark.{mark}\ndef test_it(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}*"])
    assert cases == {}


def test_an_id_that_nobody_can_read_stops_the_collection(pytester: pytest.Pytester) -> None:
    body = "import pytest\n@pytest.mark.parametrize('size', [3], ids=['{}'])\ndef test_it(size): pass"
    room = MAX_NODE_ID - len("test_it.py::test_it[]")
    result, _ = run_suite(pytester, body.format("a" * room))
    result.assert_outcomes(passed=1)
    result, cases = run_suite(pytester, body.format("b" * (room + 1)))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the case's id has 201 characters, at most 200*ids=*"])
    assert not any("b" in name for name in cases)


@pytest.mark.parametrize("spread", [(), ("-n", "2")], ids=["one process", "workers"])
def test_a_case_of_a_stage_needs_a_requirement(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, spread: Sequence[str]
) -> None:
    load_plugin(pytester, monkeypatch)
    folder = pytester.mkpydir("suites") / "stage1_compile"
    folder.mkdir()
    (folder / "test_bare.py").write_text("def test_bare(): pass\n", encoding="utf-8")
    pytester.makepyfile(test_it=MARK + "def test_it(): pass")
    result = pytester.runpytest_subprocess(*QUIET[:4], "-p", "no:hypothesispytest", *spread)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_bare.py::test_bare: no requirement id*"])


def test_measurements_travel_with_their_case(pytester: pytest.Pytester) -> None:
    _, cases = run_suite(
        pytester,
        MARK
        + """
import numpy as np
def test_it(measure):
    measure("burst.latency", np.float64(1.5), "ms", samples=np.array([1.0, 2.0]),
            conditions={"neurons": np.int64(7), "cold_l2": np.bool_(True)}, telemetry={"sm_mhz": 1980}, note="checked")
    measure("burst.missing", None, "ms", requirements=["BE-4", "ST-6"])
    measure("burst.nan", float("nan"), "ms")
    assert False
""",
    )
    latency, missing, nan = cases["test_it"].measurements
    assert cases["test_it"].outcome is Outcome.FAILED
    assert (latency.value, latency.unit, latency.samples) == (1.5, "ms", (1.0, 2.0))
    assert latency.conditions == {"neurons": 7, "cold_l2": True}
    assert latency.conditions["cold_l2"] is True
    assert (latency.telemetry, latency.note, latency.requirements) == ({"sm_mhz": 1980}, "checked", ("BE-1",))
    assert missing.value is None
    assert missing.requirements == ("BE-4", "ST-6")
    assert nan.value is not None
    assert math.isnan(nan.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "a.rate is declared and was not measured"),
        ("measure('a.rat', 1, '1/s', conditions={'size': 1})", "a.rate is declared and was not measured"),
        ("measure('a.rate', 1, '1/s', conditions={'sise': 1})", "a.rate does not say its size, which is declared"),
        ("measure('a.rate', 1, '1/s', conditions={'size': 3})", "size of a.rate is 3, declared 1 or 2"),
        (
            "measure('a.rate', 1, '1/s', conditions={'size': 2}); measure('b', 1, '1')",
            "b was measured and is not declared",
        ),
        ("measure('a.rate', 1, '1/s', conditions={'size': 2})", ""),
        ("pytest.skip('no board')", ""),
        ("assert 1 == 2", "assert 1 == 2"),
    ],
    ids=["nothing", "name", "condition", "value", "undeclared", "as declared", "skipped", "failed"],
)
def test_a_case_delivers_what_it_declares(pytester: pytest.Pytester, body: str, said: str) -> None:
    """A passing case that does not is an error; a misspelt name or condition is found so."""
    mark = (
        "@pytest.mark.measures('a.rate', size=[1, 2])\n@pytest.mark.measures('a.peer', only_if='a peer is installed')\n"
    )
    _, cases = run_suite(pytester, f"{MARK}{mark}def test_it(measure):\n    {body or 'pass'}\n")
    case = cases["test_it"]
    broken = said and "assert" not in said
    assert (case.outcome is Outcome.ERROR) == bool(broken)
    assert said in case.reason


def test_a_case_of_a_stage_declares_what_it_measures(pytester: pytest.Pytester) -> None:
    folder = pytester.mkpydir("suites") / "stage1_compile"
    folder.mkdir()
    (folder / "test_staged.py").write_text(
        MARK + "def test_it(measure): measure('a.rate', 1, '1/s')\n", encoding="utf-8"
    )
    _, cases = run_suite(pytester, MARK + "def test_free(measure): measure('a.rate', 1, '1/s')", "suites", "test_it.py")
    assert cases["test_free"].outcome is Outcome.PASSED
    assert cases["test_it"].outcome is Outcome.ERROR
    assert "a.rate was measured and is not declared" in cases["test_it"].reason


@pytest.mark.parametrize(
    ("mark", "proves", "bears_on"),
    [("", ("BE-4", "BE-1"), ()), ("not_proof", (), ("BE-4", "BE-1")), ("not_proof('BE-1')", ("BE-4",), ("BE-1",))],
)
def test_a_case_says_what_it_is_no_proof_of(
    pytester: pytest.Pytester, mark: str, proves: tuple[str, ...], bears_on: tuple[str, ...]
) -> None:
    marker = f"@pytest.mark.{mark}\n" if mark else ""
    _, cases = run_suite(pytester, f"{MARK}{marker}@pytest.mark.requirement('BE-4')\ndef test_it(): pass\n")
    assert (cases["test_it"].requirements, cases["test_it"].bears_on) == (proves, bears_on)


def test_no_proof_of_what_it_does_not_carry(pytester: pytest.Pytester) -> None:
    result, _ = run_suite(pytester, f"{MARK}@pytest.mark.not_proof('BE-2')\ndef test_it(): pass\n")
    result.stderr.fnmatch_lines(["*no proof of 'BE-2', which it does not carry*"])


def test_a_condition_that_is_no_scalar_is_refused(pytester: pytest.Pytester) -> None:
    _, cases = run_suite(pytester, MARK + "def test_it(measure): measure('a', 1, '1', conditions={'x': [1]})")
    assert "a condition or telemetry value is a string, number or boolean" in cases["test_it"].reason


@pytest.mark.parametrize(
    ("source", "outcome", "reason"),
    [
        ("import no_such_module_here", Outcome.ERROR, "no_such_module_here"),
        ("import pytest\npytest.importorskip('no_such_module_here')", Outcome.SKIPPED, "could not import"),
        ("import pytest\npytest.skip('', allow_module_level=True)", Outcome.ERROR, "skipped without a reason"),
    ],
    ids=["import error", "importorskip", "skip"],
)
def test_a_module_that_is_not_collected_is_recorded(
    pytester: pytest.Pytester, source: str, outcome: Outcome, reason: str
) -> None:
    _, cases = run_suite(pytester, source)
    assert cases["test_it.py"].outcome is outcome
    assert reason in cases["test_it.py"].reason


def test_a_crash_leaves_the_finished_cases_and_the_name_of_the_crashed_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_plugin(pytester, monkeypatch)
    pytester.makepyfile(test_it=MARK + "import os\ndef test_a(): pass\ndef test_b(): os._exit(9)\ndef test_c(): pass")
    lines = pytester.path / "results.jsonl"
    result = pytester.runpytest_subprocess(*QUIET, f"--bp-results={lines}")
    assert result.ret == 9
    read = read_lines(lines)
    assert [case.case for case in read.cases] == ["test_it.py::test_a"]
    assert read.unfinished == ("test_it.py::test_b",)


@pytest.mark.thorough("seconds")
def test_under_xdist_the_controller_writes_what_the_workers_found(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_plugin(pytester, monkeypatch)
    body = """
def test_figure(measure): measure("a.b", float("nan"), "ms", samples=[1, 2], conditions={"n": 1})
def test_bad(): assert 1 == 2
def test_skip(): pytest.skip("no board")
def test_crash():
    import os
    os._exit(5)
"""
    pytester.makepyfile(test_it=MARK + body)
    lines = pytester.path / "results.jsonl"
    pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-n", "2", f"--bp-results={lines}"
    )
    cases = {case.case.split("::")[-1]: case for case in read_lines(lines).cases}
    assert cases["test_figure"].measurements[0].samples == (1.0, 2.0)
    assert cases["test_figure"].requirements == ("BE-1",)
    assert (cases["test_bad"].outcome, cases["test_skip"].reason) == (Outcome.FAILED, "no board")
    assert cases["test_crash"].outcome is Outcome.ERROR
    assert "crashed" in cases["test_crash"].reason


@pytest.mark.thorough("seconds")
def test_what_a_worker_skips_at_once_leaves_no_fixture_behind(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases that do not run stand before, between and after others, in classes and modules with fixtures."""
    load_plugin(pytester, monkeypatch)
    body = """
@pytest.fixture(scope="module", autouse=True)
def module():
    yield
    with open("ended", "a") as file: file.write(__name__ + " ")
left = pytest.mark.nightly("takes long")
@left
def test_0(): assert 0
def test_1(): pass
@left
def test_2(): assert 0
class TestGroup:
    @pytest.fixture(scope="class", autouse=True)
    def group(self):
        yield
        with open("ended", "a") as file: file.write("group ")
    @left
    def test_3(self): assert 0
    def test_4(self): pass
    @left
    def test_5(self): assert 0
    @left
    def test_6(self): assert 0
@left
@pytest.mark.skipif(True, reason="no board")
def test_7(): assert 0
@left
@pytest.mark.skip
def test_8(): assert 0
@left
def test_9(): assert 0
"""
    pytester.makepyfile(test_a=MARK + body, test_b=MARK + body)
    lines, junit = pytester.path / "results.jsonl", pytester.path / "junit.xml"
    options = ("-n", "1", f"--bp-results={lines}", f"--junitxml={junit}")
    result = pytester.runpytest_subprocess(*QUIET[:4], "-p", "no:hypothesispytest", *options)
    result.assert_outcomes(passed=4, skipped=14, errors=2)
    assert (pytester.path / "ended").read_text().split() == ["group", "test_a", "group", "test_b"]
    cases = {case.case.replace("::TestGroup", ""): case for case in read_lines(lines).cases}
    assert [cases[f"test_{module}.py::test_{n}"].outcome for module in "ab" for n in (1, 4)] == [Outcome.PASSED] * 4
    said = [case.reason for case in cases.values() if case.outcome is Outcome.SKIPPED]
    left = "thorough plan: left to --nightly: takes long"
    assert sorted(said) == ["no board"] * 2 + [left] * 12
    assert {case.requirements for case in cases.values()} == {("BE-1",)}
    unsaid = [case.reason for case in cases.values() if case.outcome is Outcome.ERROR]
    assert ["was skipped without a reason" in reason for reason in unsaid] == [True] * 2
    assert junit.read_text(encoding="utf-8").count(left) == 24


def test_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(numbered(1, {"started": "a"}) + "\n" + numbered(2, {"started": "b"})[:-5], encoding="utf-8")
    assert read_lines(path) == CaseLines((), ("a",))
    assert read_lines(tmp_path / "none.jsonl") == CaseLines()


def test_without_a_path_nothing_is_written(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["stages.plugin"]')
    pytester.makepyfile(test_it=MARK + "def test_it(): pass")
    before = {path.name for path in pytester.path.iterdir()}
    pytester.runpytest_inprocess(*QUIET).assert_outcomes(passed=1)
    assert {path.name for path in pytester.path.iterdir()} - before <= {"__pycache__"}


@pytest.mark.thorough("starts pytest several times")
def test_a_group_stays_in_one_process_and_ids_stay_as_they_are(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases, or files, without a group are spread; the ids are those of a run in one process."""
    load_plugin(pytester, monkeypatch)
    source = """
import os, pathlib, time
def note(n):
    time.sleep(0.05)
    pathlib.Path(f"ran{n}").write_text(os.environ["PYTEST_XDIST_WORKER"])
@pytest.mark.parametrize("n", range(8))
@pytest.mark.xdist_group("costly")
def test_grouped(n): note(n)
@pytest.mark.parametrize("n", range(10, 18))
def test_free(n): note(n)
"""
    pytester.makepyfile(test_it=MARK + source)
    lines = pytester.path / "out" / "results.jsonl"
    spread = ("-n", "2", "--dist", "loadgroup")
    result = pytester.runpytest_subprocess(*QUIET[:4], "-p", "no:hypothesispytest", *spread, f"--bp-results={lines}")
    assert result.ret == pytest.ExitCode.OK
    workers = {int(path.name[3:]): path.read_text() for path in pytester.path.glob("ran*")}
    assert len({workers[n] for n in range(8)}) == 1
    assert len(set(workers.values())) == 2
    assert {case.case for case in read_lines(lines).cases} == {
        *(f"test_it.py::test_grouped[{n}]" for n in range(8)),
        *(f"test_it.py::test_free[{n}]" for n in range(10, 18)),
    }

    together = "pytestmark = [pytestmark, pytest.mark.file_group('costly')]\n"
    case = "def test_it():\n    import os, pathlib\n"
    case += "    pathlib.Path(__file__).with_suffix('.ran').write_text(os.environ['PYTEST_XDIST_WORKER'])\n"
    pytester.makepyfile(**{f"test_file{n}": MARK + (together if n < 2 else "") + case for n in range(3)})
    spread = ("-n", "2", "--dist", "loadfile", *(f"test_file{n}.py" for n in range(3)))
    assert pytester.runpytest_subprocess(*QUIET[:4], "-p", "no:hypothesispytest", *spread).ret == pytest.ExitCode.OK
    first, second, other = ((pytester.path / f"test_file{n}.ran").read_text() for n in range(3))
    assert first == second != other
