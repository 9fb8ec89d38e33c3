"""The recorded connectomes, and the same files with one part changed under a valid checksum."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

from burstproof.network.files.connectome_format import pack_container, unpack_container

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "golden"
TRACES = tuple(sorted(path.stem for path in (GOLDEN / "traces").glob("*.connectome")))
FILES = tuple(
    sorted(path for room in ("networks", "traces", "random") for path in (GOLDEN / room).glob("*.connectome"))
)
SYNAPSE_VECTORS = ("source", "target", "weight", "psp", "type", "delay", "valid")
SMALL = GOLDEN / "traces" / "stdp_w1.connectome"


def payload_of(path):
    return unpack_container(path.read_bytes(), str(path)).payload


def with_payload(path, payload, compressed=False):
    """The bytes of the file with another payload and the checksum that belongs to it."""
    container = unpack_container(path.read_bytes(), str(path))
    return b"".join(pack_container(dataclasses.replace(container, payload=payload, compressed=compressed)))


def patched(payload, offset, code, value):
    """The payload with one number replaced."""
    raw = struct.pack("<" + code, value)
    return payload[:offset] + raw + payload[offset + len(raw) :]


def neuron_offsets(neurons):
    """Payload offset of the length of each neuron vector (sizes from the format's table)."""
    sizes = (4, 4, 4, 4, 4, 2, 2, 4, 4, 12, 1, 4, 2, 2, 2, 1)
    names = ("v", "threshold", "leak", "rest", "type", "period", "countdown", "excitability", "area", "coordinates")
    names += ("valid", "limit", "count", "fire_limit", "snooze", "accumulation")
    offsets, position = {}, 20
    for name, size in zip(names, sizes, strict=True):
        offsets[name] = position
        position += 8 + size * neurons
    offsets["synapses"] = position
    return offsets


def synapse_offsets(neurons, synapses):
    """Likewise for the synapse vectors, the index behind them included."""
    offsets, position = {}, neuron_offsets(neurons)["synapses"] + 16
    for name, size in zip(SYNAPSE_VECTORS, (4, 4, 4, 4, 1, 1, 1), strict=True):
        offsets[name] = position
        position += 8 + size * synapses
    offsets["index"] = position
    return offsets
