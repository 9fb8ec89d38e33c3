"""The cases of the matrix, each named once: by file and test function, to which every requirement leads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.evidence import evidence_of
from reports.html import render
from reports.judge.trace import TraceRow, trace
from suites.support.report_page import Page
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-3", "ST-7")

FILE = "suites/stage5_parity/test_bursts.py"


def rows(*cases: tuple[str, ...]) -> tuple[TraceRow, ...]:
    """Rows of the matrix with these cases, and without any for what else is required."""
    known = [replace(row, cases=()) for row in trace(sample_record())]
    return (*(replace(row, cases=own) for row, own in zip(known, cases, strict=False)), *known[len(cases) :])


def test_every_case_is_named_once_and_every_requirement_leads_to_it() -> None:
    both = (f"{FILE}::test_a[cpu-1]", f"{FILE}::test_a[cpu-2]")
    some = rows((*both, f"{FILE}::test_b"), (both[1], "suites/other.py::test_a"))
    found = evidence_of(some)
    assert found.case_count == 4
    named = [(file, one.name, one.text) for file, functions in found.files.items() for one in functions]
    parity = FILE.removeprefix("suites/")
    assert named == [(parity, "test_a", "[cpu-{1 | 2}]"), (parity, "test_b", ""), ("other.py", "test_a", "")]
    for row in some:
        proofs = found.proofs[row.requirement.id]
        ids = [f"suites/{f}::{p.function.name}{case}" for f, of in proofs.items() for p in of for case in p.cases]
        assert sorted(ids) == sorted(row.cases)
    first, second = (found.proofs[row.requirement.id][parity] for row in some[:2])
    assert [proof.extent for proof in (*first, *second)] == ["(2)", "", "(1 of 2: [cpu-2])"]


def test_the_matrix_leads_to_each_function() -> None:
    page = render(sample_record())
    (fold,) = (part for part in page.split("<details") if "cases that prove a requirement" in part)
    assert fold.startswith(' class="fold"')
    targets = {attributes["id"] for attributes in Page(page).every("div") if attributes.get("id")}
    leads = {str(attributes["href"])[1:] for attributes in Page(page).every("a")}
    assert targets
    assert targets <= leads
