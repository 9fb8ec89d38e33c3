"""Runs made up of a few figures, for cases of comparison: who measured what, when, at which commit, on which card."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reports.values.measurement import CaseResult, Measurement, Outcome
from reports.values.record import RunRecord
from suites.support.sample_record import latency, sample_record

BASE = replace(
    sample_record(faults=False), environment=replace(sample_record().environment, git_commit="a" * 40, git_dirty=False)
)


def run(place: int, *figures: Measurement, commit: str = "a", **changes: object) -> RunRecord:
    """A run that began in minute ``place`` and measured ``figures``, each in a case of its own."""
    cases = tuple(
        CaseResult(f"case::{number}", "stage6", (), Outcome.PASSED, measurements=(figure,))
        for number, figure in enumerate(figures)
    )
    fields = {
        "run_id": f"{commit}{place}",
        "started_utc": f"2026-11-22T10:{place:02}:00Z",
        "cases": cases,
        "judgements": (),
        "environment": replace(BASE.environment, git_commit=commit * 40),
        **changes,
    }
    return replace(BASE, **fields)  # type: ignore[arg-type]


def timed(value: float, seed: int = 0, neurons: int = 100_000, backend: str = "cuda") -> Measurement:
    """A latency about ``value`` with 1 % of noise."""
    samples = tuple((value * (1.0 + 0.01 * np.random.default_rng(seed).standard_normal(20))).tolist())
    return replace(latency(backend, neurons, value), samples=samples, value=float(np.median(samples)))


def figure(name: str, value: float, unit: str, **conditions: object) -> Measurement:
    return Measurement(name, value, unit, conditions=conditions)  # type: ignore[arg-type]


def on(record: RunRecord, gpu: str, uuid: str) -> RunRecord:
    """The same run on a machine with another GPU."""
    card = {"name": gpu, "uuid": uuid, "memory_total_bytes": 80 << 30}
    return replace(record, run_id=f"{record.run_id}-{uuid}", hardware={**record.hardware, "gpus": [card]})
