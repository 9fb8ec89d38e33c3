"""The readers under test: small valid files of each, how they are mutated, and what reading them has to give.

An input is either refused with an error of the package, or what was read can be written, and reads as the same again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import random
import struct
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from burstproof.config import CONFIG_FILE, load_configuration
from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.sharded.checkpoint import Checkpoint, load_checkpoint, run_identity, save_checkpoint
from burstproof.engine.state import Stimulus
from burstproof.engine.trace import read_trace, trace_of_run, write_trace
from burstproof.network.files import bpnet_format
from burstproof.network.files.bpnet import load_network, save_network
from burstproof.network.files.connectome import read_connectome, write_connectome
from burstproof.network.files.connectome_format import fnv1a64
from burstproof.network.grow.genome import read_genome
from burstproof.network.grow.growth import grow
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from burstproof.sources import synthetic
from reports import store
from reports.values.record import RunRecord
from reports.values.seal import digests_of
from stages.run_folder import RunFolder, RunPlan, checksum
from suites.support.fuzz_readers.mutate import (
    Mutation,
    any_bytes,
    change_json,
    change_tree,
    huge_number,
    splice,
    write_tree,
)
from suites.support.networks.connectome_golden import GOLDEN
from suites.support.sample_record import sample_record

Files = Mapping[str, bytes]
"""The files of one input by name."""

GROWN_NEURONS, GROWN_SYNAPSES = 20_000, 100_000
"""Caps of the growth of a genome."""


class NotTheSameError(AssertionError):
    """What was read was written, and reads as something else."""


@dataclass(frozen=True)
class Reader:
    """One reader.

    Attributes
    ----------
    name : str
    seeds : callable
        Makes the valid inputs, in a folder of its own.
    mutations : mapping of str to tuple of Mutation
        What may become of the file of that name; each input has one of them changed.
    check : callable
        Reads the files in the folder; returns if what was read can be written and read again as the same.
    """

    name: str
    seeds: Callable[[Path], Sequence[Files]]
    mutations: Mapping[str, tuple[Mutation, ...]]
    check: Callable[[Path], None]

    def draw(self, rng: random.Random, seeds: Sequence[Files]) -> Files:
        """One input: a seed of which one file was changed."""
        files = dict(rng.choice(seeds))
        name = rng.choice(sorted(self.mutations))
        if rng.random() < 0.1:
            files[name] = splice(rng, files[name], [seed[name] for seed in seeds])
        else:
            files[name] = rng.choice(self.mutations[name])(rng, files[name])
        return files


def _same(one: bytes, other: bytes) -> None:
    if one != other:
        raise NotTheSameError("what was written does not read as the same")


def _networks() -> tuple[Network, ...]:
    plain = synthetic(8, 2, threshold=0.1)
    plastic = plain.replace(plastic_mappings=(PlasticMapping(np.arange(3)),))
    return plain, plastic, synthetic(5, 1, 3, threshold=0.1)


def _written(folder: Path, name: str, write: Callable[[Path], object]) -> bytes:
    write(folder / name)
    return (folder / name).read_bytes()


# --- genome


def _genome_seeds(_: Path) -> Sequence[Files]:
    return [{"a.json": (GOLDEN / "genomes" / "barebones_genome.json").read_bytes()}]


def _check_genome(folder: Path) -> None:
    genome = read_genome(folder / "a.json")
    network = grow(genome, 0, max_neurons=GROWN_NEURONS, max_synapses=GROWN_SYNAPSES)
    save_network(folder / "b.bpnet", network)
    save_network(folder / "c.bpnet", load_network(folder / "b.bpnet"))
    _same((folder / "b.bpnet").read_bytes(), (folder / "c.bpnet").read_bytes())


# --- connectome


def _connectome_seeds(folder: Path) -> Sequence[Files]:
    written = [_written(folder, "a", lambda path, n=network: write_connectome(path, n)) for network in _networks()]
    return [{"a.connectome": data} for data in (*written, (GOLDEN / "traces" / "stdp_w1.connectome").read_bytes())]


def _connectome_payload(rng: random.Random, data: bytes) -> bytes:
    """The payload changed, stored plain under a right checksum and with the manifest as it was."""
    import lz4.block

    magic, version, flags, size, length = struct.unpack_from("<5sIBQI", data)
    start = 22 + length + 8
    payload = lz4.block.decompress(data[start:], uncompressed_size=size) if flags else data[start:]
    changed = any_bytes(rng, payload)
    head = struct.pack("<5sIBQI", magic, version, 0, 0, length) + data[22 : 22 + length]
    return head + struct.pack("<Q", fnv1a64(changed)) + changed


def _check_connectome(folder: Path) -> None:
    connectome = read_connectome(folder / "a.connectome")
    write_connectome(folder / "b.connectome", connectome)
    write_connectome(folder / "c.connectome", read_connectome(folder / "b.connectome"))
    _same((folder / "b.connectome").read_bytes(), (folder / "c.connectome").read_bytes())


# --- network file and checkpoint, which have the same head


def _resealed_header(rng: random.Random, data: bytes) -> bytes:
    """The JSON header changed, under a right CRC-32."""
    head = bpnet_format.HEAD
    magic, version, _, length = head.unpack_from(data)
    text = data[head.size : head.size + length]
    text = write_tree(change_tree(rng, json.loads(text))) if rng.random() < 0.8 else any_bytes(rng, text)
    return head.pack(magic, version, zlib.crc32(text), len(text)) + text + data[head.size + length :]


def _resealed_column(rng: random.Random, data: bytes) -> bytes:
    """The contents of one column changed, under right CRC-32s."""
    head = bpnet_format.HEAD
    magic, version, _, length = head.unpack_from(data)
    tree = json.loads(data[head.size : head.size + length])
    column = rng.choice([column for column in tree["columns"] if column["bytes"]])
    begin, end = column["offset"], column["offset"] + column["bytes"]
    raw = any_bytes(rng, data[begin:end])[: column["bytes"]].ljust(column["bytes"], b"\xff")
    column["crc32"] = f"{zlib.crc32(raw):08x}"
    text = json.dumps(tree, separators=(",", ":")).encode()
    return (
        head.pack(magic, version, zlib.crc32(text), len(text))
        + text
        + data[head.size + length : begin]
        + raw
        + data[end:]
    )


def _network_seeds(folder: Path) -> Sequence[Files]:
    return [
        {"a.bpnet": _written(folder, "a", lambda path, n=network: save_network(path, n))} for network in _networks()
    ]


def _check_network(folder: Path) -> None:
    save_network(folder / "b.bpnet", load_network(folder / "a.bpnet"))
    save_network(folder / "c.bpnet", load_network(folder / "b.bpnet"))
    _same((folder / "b.bpnet").read_bytes(), (folder / "c.bpnet").read_bytes())


def _runs() -> list[tuple[ReferenceEngine, Any, Any]]:
    runs = []
    for network in _networks():
        engine = ReferenceEngine.create(network, EngineOptions())
        plan = {network.burst_count + 1: Stimulus(forced=np.arange(4, dtype=np.uint32))}
        runs.append((engine, plan, engine.run(3, plan)))
    return runs


def _checkpoint_seeds(folder: Path) -> Sequence[Files]:
    found = []
    for engine, _, recording in _runs():
        identity = run_identity(engine.network, engine.options, engine.fixed_point)
        for kept in (recording, None):
            checkpoint = Checkpoint(engine.state(), identity, kept)
            found.append({"a.bpstate": _written(folder, "a", lambda path, c=checkpoint: save_checkpoint(path, c))})
    return found


def _check_checkpoint(folder: Path) -> None:
    save_checkpoint(folder / "b.bpstate", load_checkpoint(folder / "a.bpstate"))
    save_checkpoint(folder / "c.bpstate", load_checkpoint(folder / "b.bpstate"))
    _same((folder / "b.bpstate").read_bytes(), (folder / "c.bpstate").read_bytes())


# --- trace


def _trace_seeds(folder: Path) -> Sequence[Files]:
    found = []
    for engine, plan, recording in _runs():
        paths = write_trace(folder / "a", trace_of_run(engine.network, engine.options, recording, plan, engine.state()))
        found.append({path.name: path.read_bytes() for path in paths})
    names = [GOLDEN / "random" / name for name in ("fz_002", "fz_012")]
    return found + [{f"a{end}": name.with_suffix(end).read_bytes() for end in (".npz", ".json")} for name in names]


def _without_digests(rng: random.Random, data: bytes) -> bytes:
    """JSON of before the digests, changed."""
    tree = json.loads(data)
    for name in ("sha256", "npz_sha256"):
        tree.pop(name, None)
    return write_tree(change_tree(rng, tree))


def _resealed_json(rng: random.Random, data: bytes) -> bytes:
    """JSON changed, under a right digest."""
    tree = json.loads(data)
    tree.pop("sha256", None)
    tree = change_tree(rng, tree)
    if isinstance(tree, dict):
        try:
            tree["sha256"] = hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()
        except (RecursionError, ValueError, TypeError):
            return write_tree(tree)
    return write_tree(tree)


def _other_arrays(rng: random.Random, data: bytes) -> bytes:
    """An archive of which one array has another type, shape or content, or is gone."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(sorted(arrays))
    array = arrays.pop(name)
    how = rng.randrange(6)
    if how == 0:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            arrays[name] = array.astype(rng.choice(("<f8", "<i2", "<u8", "|b1", "<c8", "<U3")))
    elif how == 1:
        arrays[name] = array[: rng.randrange(len(array) + 1)] if array.ndim else array[None]
    elif how == 2:
        arrays[name] = np.stack([array, array])
    elif how == 3:
        arrays[rng.choice((name + "x", "n_colour", "s_", "", "t_weights"))] = array
    elif how == 4 and array.size:
        changed = np.frombuffer(
            any_bytes(rng, array.tobytes()).ljust(array.nbytes, b"\xff")[: array.nbytes], array.dtype
        )
        arrays[name] = changed.reshape(array.shape)
    target = io.BytesIO()
    np.savez_compressed(target, **arrays)
    return target.getvalue()


