"""Checks of a network's features, and of their part of a state, before an engine takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import FORMS, PREFIX, FeatureState, MemoryState, columns_of
from burstproof.engine.profile import Profile
from burstproof.errors import NetworkError, refuse_first
from burstproof.network.features import FIRST_MEMORY_ID, MemoryArea, MemoryChange
from burstproof.network.model import Network

_LARGEST_ID = 2**32 - 1


def check_features(network: Network, profile: Profile) -> None:
    """Refuse features that no engine can run, and any feature under a profile without features.

    Raises
    ------
    NetworkError
        Features under another profile than ``feagi-2.6``; a homeostat or a memory area with a value out of range; a
        memory area without a neuron, from which twins copy their parameters; neurons with ids of memory neurons.
    """
    features = network.features
    if features and profile.byte_synapses:
        cure = f"The profile {profile.name} knows no features; use feagi-2.6"
        raise NetworkError("a network with features", where="network.features", got=profile.name, cure=cure)
    for index, area in features.areas.items():
        if area.memory is not None:
            _check_memory(index, area.memory, network)
        if area.homeostat is not None and not (area.homeostat.tau > 0 and area.homeostat.update_every >= 1):
            where, got = f"features.areas[{index}].homeostat", area.homeostat
            raise NetworkError("not a homeostat", where=where, got=got, allowed="tau above 0, update_every from 1 on")


def _check_memory(index: int, area: MemoryArea, network: Network) -> None:
    where = f"features.areas[{index}].memory"
    sizes = {MemoryChange.DIFFERENTIAL: area.delta_quantization, MemoryChange.RATIO: area.ratio_quantization}
    if area.temporal_depth < 1:
        raise NetworkError("not a temporal depth", where=where, got=area.temporal_depth, allowed="1 or more")
    if not sizes.get(area.change, 1.0) > 0:
        raise NetworkError("not a quantization", where=where, got=sizes[area.change], allowed="above 0")
    if not (network.neurons.cortical_areas == index).any():
        raise NetworkError("a memory area without a neuron", where=where, got=index, allowed="one neuron or more")
    if network.neuron_count > FIRST_MEMORY_ID:
        allowed = f"{FIRST_MEMORY_ID}, where ids of memory neurons begin"
        raise NetworkError(
            "too many neurons beside memory areas", where=where, got=network.neuron_count, allowed=allowed
        )


def twin_count(state: FeatureState | None) -> int:
    """Number of dense neurons that were added while the network ran."""
    return 0 if state is None else len(state.memory.twin_areas)


def check_feature_state(state: FeatureState | None, network: Network) -> None:
    """Refuse a state of features that is not one of ``network``.

    Raises
    ------
    NetworkError
        Features in only one of the two; a column of another element type or length than it must have; NaN; an entry
        that names a neuron, an area or a mapping that does not exist.
    """
    if (state is None) == bool(network.features):
        got, allowed = ("none", "features") if state is None else ("features", "none")
        raise another_network("state.features", got, allowed)
    if state is None:
        return
    sizes = {"N": network.neuron_count + twin_count(state), "S": network.synapse_count}
    sizes |= {"M": len(network.features.modulators), "1": 1}
    for name, column in columns_of(state).items():
        dtype, letter = FORMS[name]
        check_form(f"state.{name}", column, dtype, (sizes.setdefault(letter, np.size(column)),))
        if letter != "S":
            refuse_nan(f"state.{name}", column)
    _check_dense(state, network)
    _check_made(state, network)
    _check_memories(state.memory, network)


def another_network(where: str, got: object, allowed: str) -> NetworkError:
    """The error for a state that does not fit the network of its engine."""
    cure = "Restore it on an engine over the network that it was taken from"
    return NetworkError("the state of another network", where=where, got=got, allowed=allowed, cure=cure)


def check_form(where: str, column: object, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Refuse a column of a state that has not this element type and shape.

    Raises
    ------
    NetworkError
        Another type or shape.
    """
    if not isinstance(column, np.ndarray) or (column.dtype, column.shape) != (dtype, shape):
        got = (str(column.dtype), column.shape) if isinstance(column, np.ndarray) else column
        raise another_network(where, got, f"{dtype} {shape}")


