"""The seal of a record: a SHA-256 over each of its parts, so that a reader notices any later edit.

It is no signature. A forger can seal a record anew, but then has to invent raw samples that give the same verdicts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "environment": ("environment", "invocations"),
    "hardware": ("hardware",),
    "judgements": ("judgements",),
    "targets": ("judged",),
    "attachments": ("attachments",),
}
"""Parts that are whole fields. The field ``cases`` has two parts, ``cases`` and ``samples``; the rest is ``run``."""

_SPLIT, _SEAL = "cases", "digests"


def digests_of(document: Mapping[str, object]) -> dict[str, str]:
    """SHA-256 of each part of a record, given as JSON values; its own ``digests`` are not included."""
    listed = {name for fields in _FIELDS.values() for name in fields} | {_SPLIT, _SEAL}
    cases, samples = _split(document.get(_SPLIT))
    parts: dict[str, object] = {
        "run": {name: value for name, value in document.items() if name not in listed},
        "cases": cases,
        "samples": samples,
        **{part: [document.get(name) for name in names] for part, names in _FIELDS.items()},
    }
    return {part: sha256_of(value) for part, value in parts.items()}


def seal_of(digests: Mapping[str, str]) -> str:
    """One SHA-256 for the whole record, by which its report and a baseline made from it name it."""
    return sha256_of(dict(digests))


def _split(cases: object) -> tuple[list[object], list[object]]:
    """The cases without samples, and the samples: for each case a list with a list for each measurement."""
    kept: list[object] = []
    samples: list[object] = []
    for case in cases if isinstance(cases, list) else []:
        measurements = [dict(measurement) for measurement in case.get("measurements", ())]
        samples.append([measurement.pop("samples", None) for measurement in measurements])
        kept.append({**case, "measurements": measurements})
    return kept, samples


def sha256_of(value: object) -> str:
    """SHA-256 of JSON values; order of keys and white space do not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
