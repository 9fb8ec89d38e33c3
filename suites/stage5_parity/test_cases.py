"""Every backend against cases worked out by hand."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet

from burstproof.engine.profile import FEAGI_BETA
from suites.support.parity import backends
from suites.support.parity.backends import ONE_THREAD, own_kernels
from suites.support.parity.builder import Case, run_case
from suites.support.parity.cases import CASES

# the first of these files to run compiles the kernels that the other needs: side by side both would
pytestmark = [pytest.mark.requirement("BE-4", "BE-17", "ST-5"), pytest.mark.file_group("general kernels")]


@pytest.mark.not_proof
def test_case_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def _on(backend: ParameterSet, case: Case) -> ParameterSet:
    """A case on a backend; those of the CPU under ``feagi-beta`` stay in one process, as they share two kernels."""
    beta = case.options.profile is FEAGI_BETA and str(backend.id).startswith("cpu")
    marks = [pytest.mark.xdist_group("feagi-beta on the CPU"), *own_kernels(backend, ONE_THREAD)] if beta else []
    return pytest.param(*backend.values, case, id=f"{case.name}-{backend.id}", marks=[*backend.marks, *marks])


@pytest.mark.parametrize(("backend", "case"), [_on(backend, case) for backend in backends.ALL for case in CASES])
def test_case(backend: backends.Backend, case: Case) -> None:
    """A network written down synapse by synapse does what SEMANTICS.md says."""
    problems = run_case(case, backend.create)
    assert not problems, "; ".join(problems)
