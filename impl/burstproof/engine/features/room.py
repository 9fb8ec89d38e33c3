"""Room for dense neurons that appear while a network runs (FEATURES section 7.5), and states with and without it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import FEATURES_BY_NEURON, FeatureState
from burstproof.engine.features.associations import Governed
from burstproof.engine.state import BY_NEURON, EngineState
from burstproof.network.model import Network
from burstproof.network.schema import NO_LIMIT


def with_room(network: Network, rules: Governed, models: Sequence[int], spare: int) -> Network:
    """``network`` as an engine holds it: with the mappings of ``rules``, and ``spare`` neurons more.

    Spare neuron j is like neuron ``models[j % len(models)]``, with the threshold limit taken raw (none is 0) and an
    area of its own, so that no feature of an area acts on it. Nothing reaches it until it becomes somebody's twin.
    """
    table = network.neurons
    if spare:
        rows = np.resize(np.array(models, np.int64), spare)
        columns: dict[str, Any] = {}
        for item in dataclasses.fields(table):
            column = getattr(table, item.name)
            columns[item.name] = np.concatenate([column, _spare(item.name, column[rows])])
        columns["cortical_areas"][len(table) :] = int(table.cortical_areas.max(initial=0)) + 1
        table = dataclasses.replace(table, **columns)
    return network.replace(neurons=table, plastic_mappings=rules.mappings, features=rules.features)


def _spare(name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values of a column for spare neurons, from those of their models."""
    if name == "threshold_limits":
        return np.where(column == NO_LIMIT, np.float32(0), column)
    if name == "valid_mask":
        return np.ones_like(column)
    if name in ("membrane_potentials", "refractory_countdowns", "consecutive_fire_counts"):
        return np.zeros_like(column)
    return column


def cropped(state: EngineState, neurons: int) -> EngineState:
    """``state`` of the first ``neurons`` neurons."""
    return _resized(state, lambda column, _: column[..., :neurons])


def padded(state: EngineState, like: EngineState) -> EngineState:
    """``state`` with more neurons, as they are in the state ``like`` of an engine at rest."""

    def wider(column: npt.NDArray[Any], rest: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([column, rest[..., column.shape[-1] :]], axis=-1)

    return _resized(state, wider, like)


def _resized(state: EngineState, change: Any, like: EngineState | None = None) -> EngineState:
    other = like or state
    columns = {name: change(getattr(state, name), getattr(other, name)) for name in BY_NEURON}
    features, rest = state.features, other.features
    if isinstance(features, FeatureState) and isinstance(rest, FeatureState):
        own = {name: change(getattr(features, name), getattr(rest, name)) for name in FEATURES_BY_NEURON}
        features = dataclasses.replace(features, **own)
    return dataclasses.replace(state, **columns, features=features)
