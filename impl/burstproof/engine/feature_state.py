"""State that features add to a burst (FEATURES.md): canonical, equal on every backend."""

# ruff: noqa: RUF009  `_column` makes a dataclass field, as `dataclasses.field` does

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


def _column(dtype: type[np.generic], letter: str) -> Any:
    """An array field, empty by default; columns with the same ``letter`` have the same length."""
    return field(default_factory=lambda: np.empty(0, dtype), metadata={"dtype": dtype, "letter": letter})


@dataclass(frozen=True, eq=False)
class MadeSynapses:
    """Existing synapses that associative mappings made (section 8), by source, then target.

    Attributes
    ----------
    sources, targets : uint32 (A,)
        Ids of dense neurons, twins included, or of memory neurons.
    mappings : uint32 (A,)
        Index of the mapping in ``Features.associative``, which has the type and the rule.
    weights, postsynaptic_potentials, eligibility_traces : float32 (A,)
    """

    sources: Words = _column(np.uint32, "A")
    targets: Words = _column(np.uint32, "A")
    mappings: Words = _column(np.uint32, "A")
    weights: Floats = _column(np.float32, "A")
    postsynaptic_potentials: Floats = _column(np.float32, "A")
    eligibility_traces: Floats = _column(np.float32, "A")


@dataclass(frozen=True, eq=False)
class MemoryState:
    """State of memory areas (section 7): L live memory neurons, ids ascending.

    Attributes
    ----------
    next_id : int
        Id of the next memory neuron.
    history_bursts : int
        Past bursts that ``recent_*`` covers: at most the largest temporal depth - 1.
    ids, areas : uint32 (L,)
        Id and cortical index.
    keys : uint64 (L,)
        XXH64 of the pattern.
    lifespans, activation_counts : uint32 (L,)
    longterm, twin_due : bool (L,)
        Long-term neurons, and those whose twin is added at the end of the next burst.
    created, last_activations : int64 (L,)
        Burst numbers.
    potentials : float32 (L,)
        Membrane potential v.
    last_fired : int64 (L,)
        As ``EngineState.last_fired``.
    twins : int64 (L,)
        Id of the dense twin, -1 without one.
    arriving : int64 (L,)
        Contributions that arrive in the next burst, in units of 2^-k.
    arriving_candidate : bool (L,)
        Whether any arrives.
    frame_memories, frame_bursts, frame_areas, frame_ids : uint32 (V,)
        Patterns to replay: a row for each voxel of each memory, by memory, burst of the pattern (0 is the oldest),
        upstream area, id. Kept only if the area has twin areas.
    frame_potentials : float32 (V,)
        Potential of the voxel's neuron, averaged if the area learns potentials.
    recent_bursts : int64 (R,), recent_areas, recent_ids : uint32 (R,), recent_potentials : float32 (R,)
        Firings of upstream areas in the last ``history_bursts`` bursts, in the order burst, id.
    injection_bursts : int64 (I,), injection_memories : uint32 (I,), injection_learns : bool (I,)
        Pending injections: the burst in which they are due, their memory, and whether its potentials are averaged
        then; by due burst, burst of the pattern, area.
    learnt_potentials : float32 (Q,)
        New potentials of the injections that learn, concatenated, each in the order of its memory's frames.
    replay_bursts : int64 (P,), replay_neurons : uint32 (P,), replay_potentials : float32 (P,), replay_adds : bool (P,)
        Pending replays: the burst in which they are due, the dense neuron, and the potential with which it is forced
        or, if ``replay_adds``, which is added to its sum; by due burst, then in the order of their causes.
    twin_areas, twin_memories : uint32 (T,)
        Area and memory of each dense neuron that was added; neuron N + j is row j, N the network's neuron count.
    """

    next_id: int = 0
    history_bursts: int = 0
    ids: Words = _column(np.uint32, "L")
    areas: Words = _column(np.uint32, "L")
    keys: npt.NDArray[np.uint64] = _column(np.uint64, "L")
    lifespans: Words = _column(np.uint32, "L")
    activation_counts: Words = _column(np.uint32, "L")
    longterm: Bools = _column(np.bool_, "L")
    twin_due: Bools = _column(np.bool_, "L")
    created: Integers = _column(np.int64, "L")
    last_activations: Integers = _column(np.int64, "L")
    potentials: Floats = _column(np.float32, "L")
    last_fired: Integers = _column(np.int64, "L")
    twins: Integers = _column(np.int64, "L")
    arriving: Integers = _column(np.int64, "L")
    arriving_candidate: Bools = _column(np.bool_, "L")
    frame_memories: Words = _column(np.uint32, "V")
    frame_bursts: Words = _column(np.uint32, "V")
    frame_areas: Words = _column(np.uint32, "V")
    frame_ids: Words = _column(np.uint32, "V")
    frame_potentials: Floats = _column(np.float32, "V")
    recent_bursts: Integers = _column(np.int64, "R")
    recent_areas: Words = _column(np.uint32, "R")
    recent_ids: Words = _column(np.uint32, "R")
    recent_potentials: Floats = _column(np.float32, "R")
    injection_bursts: Integers = _column(np.int64, "I")
    injection_memories: Words = _column(np.uint32, "I")
    injection_learns: Bools = _column(np.bool_, "I")
    learnt_potentials: Floats = _column(np.float32, "Q")
    replay_bursts: Integers = _column(np.int64, "P")
    replay_neurons: Words = _column(np.uint32, "P")
    replay_potentials: Floats = _column(np.float32, "P")
    replay_adds: Bools = _column(np.bool_, "P")
    twin_areas: Words = _column(np.uint32, "T")
    twin_memories: Words = _column(np.uint32, "T")