def refuse_nan(where: str, column: npt.NDArray[Any]) -> None:
    """Refuse a column of a state that contains NaN; one pass is enough for a column without.

    Raises
    ------
    NetworkError
        NaN.
    """
    if column.dtype.kind == "f" and np.isnan(column.min(initial=0)):
        allowed = "a number; potentials may be infinite"
        refuse_first(NetworkError, np.isnan(column), column, "a value is NaN", where, allowed)


def strange_ids(ids: npt.NDArray[Any], neurons: int, formed: int) -> npt.NDArray[np.bool_]:
    """Mask of ids that are neither those of ``neurons`` neurons nor of memory neurons formed so far (< ``formed``)."""
    return (ids >= neurons) & ((ids < FIRST_MEMORY_ID) | (ids >= formed))


def _check_dense(state: FeatureState, network: Network) -> None:
    """Refuse trains and psps that the features cannot have changed, and a wrong ``bursts_since_load``."""
    if state.bursts_since_load not in (0, 1):
        where, got = f"state.{PREFIX}bursts_since_load", state.bursts_since_load
        raise NetworkError("not whether a burst has ended", where=where, got=got, allowed="0 or 1")
    areas = network.features.areas
    homes = np.concatenate([network.neurons.cortical_areas, state.memory.twin_areas])
    training = [index for index, area in areas.items() if area.spike_train]
    _refuse("trains", state.trains, state.trains & ~np.isin(homes, training))
    found, own = state.postsynaptic_potentials, network.synapses.postsynaptic_potentials
    degenerating = [index for index, area in areas.items() if area.degeneration]
    changes = np.isin(network.neurons.cortical_areas[network.synapses.source_neurons], degenerating)
    _refuse("postsynaptic_potentials", found, np.where(changes, ~np.isfinite(found), found != own))


def _check_made(state: FeatureState, network: Network) -> None:
    made, memory = state.made, state.memory
    there = network.neuron_count + len(memory.twin_areas)
    for name in ("sources", "targets"):
        ends = getattr(made, name)
        _refuse(f"made.{name}", ends, (ends >= there) & ~np.isin(ends, memory.ids))
    _refuse("made.mappings", made.mappings, made.mappings >= len(network.features.associative))


def _check_memories(memory: MemoryState, network: Network) -> None:
    kept = {index: area.memory for index, area in network.features.areas.items() if area.memory is not None}
    areas = list(kept)
    longest = max((area.temporal_depth for area in kept.values()), default=1) - 1
    if not 0 <= memory.history_bursts <= longest:
        where, got = f"state.{PREFIX}memory.history_bursts", memory.history_bursts
        raise NetworkError("a history longer than any pattern", where=where, got=got, allowed=f"0...{longest}")
    first = FIRST_MEMORY_ID if kept else 0
    if not first <= memory.next_id <= (_LARGEST_ID if kept else 0):
        where, got = f"state.{PREFIX}memory.next_id", memory.next_id
        raise NetworkError("not the id of a memory neuron", where=where, got=got, allowed=f"{first}...{_LARGEST_ID}")
    dense = network.neuron_count + len(memory.twin_areas)
    _refuse("memory.areas", memory.areas, ~np.isin(memory.areas, areas))
    _refuse("memory.twin_areas", memory.twin_areas, ~np.isin(memory.twin_areas, areas))
    beyond = (memory.ids < FIRST_MEMORY_ID) | (memory.ids >= memory.next_id)
    _refuse("memory.ids", memory.ids, beyond | (np.diff(memory.ids.astype(np.int64), prepend=-1) <= 0))
    _refuse("memory.twins", memory.twins, memory.twins >= dense)
    _refuse("memory.replay_neurons", memory.replay_neurons, memory.replay_neurons >= dense)
    for name in ("frame_memories", "injection_memories"):
        named = getattr(memory, name)
        _refuse(f"memory.{name}", named, ~np.isin(named, memory.ids))
    learning = memory.injection_memories[memory.injection_learns]
    rows = sum(int((memory.frame_memories == one).sum()) for one in learning.tolist())
    if rows != len(memory.learnt_potentials):
        where, got = f"state.{PREFIX}memory.learnt_potentials", len(memory.learnt_potentials)
        raise NetworkError("other potentials than those of the frames", where=where, got=got, allowed=f"{rows}")


def _refuse(name: str, column: npt.NDArray[np.generic], wrong: npt.NDArray[np.bool_]) -> None:
    """Raise an error for the first entry that ``wrong`` marks."""
    refuse_first(NetworkError, wrong, column, "the state names what the network does not have", f"state.{PREFIX}{name}")
