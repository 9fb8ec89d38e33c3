"""Joins the JUnit files of the stages into one for the run, and likewise the pytest-benchmark files."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

from burstproof.network.files.atomic import write_atomically
from reports.values.record import StageRun
from stages.run_folder import RunFolder, write_json

JUNIT_NAME = "junit.xml"
BENCHMARK_NAME = "benchmark.json"


def join_evidence(folder: RunFolder, stages: tuple[StageRun, ...]) -> tuple[str, ...]:
    """Write ``junit.xml`` and ``benchmark.json`` of the run; return every file of evidence, relative to the folder."""
    join_junit(folder, stages)
    join_benchmarks(folder, stages)
    return (JUNIT_NAME, BENCHMARK_NAME, *folder.evidence([stage.stage for stage in stages]))


def join_junit(folder: RunFolder, stages: tuple[StageRun, ...]) -> None:
    """Write one JUnit file with a test suite for each stage; a stage that did not finish has another with an error."""
    root = ET.Element("testsuites", name=folder.path.name)
    for stage in stages:
        files = folder.files(stage.stage)
        for suite in (suite for path in files.of_all_sittings(files.junit) for suite in _suites(path)):
            suite.set("name", stage.stage)
            root.append(suite)
        if stage.problem:
            root.append(_problem_suite(stage))
    ET.indent(root)
    write_atomically(folder.path / JUNIT_NAME, ET.tostring(root, encoding="utf-8", xml_declaration=True))


def join_benchmarks(folder: RunFolder, stages: tuple[StageRun, ...]) -> None:
    """Write one pytest-benchmark file; machine and commit are those of the first stage that measured."""
    benchmarks: list[object] = []
    about: dict[str, object] = {}
    for stage in stages:
        files = folder.files(stage.stage)
        for path in files.of_all_sittings(files.benchmark):
            taken, rest = _benchmarks(path)
            benchmarks += taken
            about = rest | about
    write_json(folder.path / BENCHMARK_NAME, {**about, "benchmarks": benchmarks})


def _suites(path: Path) -> list[ET.Element]:
    try:
        return list(ET.parse(path).getroot().iter("testsuite"))
    except (FileNotFoundError, ET.ParseError):
        return []


def _problem_suite(stage: StageRun) -> ET.Element:
    counts = {"tests": "1", "errors": "1", "failures": "0", "skipped": "0"}
    suite = ET.Element("testsuite", {"name": f"{stage.stage}.run", **counts})
    case = ET.SubElement(suite, "testcase", classname=stage.stage, name="the stage runs to its end")
    ET.SubElement(case, "error", message=stage.problem)
    return suite


def _benchmarks(path: Path) -> tuple[list[object], dict[str, object]]:
    """The benchmarks of a pytest-benchmark file, and the rest of it; both empty if it cannot be read."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return [], {}
    taken = document.pop("benchmarks", []) if isinstance(document, dict) else None
    return (taken, document) if isinstance(taken, list) else ([], {})
