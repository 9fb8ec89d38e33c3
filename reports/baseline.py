"""A record small enough to commit: what was decided stays whole, rows of samples and of like figures are thinned."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from reports import serialise
from reports.aggregation import aggregate
from reports.measurement import CaseResult, Measurement, Outcome
from reports.packing import function_of
from reports.record import RECORD_NAME, RunRecord

KEPT_SAMPLES = 60
"""Samples kept of each measurement: a steady series whole, and of a noisy one enough to compare two runs."""

LONGEST_ID = 200
"""Longer ids of cases are cut: records from before such ids were refused hold whole files in them."""

KEPT_DIGITS = 5
"""Significant digits of samples; the values, which are judged, keep all of theirs."""

_DURATION_DECIMALS = 1

_CHECKOUT = re.compile(r"/[^\s'\"]*?/(?=(?:impl|suites|stages|reports|hardware)/)")
"""An absolute path up to a top-level folder of the checkout."""


def thin(record: RunRecord, kept: int = KEPT_SAMPLES) -> RunRecord:
    """``record`` with at most ``kept`` evenly spaced samples per measurement, in the order taken.

    Of figures that say right or wrong the worst of each test function stays (:func:`reports.aggregation.aggregate`).
    Values, conditions, telemetry and judgements of what is kept and every case that did not pass stay as they were;
    samples are rounded to ``KEPT_DIGITS``. Attachments, which lie elsewhere, are left out, paths in reasons of cases
    begin at the checkout, and ids of more than ``LONGEST_ID`` characters end in a digest. Titles lose the parameters,
    which the ids have, and those of cases that passed and have no figure are left out: the code has them.
    The note of a thinned measurement says how many samples it had.
    """
    cases, judgements = aggregate(record.cases, record.judgements)
    thinned = (_thin_case(case, kept) for case in cases)
    judged = tuple(replace(one, case=_short(one.case)) for one in judgements)
    return replace(record, cases=tuple(thinned), judgements=judged, attachments=())


def _is_plain(case: CaseResult) -> bool:
    """Whether a case passed and has no figure."""
    return case.outcome is Outcome.PASSED and not case.measurements


def _short(case: str) -> str:
    """``case``, or its beginning and a digest of it all."""
    if len(case) <= LONGEST_ID:
        return case
    digest = hashlib.sha256(case.encode()).hexdigest()[:12]
    return f"{case[: LONGEST_ID - len(digest) - 3]}...{digest}"


def _thin_case(case: CaseResult, kept: int) -> CaseResult:
    measurements = tuple(_thin_measurement(item, kept) for item in case.measurements)
    plain = _is_plain(case)
    return replace(
        case,
        case=_short(case.case),
        title="" if plain else _short(case.title.removesuffix(f" {case.case[len(function_of(case.case)) :]}")),
        reason=_CHECKOUT.sub("", case.reason),
        duration_s=round(case.duration_s, _DURATION_DECIMALS),
        measurements=measurements,
    )


def _thin_measurement(measurement: Measurement, kept: int) -> Measurement:
    samples, note = measurement.samples, measurement.note
    if len(samples) > kept:
        samples = tuple(samples[index * (len(samples) - 1) // (kept - 1)] for index in range(kept))
        note = f"{note} {kept} of {len(measurement.samples)} samples kept.".strip()
    rounded = tuple(float(f"{sample:.{KEPT_DIGITS}g}") for sample in samples)
    return replace(measurement, samples=rounded, note=note)


def write_baseline(folder: Path, record: RunRecord) -> Path:
    """Write the thinned ``record``, packed, as ``folder``/record.json in one atomic step; returns its path.

    Thinning what is thin already changes nothing but the form: so a record of an earlier form is written anew.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RECORD_NAME
    serialise.write_atomic(path, serialise.dumps_packed(thin(record)))
    return path