FEATURES_BY_NEURON = (
    "thresholds",
    "leak_coefficients",
    "excitabilities",
    "firing_rates",
    "homeostat_leaks",
    "trains",
    "held_potentials",
)
"""Fields of ``FeatureState`` with one entry per neuron."""


@dataclass(frozen=True, eq=False)
class FeatureState:
    """The state of features: N neurons, S synapses, M modulators.

    Columns that no feature changes equal those of the network's tables. If memory areas added T twins, all neuron
    columns, here and in ``EngineState``, have N + T entries: the network's, then the twins'.

    Attributes
    ----------
    thresholds, leak_coefficients, excitabilities : float32 (N + T,)
        In force in the next burst: base values, or what homeostats and modulators made of them.
    firing_rates : float32 (N + T,)
        The homeostat's average r; 0 outside homeostatic areas and for twins.
    homeostat_leaks : float32 (N + T,)
        The homeostat's leak g before modulation; 0 outside homeostatic areas and for twins.
    trains : bool (N + T,)
        Neurons that a spike train forces to fire in the next burst.
    held_potentials : float32 (N + T,)
        Potentials of these firings; 0 for other neurons.
    signals : float32 (M,)
        Signals of the burst just done, which act in the next one; 0 before the first burst after a load.
    bursts_since_load : int
        0 or 1: whether a burst has ended since the network was loaded; until then factors are 1, reward and gate 0.
    postsynaptic_potentials : float32 (S,)
        psp after degeneration.
    made : MadeSynapses
        Empty without associative mappings.
    memory : MemoryState
        Empty, with ``next_id`` 0, without memory areas.
    """

    thresholds: Floats = _column(np.float32, "N")
    leak_coefficients: Floats = _column(np.float32, "N")
    excitabilities: Floats = _column(np.float32, "N")
    firing_rates: Floats = _column(np.float32, "N")
    homeostat_leaks: Floats = _column(np.float32, "N")
    trains: Bools = _column(np.bool_, "N")
    held_potentials: Floats = _column(np.float32, "N")
    signals: Floats = _column(np.float32, "M")
    bursts_since_load: int = 0
    postsynaptic_potentials: Floats = _column(np.float32, "S")
    made: MadeSynapses = field(default_factory=MadeSynapses)
    memory: MemoryState = field(default_factory=MemoryState)


PREFIX = "features."
"""Prefix of the columns of ``FeatureState`` among those of ``EngineState``."""


def _leaves(kind: type[Any], prefix: str) -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Names and fields of a dataclass, those of nested dataclasses included."""
    for item in dataclasses.fields(kind):
        inner = item.default_factory
        if isinstance(inner, type):
            yield from _leaves(inner, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name, item


FORMS: dict[str, tuple[np.dtype[Any], str]] = {
    name: (np.dtype(item.metadata.get("dtype", np.int64)), item.metadata.get("letter", "1"))
    for name, item in _leaves(FeatureState, PREFIX)
}
"""Columns of a feature state in order: dtype, and the letter of the length. A scalar is a column of length 1."""


def columns_of(state: FeatureState) -> dict[str, npt.NDArray[Any]]:
    """The columns of ``state``, named as in ``FORMS``."""
    found = {}
    for name, (dtype, letter) in FORMS.items():
        value: Any = state
        for part in name.removeprefix(PREFIX).split("."):
            value = getattr(value, part)
        found[name] = np.array([value], dtype) if letter == "1" else value
    return found


def from_columns(columns: Mapping[str, npt.NDArray[Any]]) -> FeatureState:
    """The inverse of ``columns_of``; other columns are ignored."""
    state: FeatureState = _assembled(FeatureState, PREFIX, columns)
    return state


def _assembled(kind: type[Any], prefix: str, columns: Mapping[str, npt.NDArray[Any]]) -> Any:
    values: dict[str, Any] = {}
    for item in dataclasses.fields(kind):
        name = prefix + item.name
        if isinstance(item.default_factory, type):
            values[item.name] = _assembled(item.default_factory, f"{name}.", columns)
        else:
            values[item.name] = int(columns[name][0]) if FORMS[name][1] == "1" else columns[name]
    return kind(**values)