def _check_trace(folder: Path) -> None:
    write_trace(folder / "b", dataclasses.replace(read_trace(folder / "a"), at_start=None))
    write_trace(folder / "c", read_trace(folder / "b"))
    for end in (".npz", ".json"):
        _same((folder / f"b{end}").read_bytes(), (folder / f"c{end}").read_bytes())


class _TraceReader(Reader):
    """A trace of which the arrays changed has its digests taken away, lest nothing behind them is ever reached."""

    def draw(self, rng: random.Random, seeds: Sequence[Files]) -> Files:
        """One input."""
        files = dict(super().draw(rng, seeds))
        if rng.random() < 0.5:
            try:
                tree = json.loads(files["a.json"])
                files["a.json"] = json.dumps({k: v for k, v in tree.items() if "sha256" not in k}).encode()
            except (ValueError, AttributeError, RecursionError):
                return files
        return files


# --- configuration, record and plan of a run

_CONFIGURATION = b"""[compute]
backend = "cpu"
[compute.auto_selection]
gpu_min_neurons = 50000
gpu_min_firing_rate = 0.15
prefer_cuda_over_wgpu = true
[cuda]
device_id = 0
stream_count = 4
enable_cuda_graphs = true
[cuda.multi_gpu]
enabled = false
num_gpus = 8
sharding_strategy = "round_robin"
"""


