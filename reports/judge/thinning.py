"""Thins a record so that it can be committed: values and verdicts stay, long series of samples are shortened."""

from __future__ import annotations

import re
from dataclasses import replace

from reports.values.measurement import CaseResult, Measurement
from reports.values.record import RunRecord

KEPT_SAMPLES = 60
"""Most samples kept of a measurement: all of a steady series, and enough of a noisy one to compare two runs."""

KEPT_DIGITS = 5
"""Significant digits of samples; values, which are judged, keep all digits."""

UNSEALED = "a record without a seal"
"""``thinned_from`` of a thinned record whose whole one had no digests."""

_DURATION_DECIMALS = 1

_CHECKOUT = re.compile(r"/[^\s'\"]*?/(?=(?:impl|suites|stages|reports|hardware)/)")
"""An absolute path up to a top-level folder of the checkout."""


def thin(record: RunRecord) -> RunRecord:
    """``record`` with at most ``KEPT_SAMPLES`` evenly spaced samples per measurement, in the order taken.

    Samples are rounded to ``KEPT_DIGITS``; the note of a thinned measurement says how many samples it had. Paths in
    reasons of cases are made relative to the checkout. Attachments are left out, since their files stay with the run.
    All else stays as it was. The result is sealed when it is written; ``thinned_from`` holds the seal of ``record``.
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
