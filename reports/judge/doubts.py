"""No parity, no number: figures do not count if their case failed or if the result was found to be wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from reports.values import units
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from reports.values.record import RunRecord

_PARITY_STAGE, _PARITY = "stage5", "parity."
_NOT_OF_AN_ENGINE = {"ST", "RE", "SU"}
"""Families of requirements about stages, reports and subjects: they do not say what a case computed."""


@dataclass(frozen=True)
class Doubts:
    """The failures of a run that make figures of speed worthless.

    ``failed`` has the cases that failed, ``families`` by case the families of its requirements (``BE``, ``TO``).
    ``wrong`` has each failed case of parity, the backends that it names (empty: all), and its families.
    """

    failed: frozenset[str]
    families: Mapping[str, frozenset[str]]
    wrong: tuple[tuple[str, frozenset[str], frozenset[str]], ...]

    def about(self, case: str, measurement: Measurement) -> str:
        """Why a figure of ``case`` does not count; empty if it does."""
        if case in self.failed:
            return "the case that measured it failed"
        backend = _backend(measurement)
        against = [
            name
            for name, backends, families in self.wrong
            if families & self.families[case] and (not backends or not backend or backend in backends)
        ]
        if not against:
            return ""
        return f"the result was not right: {units.counted(len(against), 'case')} of parity failed, {against[0]}"


def doubts_of(record: RunRecord) -> Doubts:
    """Find the cases of a run that failed, and those of parity."""
    failed = {case.case for case in record.cases if case.outcome in (Outcome.FAILED, Outcome.ERROR)}
    bad = {one.case for one in record.judgements if one.judgement.verdict in (Verdict.FAIL, Verdict.ERROR)} | failed
    known = frozenset(_backend(measurement) for measurement in record.measurements)
    return Doubts(
        frozenset(failed),
        {case.case: _families(case) for case in record.cases},
        tuple(
            (case.case, _backends(case, known), _families(case))
            for case in record.cases
            if case.case in bad and _is_parity(case)
        ),
    )


def _families(case: CaseResult) -> frozenset[str]:
    """Families of the requirements that a case carries, itself or in its measurements."""
    carried = {*case.requirements, *(name for measurement in case.measurements for name in measurement.requirements)}
    return frozenset(name.partition("-")[0] for name in carried) - _NOT_OF_AN_ENGINE


def _is_parity(case: CaseResult) -> bool:
    return case.stage == _PARITY_STAGE or any(one.name.startswith(_PARITY) for one in case.measurements)


def _backends(case: CaseResult, known: frozenset[str]) -> frozenset[str]:
    """Backends of a case, by its figures and by the parameters in its id: ``cuda`` of ``[cuda-stdp_w3]``."""
    named = re.split(r"[^a-z]+", case.case.partition("[")[2])
    return frozenset({_backend(one) for one in case.measurements} | known.intersection(named)) - {""}


def _backend(measurement: Measurement) -> str:
    """The backend without its options: ``cpu`` of ``cpu, 1 thread``."""
    return str(measurement.conditions.get("backend", "")).partition(",")[0]
