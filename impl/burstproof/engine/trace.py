"""Traces: a network's start state and the bursts after it, in the files NAME.npz and NAME.json.

The format is that of the recordings of the real engine (``suites/data/golden/README.md``). A recording of a network
with features has its genome in NAME.genome.json.gz; a record of this package contains the features.

A run of this package writes the same format with ``exact`` set, the fired lists of all bursts, the state after the last
one, and two digests in the JSON file: of the .npz file, and of all other entries of the JSON file. They reveal changes
of either file, and pairs of files from different runs. Recordings of the real engine and records older than 2026-11-22
have no digests, so nothing protects their JSON file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_admission import check_feature_state
from burstproof.engine.feature_state import FORMS, PREFIX, columns_of, from_columns
from burstproof.engine.options import EngineOptions
from burstproof.engine.replay_features import ROWS
from burstproof.engine.state import NO_PLAN, EngineState, Recording, Stimulus, StimulusPlan
from burstproof.errors import BurstproofError, EnvironmentInvalidError, TraceError
from burstproof.network.features import Features
from burstproof.network.files.atomic import atomic_write
from burstproof.network.files.bpnet_format import Rule, decoded, mapping_of, plain_values, rule_of
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.grow.blueprint import GenomePolicy
from burstproof.network.grow.genome import read_genome
from burstproof.network.grow.genome_features import with_features
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import LEARNT_FIELDS, NEURON_FIELDS, STATE_FIELDS, SYNAPSE_FIELDS
from burstproof.regular_file import check_regular

_MODULATED = ("thresholds", "leak_coefficients", "excitabilities")
"""Neuron columns that homeostats and modulators change."""

_ALWAYS = ("ids", "amounts", "forced")
"""Parts of a stimulus that a record contains even if they are empty."""

_TWINS = f"{PREFIX}memory.twin_areas"

_DEEPEST = 64
"""Most levels of nesting in the JSON file: records have fewer than ten, and json cannot write any depth."""

_TWO_FILES = "A trace is two files, NAME.npz and NAME.json; burstproof run --record NAME writes them"

_DIGESTS = ("npz_sha256", "sha256")
"""Entries of the JSON file: SHA-256 of the .npz file, and SHA-256 of all entries but itself."""


@dataclass(frozen=True, eq=False)
class FiredAtStart:
    """Firings and candidates of the burst before the recording; the firings' contributions are under way."""

    ids: npt.NDArray[np.uint32]
    potentials: npt.NDArray[np.float32]
    candidates: npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Trace:
    """B bursts with K firings of a network of N neurons and S synapses.

    Attributes
    ----------
    name : str
        File name without extension.
    network : Network
        Start state; ``network.burst_count`` + 1 is the first burst.
    bursts : int64 (B,)
        Burst numbers, contiguous.
    fired_burst, fired_id, fired_mp : int64, uint32, float32 (K,)
        One row per firing, ordered by burst, then id; potentials before the reset.
    states : mapping of str to array (B, N) or (B, S)
        State after each burst, by field of ``EngineState``; may be empty.
    end : mapping of str to array (N,) or (S,)
        State after the last burst, by field; may be empty.
    plan : StimulusPlan
        Stimulus and forced firings by burst number.
    at_start : FiredAtStart or None
        Firings under way at the start.
    exact : bool
        Whether all values must be equal bit for bit (a record of this package), or only within the tolerance of
        recordings (SEMANTICS section 7).
    settings : mapping
        Profile, emulation and stimulus bounds of the run; empty for recordings of the real engine.
    recorded : mapping of str to array
        Other feature arrays of a recording, named as in golden/features/README.md: ``t_thresholds`` and others (B, N)
        or (B, S) after each burst; ``dyn_*``, ``newn_*`` and ``mem_*`` with one row per burst and synapse, new neuron
        or memory.
    """

    name: str
    network: Network
    bursts: npt.NDArray[np.int64]
    fired_burst: npt.NDArray[np.int64]
    fired_id: npt.NDArray[np.uint32]
    fired_mp: npt.NDArray[np.float32]
    states: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    end: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    plan: StimulusPlan = field(default_factory=lambda: NO_PLAN)
    at_start: FiredAtStart | None = None
    exact: bool = False
    settings: Mapping[str, str | float | bool] = field(default_factory=dict)
    recorded: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