def _configuration_text(rng: random.Random, data: bytes) -> bytes:
    """One value or key of the TOML replaced."""
    lines = data.decode().splitlines()
    at = rng.randrange(len(lines))
    key, equals, _ = lines[at].partition("=")
    values = (
        "1e999",
        "nan",
        "-1",
        "0x" + "f" * 4000,
        '""',
        "[]",
        "{}",
        "{a=1}",
        "'''\n'''",
        "1979-05-27",
        '"\\u001b[2J"',
        "1_0",
    )
    if equals:
        lines[at] = f"{key}= {rng.choice(values)}" if rng.random() < 0.7 else f"{key}.x{equals} 1"
    else:
        lines[at] = rng.choice(("[cuda]", "[[cuda]]", "[a.b.c]", "[" * 500, '["\\u0000"]', "[cuda.device_id]"))
    return "\n".join(lines).encode()


def _check_configuration(folder: Path) -> None:
    file = folder / CONFIG_FILE
    configuration = load_configuration(file)
    tables: dict[str, list[str]] = {}
    for setting in configuration.settings():
        table, _, key = setting.key.rpartition(".")
        value = json.dumps(setting.value) if isinstance(setting.value, (str, bool)) else repr(setting.value)
        tables.setdefault(table, []).append(f"{key} = {value}")
    again = folder / "again.toml"
    again.write_text("".join(f"[{table}]\n" + "\n".join(lines) + "\n" for table, lines in tables.items()), "utf-8")
    same = load_configuration(again)
    if (configuration.compute, configuration.cuda) != (same.compute, same.cuda):
        raise NotTheSameError("what was written does not read as the same")


