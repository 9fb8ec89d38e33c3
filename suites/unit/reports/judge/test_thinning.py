"""A baseline is the record of a run, thinned and nothing else."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import InputError
from reports import store
from reports.command import main
from reports.html import render
from reports.judge.compare import compare
from reports.judge.thinning import KEPT_SAMPLES, thin
from reports.store import load_run, write_baseline, write_run
from reports.values.measurement import Aggregate
from reports.values.record import BASELINE_NAME
from suites.support.sample_record import VALIDATOR, sample_record

BASELINES = Path(store.__file__).parent / "baselines"
MOST_BYTES = 600_000
"""Of a whole plan, whose 13 000 cases are two thirds of it; of a stage, a tenth."""
pytestmark = pytest.mark.requirement("RE-1", "RE-4")


def _with_samples(count: int):
    record = sample_record()
    case = next(case for case in record.cases if case.measurements)
    measurement = replace(case.measurements[0], samples=tuple(float(i) for i in range(count)))
    return replace(record, cases=(replace(case, measurements=(measurement,)),))


def test_long_rows_are_thinned_in_order_and_say_so() -> None:
    measurement = thin(_with_samples(1000)).cases[0].measurements[0]
    assert len(measurement.samples) == KEPT_SAMPLES
    assert (measurement.samples[0], measurement.samples[-1]) == (0.0, 999.0)
    assert list(measurement.samples) == sorted(measurement.samples)
    assert measurement.note.endswith(f"{KEPT_SAMPLES} of 1000 samples kept")


def test_short_rows_and_what_was_decided_stay_whole() -> None:
    record = sample_record()
    thinned = thin(record)
    assert thinned.judgements == record.judgements
    assert [(case.case, case.outcome) for case in thinned.cases] == [(case.case, case.outcome) for case in record.cases]
    assert thin(_with_samples(KEPT_SAMPLES)).cases == _with_samples(KEPT_SAMPLES).cases


def test_a_baseline_is_read_rendered_and_compared_like_a_run(tmp_path) -> None:
    write_run(tmp_path / "run", sample_record())
    assert main(["baseline", str(tmp_path / "run"), str(tmp_path / "kept")]) == 0
    kept = load_run(tmp_path / "kept")
    run = load_run(tmp_path / "run")
    assert kept.thinned_from == f"seal {run.seal}"
    assert repr(replace(kept, digests={})) == repr(thin(run))
    assert main(["render", str(tmp_path / "kept")]) == 0
    assert compare([kept], [load_run(tmp_path / "run")]).exit_code() == 0


def test_a_baseline_of_a_baseline_is_the_same(tmp_path) -> None:
    data = write_baseline(tmp_path / "first", sample_record()).read_bytes()
    assert write_baseline(tmp_path / "second", load_run(tmp_path / "first")).read_bytes() == data


def test_paths_in_reasons_begin_at_the_checkout() -> None:
    record = sample_record()
    reason = "ImportError in '/srv/clone/suites/stage4/test_x.py': No module named 'lz4'"
    thinned = thin(replace(record, cases=(replace(record.cases[0], reason=reason),)))
    assert thinned.cases[0].reason == "ImportError in 'suites/stage4/test_x.py': No module named 'lz4'"


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-20], lambda data: b"{}" + data, lambda data: b"", lambda _: gzip.compress(b"\xff")],
    ids=["cut off", "not gzip", "empty", "not UTF-8"],
)
def test_a_damaged_baseline_is_refused(damage, tmp_path) -> None:
    path = write_baseline(tmp_path, sample_record())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=f"{BASELINE_NAME}: not a record"):
        load_run(tmp_path)


def test_a_bit_flipped_in_a_baseline_is_found(tmp_path) -> None:
    path = write_baseline(tmp_path, sample_record())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError):
        load_run(tmp_path)


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in BASELINES.glob(f"*/{BASELINE_NAME}")), ids=lambda path: path.name
)
@pytest.mark.thorough("reads the largest records")
def test_committed_records_fit_the_schema_and_are_small(folder: Path) -> None:
    data = (folder / BASELINE_NAME).read_bytes()
    VALIDATOR.validate(json.loads(gzip.decompress(data)))
    assert len(data) <= MOST_BYTES
    assert load_run(folder).cases


def test_the_report_says_what_a_figure_of_an_older_baseline_stands_for() -> None:
    record = sample_record()
    at = next(i for i, case in enumerate(record.cases) if case.measurements)
    figure = replace(record.cases[at].measurements[0], value=0.0, aggregate=Aggregate(6, 0.0, 0.0))
    case = replace(record.cases[at], measurements=(figure,))
    page = render(replace(record, cases=(*record.cases[:at], case, *record.cases[at + 1 :])))
    assert "A thinned record: 1 figure stands for 6 that passed" in page
    assert "Stands for the 6 figures of its test function, all 0" in page
    assert "A thinned record" not in render(record)
