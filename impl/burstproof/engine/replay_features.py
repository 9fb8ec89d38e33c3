"""Pairs of recorded and computed feature quantities of a burst; for the names see golden/features/README.md.

Rows of memories, twins and created synapses are recorded in any order; they are matched by id, synapses by their ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import PREFIX, FeatureState
from burstproof.engine.state import EngineState
from burstproof.network.features import FIRST_MEMORY_ID
from burstproof.network.model import Network

Array = npt.NDArray[Any]

_MODULATED = ("thresholds", "leak_coefficients", "excitabilities")
_WORN = "postsynaptic_potentials"

_MEMORY_COLUMNS = {
    "area": "areas",
    "pattern_hash": "keys",
    "lifespan": "lifespans",
    "is_ltm": "longterm",
    "activation_count": "activation_counts",
    "creation_burst": "created",
    "last_activation_burst": "last_activations",
}
"""Columns ``mem_*`` of a recording, and the corresponding fields of ``MemoryState``."""

ROWS = {
    "dyn_": ("burst", "source", "target", "weight", "psp", "type", "eligibility"),
    "newn_": ("burst", "index", "area", "membrane_potential"),
    "mem_": ("burst", "id", *_MEMORY_COLUMNS),
}
"""Prefixes of arrays with a row per burst and synapse, new neuron or memory, and the columns that belong together."""


@dataclass(frozen=True)
class Pair:
    """One quantity, recorded and computed; ``items`` are ids, or stand for them in messages."""

    quantity: str
    items: Array
    expected: Array
    got: Array


def pairs(
    recorded: Mapping[str, Array], index: int, number: int, network: Network, state: EngineState
) -> Iterator[Pair]:
    """All feature quantities that a recording has after burst ``number``, its row ``index``.

    Quantities that it lacks never changed: parameters, psps, weights and traces are the network's, and there are no
    memories, twins or new synapses.
    """
    features = state.features
    if features is None:
        return
    yield from _columns(recorded, index, network, features)
    rows = _rows_of(recorded, "mem_", number)
    yield from _keyed("memory", rows, "id", _memories(features))
    yield from _keyed("twin", _rows_of(recorded, "newn_", number), "index", _twins(network, state, features))
    yield from _synapses(_rows_of(recorded, "dyn_", number), recorded, network, state, features)


def _columns(recorded: Mapping[str, Array], index: int, network: Network, features: FeatureState) -> Iterator[Pair]:
    """Parameters in force, and psps if no synapses appear or vanish."""
    for name in _MODULATED:
        count = network.neuron_count
        column = recorded.get(f"t_{name}")
        expected = getattr(network.neurons, name) if column is None else column[index]
        yield Pair(name, np.arange(count), expected, getattr(features, name)[:count])
    if "dyn_burst" not in recorded:
        column = recorded.get(f"t_{_WORN}")
        expected = network.synapses.postsynaptic_potentials if column is None else column[index]
        yield Pair(_WORN, np.arange(network.synapse_count), expected, features.postsynaptic_potentials)


def _rows_of(recorded: Mapping[str, Array], prefix: str, number: int) -> dict[str, Array]:
    """The rows of one burst, without their prefix; empty if the recording has no such arrays."""
    bursts = recorded.get(f"{prefix}burst")
    if bursts is None:
        return {}
    return {name.removeprefix(prefix): a[bursts == number] for name, a in recorded.items() if name.startswith(prefix)}


def _memories(features: FeatureState) -> dict[str, Array]:
    memory = features.memory
    return {"id": memory.ids, **{name: getattr(memory, field) for name, field in _MEMORY_COLUMNS.items()}}


def _twins(network: Network, state: EngineState, features: FeatureState) -> dict[str, Array]:
    count = network.neuron_count
    return {
        "index": np.arange(count, len(state.membrane_potentials)),
        "area": features.memory.twin_areas,
        "membrane_potential": state.membrane_potentials[count:],
    }


def _keyed(kind: str, rows: Mapping[str, Array], key: str, found: Mapping[str, Array]) -> Iterator[Pair]:
    """Rows with one key each: first the keys, then, if these agree, each column."""
    order = np.lexsort((rows.get("weight", rows[key]), rows[key])) if rows else np.empty(0, np.int64)
    wanted = rows[key][order].astype(np.int64) if rows else np.empty(0, np.int64)
    got = found[key].astype(np.int64)
    yield from _presence(f"{kind}s", wanted, got)
    if np.array_equal(wanted, got):
        for name, column in found.items():
            if name != key and rows:
                expected = rows[name][order]
                yield Pair(f"{kind}_{name}", wanted, expected, column.astype(expected.dtype))


def _presence(quantity: str, wanted: Array, got: Array) -> Iterator[Pair]:
    """A 1 or 0 per item: whether it is there."""
    every = np.union1d(wanted, got)
    yield Pair(quantity, every, np.isin(every, wanted).astype(np.int64), np.isin(every, got).astype(np.int64))


def _synapses(
    rows: Mapping[str, Array],
    recorded: Mapping[str, Array],
    network: Network,
    state: EngineState,
    features: FeatureState,
) -> Iterator[Pair]:
    """Created synapses, together with the network's if the recording lists synapses in each burst.

    The real engine lists synapses of a memory neuron only after it became long-term.
    """
    made, memory, table = features.made, features.memory, network.synapses
    shown = np.concatenate([np.arange(network.neuron_count + len(memory.twin_areas)), memory.ids[memory.longterm]])
    listed = np.isin(made.sources, shown) & np.isin(made.targets, shown)
    if "dyn_burst" not in recorded:
        yield from _presence("created_synapses", np.empty(0, np.int64), _ends(made.sources, made.targets)[listed])
        return
    inhibitory = np.array([network.features.associative[one].inhibitory for one in made.mappings.tolist()], np.uint8)
    found: dict[str, tuple[Array, Array]] = {
        "weight": (state.weights, made.weights),
        "psp": (features.postsynaptic_potentials, made.postsynaptic_potentials),
        "type": (table.types, inhibitory),
        "eligibility": (state.eligibility_traces, made.eligibility_traces),
    }
    keys = _ends(
        np.concatenate([table.source_neurons, made.sources[listed]]),
        np.concatenate([table.target_neurons, made.targets[listed]]),
    )
    columns = {name: np.concatenate([old, new[listed]]) for name, (old, new) in found.items()}
    order = np.lexsort((columns["weight"], keys))
    columns = {name: column[order] for name, column in columns.items()}
    recorded_rows = {"ends": _ends(rows["source"], rows["target"]), **{name: rows[name] for name in found}}
    yield from _keyed("synapse", recorded_rows, "ends", {"ends": keys[order], **columns})


def _ends(sources: Array, targets: Array) -> Array:
    """Source and target of each synapse as one number."""
    return sources.astype(np.int64) << 32 | targets.astype(np.int64)


def words_of(quantity: str, item: int) -> str:
    """An item of ``quantity`` in words: a neuron, dense or memory; a synapse by its ends; or a row of a column."""
    if quantity.startswith(PREFIX):
        return f"row {item}"
    if "synapse" in quantity:
        return f"synapse {item >> 32} to {item & 0xFFFFFFFF}"
    return f"neuron {item}" if item < FIRST_MEMORY_ID else f"memory neuron {item}"
