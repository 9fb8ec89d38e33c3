"""Recorded connectomes are read exactly and written back byte for byte."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import numpy as np
import pytest

from burstproof.errors import ConnectomeError
from burstproof.network.files.connectome import Connectome, connectome_losses, read_connectome, write_connectome
from burstproof.network.files.connectome_format import fnv1a64, unpack_container
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import NEURON_FIELDS, SYNAPSE_FIELDS
from suites.support.networks.connectome_golden import FILES, GOLDEN, SMALL, TRACES, payload_of

pytestmark = pytest.mark.requirement("BE-2")


def unequal_columns(one, other):
    """Names of the columns in which two networks differ, bit for bit."""
    found = []
    for table, fields in (("neurons", NEURON_FIELDS), ("synapses", SYNAPSE_FIELDS)):
        for name, dtype in fields.items():
            mine, theirs = getattr(getattr(one, table), name), getattr(getattr(other, table), name)
            same = mine.dtype == theirs.dtype == np.dtype(dtype) and mine.shape == theirs.shape
            if not (same and np.ascontiguousarray(mine).tobytes() == np.ascontiguousarray(theirs).tobytes()):
                found.append(f"{table}.{name}")
    return found


def small_network():
    return Network(
        NeuronTable.build(6, thresholds=[1, 2, 3, 4, 5, 6], coordinates=np.arange(18).reshape(6, 3), cortical_areas=7),
        SynapseTable.build([4, 0, 4, 2], [5, 1, 3, 0], weights=[0.5, 1, 2, 300], delay_bursts=[1, 2, 3, 255]),
        (Area(7, "Y0FfX19fX18="),),
        burst_count=11,
        power_amount=0.5,
    )


def test_the_golden_files_are_there():
    assert len(TRACES) == 7
    assert len(FILES) == 49


@pytest.mark.parametrize(
    ("data", "digest"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_checksum_is_the_published_fnv1a(data, digest):
    assert fnv1a64(data) == digest


@pytest.mark.parametrize("trace", TRACES)
def test_every_column_equals_the_start_state(trace):
    connectome = read_connectome(GOLDEN / "traces" / f"{trace}.connectome")
    network = connectome.network
    with np.load(GOLDEN / "traces" / f"{trace}.npz") as recorded:
        compared = 0
        for prefix, table, fields in (("n_", network.neurons, NEURON_FIELDS), ("s_", network.synapses, SYNAPSE_FIELDS)):
            for name in set(fields) - {"rules"}:
                expected, actual = recorded[prefix + name], getattr(table, name)
                expected = expected.reshape(-1, 3) if name == "coordinates" else expected
                assert actual.shape == expected.shape, name
                assert actual.astype(expected.dtype).tobytes() == expected.tobytes(), name
                compared += 1
    assert compared == len(NEURON_FIELDS) + len(SYNAPSE_FIELDS) - 1


@pytest.mark.parametrize("trace", TRACES)
def test_counters_and_areas_equal_the_record(trace):
    network = read_connectome(GOLDEN / "traces" / f"{trace}.connectome").network
    record = json.loads((GOLDEN / "traces" / f"{trace}.json").read_text())
    assert network.burst_count == record["burst_count_at_start"]
    assert network.power_amount == record["power_amount"]
    assert {str(area.index): area.cortical_id for area in network.areas} == record["area_names"]
    assert not network.flags_registered


@pytest.mark.parametrize("trace", TRACES)
def test_flags_of_the_embedded_genome_apply_when_asked_for(trace):
    network = read_connectome(GOLDEN / "traces" / f"{trace}.connectome", apply_flags=True).network
    flags = json.loads((GOLDEN / "traces" / f"{trace}.json").read_text())["area_flags"]
    flags = json.loads(flags) if isinstance(flags, str) else flags
    assert {area.cortical_id for area in network.areas} == set(flags)
    for area in network.areas:
        recorded = flags[area.cortical_id]
        assert area.psp_uniform_distribution == recorded["psp_uniform_distribution"], area
        assert area.mp_driven_psp == recorded["mp_driven_psp"], area


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_dimensions_hold_all_voxels(path):
    plain, full = read_connectome(path).network, read_connectome(path, apply_flags=True).network
    for occupied, area in zip(plain.areas, full.areas, strict=True):
        mine = plain.neurons.coordinates[plain.neurons.cortical_areas == area.index]
        extent = tuple(int(side) + 1 for side in mine.max(axis=0)) if len(mine) else (1, 1, 1)
        assert occupied.dimensions == extent
        assert all(np.array(area.dimensions) >= extent)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_reading_then_writing_is_byte_identical(path, tmp_path):
    written = tmp_path / "again.connectome"
    write_connectome(written, read_connectome(path))
    before = unpack_container(path.read_bytes(), "before")
    after = unpack_container(written.read_bytes(), "after")
    assert after == before
    assert [file.name for file in tmp_path.iterdir()] == ["again.connectome"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_tail_is_kept_verbatim(path, tmp_path):
    connectome = read_connectome(path)
    digest = json.loads(connectome.manifest)["genome_sha256"]
    assert hashlib.sha256(connectome.genome.encode()).hexdigest() == digest
    payload = payload_of(path)
    assert connectome.private_sections
    assert payload.endswith(connectome.genome.encode() + connectome.private_sections)
    changed = connectome.network.replace(burst_count=123)
    write_connectome(tmp_path / "changed.connectome", dataclasses.replace(connectome, network=changed))
    again = read_connectome(tmp_path / "changed.connectome")
    assert again.network.burst_count == 123
    assert (again.genome, again.private_sections) == (connectome.genome, connectome.private_sections)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_network_without_its_file_is_written_with_an_empty_tail(path, tmp_path):
    network = read_connectome(path).network
    write_connectome(tmp_path / "bare.connectome", network)
    again = read_connectome(tmp_path / "bare.connectome")
    assert unequal_columns(network, again.network) == []
    assert again.network.areas == network.areas
    assert (again.network.burst_count, again.network.power_amount) == (network.burst_count, network.power_amount)
    assert (again.genome, again.private_sections, again.persist_mode) == (None, b"", 0)


@pytest.mark.parametrize("compressed", [True, False])
def test_unsorted_synapses_and_repeated_columns_survive(compressed, tmp_path):
    network = small_network()
    write_connectome(tmp_path / "own.connectome", dataclasses.replace(Connectome.of(network), compressed=compressed))
    again = read_connectome(tmp_path / "own.connectome")
    assert unequal_columns(network, again.network) == []
    assert again.compressed is compressed


def test_the_built_index_names_every_synapse_once_under_its_source(tmp_path):
    network = small_network()
    write_connectome(tmp_path / "own.connectome", network)
    words = np.frombuffer(read_connectome(tmp_path / "own.connectome").index_map, "<u4").tolist()
    expected = [3, 0, *(0, 1, 0, 1, 0), *(2, 1, 0, 3, 0), *(4, 2, 0, 0, 0, 2, 0)]
    assert words == expected


def test_an_empty_network_is_written_and_read(tmp_path):
    write_connectome(tmp_path / "empty.connectome", Network(NeuronTable.build(0), SynapseTable.build([], [])))
    network = read_connectome(tmp_path / "empty.connectome").network
    assert (network.neuron_count, network.synapse_count, network.areas) == (0, 0, ())


def test_an_embedded_genome_is_carried(tmp_path):
    write_connectome(tmp_path / "own.connectome", Connectome.of(small_network(), genome='{"blueprint": "ä"}'))
    again = read_connectome(tmp_path / "own.connectome")
    assert again.genome == '{"blueprint": "ä"}'
    with pytest.raises(ConnectomeError, match="embedded genome"):
        read_connectome(tmp_path / "own.connectome", apply_flags=True)


def test_losses_name_what_the_format_cannot_hold(tmp_path):
    network = small_network()
    assert connectome_losses(network) == ()
    mapping = PlasticMapping(np.array([0, 1]))
    flagged = Area(7, "Y0FfX19fX18=", name="vision_C", mp_driven_psp=True)
    notes = {"source": "genome", "not_examined": "physiology.sleep", "skipped_areas": "zA"}
    lossy = network.replace(plastic_mappings=(mapping,), areas=(flagged,), provenance=notes)
    plastic, flags, names, *of_growth = connectome_losses(lossy)
    assert "plastic" in plastic
    assert "flags" in flags
    assert "the names of the areas (name them by their ids" in names
    assert of_growth == ["the note skipped_areas", "the note not_examined"]
    write_connectome(tmp_path / "lossy.connectome", lossy)
    again = read_connectome(tmp_path / "lossy.connectome").network
    assert [area.name for area in again.areas] == [""]
    assert connectome_losses(again) == ()


def test_a_stale_synapse_count_is_kept_but_not_believed(tmp_path):
    stale = dataclasses.replace(read_connectome(SMALL), synapse_count=999)
    write_connectome(tmp_path / "stale.connectome", stale)
    again = read_connectome(tmp_path / "stale.connectome")
    assert again.synapse_count == 999
    assert again.network.synapse_count == stale.network.synapse_count == 48