def _resealed_record(rng: random.Random, data: bytes) -> bytes:
    """A record changed, under right digests."""
    tree = change_tree(rng, json.loads(data))
    try:
        return write_tree({**tree, "digests": digests_of(tree)})
    except Exception:  # what has no digests need not be sealed
        return write_tree(tree)


def _resealed_plan(rng: random.Random, data: bytes) -> bytes:
    """A plan changed, under the right checksum."""
    tree = change_tree(rng, {key: value for key, value in json.loads(data).items() if key != "sha256"})
    try:
        return write_tree({**tree, "sha256": checksum(tree)})
    except (TypeError, RecursionError):  # what has no checksum need not be sealed
        return write_tree(tree)


def _few_samples(record: RunRecord) -> RunRecord:
    """Lists of samples are most of a record and read alike."""
    cases = []
    for case in record.cases:
        measured = tuple(dataclasses.replace(one, samples=one.samples[:3]) for one in case.measurements)
        cases.append(dataclasses.replace(case, measurements=measured))
    return dataclasses.replace(record, cases=tuple(cases))


def _record_seeds(_: Path) -> Sequence[Files]:
    records = [_few_samples(sample_record(gpu=gpu)) for gpu in (False, True)]
    return [{"record.json": store.dumps(record).encode()} for record in records]


def _check_record(folder: Path) -> None:
    text = store.dumps(store.load_run(folder))
    _same(text.encode(), store.dumps(store.loads(text)).encode())


def _plan_seeds(folder: Path) -> Sequence[Files]:
    RunFolder(folder / "run").write_plan(RunPlan(("stage4",), ("stage4",), True, "2026-11-22T00:00:00Z", ("python",)))
    return [{"plan.json": (folder / "run" / "plan.json").read_bytes()}]


def _check_plan(folder: Path) -> None:
    plan = RunFolder(folder).read_plan()
    again = RunFolder(folder / "again")
    again.write_plan(plan)
    if again.read_plan() != plan:
        raise NotTheSameError("what was written does not read as the same")


_JSON: tuple[Mutation, ...] = (change_json, change_json, any_bytes)
_SEALED: tuple[Mutation, ...] = (any_bytes, _resealed_header, _resealed_header, _resealed_column)

READERS = (
    Reader("genome", _genome_seeds, {"a.json": _JSON}, _check_genome),
    Reader("connectome", _connectome_seeds, {"a.connectome": (any_bytes, _connectome_payload)}, _check_connectome),
    Reader("bpnet", _network_seeds, {"a.bpnet": _SEALED}, _check_network),
    Reader("checkpoint", _checkpoint_seeds, {"a.bpstate": _SEALED}, _check_checkpoint),
    _TraceReader(
        "trace",
        _trace_seeds,
        {"a.json": (*_JSON, _without_digests, _resealed_json), "a.npz": (any_bytes, _other_arrays, _other_arrays)},
        _check_trace,
    ),
    Reader(
        "configuration",
        lambda _: [{CONFIG_FILE: _CONFIGURATION}],
        {CONFIG_FILE: (any_bytes, huge_number, _configuration_text, _configuration_text)},
        _check_configuration,
    ),
    Reader("record", _record_seeds, {"record.json": (*_JSON, _resealed_record, _resealed_record)}, _check_record),
    Reader("plan", _plan_seeds, {"plan.json": (*_JSON, _resealed_plan, _resealed_plan)}, _check_plan),
)
"""Every reader of a file that a user may have from somebody else."""
