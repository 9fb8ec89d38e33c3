"""The seal of a record: an edit of any part is found, and named, when it is read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

from burstproof.errors import InputError
from reports import store
from reports.values.seal import sha256_of
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-9")

Document = dict[str, object]


def _measured(document) -> Document:
    return next(case["measurements"][0] for case in document["cases"] if case["measurements"])


def _vanish(document) -> None:
    del document["cases"][3]


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda d: _measured(d).update(value=1e-6), "'cases'"),
        (lambda d: _measured(d).update(samples=[1.0]), "'samples'"),
        (_vanish, "'cases', 'samples'"),
        (lambda d: d["cases"][0].update(outcome="skipped"), "'cases'"),
        (lambda d: d["judgements"][0]["judgement"].update(verdict="PASS", text="edited"), "'judgements'"),
        (lambda d: d["environment"].update(git_commit="0" * 40), "'environment'"),
        (lambda d: d["environment"].update(git_dirty=False), "'environment'"),
        (lambda d: d["stages"][0].update(problem="", gate_reason="edited"), "'run'"),
        (lambda d: d["summary"].update(verdict="PASS", exit_code=0), "'run'"),
        (lambda d: d.update(finished_utc="2027-01-01T00:00:00Z"), "'run'"),
        (lambda d: d["hardware"].update(gpus=[]), "'hardware'"),
        (
            lambda d: d.update(judged=[{"utc": "", "commit": "", "dirty": False, "targets_sha256": "0" * 64}]),
            "'targets'",
        ),
        (lambda d: d.update(attachments=[{"path": "a", "sha256": "0" * 64, "size_bytes": 1}]), "'attachments'"),
        (lambda d: d.update(digests={}), "digests"),
        (lambda d: d["digests"].pop("samples"), "'samples'"),
        (lambda d: d["digests"].update(more="0" * 64), "more"),
        (lambda d: d.update(schema_version=1), "version 1 with fields of version 2"),
    ],
)
def test_an_edited_record_is_refused_and_its_part_named(edit: Callable[[Document], None], named: str) -> None:
    document = json.loads(store.dumps(sample_record()))
    edit(document)
    with pytest.raises(InputError, match=f"changed after it was written.*{named}|{named}.*changed after"):
        store.loads(json.dumps(document))


def test_white_space_and_order_of_keys_are_no_edit() -> None:
    document = json.loads(store.dumps(sample_record()))
    store.loads(json.dumps(document, sort_keys=True, indent=4))


def test_what_is_no_json_has_no_digest() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        sha256_of(math.nan)
