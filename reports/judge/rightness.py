"""Whether results were right, in one sentence for the first screen of the report."""

from __future__ import annotations

from collections import Counter

from reports.judge.verdict import case_verdict
from reports.values import units
from reports.values.measurement import Verdict
from reports.values.record import RunRecord

_STAGE = "stage5"
_RIGHT = {"parity.bursts_agreeing": 1.0, "parity.disagreements": 0.0}
_CHECKED = "; stages 6 and 7 take no figure of a result that was not checked first"


def rightness(record: RunRecord) -> tuple[Verdict, str]:
    """PASS, FAIL, ERROR (a case could not be judged) or SKIPPED (nothing was compared), and the sentence."""
    cases = record.cases_of(_STAGE)
    verdicts = Counter(case_verdict(case, record.judgements_of(case.case)) for case in cases)
    bad, unjudged, passed = (verdicts[one] for one in (Verdict.FAIL, Verdict.ERROR, Verdict.PASS))
    compared = [one for one in record.measurements if one.name in _RIGHT]
    equal = [one for one in compared if one.figure == _RIGHT[one.name]]
    backends = Counter(str(one.conditions.get("backend") or "several GPUs").partition(",")[0] for one in equal)
    of_each = ", ".join(f"{name} {count}" for name, count in backends.most_common())
    parts = [f"{len(equal)} of {len(compared)} comparisons agree in every burst ({of_each})"] if equal else []
    if passed or bad or unjudged:
        parts.append(f"of the cases of parity {passed} passed, {bad} failed")
    if unjudged:
        parts.append(f"{units.counted(unjudged, 'case')} could not be judged")
    if bad or len(equal) < len(compared):
        return Verdict.FAIL, f"Not right: {'; '.join(parts) or 'no comparison agrees'}."
    if unjudged:
        return Verdict.ERROR, f"Right so far: {'; '.join(parts)}."
    if not parts:
        return Verdict.SKIPPED, f"Right? No results were compared in this run{_CHECKED}."
    return Verdict.PASS, f"Right: {'; '.join(parts)}."
