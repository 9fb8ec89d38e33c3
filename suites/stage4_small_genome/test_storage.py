"""Network files: exact, mapped, checksummed; every damage is one error."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burstproof.errors import NetworkFileError
from burstproof.network.files.atomic import atomic_write
from burstproof.network.files.bpnet import load_network, save_network
from burstproof.network.files.bpnet_format import ALIGNMENT, HEAD, MAGIC
from burstproof.network.files.connectome import read_connectome
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import NEURON_FIELDS, SYNAPSE_FIELDS
from suites.support.networks.connectome_golden import FILES
from suites.support.refusals import refusal

pytestmark = pytest.mark.requirement("BE-2")

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sample():
    """A network that uses everything the file can hold."""
    return Network(
        NeuronTable.build(5, thresholds=[1, 2, 3, 4, np.inf], membrane_potentials=[0.1, np.nan, -0.0, 1e-40, 3]),
        SynapseTable.build([4, 0, 2], [3, 4, 0], weights=2.0, delay_bursts=[1, 2, 255], valid_mask=[True, False, True]),
        (Area(7, "Y0FfX19fX18=", "é", (5, 1, 1), 1, True, None), Area(9, "x", mp_driven_psp=False)),
        burst_count=1 << 40,
        power_amount=0.1,
        plastic_mappings=(
            PlasticMapping(np.array([0, 2]), 3, np.float32(1.5), 2, 0.25),
            PlasticMapping(np.array([2])),
            PlasticMapping(np.array([], np.int64)),
        ),
        fixed_point=FixedPoint(40, 64, 1 << 61, False),
        provenance={"source": "test", "note": "line\nbreak \ud800"},
    )


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "sample.bpnet"
    save_network(path, sample())
    return path


def columns(network):
    tables = (("neurons", NEURON_FIELDS), ("synapses", SYNAPSE_FIELDS))
    return {f"{table}.{name}": getattr(getattr(network, table), name) for table, fields in tables for name in fields}


def assert_same(one, other):
    mine, theirs = columns(one), columns(other)
    for name, values in mine.items():
        assert values.dtype == theirs[name].dtype, name
        assert values.shape == theirs[name].shape, name
        assert values.tobytes() == theirs[name].tobytes(), name
    for name in ("areas", "burst_count", "power_amount", "fixed_point"):
        assert getattr(one, name) == getattr(other, name), name
    assert dict(one.provenance) == dict(other.provenance)
    assert len(one.plastic_mappings) == len(other.plastic_mappings)
    for first, second in zip(one.plastic_mappings, other.plastic_mappings, strict=True):
        assert second.synapses.dtype == np.int64
        assert first.synapses.tolist() == second.synapses.tolist()
        for name in ("window", "constant", "ltp_multiplier", "ltd_multiplier"):
            assert getattr(first, name) == getattr(second, name)


def changed_header(raw, change):
    """The bytes of a network file with another header under a valid checksum."""
    length = HEAD.unpack_from(raw)[3]
    tree = json.loads(raw[HEAD.size : HEAD.size + length])
    change(tree)
    header = json.dumps(tree, separators=(",", ":")).encode()
    return HEAD.pack(MAGIC, 1, zlib.crc32(header), len(header)) + header + raw[HEAD.size + length :]


def changed_column(raw, name, code, value):
    """The bytes of a network file with the first value of one column replaced, under valid checksums."""
    data = bytearray(raw)

    def change(tree):
        column = next(column for column in tree["columns"] if column["name"] == name)
        struct.pack_into("<" + code, data, column["offset"], value)
        stored = data[column["offset"] : column["offset"] + column["bytes"]]
        column["crc32"] = f"{zlib.crc32(stored):08x}"

    changed_header(raw, change)
    return changed_header(bytes(data), change)


def refused(tmp_path, data, **options):
    return refusal(NetworkFileError, load_network, tmp_path / "bad.bpnet", data, **options)


def test_everything_survives(saved):
    assert_same(sample(), load_network(saved))
    assert_same(sample(), load_network(saved, verify=False))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded_networks_survive(path, tmp_path):
    network = read_connectome(path, apply_flags=True).network
    save_network(tmp_path / "n.bpnet", network)
    again = load_network(tmp_path / "n.bpnet")
    assert_same(network, again)
    save_network(tmp_path / "again.bpnet", again)
    assert (tmp_path / "again.bpnet").read_bytes() == (tmp_path / "n.bpnet").read_bytes()


def test_an_empty_network_survives(tmp_path):
    network = Network(NeuronTable.build(0), SynapseTable.build([], []))
    save_network(tmp_path / "empty.bpnet", network)
    assert_same(network, load_network(tmp_path / "empty.bpnet"))


def test_columns_are_aligned_read_only_views_of_the_mapped_file(saved):
    network = load_network(saved)
    for name, values in columns(network).items():
        assert not values.flags.writeable, name
        assert values.ctypes.data % ALIGNMENT == 0, name
        base = values
        while not isinstance(base, np.memmap) and base.base is not None:
            base = base.base
        assert isinstance(base, np.memmap), name
        assert base.mode == "r"


def test_repeated_columns_take_one_value(tmp_path):
    network = Network(
        NeuronTable.build(100_000), SynapseTable.build(np.zeros(1000, np.uint32), np.zeros(1000, np.uint32))
    )
    save_network(tmp_path / "n.bpnet", network)
    whole = 100_000 + 2 * 4 * 1000
    assert (tmp_path / "n.bpnet").stat().st_size < whole + 8192
    again = load_network(tmp_path / "n.bpnet")
    assert_same(network, again)
    assert not any(again.synapses.weights.strides)
    assert not any(again.neurons.coordinates.strides)


def test_saving_over_a_mapped_file_leaves_the_loaded_network_alone(saved):
    loaded = load_network(saved)
    save_network(saved, Network(NeuronTable.build(1), SynapseTable.build([], [])))
    assert_same(sample(), loaded)
    assert load_network(saved).neuron_count == 1


@pytest.mark.parametrize(
    "change",
    [
        {"power_amount": float("inf")},
        {"burst_count": -1},
        {"provenance": {"a": object()}},
        {"provenance": {"a": 1}},
        {"areas": (Area(-1, "a"),)},
        {"plastic_mappings": (PlasticMapping(np.array([1, 0])),)},
        {"plastic_mappings": (PlasticMapping(np.array([3])),)},
        {"plastic_mappings": (PlasticMapping(np.array([0]), window=0),)},
        {"plastic_mappings": (PlasticMapping(np.array([0]), constant=float("nan")),)},
    ],
)
def test_what_could_not_be_loaded_is_not_saved(saved, change):
    before = saved.read_bytes()
    with pytest.raises(NetworkFileError, match=r"sample\.bpnet"):
        save_network(saved, sample().replace(**change))
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == ["sample.bpnet"]


def test_a_write_that_fails_leaves_nothing(tmp_path):
    (tmp_path / "kept").write_bytes(b"before")

    def write_half():
        with atomic_write(tmp_path / "kept") as stream:
            stream.write(b"half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_half()
    assert (tmp_path / "kept").read_bytes() == b"before"
    assert [file.name for file in tmp_path.iterdir()] == ["kept"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="this system has no symbolic links")
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    save_network(tmp_path / "link", sample())
    assert (tmp_path / "link").is_symlink()
    assert_same(sample(), load_network(tmp_path / "target"))


def test_paths_that_cannot_be_used(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(NetworkFileError, match="no such file"):
            load_network(path)
    with pytest.raises(NetworkFileError, match="cannot be written"):
        save_network(tmp_path / "absent" / "n.bpnet", sample())
    with pytest.raises(NetworkFileError, match="cannot be written"):
        save_network(tmp_path, sample())


@pytest.mark.thorough("changes thousands of bytes one by one")
def test_changed_bytes_are_noticed_wherever_they_are(saved, tmp_path):
    raw = saved.read_bytes()
    path = tmp_path / "changed.bpnet"
    unnoticed = []
    header_end = HEAD.size + HEAD.unpack_from(raw)[3]
    for position in [*range(HEAD.size), *range(HEAD.size, header_end, 13), *range(header_end, len(raw))]:
        data = bytearray(raw)
        data[position] ^= 1 << (position % 8)
        path.write_bytes(data)
        try:
            load_network(path)
        except NetworkFileError:
            continue
        unnoticed.append(position)
    assert unnoticed == []


@pytest.mark.thorough("reads thousands of files")
def test_every_other_length_is_noticed(saved, tmp_path):
    raw = saved.read_bytes()
    for length in range(0, len(raw), 7):
        refused(tmp_path, raw[:length])
        refused(tmp_path, raw[:length], verify=False)
    refused(tmp_path, raw + b"\0", verify=False)


def column_entry(tree, name="neurons.thresholds"):
    return next(column for column in tree["columns"] if column["name"] == name)


HEADERS = {
    "no columns": lambda tree: tree.pop("columns"),
    "columns no list": lambda tree: tree.update(columns={}),
    "column absent": lambda tree: tree["columns"].pop(3),
    "first column absent": lambda tree: tree.update(columns=[]),
    "column twice": lambda tree: tree["columns"].append(tree["columns"][0]),
    "column unknown": lambda tree: tree["columns"][2].update(name="neurons.colour"),
    "columns in another order": lambda tree: tree["columns"].reverse(),
    "object dtype": lambda tree: column_entry(tree).update(dtype="|O"),
    "wider dtype": lambda tree: column_entry(tree).update(dtype="<f8"),
    "other shape": lambda tree: column_entry(tree).update(shape=[4]),
    "negative shape": lambda tree: column_entry(tree).update(shape=[-5]),
    "offset in the head": lambda tree: column_entry(tree).update(offset=0),
    "offset beyond the end": lambda tree: column_entry(tree).update(offset=1 << 61),
    "size": lambda tree: column_entry(tree).update(bytes=4),
    "boolean size": lambda tree: column_entry(tree).update(bytes=True),
    "repeated ends": lambda tree: column_entry(tree, "synapses.source_neurons").update(repeated=True),
    "repeated mask": lambda tree: column_entry(tree, "neurons.valid_mask").update(repeated=True),
    "repeated rows": lambda tree: column_entry(tree, "plastic.0.synapses").update(repeated=True),
    "areas ill-typed": lambda tree: tree["areas"][0].update(index="7"),
    "two dimensions": lambda tree: tree["areas"][0].update(dimensions=[1, 1]),
    "flag ill-typed": lambda tree: tree["areas"][0].update(mp_driven_psp=0),
    "burst count negative": lambda tree: tree.update(burst_count=-1),
    "burst count fractional": lambda tree: tree.update(burst_count=1.0),
    "power not finite": lambda tree: tree.update(power_amount=float("inf")),
    "power too large": lambda tree: tree.update(power_amount=10**400),
    "window": lambda tree: tree["plastic_mappings"][0].update(window=70_000),
    "mapping absent": lambda tree: tree["plastic_mappings"].pop(),
    "scale ill-typed": lambda tree: tree["fixed_point"].update(exact=1),
    "scale out of range": lambda tree: tree["fixed_point"].update(k=150),
    "scale incomplete": lambda tree: tree["fixed_point"].pop("clamp"),
    "provenance ill-typed": lambda tree: tree.update(provenance={"a": 1}),
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_that_make_no_network(saved, tmp_path, case):
    error = refused(tmp_path, changed_header(saved.read_bytes(), HEADERS[case]), verify=False)
    assert "header" in error.where or "column" in error.where or "byte" in error.where


def test_a_header_of_deep_nesting(tmp_path):
    header = b"[" * 200_000
    error = refused(tmp_path, HEAD.pack(MAGIC, 1, zlib.crc32(header), len(header)) + header)
    assert "header" in error.where


@pytest.mark.parametrize(
    ("column", "code", "value", "problem"),
    [
        ("synapses.target_neurons", "I", 5, "outside the network"),
        ("synapses.source_neurons", "I", 0xFFFFFFFF, "outside the network"),
        ("neurons.valid_mask", "B", 7, "truth value"),
        ("plastic.0.synapses", "q", -1, "points outside"),
        ("plastic.0.synapses", "q", 3, "points outside"),
        ("plastic.0.synapses", "q", 2, "ascend"),
    ],
)
def test_contents_that_make_no_network(saved, tmp_path, column, code, value, problem):
    error = refused(tmp_path, changed_column(saved.read_bytes(), column, code, value))
    assert problem in error.problem


def test_a_version_to_come_says_what_to_do(saved, tmp_path):
    raw = bytearray(saved.read_bytes())
    struct.pack_into("<I", raw, 8, 2)
    assert "version" in refused(tmp_path, bytes(raw)).problem


def test_a_claim_of_many_neurons_allocates_nothing(saved, tmp_path):
    def claim(tree):
        for column in tree["columns"]:
            if column["name"].startswith("neurons."):
                column.update(shape=[1 << 50, *column["shape"][1:]], repeated=True)

    data = changed_header(saved.read_bytes(), claim)
    tracemalloc.start()
    refused(tmp_path, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * len(data) + (1 << 20)


def settle(tmp_path, data):
    """Load; any outcome but success and NetworkFileError fails, and so does memory beyond the bound."""
    path = Path(tmp_path) / "fuzz.bpnet"
    path.write_bytes(data)
    message = str(path)
    tracemalloc.start()
    try:
        load_network(path)
    except NetworkFileError as error:
        message = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert str(path) in message
    assert peak < 64 * len(data) + (1 << 20)


@FUZZ
@given(st.binary(max_size=300), st.booleans())
def test_random_bytes(tmp_path, data, framed):
    settle(tmp_path, HEAD.pack(MAGIC, 1, zlib.crc32(data), len(data)) + data if framed else data)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def leaves(tree, path=()):
    """Paths of all values in a JSON tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from leaves(value, (*path, key))


@pytest.mark.thorough("changes thousands of bytes one by one")
@FUZZ
@given(st.data())
def test_changed_headers_under_a_valid_checksum(saved, tmp_path, data):
    def change(tree):
        for _ in range(data.draw(st.integers(1, 3))):
            *path, last = data.draw(st.sampled_from(list(leaves(tree))))
            place = tree
            for key in path:
                place = place[key]
            place[last] = data.draw(JSON_VALUES)

    settle(tmp_path, changed_header(saved.read_bytes(), change))
