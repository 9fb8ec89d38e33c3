"""A record small enough to commit: what was decided stays whole, long rows of samples are thinned."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from reports import serialise
from reports.measurement import CaseResult, Measurement, Outcome
from reports.record import RECORD_NAME, RunRecord

KEPT_SAMPLES = 60
"""Samples kept of each measurement: a steady series whole, and of a noisy one enough to compare two runs."""

LONGEST_ID = 200
"""Longer ids of cases are cut: records from before such ids were refused hold whole files in them."""

_CHECKOUT = re.compile(r"/[^\s'\"]*?/(?=(?:impl|suites|stages|reports|hardware)/)")
"""An absolute path up to a top-level folder of the checkout."""


def thin(record: RunRecord, kept: int = KEPT_SAMPLES) -> RunRecord:
    """``record`` with at most ``kept`` evenly spaced samples per measurement, in the order taken.

    Values, conditions, telemetry and judgements stay as they were; attachments, which lie elsewhere, are left out,
    paths in the reasons of cases begin at the checkout, and ids of more than ``LONGEST_ID`` characters end in a digest.
    Cases that passed and measured nothing lose their titles, which the code has.
    The note of a thinned measurement says how many samples it had.
    """
    cases = tuple(_thin_case(case, kept) for case in record.cases)
    judgements = tuple(replace(judged, case=_short(judged.case)) for judged in record.judgements)
    return replace(record, cases=cases, judgements=judgements, attachments=())


def _short(case: str) -> str:
    """``case``, or its beginning and a digest of it all."""
    if len(case) <= LONGEST_ID:
        return case
    digest = hashlib.sha256(case.encode()).hexdigest()[:12]
    return f"{case[: LONGEST_ID - len(digest) - 3]}...{digest}"


def _thin_case(case: CaseResult, kept: int) -> CaseResult:
    reason = _CHECKOUT.sub("", case.reason)
    measurements = tuple(_thin_measurement(item, kept) for item in case.measurements)
    plain = case.outcome is Outcome.PASSED and not measurements
    title = "" if plain else _short(case.title)
    return replace(case, case=_short(case.case), title=title, reason=reason, measurements=measurements)


def _thin_measurement(measurement: Measurement, kept: int) -> Measurement:
    samples = measurement.samples
    if len(samples) <= kept:
        return measurement
    chosen = tuple(samples[index * (len(samples) - 1) // (kept - 1)] for index in range(kept))
    note = f"{measurement.note} {kept} of {len(samples)} samples kept.".strip()
    return replace(measurement, samples=chosen, note=note)


def write_baseline(folder: Path, record: RunRecord) -> Path:
    """Write the thinned ``record`` as ``folder``/record.json, one line, in one atomic step; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RECORD_NAME
    serialise.write_atomic(path, serialise.dumps(thin(record), indent=None))
    return path
