"""Every backend against cases worked out by hand."""

from __future__ import annotations

import pytest

from suites.support.parity import backends
from suites.support.parity.builder import Case, run_case
from suites.support.parity.cases import CASES

# the first of these files to run compiles the kernels that the other needs: side by side both would
pytestmark = [pytest.mark.requirement("BE-4", "BE-17", "ST-5"), pytest.mark.file_group("general kernels")]


@pytest.mark.not_proof
def test_case_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("backend", backends.ALL)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(backend: backends.Backend, case: Case) -> None:
    """A network written down synapse by synapse does what SEMANTICS.md says."""
    problems = run_case(case, backend.create)
    assert not problems, "; ".join(problems)
