"""``burstproof convert``: genome, connectome and network file, by ending (BE-18, BE-2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from burstproof.network.files.bpnet import load_network
from burstproof.network.files.connectome import read_connectome
from burstproof.network.grow.genome import read_genome
from burstproof.network.grow.growth import grow
from burstproof.network.model import Network
from burstproof.network.schema import NEURON_FIELDS, SYNAPSE_FIELDS
from suites.support.cli_door import BUSY, GENOMES, TRACES, Door, assert_one_error, door

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-18", "BE-2")


def assert_same(one: Network, other: Network) -> None:
    for name in NEURON_FIELDS:
        assert np.array_equal(getattr(one.neurons, name), getattr(other.neurons, name)), name
    for name in SYNAPSE_FIELDS:
        assert np.array_equal(getattr(one.synapses, name), getattr(other.synapses, name)), name
    assert one.burst_count == other.burst_count


def test_a_genome_becomes_a_network_file_and_a_connectome(door: Door, tmp_path: Path) -> None:
    genome = GENOMES / "essential_genome.json"
    grown = grow(read_genome(genome))
    network, connectome = tmp_path / "e.bpnet", tmp_path / "e.connectome"
    assert door("convert", genome, network).code == 0
    assert_same(load_network(network), grown)
    assert load_network(network).areas == grown.areas
    answer = door("convert", network, connectome)
    assert answer.code == 0
    assert "a .connectome does not hold: psp flags" in answer.err
    assert_same(read_connectome(connectome).network, grown)


def test_a_connectome_becomes_a_network_file_and_is_copied_with_its_tail(door: Door, tmp_path: Path) -> None:
    network, copy = tmp_path / "c.bpnet", tmp_path / "c.connectome"
    answer = door("convert", "--json", BUSY, network)
    assert answer.code == 0
    original = read_connectome(BUSY)
    assert answer.document["synapses"] == original.network.synapse_count
    assert_same(load_network(network), original.network)
    assert door("convert", BUSY, copy).code == 0
    again = read_connectome(copy)
    assert (again.genome, again.private_sections) == (original.genome, original.private_sections)
    assert_same(again.network, original.network)


def test_flags_are_taken_from_the_embedded_genome_when_asked_for(door: Door, tmp_path: Path) -> None:
    target = tmp_path / "flags.bpnet"
    assert door("convert", BUSY, target).code == 0
    assert not load_network(target).flags_registered
    assert door("convert", "--apply-flags", BUSY, target).code == 0
    assert load_network(target).flags_registered


@pytest.mark.parametrize("target", ["x.json", "x.npz", "x", "x.json.gz"])
def test_what_cannot_be_written_is_refused_and_nothing_is_left(door: Door, tmp_path: Path, target: str) -> None:
    assert_one_error(door("convert", BUSY, tmp_path / target), 4, "OUT", ".connectome")
    assert not (tmp_path / target).exists()


def test_an_input_is_never_overwritten_with_itself(door: Door, tmp_path: Path) -> None:
    source, link = tmp_path / "a.connectome", tmp_path / "b.connectome"
    source.write_bytes(BUSY.read_bytes())
    link.symlink_to(source)
    for target in (source, link, tmp_path / "working_folder" / ".." / "a.connectome"):
        assert_one_error(door("convert", source, target), 4, "the output is the input itself")
    assert source.read_bytes() == BUSY.read_bytes()


@pytest.mark.parametrize("name", ["stdp_w1.connectome", "lif_mix.connectome"])
def test_a_damaged_input_leaves_an_old_output_alone(door: Door, tmp_path: Path, name: str) -> None:
    source, target = tmp_path / name, tmp_path / "old.bpnet"
    source.write_bytes((TRACES / name).read_bytes()[:-50])
    target.write_bytes(b"old")
    assert_one_error(door("convert", source, target), 4, name)
    assert target.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "old.bpnet", "working_folder"])


def test_a_cap_of_the_growth_is_an_option(door: Door, tmp_path: Path) -> None:
    answer = door("convert", "--max-neurons", 100, GENOMES / "essential_genome.json", tmp_path / "x.bpnet")
    assert_one_error(answer, 4, "100")
    assert not (tmp_path / "x.bpnet").exists()