def trace_of_run(
    network: Network,
    options: EngineOptions,
    recording: Recording,
    plan: StimulusPlan,
    end: EngineState,
    name: str = "run",
) -> Trace:
    """The trace of a run of ``network`` from its start state, recorded with ``Record.FIRED``."""
    return Trace(
        name=name,
        network=network.replace(fixed_point=end.fixed_point),
        bursts=recording.bursts,
        fired_burst=np.repeat(recording.bursts, recording.fired_counts),
        fired_id=recording.fired_ids,
        fired_mp=recording.fired_potentials,
        end={item: getattr(end, item) for item in (*STATE_FIELDS, *(LEARNT_FIELDS if network.plastic_mappings else ()))}
        | ({} if end.features is None else columns_of(end.features)),
        plan=plan,
        exact=True,
        settings=options.rules(),
    )


def trace_paths(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """The .npz and .json file of a trace named with or without one of these extensions."""
    base = Path(path)
    if base.name in ("", ".."):
        cure = "Name a file in it: NAME stands for NAME.npz and NAME.json"
        raise TraceError("this is a folder", where="trace", got=str(base), cure=cure)
    if base.suffix in (".npz", ".json"):
        base = base.with_suffix("")
    return base.with_name(base.name + ".npz"), base.with_name(base.name + ".json")


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read NAME.npz and NAME.json.

    Raises
    ------
    TraceError
        A file that is missing, damaged, incomplete or contradicts itself.
    """
    npz_path, json_path = trace_paths(path)
    if os.path.exists(path) and not os.path.exists(json_path) and Path(path) != npz_path:
        raise TraceError("not a trace", where=str(path), cure=_TWO_FILES)
    info = _read_json(json_path)
    _check_digests(info, npz_path, json_path)
    arrays = _read_arrays(npz_path)
    try:
        return _assemble(npz_path, info, arrays)
    except TraceError:
        raise
    except (BurstproofError, LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TraceError(
            f"the files of the trace do not fit together: {type(error).__name__}: {error}",
            where=str(npz_path),
            cure="Record it again, or take both files from the same recording",
        ) from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        check_regular(path)
        info = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise _unreadable(path, error) from None
    except (ValueError, RecursionError) as error:
        raise TraceError(f"is not JSON: {error}", where=str(path), cure="Fetch it again") from None
    if not isinstance(info, dict):
        raise TraceError("must hold a JSON object", where=str(path), got=type(info).__name__)
    if _is_nested(info, _DEEPEST):
        raise TraceError("objects or lists are nested too deeply", where=str(path), allowed=f"{_DEEPEST} levels")
    return info


def _unreadable(path: Path, error: OSError) -> TraceError:
    problem = f"cannot be read: {error.strerror or error}"
    return TraceError(problem, where=str(path), cure=f"Check the path. {_TWO_FILES}")


def _is_nested(tree: Any, levels: int) -> bool:
    """Whether objects and lists are nested deeper than ``levels``."""
    level = [tree]
    for _ in range(levels):
        values = (value for one in level for value in (one.values() if isinstance(one, dict) else one))
        level = [value for value in values if isinstance(value, dict | list)]
    return bool(level)


def _check_digests(info: dict[str, Any], npz_path: Path, json_path: Path) -> None:
    """Refuse files that do not match their digests; one digest without the other means that a file was changed."""
    partner, own = _DIGESTS
    if not info.keys() & {partner, own}:
        return
    cure = "Record it again, or take both files from the same recording"
    if info.get(own) != _digest_of(info):
        raise TraceError("is damaged: it does not have the stated SHA-256", where=str(json_path), cure=cure)
    if info.get(partner) != _digest_of_file(npz_path):
        raise TraceError("is damaged, or belongs to another recording", where=str(npz_path), cure=cure)


def _digest_of(info: Mapping[str, Any]) -> str:
    """SHA-256 of all entries except this digest, in hexadecimal."""
    entries = {name: value for name, value in info.items() if name != _DIGESTS[1]}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _digest_of_file(path: Path) -> str:
    try:
        check_regular(path)
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None


def _read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        check_regular(path)
        size = path.stat().st_size
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(item.file_size for item in archive.infolist())
        if unpacked > 1032 * size + 65536:
            raise TraceError("claims more than zip compression can hold", where=str(path), got=unpacked)
        with np.load(path, allow_pickle=False) as archive_arrays:
            return {name: archive_arrays[name] for name in archive_arrays.files}
    except OSError as error:
        raise _unreadable(path, error) from None
    except (*_DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        raise TraceError(f"is damaged: {error}", where=str(path), cure="Record it again, or fetch it again") from None


_DAMAGE = (ValueError, KeyError, EOFError, NotImplementedError, RuntimeError, MemoryError, SyntaxError, TokenError)
"""Exceptions of NumPy for damaged archives."""


def _assemble(path: Path, info: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Trace:
    network = _with_features(path, info, _network(info, arrays))
    bursts = _whole(path, arrays, "bursts", np.int64)
    expected = network.burst_count + 1 + np.arange(len(bursts))
    if not np.array_equal(bursts, expected):
        raise TraceError(
            "bursts are not contiguous from the one after burst_count_at_start",
            where=f"{path}: bursts",
            got=bursts[:3].tolist(),
        )
    fired_burst, fired_id = _whole(path, arrays, "fired_burst", np.int64), _whole(path, arrays, "fired_id", np.uint32)
    fired_mp = arrays["fired_mp"]
    if not len(fired_burst) == len(fired_id) == len(fired_mp) or fired_mp.dtype.kind != "f" or fired_mp.ndim != 1:
        raise TraceError("the firings have not one burst, id and potential each", where=f"{path}: fired_mp")
    exact = bool(info.get("exact", False))  # the real engine records firings of neurons that its tables lack
    closed = exact and all(area.memory is None for area in network.features.areas.values())
    if not np.isin(fired_burst, bursts).all() or (closed and bool((fired_id >= network.neuron_count).any())):
        raise TraceError("a firing lies outside the network or the recorded bursts", where=f"{path}: fired_id")
    order = np.lexsort((fired_id, fired_burst))
    return Trace(
        name=path.stem,
        network=network,
        bursts=bursts,
        fired_burst=fired_burst[order],
        fired_id=fired_id[order],
        fired_mp=fired_mp.astype(np.float32)[order],
        states=_states(path, arrays, "t_", network, (len(bursts),)),
        end=_states(path, arrays, "end_", network, ()) | _end_of_features(path, arrays, network),
        plan=_plan(info, network),
        at_start=_at_start(info, network),
        exact=exact,
        settings=dict(info.get("settings", {})),
        recorded=_recorded(path, arrays, network, len(bursts)),
    )


def _with_features(path: Path, info: dict[str, Any], network: Network) -> Network:
    """The network with the features of the JSON file, or else of the genome beside the recording."""
    if "features" in info:
        return network.replace(
            features=decoded(Features, info["features"], "features"), fixed_point=network.fixed_point
        )
    genome = path.with_suffix(".genome.json.gz")
    if info.get("exact", False) or not genome.exists():
        return network
    network = with_features(network, read_genome(genome, GenomePolicy(as_the_engine=True)))
    index = {area.cortical_id: area.index for area in network.areas}
    features = dataclasses.replace(
        network.features,
        memory_order=tuple(index[area] for area in info.get("memory_area_order", ())),
        clamp_potentials=info.get("precision") == "int8",
    )
    return network.replace(features=features)


def _recorded(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], network: Network, bursts: int
) -> dict[str, npt.NDArray[Any]]:
    """Feature arrays of a recording; checks their shapes and that groups are complete."""
    rows: dict[str, tuple[int, ...]] = {f"t_{name}": (bursts, network.neuron_count) for name in _MODULATED}
    rows["t_postsynaptic_potentials"] = (bursts, network.synapse_count)
    found = {name: values for name, values in arrays.items() if name in rows or name.startswith(tuple(ROWS))}
    for prefix, columns in ROWS.items():
        named = [name for name in found if name.startswith(prefix)]
        missing = [prefix + column for column in columns if named and prefix + column not in found]
        if missing:
            cure = "Record it again, with all of them"
            raise TraceError("lacks arrays that belong to others", where=str(path), got=missing, cure=cure)
        rows |= {name: _whole(path, arrays, f"{prefix}burst", np.int64).shape for name in named}
    for name, values in found.items():
        if values.shape != rows[name] or values.dtype.kind not in "biuf":
            where, got = f"{path}: {name}", (values.dtype.str, values.shape)
            raise TraceError(
                "has the wrong shape, or no numbers", where=where, got=got, allowed=f"numbers {rows[name]}"
            )
    return found


def _whole(path: Path, arrays: Mapping[str, npt.NDArray[Any]], name: str, dtype: type[np.integer[Any]]) -> Any:
    """An integer array (n,), converted to ``dtype`` without loss."""
    values, limits = arrays[name], np.iinfo(dtype)
    fits = values.ndim == 1 and values.dtype.kind in "iu"
    if not fits or (len(values) and not limits.min <= int(values.min()) <= int(values.max()) <= limits.max):
        where, got = f"{path}: {name}", (values.dtype.str, values.shape)
        raise TraceError("is no row of whole numbers in range", where=where, got=got, allowed=str(np.dtype(dtype)))
    return values.astype(dtype)


def _network(info: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Network:
    count = len(arrays["n_thresholds"])
    neurons = {name.removeprefix("n_"): arrays[name] for name in arrays if name.startswith("n_")}
    if "coordinates" in neurons:
        neurons["coordinates"] = neurons["coordinates"].reshape(count, 3)
    synapses = {name.removeprefix("s_"): arrays[name] for name in arrays if name.startswith("s_")}
    power = float(info["power_amount"])
    if not math.isfinite(power):
        raise TraceError("the power amount is not finite", where="power_amount", got=power)
    network = Network(
        neurons=NeuronTable.build(count, **neurons),
        synapses=SynapseTable.build(**synapses),
        areas=_areas(info),
        burst_count=int(info["burst_count_at_start"]),
        power_amount=power,
        provenance={"trace": str(info.get("server", "burstproof"))},
    )
    kept = FixedPoint.from_values(info["fixed_point"]) if "fixed_point" in info else None
    return network.replace(plastic_mappings=tuple(_plastic(info, arrays, network)), fixed_point=kept)


def _areas(info: dict[str, Any]) -> tuple[Area, ...]:
    flags = info.get("area_flags", {})
    areas = []
    for index, cortical_id in info["area_names"].items():
        flag = flags.get(cortical_id, {})
        named = {name: flag.get(name) for name in ("psp_uniform_distribution", "mp_driven_psp")}
        if not isinstance(cortical_id, str) or not all(type(value) in (bool, type(None)) for value in named.values()):
            raise TraceError("an area has no id, or a flag that is no truth value", where=f"area_names: {index}")
        areas.append(Area(int(index), cortical_id, str(flag.get("cortical_name", "")), **named))
    return tuple(sorted(areas, key=lambda area: area.index))


def _plastic(info: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], network: Network) -> Iterable[PlasticMapping]:
    if "stdp" in info:  # the recordings: every synapse from area cA to area cB
        index = {area.name: area.index for area in network.areas}
        area_of = network.neurons.cortical_areas
        between = (area_of[network.synapses.source_neurons] == index["cA"]) & (
            area_of[network.synapses.target_neurons] == index["cB"]
        )
        rule = info["stdp"]
        constant, ltp, ltd = (float(rule[name]) for name in ("constant", "ltp", "ltd"))
        yield PlasticMapping(np.flatnonzero(between), int(rule["window"]), constant, ltp, ltd)
    for number, rule in enumerate(info.get("plastic_mappings", ())):
        rows = _whole(Path("plastic"), arrays, f"plastic_{number}", np.int64)
        yield mapping_of(decoded(Rule, rule, f"plastic_mappings[{number}]"), rows)


def _states(
    path: Path, arrays: dict[str, npt.NDArray[Any]], prefix: str, network: Network, leading: tuple[int, ...]
) -> dict[str, npt.NDArray[Any]]:
    found = {}
    neurons = network.neuron_count + len(arrays.get(prefix + _TWINS, ()))
    for name in (*STATE_FIELDS, *LEARNT_FIELDS):
        if prefix + name not in arrays:
            continue
        values = arrays[prefix + name]
        shape = (*leading, network.synapse_count if name in LEARNT_FIELDS else neurons)
        dtype = np.dtype((NEURON_FIELDS if name in STATE_FIELDS else SYNAPSE_FIELDS)[name])
        if (values.dtype, values.shape) != (dtype, shape):
            where, got = f"{path}: {prefix}{name}", (values.dtype.str, values.shape)
            raise TraceError("has the wrong shape or element type", where=where, got=got, allowed=f"{dtype} {shape}")
        found[name] = values
    return found


def _end_of_features(path: Path, arrays: dict[str, npt.NDArray[Any]], network: Network) -> dict[str, npt.NDArray[Any]]:
    """The feature state after the last burst of a record, by column."""
    found = {name: arrays[f"end_{name}"] for name in FORMS if f"end_{name}" in arrays}
    if found:
        if found.keys() != FORMS.keys() or any(a.dtype != FORMS[name][0] for name, a in found.items()):
            raise TraceError("has other columns of features than those of a state", where=f"{path}: end_features")
        check_feature_state(from_columns(found), network)
    return found


def _plan(info: dict[str, Any], network: Network) -> StimulusPlan:
    plan: dict[int, Stimulus] = {
        int(after) + 1: Stimulus(forced=np.array(ids, np.uint32))
        for after, ids in info.get("manual_stimulation", {}).items()
    }
    index = {area.cortical_id: area.index for area in network.areas}
    early: dict[int, list[int]] = {}
    for burst, area in info.get("memory_injected_early", ()):
        early.setdefault(int(burst), []).append(index[area])
    for number, areas in early.items():
        given = plan.get(number, Stimulus())
        plan[number] = dataclasses.replace(given, memories_early=np.array(areas, np.uint32))
    for burst, item in info.get("stimulus", {}).items():
        plan[int(burst)] = Stimulus(
            ids=np.array(item.get("ids", ()), np.uint32),
            amounts=_amounts(item.get("amounts", ())),
            forced=np.array(item.get("forced", ()), np.uint32),
            memories_early=np.array(item.get("memories_early", ()), np.uint32),
        )
    return plan


def _amounts(values: Any) -> npt.NDArray[np.float32]:
    """Amounts as float32; values out of range become infinite, and are refused when the stimulus is used."""
    with np.errstate(over="ignore"):
        return np.array(values, np.float32)


def _at_start(info: dict[str, Any], network: Network) -> FiredAtStart | None:
    if "fired_at_start" not in info:
        return None
    fired = info["fired_at_start"]
    ids = _neurons(fired["ids"], network, "fired_at_start.ids")
    potentials = _amounts(fired["mps"])
    if potentials.shape != ids.shape or np.isnan(potentials).any():
        where, allowed = "fired_at_start.mps", f"{len(ids)} numbers"
        raise TraceError(
            "the firings at the start have not one potential each", where=where, got=fired["mps"], allowed=allowed
        )
    return FiredAtStart(ids, potentials, _neurons(info.get("fcl_at_start", ()), network, "fcl_at_start"))


def _neurons(values: Any, network: Network, where: str) -> npt.NDArray[np.uint32]:
    """Neuron ids (n,) of the network, each at most once."""
    ids, count = np.asarray(values), network.neuron_count
    whole = ids.ndim == 1 and (ids.dtype.kind in "iu" or not ids.size)
    if not whole or len(np.unique(ids)) < len(ids) or not ((ids >= 0) & (ids < count)).all():
        raise TraceError("not neurons of the network, each once", where=where, got=values, allowed=f"0...{count - 1}")
    return ids.astype(np.uint32)


def write_trace(path: str | os.PathLike[str], trace: Trace) -> tuple[Path, Path]:
    """Write ``trace`` to NAME.npz and NAME.json, each replaced in one step; returns the two paths.

    Raises
    ------
    EnvironmentInvalidError
        The file system refused.
    """
    npz_path, json_path = trace_paths(path)
    network = trace.network
    arrays: dict[str, npt.NDArray[Any]] = {f"n_{n}": np.asarray(getattr(network.neurons, n)) for n in NEURON_FIELDS}
    arrays["n_coordinates"] = arrays["n_coordinates"].reshape(-1)
    arrays |= {f"s_{n}": np.asarray(getattr(network.synapses, n)) for n in SYNAPSE_FIELDS}
    arrays |= {f"plastic_{i}": m.synapses for i, m in enumerate(network.plastic_mappings)}
    arrays |= {f"t_{n}": values for n, values in trace.states.items()}
    arrays |= {f"end_{n}": values for n, values in trace.end.items()}
    arrays |= trace.recorded
    arrays |= {
        "bursts": trace.bursts.astype(np.uint64),
        "fired_burst": trace.fired_burst.astype(np.uint64),
        "fired_id": trace.fired_id,
        "fired_mp": trace.fired_mp,
    }
    _replace(npz_path, lambda handle: np.savez_compressed(handle, allow_pickle=False, **arrays))
    info = {**_info(trace), _DIGESTS[0]: _digest_of_file(npz_path)}
    text = json.dumps({**info, _DIGESTS[1]: _digest_of(info)}, indent=1)
    _replace(json_path, lambda handle: handle.write(text.encode()))
    return npz_path, json_path


def _info(trace: Trace) -> dict[str, Any]:
    network = trace.network
    return {
        "server": "burstproof",
        "exact": trace.exact,
        "settings": dict(trace.settings),
        "burst_count_at_start": network.burst_count,
        "power_amount": network.power_amount,
        **({} if network.fixed_point is None else {"fixed_point": dataclasses.asdict(network.fixed_point)}),
        "bursts": [int(trace.bursts[0]), int(trace.bursts[-1])] if len(trace.bursts) else [],
        "n_bursts": len(trace.bursts),
        "neurons": network.neuron_count,
        "synapses": network.synapse_count,
        "area_names": {str(area.index): area.cortical_id for area in network.areas},
        "area_flags": {
            area.cortical_id: {
                "cortical_name": area.name,
                "psp_uniform_distribution": area.psp_uniform_distribution,
                "mp_driven_psp": area.mp_driven_psp,
            }
            for area in network.areas
        },
        "plastic_mappings": [plain_values(rule_of(mapping)) for mapping in network.plastic_mappings],
        **({"features": plain_values(network.features)} if network.features else {}),
        "stimulus": {
            str(burst): {name: one.tolist() for name, one in vars(stimulus).items() if name in _ALWAYS or len(one)}
            for burst, stimulus in trace.plan.items()
        },
    }


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    try:
        with atomic_write(path) as stream:
            write(stream)
    except OSError as error:
        raise EnvironmentInvalidError(
            f"cannot be written: {error.strerror}", where=str(path), cure="Free space there"
        ) from None
