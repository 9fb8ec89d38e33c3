"""``burstproof run --precision``: the format of the potentials, in the report and in the record (BE-11)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from burstproof.engine.trace import read_trace, write_trace
from suites.support.cli_door import BUSY, GENOMES, Door, assert_one_error, door

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-11", "BE-18")


def test_a_run_says_its_format_and_its_record_is_replayed_in_it(door: Door, tmp_path: Path) -> None:
    record = tmp_path / "reduced"
    answer = door(
        "run", BUSY, "--backend", "reference", "--bursts", 40, "--precision", "int8", "--record", record, "--json"
    )
    exact = door("run", BUSY, "--backend", "reference", "--bursts", 40, "--json")
    assert answer.document["potentials"] == {"precision": "int8", "step": 0.5, "genome_asks_for": None}
    assert answer.document["firings"] != exact.document["firings"]
    assert door("verify", record, "--backend", "reference").code == 0


def test_a_record_does_not_agree_in_another_format(door: Door, tmp_path: Path) -> None:
    record = tmp_path / "reduced"
    door("run", BUSY, "--backend", "reference", "--bursts", 40, "--precision", "int8", "--record", record)
    trace = read_trace(record)
    write_trace(record, dataclasses.replace(trace, settings={**trace.settings, "precision": "fp32"}))
    assert door("verify", record, "--backend", "reference").code == 1
    write_trace(record, dataclasses.replace(trace, settings={**trace.settings, "precision": "fp8"}))
    assert_one_error(door("verify", record, "--backend", "reference"), 4, "unknown precision", "fp8")


@pytest.mark.parametrize(
    ("genome", "named"), [("essential", "f16"), ("example_int8", "int8"), ("example_fp32", "fp32")]
)
def test_what_a_genome_names_is_reported_and_not_obeyed(door: Door, genome: str, named: str) -> None:
    command = ("run", GENOMES / f"{genome}_genome.json", "--backend", "reference", "--bursts", 2)
    assert door(*command, "--json").document["potentials"] == {
        "precision": "fp32",
        "step": 1.0,
        "genome_asks_for": named,
    }
    assert f"potentials in fp32 (the genome names {named})" in door(*command).out


def test_an_unknown_format_is_a_usage_error(door: Door) -> None:
    assert_one_error(door("run", BUSY, "--precision", "fp8"), 4, "--precision", "fp8", "int8")
