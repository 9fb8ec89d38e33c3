"""A record small enough to commit: what was measured and decided stays whole, long rows of samples are thinned."""

from __future__ import annotations

import re
from dataclasses import replace

from reports.values.measurement import CaseResult, Measurement
from reports.values.record import RunRecord

KEPT_SAMPLES = 60
"""Samples kept of each measurement: a steady series whole, and of a noisy one enough to compare two runs."""

KEPT_DIGITS = 5
"""Significant digits of samples; the values, which are judged, keep all of theirs."""

UNSEALED = "a record without a seal"
"""What a thinned record says of the whole one, where that had no digests."""

_DURATION_DECIMALS = 1

_CHECKOUT = re.compile(r"/[^\s'\"]*?/(?=(?:impl|suites|stages|reports|hardware)/)")
"""An absolute path up to a top-level folder of the checkout."""


def thin(record: RunRecord) -> RunRecord:
    """``record`` with at most ``KEPT_SAMPLES`` evenly spaced samples per measurement, in the order taken.

    Samples are rounded to ``KEPT_DIGITS``; the note of a thinned measurement says how many samples it had. Paths in
    reasons of cases begin at the checkout. Attachments, which lie elsewhere, are left out. All else stays as it was.
    It is sealed anew when it is written; ``thinned_from`` holds the seal of ``record``.
    """
    return replace(
        record,
        cases=tuple(map(_thin_case, record.cases)),
        attachments=(),
        thinned_from=record.thinned_from or (f"seal {record.seal}" if record.seal else UNSEALED),
        digests={},
    )


def _thin_case(case: CaseResult) -> CaseResult:
    return replace(
        case,
        reason=_CHECKOUT.sub("", case.reason),
        duration_s=round(case.duration_s, _DURATION_DECIMALS),
        measurements=tuple(map(_thin_measurement, case.measurements)),
    )


def _thin_measurement(measurement: Measurement) -> Measurement:
    samples, note = measurement.samples, measurement.note
    if len(samples) > KEPT_SAMPLES:
        samples = tuple(samples[index * (len(samples) - 1) // (KEPT_SAMPLES - 1)] for index in range(KEPT_SAMPLES))
        note = "; ".join(filter(None, (note, f"{KEPT_SAMPLES} of {len(measurement.samples)} samples kept")))
    rounded = tuple(float(f"{sample:.{KEPT_DIGITS}g}") for sample in samples)
    return replace(measurement, samples=rounded, note=note)
