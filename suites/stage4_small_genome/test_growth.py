"""Growth against the engine's own tables: every neuron field and every synapse."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from burstproof.network.files.connectome import read_connectome
from burstproof.network.grow.genome import parse_genome, read_genome
from burstproof.network.grow.growth import grow
from burstproof.network.schema import NEURON_FIELDS
from suites.support.networks.growth_golden import (
    GENOMES,
    GOLDEN,
    LENIENT,
    MORPHOLOGY_CASES,
    SHIPPED,
    area_neurons,
    area_starts,
    case_description,
    case_tables,
    genome_tree,
    grown_case,
    sorted_rows,
    synapse_columns,
    synapse_rows,
)

pytestmark = pytest.mark.requirement("BE-1")

STATE = ("membrane_potentials", "refractory_countdowns", "consecutive_fire_counts")
SYNAPSE_COLUMNS = ("src", "dst", "weight", "psp", "type", "delay")
STORED_COLUMNS = ("weights", "postsynaptic_potentials", "types", "delay_bursts", "valid_mask", "edge_flags")


@pytest.fixture(scope="module")
def essential():
    return grow(read_genome(GENOMES / "essential_genome.json"))


def half_way_sources(source, target):
    """Voxels that rotator_z sends, at some depth, half-way between two voxels; computed one by one."""
    ties = set()
    for x, y in np.ndindex(source[0], source[1]):
        for z in range(target[2]):
            turn = np.exp(1j * np.radians(90 - 180 * z / (target[2] - 1) if target[2] > 1 else 0.0))
            stretch = [
                (b - 1) / (a - 1) if a > 1 and b > 1 else 1.0 for a, b in zip(source[:2], target[:2], strict=True)
            ]
            offset = complex((x - (source[0] - 1) / 2) * stretch[0], (y - (source[1] - 1) / 2) * stretch[1])
            place = offset * turn + complex((target[0] - 1) / 2, (target[1] - 1) / 2)
            if any(abs((value % 1) - 0.5) < 1e-6 for value in (place.real, place.imag)):
                ties |= {(x * source[1] + y) * source[2] + p_z for p_z in range(source[2])}
    return ties


def table_column(tables, field):
    column = tables[f"n_{field}"]
    return column.reshape(-1, 3) if field == "coordinates" else column


def per_voxel(description, side):
    return description[f"{side}_parameters"].get("per_voxel_neuron_cnt", 1)


@pytest.mark.parametrize("case", MORPHOLOGY_CASES)
def test_every_recorded_synapse_of_every_morphology(case):
    description, tables = case_description(case), case_tables(case)
    network = grown_case(case)
    compared = 0
    for number, pair in enumerate(description["pairs"]):
        recorded = sorted_rows(*(tables[name][tables["pair"] == number] for name in SYNAPSE_COLUMNS))
        grown = synapse_rows(network, pair["source_id"], pair["target_id"])
        if pair["morphology"] == "rotator_z":
            target = description["target_dims"] or description["source_dims"]
            ties = half_way_sources(description["source_dims"], target)
            size = per_voxel(description, "source")
            recorded, grown = (rows[[row[0] // size not in ties for row in rows]] for rows in (recorded, grown))
        assert np.array_equal(recorded, grown), pair["morphology"]
        compared += len(recorded)
    assert compared > 0.9 * int(tables["synapse_total"])
    assert len(description["pairs"]) == 86


def test_rotator_is_compared_beyond_its_ties():
    open_voxels = compared = 0
    for case in MORPHOLOGY_CASES:
        description = case_description(case)
        source = description["source_dims"]
        ties = half_way_sources(source, description["target_dims"] or source)
        open_voxels += len(ties)
        compared += int(np.prod(source)) - len(ties)
    assert open_voxels == 265, "the number that golden/growth/RULES.md states"
    assert compared > 100


@pytest.mark.parametrize("case", MORPHOLOGY_CASES)
def test_nothing_else_is_grown_and_voxels_are_in_recorded_order(case):
    description, tables = case_description(case), case_tables(case)
    network = grown_case(case)
    pairs = [pair for pair in description["pairs"] if pair["morphology"] != "rotator_z"]
    rotators = [pair for pair in description["pairs"] if pair["morphology"] == "rotator_z"]
    turned = sum(len(synapse_columns(network, pair["source_id"], pair["target_id"])[0]) for pair in rotators)
    assert network.synapse_count - turned == sum(pair["synapses"] for pair in pairs)
    for pair in pairs:
        for side in ("source", "target"):
            ids = area_neurons(network, pair[f"{side}_id"])
            assert np.array_equal(ids, np.arange(ids[0], ids[0] + len(ids)))
            assert np.array_equal(network.neurons.coordinates[ids], tables[f"{side}_coordinates"])


@pytest.mark.parametrize("case", ["params_v3", "params_flat"])
def test_every_neuron_field_follows_its_parameter(case):
    description, tables = case_description(case), case_tables(case)
    network = grown_case(case)
    for name, recorded_area in description["areas"].items():
        ids = area_neurons(network, recorded_area["id"])
        rows = tables["n_cortical_areas"] == recorded_area["area_index"]
        assert len(ids) == recorded_area["neurons"] == np.count_nonzero(rows)
        for field in NEURON_FIELDS:
            if field == "cortical_areas":
                continue
            recorded = table_column(tables, field)[rows]
            grown = getattr(network.neurons, field)[ids]
            assert np.array_equal(grown, recorded), (name, field)


@pytest.mark.parametrize("case", ["params_v3", "params_flat"])
def test_area_flags_are_those_the_engine_understood(case):
    network = grown_case(case)
    areas = {area.cortical_id: area for area in network.areas}
    flags = case_description(case)["area_flags"]
    assert flags
    for cortical_id, recorded in flags.items():
        assert areas[cortical_id].psp_uniform_distribution is recorded["psp_uniform_distribution"]
        assert areas[cortical_id].mp_driven_psp is recorded["mp_driven_psp"]


def test_synapses_of_the_flat_parameters():
    description, tables = case_description("params_flat"), case_tables("params_flat")
    network = grown_case("params_flat")
    compared = 0
    for recorded_area in description["areas"].values():
        first = int(np.argmax(tables["n_cortical_areas"] == recorded_area["area_index"]))
        rows = tables["n_cortical_areas"][tables["s_source_neurons"]] == recorded_area["area_index"]
        stored = [tables[f"s_{name}"][rows] for name in STORED_COLUMNS[:4]]
        ends = [tables[f"s_{name}_neurons"][rows] - first for name in ("source", "target")]
        own = recorded_area["id"]
        assert np.array_equal(sorted_rows(*ends, *stored), synapse_rows(network, own, own))
        compared += np.count_nonzero(rows)
    assert compared == network.synapse_count == 84


def test_essential_neurons_equal_the_recorded_table(essential):
    with np.load(GOLDEN / "networks" / "essential_tables.npz") as tables:
        names = dict(zip(tables["area_idx"].tolist(), tables["area_id"].tolist(), strict=True))
        assert set(names.values()) == {area.cortical_id for area in essential.areas}
        for index, cortical_id in names.items():
            rows = np.flatnonzero(tables["n_cortical_areas"] == index)
            coordinates = tables["n_coordinates"].reshape(-1, 3)[rows]
            rows = rows[np.lexsort(coordinates.T[::-1])]
            ids = area_neurons(essential, cortical_id)
            assert len(ids) == len(rows)
            for field in set(NEURON_FIELDS) - {"cortical_areas", *STATE}:
                recorded = table_column(tables, field)[rows]
                grown = getattr(essential.neurons, field)[ids]
                assert np.array_equal(grown, recorded), (cortical_id, field)
    for field in STATE:
        assert not getattr(essential.neurons, field).any()


def test_essential_synapses_equal_the_recorded_table(essential):
    with np.load(GOLDEN / "networks" / "essential_tables.npz") as tables:
        index = {name: number for number, name in zip(tables["area_idx"].tolist(), tables["area_id"], strict=True)}
        renumber = np.full(max(index.values()) + 1, -1)
        for area in essential.areas:
            renumber[index[area.cortical_id]] = area.index
        place = np.column_stack([renumber[tables["n_cortical_areas"]], tables["n_coordinates"].reshape(-1, 3)])
        ends = [place[tables[f"s_{side}_neurons"]] for side in ("source", "target")]
        recorded = sorted_rows(*ends[0].T, *ends[1].T, *(tables[f"s_{name}"] for name in STORED_COLUMNS))
    place = np.column_stack([essential.neurons.cortical_areas, essential.neurons.coordinates])
    ends = [place[getattr(essential.synapses, f"{side}_neurons")] for side in ("source", "target")]
    columns = [getattr(essential.synapses, name) for name in STORED_COLUMNS]
    assert np.array_equal(recorded, sorted_rows(*ends[0].T, *ends[1].T, *columns))
    assert len(recorded) == 1552


def test_essential_flags_equal_the_recorded_ones(essential):
    recorded = json.loads((GOLDEN / "traces" / "essential_stim.json").read_text())["area_flags"]
    assert {area.cortical_id: (area.psp_uniform_distribution, area.mp_driven_psp) for area in essential.areas} == {
        key: (flags["psp_uniform_distribution"], flags["mp_driven_psp"]) for key, flags in recorded.items()
    }


@pytest.mark.parametrize(
    "name", ["networks/barebones", "networks/test", "traces/stdp_w1", "traces/stdp_w3", "traces/essential_stim"]
)
def test_the_genome_inside_a_connectome_grows_its_tables(name):
    connectome = read_connectome(GOLDEN / f"{name}.connectome")
    stored, grown = connectome.network, grow(parse_genome(connectome.genome.encode(), name))
    assert {area.cortical_id for area in stored.areas} == {area.cortical_id for area in grown.areas}
    for area in stored.areas:
        ids, own = area_neurons(stored, area.cortical_id), area_neurons(grown, area.cortical_id)
        for field in set(NEURON_FIELDS) - {"cortical_areas", *STATE}:
            assert np.array_equal(getattr(stored.neurons, field)[ids], getattr(grown.neurons, field)[own]), field
    linked = 0
    for source in stored.areas:
        for target in stored.areas:
            ids = source.cortical_id, target.cortical_id
            expected, got = (np.column_stack(synapse_columns(network, *ids)[:2]) for network in (stored, grown))
            assert np.array_equal(expected[np.lexsort(expected.T)], got[np.lexsort(got.T)])
            linked += len(expected)
    assert linked == stored.synapse_count == grown.synapse_count


@pytest.mark.parametrize("name", ["barebones", "test"])
def test_the_shipped_flat_genome_grows_the_saved_network(name):
    stored = read_connectome(GOLDEN / "networks" / f"{name}.connectome").network
    grown = grow(read_genome(GENOMES / f"{name}_genome.json"))
    assert stored.neuron_count == grown.neuron_count
    for area in stored.areas:
        ids, own = area_neurons(stored, area.cortical_id), area_neurons(grown, area.cortical_id)
        for field in set(NEURON_FIELDS) - {"cortical_areas", *STATE}:
            assert np.array_equal(getattr(stored.neurons, field)[ids], getattr(grown.neurons, field)[own]), field


@pytest.mark.parametrize("name", ["stdp_w1", "stdp_w3"])
def test_plastic_mappings_are_those_of_the_recordings(name):
    recorded = json.loads((GOLDEN / "traces" / f"{name}.json").read_text())["stdp"]
    connectome = read_connectome(GOLDEN / "traces" / f"{name}.connectome")
    network = grow(parse_genome(connectome.genome.encode(), name))
    (mapping,) = network.plastic_mappings
    values = mapping.window, mapping.constant, mapping.ltp_multiplier, mapping.ltd_multiplier
    assert values == (recorded["window"], recorded["constant"], recorded["ltp"], recorded["ltd"])
    assert (np.diff(mapping.synapses) > 0).all()
    ids = {area.name: area.index for area in network.areas}
    areas, synapses = network.neurons.cortical_areas, network.synapses
    between = (areas[synapses.source_neurons] == ids["cA"]) & (areas[synapses.target_neurons] == ids["cB"])
    assert np.array_equal(mapping.synapses, np.flatnonzero(between))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_network_is_laid_out_for_replay(name):
    path = GENOMES / f"{name}_genome.json"
    genome = read_genome(path)
    network = grow(genome)
    assert (np.diff(network.neurons.cortical_areas.astype(np.int64)) >= 0).all()
    assert (np.diff(network.synapses.source_neurons.astype(np.int64)) >= 0).all()
    assert network.row_order.order is None
    assert network.power_neuron == area_starts(network)[base64.b64encode(b"___power").decode()]
    assert [area.index for area in network.areas] == list(range(len(genome.areas)))
    assert network.burst_count == 0
    assert network.flags_registered
    assert network.provenance["sha256"] == genome.sha256
    assert network.provenance["path"] == str(path)
    assert network.provenance["title"] == genome.title


def test_progress_counts_every_link():
    seen = []
    grown_case("to_one", lambda done, total: seen.append((done, total)))
    assert seen == [(done, seen[0][1]) for done in range(1, seen[0][1] + 1)]
    assert len(seen) == 86


RANDOM = GOLDEN / "random" / "growth"
ASSOCIATIVE = ("g_113", "g_115")
"""Random genomes with a plastic rule of morphology associative_memory, which makes synapses while the network runs."""


@pytest.mark.parametrize("name", [f"g_{number}" for number in range(101, 121)])
def test_a_random_genome_grows_the_whole_recorded_network(name):
    network = grow(read_genome(RANDOM / f"{name}.genome.json.gz"))
    assert "unmodelled" not in network.provenance
    assert bool(network.features.associative) == (name in ASSOCIATIVE)
    with np.load(RANDOM / f"{name}.npz") as tables:
        names = dict(zip(tables["area_idx"].tolist(), tables["area_id"].tolist(), strict=True))
        areas = {area.cortical_id: area for area in network.areas}
        assert set(names.values()) == set(areas)
        own_row = np.full(len(tables["n_cortical_areas"]), -1)
        for index, cortical_id in names.items():
            rows, ids = np.flatnonzero(tables["n_cortical_areas"] == index), area_neurons(network, cortical_id)
            own_row[rows] = ids
            for field in set(NEURON_FIELDS) - {"cortical_areas", *STATE}:
                recorded = table_column(tables, field)[rows]
                assert np.array_equal(getattr(network.neurons, field)[ids], recorded), (cortical_id, field)
        flags = {names[i]: tuple(map(bool, f)) for i, f in zip(tables["area_idx"], tables["psp_flags"], strict=True)}
        assert flags == {key: (area.psp_uniform_distribution, area.mp_driven_psp) for key, area in areas.items()}
        ends = [own_row[tables[f"s_{side}_neurons"]] for side in ("source", "target")]
        recorded = sorted_rows(*ends, *(tables[f"s_{column}"] for column in STORED_COLUMNS))
    ends = [getattr(network.synapses, f"{side}_neurons") for side in ("source", "target")]
    assert np.array_equal(recorded, sorted_rows(*ends, *(getattr(network.synapses, c) for c in STORED_COLUMNS)))


@pytest.mark.parametrize("name", [f"g_{number}" for number in range(101, 121)])
def test_every_pair_with_a_plastic_rule_learns_as_a_whole(name):
    """Straight from the file: the pairs with a plastic rule, and the numbers of the last one of each."""
    path = RANDOM / f"{name}.genome.json.gz"
    network = grow(read_genome(path, LENIENT))
    index = {area.cortical_id: area.index for area in network.areas}
    areas, table = network.neurons.cortical_areas, network.synapses
    expected = []
    for source, record in genome_tree(path)["blueprint"].items():
        for target, rules in record["cortical_mapping_dst"].items():
            plastic = [rule for rule in rules if rule["plasticity_flag"]]
            ends = areas[table.source_neurons] == index[source], areas[table.target_neurons] == index[target]
            rows = np.flatnonzero(ends[0] & ends[1])
            makes = bool(plastic) and plastic[-1]["morphology_id"] == "associative_memory"
            if plastic and (len(rows) or makes):
                keys = ("plasticity_window", "plasticity_constant", "ltp_multiplier", "ltd_multiplier")
                expected.append((rows.tolist(), *(plastic[-1][key] for key in keys)))
    got = [
        (m.synapses.tolist(), m.window, m.constant, m.ltp_multiplier, m.ltd_multiplier)
        for m in network.plastic_mappings
    ]
    assert sorted(got) == sorted(expected)
