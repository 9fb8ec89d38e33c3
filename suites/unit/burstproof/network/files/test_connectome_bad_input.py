"""Connectomes that cannot be read exactly: one error that names file, place and cure, and bounded memory."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burstproof.errors import ConnectomeError
from burstproof.network.files.connectome import Connectome, read_connectome, write_connectome
from burstproof.network.files.connectome_format import MAGIC, MANIFEST_OFFSET, fnv1a64
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from suites.support.networks.connectome_golden import (
    SMALL,
    neuron_offsets,
    patched,
    payload_of,
    synapse_offsets,
    with_payload,
)
from suites.support.refusals import refusal

pytestmark = pytest.mark.requirement("BE-2")

RAW = SMALL.read_bytes()
PAYLOAD = payload_of(SMALL)
NEURONS = neuron_offsets(39)
SYNAPSES = synapse_offsets(39, 48)
PRIVATE_SECTION_BYTES = len(read_connectome(SMALL).private_sections)
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def refused(tmp_path, data, **options):
    return refusal(ConnectomeError, read_connectome, tmp_path / "bad.connectome", data, **options)


def framed(stored, size=0, flags=0, version=3, manifest=b"{}", length=None):
    head = struct.pack("<5sIBQI", MAGIC, version, flags, size, len(manifest) if length is None else length)
    return head + manifest + struct.pack("<Q", fnv1a64(stored)) + stored


def test_a_file_that_is_not_there(tmp_path):
    for path in (tmp_path / "absent.connectome", tmp_path):
        with pytest.raises(ConnectomeError, match="no such file"):
            read_connectome(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConnectomeError, match="no such file"):
        read_connectome(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("data", "problem", "place"),
    [
        (b"", "magic", "byte 0"),
        (b"FEAG", "magic", "byte 0"),
        (b"GIAEF" + RAW[5:], "magic", "byte 0"),
        (RAW[:12], "ends inside its head", "byte 12"),
        (patched(RAW, 5, "I", 2), "container version", "byte 5"),
        (patched(RAW, 5, "I", 4), "container version", "byte 5"),
        (patched(RAW, 9, "B", 3), "flags", "byte 9"),
        (patched(RAW, 18, "I", 0xFFFFFFFF), "manifest reaches past", "byte 18"),
        (patched(RAW, 10, "Q", len(PAYLOAD) + 1), "another length", "byte 10"),
        (patched(RAW, 10, "Q", len(PAYLOAD) - 1), "decompressed", "payload"),
        (patched(RAW, 10, "Q", 1 << 62), "more than an LZ4 block", "byte 10"),
        (RAW[:-1], "checksum", "byte"),
        (RAW + b"\0", "checksum", "byte"),
        (framed(PAYLOAD, size=7), "must state the size 0", "byte 10"),
        (framed(PAYLOAD, manifest=b"\xff\xfe"), "not UTF-8", "byte 22"),
        (framed(PAYLOAD, manifest=b"{"), "not JSON", "manifest"),
        (framed(PAYLOAD, manifest=b"[1]"), "not a JSON object", "manifest"),
        (framed(PAYLOAD, manifest=b"[" * 100_000), "not JSON", "manifest"),
        (framed(b"\xff\xff\xff", size=30, flags=1), "decompressed", "payload"),
    ],
    ids=[
        "empty",
        "half a magic",
        "wrong magic",
        "half a head",
        "version 2",
        "version 4",
        "flags 3",
        "manifest beyond the file",
        "size one too large",
        "size one too small",
        "size beyond LZ4",
        "last byte missing",
        "one byte more",
        "uncompressed with a size",
        "manifest not UTF-8",
        "manifest not JSON",
        "manifest a list",
        "manifest nested too deep",
        "payload not LZ4",
    ],
)
def test_damaged_frames(tmp_path, data, problem, place):
    error = refused(tmp_path, data)
    assert problem in error.problem
    assert place in error.where


@pytest.mark.parametrize(
    ("payload", "problem", "field"),
    [
        (patched(PAYLOAD, 0, "I", 2), "schema version", "schema version"),
        (patched(PAYLOAD, 4, "Q", 40), "another length", "neurons.membrane_potentials"),
        (patched(PAYLOAD, NEURONS["v"], "Q", 1 << 40), "count exceeds", "neurons.membrane_potentials"),
        (patched(PAYLOAD, NEURONS["v"], "Q", (1 << 64) - 1), "count exceeds", "neurons.membrane_potentials"),
        (patched(PAYLOAD, NEURONS["threshold"], "Q", 38), "another length", "neurons.thresholds"),
        (patched(PAYLOAD, NEURONS["coordinates"], "Q", 39), "another length", "neurons.coordinates"),
        (patched(PAYLOAD, NEURONS["leak"] + 8, "f", float("nan")), "not a number", "neurons.leak_coefficients[0]"),
        (patched(PAYLOAD, NEURONS["valid"] + 10, "B", 2), "truth value", "neurons.valid_mask[2]"),
        (patched(PAYLOAD, SYNAPSES["source"] + 8, "I", 39), "outside the network", "synapses.source_neurons[0]"),
        (patched(PAYLOAD, SYNAPSES["target"] + 12, "I", 2**32 - 1), "outside", "synapses.target_neurons[1]"),
        (patched(PAYLOAD, SYNAPSES["target"], "Q", 47), "another length", "synapses.target_neurons"),
        (patched(PAYLOAD, SYNAPSES["weight"] + 8, "f", float("inf")), "weight x psp", "synapses.weights[0]"),
        (patched(PAYLOAD, SYNAPSES["psp"] + 16, "f", float("nan")), "weight x psp", "synapses.weights[2]"),
        (patched(PAYLOAD, SYNAPSES["delay"] + 11, "B", 0), "delay is 0", "synapses.delay_bursts[3]"),
        (patched(PAYLOAD, SYNAPSES["index"], "Q", 1 << 60), "past the end", "synapses.source index"),
        (patched(PAYLOAD, SYNAPSES["index"] + 12, "Q", 1 << 61), "past the end", "synapses.source index"),
        (patched(PAYLOAD, SYNAPSES["index"] + 20, "Q", 48), "outside the synapse table", "synapses.source index"),
        (patched(PAYLOAD, SYNAPSES["index"] + 20, "Q", 1 << 63), "outside", "synapses.source index"),
        (patched(PAYLOAD, SYNAPSES["index"] + 8, "I", 3), "not its own", "synapses.source index"),
        (PAYLOAD.replace(b"Y0FfX19fX18=", b"Y0FfX19fX1\xff=", 1), "not UTF-8", "areas["),
    ],
    ids=lambda part: "payload" if isinstance(part, bytes) else None,
)
def test_damaged_payloads(tmp_path, payload, problem, field):
    assert len(payload) == len(PAYLOAD)
    error = refused(tmp_path, with_payload(SMALL, payload))
    assert problem in error.problem
    assert field in error.where
    assert "payload byte" in error.where


def test_an_invalid_synapse_may_hold_anything(tmp_path):
    payload = patched(PAYLOAD, SYNAPSES["weight"] + 8, "f", float("inf"))
    (tmp_path / "ok.connectome").write_bytes(with_payload(SMALL, patched(payload, SYNAPSES["valid"] + 8, "B", 0)))
    assert not read_connectome(tmp_path / "ok.connectome").network.synapses.valid_mask[0]


def test_a_synapse_named_twice_by_the_index(tmp_path):
    connectome = read_connectome(SMALL)
    words = np.frombuffer(connectome.index_map, "<u4")
    assert words[3] > 1
    doubled = words.copy()
    doubled[7:9] = doubled[5:7]
    error = refused(tmp_path, with_payload(SMALL, PAYLOAD.replace(connectome.index_map, doubled.tobytes())))
    assert "twice" in error.problem


def test_truncated_anywhere(tmp_path):
    for length in [*range(0, 300, 3), *range(300, len(RAW), 101)]:
        refused(tmp_path, RAW[:length])


def test_truncated_anywhere_under_a_valid_checksum(tmp_path):
    end = len(PAYLOAD) - PRIVATE_SECTION_BYTES
    for length in [*range(0, end, 37), *range(end - 4, end)]:
        refused(tmp_path, with_payload(SMALL, PAYLOAD[:length]))


def test_flags_without_a_genome(tmp_path):
    write_connectome(tmp_path / "bare.connectome", read_connectome(SMALL).network)
    error = refused(tmp_path, (tmp_path / "bare.connectome").read_bytes(), apply_flags=True)
    assert "embeds no genome" in error.problem


@pytest.mark.parametrize(
    "change",
    [
        {"power_amount": float("nan")},
        {"power_amount": 1e300},
        {"burst_count": -1},
        {"burst_count": 1 << 63},
        {"areas": (Area(1, "a"), Area(1, "b"))},
        {"areas": (Area(1 << 32, "a"),)},
        {"areas": (Area(1, "\ud800"),)},
        {"neurons": NeuronTable.build(2, thresholds=float("nan"))},
        {"synapses": SynapseTable.build([0], [1], weights=float("inf"))},
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, change):
    network = Network(NeuronTable.build(2), SynapseTable.build([0], [1])).replace(**change)
    path = tmp_path / "kept.connectome"
    path.write_bytes(b"before")
    with pytest.raises(ConnectomeError, match=r"kept\.connectome"):
        write_connectome(path, network)
    assert path.read_bytes() == b"before"
    assert [file.name for file in tmp_path.iterdir()] == ["kept.connectome"]


def test_an_index_of_another_network_is_not_written(tmp_path):
    connectome = read_connectome(SMALL)
    other = dataclasses.replace(
        connectome, network=Connectome.of(connectome.network).network.replace(synapses=SynapseTable.build([1], [0]))
    )
    with pytest.raises(ConnectomeError, match="index_map"):
        write_connectome(tmp_path / "x.connectome", other)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ConnectomeError, match="cannot be written"):
        write_connectome(tmp_path / "absent" / "x.connectome", read_connectome(SMALL))
    with pytest.raises(ConnectomeError, match="cannot be written"):
        write_connectome(tmp_path, read_connectome(SMALL))


def settle(tmp_path, data):
    """Read; any outcome but success and ConnectomeError fails, and so does memory beyond the bound."""
    path = tmp_path / "fuzz.connectome"
    path.write_bytes(data)
    message = str(path)
    tracemalloc.start()
    try:
        read_connectome(path, apply_flags=True)
    except ConnectomeError as error:
        message = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert str(path) in message
    assert peak <= 4 * 255 * len(data) + (4 << 20)


@FUZZ
@given(st.binary(max_size=400))
def test_random_bytes(tmp_path, data):
    settle(tmp_path, data)


@FUZZ
@given(st.binary(max_size=300), st.integers(0, (1 << 64) - 1), st.integers(0, 1))
def test_random_payloads_in_a_valid_frame(tmp_path, data, size, flags):
    settle(tmp_path, framed(data, size=size if flags else 0, flags=flags))


@FUZZ
@given(st.lists(st.tuples(st.integers(0, len(RAW) - 1), st.integers(1, 255)), min_size=1, max_size=6))
def test_flipped_bytes(tmp_path, flips):
    data = bytearray(RAW)
    for position, bits in flips:
        data[position] ^= bits
    settle(tmp_path, bytes(data))


@pytest.mark.thorough("changes thousands of bytes one by one")
@FUZZ
@given(
    st.lists(
        st.tuples(st.integers(0, len(PAYLOAD) - 8), st.integers(0, (1 << 64) - 1) | st.integers(0, 255)),
        min_size=1,
        max_size=4,
    )
)
def test_changed_payloads_under_a_valid_checksum(tmp_path, changes):
    payload = PAYLOAD
    for position, value in changes:
        payload = patched(payload, position, "Q", value)
    settle(tmp_path, with_payload(SMALL, payload))


@FUZZ
@given(st.sampled_from(sorted(NEURONS.values()) + sorted(SYNAPSES.values())), st.integers(0, (1 << 64) - 1))
def test_changed_counts_under_a_valid_checksum(tmp_path, position, value):
    settle(tmp_path, with_payload(SMALL, patched(PAYLOAD, position, "Q", value), compressed=True))


def test_every_flipped_bit_is_noticed(tmp_path):
    """Of a file as the engine writes it: its payload repeats the manifest, which no checksum covers otherwise.

    Every byte of head, manifest and checksum, and every fifth that the checksum covers.
    """
    path, unnoticed = tmp_path / "changed.connectome", []
    covered = MANIFEST_OFFSET + len(read_connectome(SMALL).manifest) + 8
    for position in [*range(covered), *range(covered, len(RAW), 5)]:
        data = bytearray(RAW)
        data[position] ^= 1 << (position % 8)
        path.write_bytes(data)
        with contextlib.suppress(ConnectomeError):
            unnoticed.append((position, read_connectome(path)))
    assert unnoticed == []


def test_a_manifest_that_the_payload_does_not_repeat_is_named(tmp_path):
    """The format does not ask for the repetition; without it a change of the manifest could not be noticed."""
    connectome = read_connectome(SMALL)
    bare = dataclasses.replace(connectome, metadata=dataclasses.replace(connectome.metadata, tags=()))
    write_connectome(tmp_path / "bare.connectome", bare)
    assert "the manifest" in read_connectome(tmp_path / "bare.connectome").network.provenance["not_covered"]
    assert "not_covered" not in connectome.network.provenance
