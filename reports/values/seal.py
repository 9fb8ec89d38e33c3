"""The seal of a record: SHA-256 over each of its parts, so that whoever reads it can tell that it is as it was written.

A seal shows an edit; it is no signature. Who wants to forge can seal anew, and then has to invent raw samples that give
the same verdicts.
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
"""Parts that are whole fields of the record; ``cases`` and ``samples`` share one, and ``run`` is all the rest."""

_SPLIT, _SEAL = "cases", "digests"


def digests_of(document: Mapping[str, object]) -> dict[str, str]:
    """SHA-256 of each part of a record, which is given as JSON values; its own ``digests`` are left out."""
    held = {name for fields in _FIELDS.values() for name in fields} | {_SPLIT, _SEAL}
    whole: dict[str, object] = {part: [document.get(name) for name in names] for part, names in _FIELDS.items()}
    cases, samples = _split(document.get(_SPLIT))
    rest = {name: value for name, value in document.items() if name not in held}
    return {
        part: sha256_of(value) for part, value in {"run": rest, "cases": cases, "samples": samples, **whole}.items()
    }


def seal_of(digests: Mapping[str, str]) -> str:
    """One SHA-256 for the whole record: what names it in its report, and in a baseline made of it."""
    return sha256_of(dict(digests))


def _split(cases: object) -> tuple[list[object], list[object]]:
    """Cases without their samples, and the samples alone: in a list for each case, a list for each measurement."""
    kept: list[object] = []
    samples: list[object] = []
    for case in cases if isinstance(cases, list) else []:
        measurements = [dict(measurement) for measurement in case.get("measurements", ())]
        samples.append([measurement.pop("samples", None) for measurement in measurements])
        kept.append({**case, "measurements": measurements})
    return kept, samples


def sha256_of(value: object) -> str:
    """SHA-256 of JSON values, whatever the order of keys and the white space they were written with."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
