"""A judging as the record keeps it: when, by which commit, with which targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from reports.judge.targets import Target, load_targets
from reports.values.record import Environment, Judging
from reports.values.seal import sha256_of
from reports.values.serialise import encode


def judging(utc: str, environment: Environment, targets: Sequence[Target] | None = None) -> Judging:
    """The entry for a judging by the code of ``environment`` with ``targets`` (by default those of the checkout)."""
    return Judging(utc, environment.git_commit, environment.git_dirty, targets_sha256(targets))


def targets_sha256(targets: Sequence[Target] | None = None) -> str:
    """SHA-256 of the targets; comments, the order of keys, and fields at their default do not change it."""
    rows = load_targets() if targets is None else targets
    return sha256_of([_stated(target) for target in rows])


def _stated(target: Target) -> dict[str, object]:
    written = encode(target)
    return {field.name: written[field.name] for field in fields(target) if getattr(target, field.name) != field.default}
