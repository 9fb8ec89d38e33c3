"""Genomes that cannot be grown as they stand, at the command: refused by name, or run all the same and said so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.network.files.bpnet import load_network
from suites.support.cli_door import GENOMES, GOLDEN, SMALL, Door, assert_one_error, door

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-18", "BE-19")

RUN = ("--backend", "reference", "--bursts", 2)
RULE = 'mapping ___power (power) -> cA, rule 0: morphology_id = "bi_directional_stdp"'
IGNORED = (
    "unmodelled: ignored, though the released engine acts on it: it may fire otherwise; "
    f"BE-1, BE-4, BE-19 not proven: {RULE}"
)


def unmodelled_genome(folder: Path) -> Path:
    """A rule from the power area to cA that nobody modelled, and a classifier that nobody examined."""
    rules = {"cA": [{"morphology_id": "bi_directional_stdp"}]}
    blueprint = {"___power": {"cortical_mapping_dst": rules}, "cA": {}}
    path = folder / "unmodelled.json"
    path.write_text(json.dumps({"version": "3.0", "classifiers": {"one": {}}, "blueprint": blueprint}))
    return path


def failing_genome(folder: Path) -> Path:
    """The power area to cA and, by a rule that fails, to cB; an area of no family besides."""
    rules: dict[str, Any] = {"cA": [["all_to_all", 1, 1]]}
    rules["cB"] = [{"morphology_id": "all_to_all", "synaptic_delay_bursts": 0}]
    blueprint = {"___power": {"cortical_mapping_dst": rules}, "cA": {}, "cB": {}, "zA": {}}
    path = folder / "failing.json"
    path.write_text(json.dumps({"version": "3.0", "blueprint": blueprint}))
    return path


@pytest.mark.parametrize("command", ["run", "convert"])
def test_a_key_that_acts_is_refused_by_every_command_that_reads_a_genome(
    command: str, door: Door, tmp_path: Path
) -> None:
    rest = RUN if command == "run" else (tmp_path / "out.bpnet",)
    genome = unmodelled_genome(tmp_path)
    assert_one_error(door(command, genome, *rest), 4, RULE, "--ignore-unmodelled", "unmodelled.json")
    assert_one_error(door(command, failing_genome(tmp_path), *rest), 4, "cB[0]", "delay_bursts is 0", "--as-the-engine")
    assert not (tmp_path / "out.bpnet").exists()


def test_ignored_keys_are_said_in_the_first_line_and_in_the_record(door: Door, tmp_path: Path) -> None:
    record = tmp_path / "record"
    answer = door("run", unmodelled_genome(tmp_path), *RUN, "--ignore-unmodelled", "--record", record)
    assert answer.code == 0
    assert answer.out.startswith(IGNORED)
    assert answer.out.splitlines()[1].startswith("not examined: ")
    settings = json.loads(record.with_suffix(".json").read_text())["settings"]
    assert settings["unmodelled"].startswith(RULE)
    assert door("verify", record, "--backend", "reference").code == 0


def test_ignored_keys_stay_with_a_network_file_and_are_in_the_document(door: Door, tmp_path: Path) -> None:
    network = tmp_path / "other.bpnet"
    answer = door("convert", unmodelled_genome(tmp_path), network, "--ignore-unmodelled")
    assert answer.out.startswith(IGNORED)
    assert load_network(network).provenance["unmodelled"] == RULE
    assert door("run", network, *RUN).out.startswith(IGNORED)
    document = door("run", network, *RUN, "--json").document
    assert next(iter(document)) == "notes"
    assert document["notes"]["unmodelled"].startswith(RULE)
    answer = door("convert", network, tmp_path / "other.connectome")
    assert "a .connectome does not hold: the note unmodelled" in answer.err
    document = door("convert", unmodelled_genome(tmp_path), network, "--ignore-unmodelled", "--json").document
    assert document["notes"]["unmodelled"].startswith(RULE)


def test_growth_that_ends_early_and_skipped_areas_are_said(door: Door, tmp_path: Path) -> None:
    network = tmp_path / "failing.bpnet"
    answer = door("convert", failing_genome(tmp_path), network, "--as-the-engine")
    assert answer.code == 0
    first, second, *_ = answer.out.splitlines()
    assert first.startswith("as the engine: growth ended early, as in the released engine: area ___power (power): ")
    assert second.startswith("skipped areas: ")
    assert second.endswith(": zA")
    grown = load_network(network)
    assert (grown.synapse_count, len(grown.areas)) == (1, 9)
    assert door("run", network, *RUN, "--json").document["notes"].keys() == {"as_the_engine", "skipped_areas"}


def test_a_genome_grown_as_it_stands_has_no_note(door: Door) -> None:
    answer = door("run", SMALL, *RUN)
    assert answer.out.startswith("genome ")
    assert door("run", SMALL, *RUN, "--json").document["notes"] == {}


def test_keys_that_nobody_examined_are_said(door: Door, tmp_path: Path) -> None:
    answer = door("convert", GENOMES / "essential_genome.json", tmp_path / "e.bpnet")
    (line, _) = answer.out.splitlines()
    assert line.startswith("not examined: accepted; ")
    assert "physiology.sleep = " in line
    assert line.endswith('physiology.quantization_precision = "f16"')


def test_options_change_nothing_about_a_genome_that_needs_none(door: Door, tmp_path: Path) -> None:
    genome = GOLDEN / "random" / "growth" / "g_101.genome.json.gz"
    plain, asked = tmp_path / "plain.bpnet", tmp_path / "asked.bpnet"
    assert door("convert", genome, plain).code == 0
    assert door("convert", genome, asked, "--ignore-unmodelled", "--as-the-engine").code == 0
    one, other = load_network(plain), load_network(asked)
    assert one.provenance == other.provenance
    assert np.array_equal(one.synapses.target_neurons, other.synapses.target_neurons)
