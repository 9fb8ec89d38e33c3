"""A baseline is the record of a run, thinned and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.baseline import KEPT_SAMPLES, LONGEST_ID, thin, write_baseline
from reports.command import main
from reports.compare import compare
from reports.measurement import Verdict
from reports.store import load_run, write_run
from suites.support.sample_record import sample_record

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
    assert measurement.note.endswith(f"{KEPT_SAMPLES} of 1000 samples kept.")


def test_short_rows_and_what_was_decided_stay_whole() -> None:
    record = sample_record()
    thinned = thin(record)
    assert set(thinned.judgements) <= set(record.judgements)
    bad = [one for one in record.judgements if one.judgement.verdict is not Verdict.PASS]
    assert [one for one in thinned.judgements if one.judgement.verdict is not Verdict.PASS] == bad
    assert [(case.case, case.outcome) for case in thinned.cases] == [(case.case, case.outcome) for case in record.cases]
    assert thin(_with_samples(KEPT_SAMPLES)).cases == _with_samples(KEPT_SAMPLES).cases


def test_a_baseline_is_read_rendered_and_compared_like_a_run(tmp_path) -> None:
    write_run(tmp_path / "run", sample_record())
    assert main(["baseline", str(tmp_path / "run"), str(tmp_path / "kept")]) == 0
    kept = load_run(tmp_path / "kept")
    assert sorted(map(repr, kept.cases)) == sorted(map(repr, thin(sample_record()).cases))
    assert kept.judgements == thin(sample_record()).judgements
    assert main(["render", str(tmp_path / "kept")]) == 0
    assert compare([kept, load_run(tmp_path / "run")]).exit_code == 0


def test_a_baseline_of_a_baseline_is_the_same(tmp_path) -> None:
    text = write_baseline(tmp_path / "first", sample_record()).read_text()
    assert write_baseline(tmp_path / "second", load_run(tmp_path / "first")).read_text() == text


def test_titles_lose_the_parameters_that_the_id_has() -> None:
    record = sample_record()
    case = next(case for case in record.cases if case.measurements)
    case = replace(case, case="suites/x.py::test_y[a b-c]", title="It works. [a b-c]")
    assert thin(replace(record, cases=(case,), judgements=())).cases[0].title == "It works."


def test_paths_in_reasons_begin_at_the_checkout() -> None:
    record = sample_record()
    reason = "ImportError in '/srv/clone/suites/stage4/test_x.py': No module named 'lz4'"
    thinned = thin(replace(record, cases=(replace(record.cases[0], reason=reason),)))
    assert thinned.cases[0].reason == "ImportError in 'suites/stage4/test_x.py': No module named 'lz4'"


def test_a_long_id_is_cut_and_stays_unique() -> None:
    record = sample_record()
    case = next(case for case in record.cases if case.measurements)
    long = [replace(case, case="suites/x.py::test_y[" + "z" * 5000 + end) for end in "ab"]
    kept = [item.case for item in thin(replace(record, cases=tuple(long), judgements=())).cases]
    assert len(set(kept)) == 2
    assert all(len(name) == LONGEST_ID and name.startswith("suites/x.py::test_y[zzz") for name in kept)
