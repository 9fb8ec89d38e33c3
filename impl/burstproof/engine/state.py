"""The frozen inputs and outputs of an engine: stimulus, bursts, state, recordings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import FeatureState
from burstproof.errors import InputError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.schema import LEARNT_FIELDS

_NO_IDS = np.empty(0, np.uint32)
_NO_AMOUNTS = np.empty(0, np.float32)


@dataclass(frozen=True, eq=False)
class Stimulus:
    """External input of one burst.

    ``amounts`` (Q,) float32 are added to the FCL of the neurons ``ids`` (Q,) uint32; several for one neuron add up.
    Neurons ``forced`` (R,) uint32 join the fired list with potential 100 (SEMANTICS section 4), each once.
    ``memories_early`` (E,) uint32 are cortical indices of memory areas whose pattern of this burst is injected a burst
    early, in the next one, as sometimes happens in recordings of the real engine (FEATURES section 7.3).
    """

    ids: npt.NDArray[np.uint32] = field(default_factory=lambda: _NO_IDS)
    amounts: npt.NDArray[np.float32] = field(default_factory=lambda: _NO_AMOUNTS)
    forced: npt.NDArray[np.uint32] = field(default_factory=lambda: _NO_IDS)
    memories_early: npt.NDArray[np.uint32] = field(default_factory=lambda: _NO_IDS)


StimulusPlan = Mapping[int, Stimulus]
"""Stimulus by absolute burst number; other bursts have none."""

NO_STIMULUS = Stimulus()
NO_PLAN: StimulusPlan = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Burst:
    """The result of one burst: ``fired_ids`` (F,) uint32 ascending, ``fired_potentials`` (F,) float32 before the reset.

    ``candidates`` counts the neurons in the FCL, blocked ones included.
    """

    number: int
    fired_ids: npt.NDArray[np.uint32]
    fired_potentials: npt.NDArray[np.float32]
    candidates: int


BY_NEURON = (
    "membrane_potentials",
    "refractory_countdowns",
    "consecutive_fire_counts",
    "was_candidate",
    "pending",
    "pending_candidate",
    "last_fired",
    "fire_streak",
)
"""Fields of the state whose last axis is that of the neurons."""


@dataclass(frozen=True, eq=False)
class EngineState:
    """Everything that the next burst depends on (SEMANTICS section 1b), canonical: equal on every backend.

    N neurons, S synapses in the order of the network's table, D = largest delay of a valid synapse (at least 1).

    Attributes
    ----------
    burst_count : int
        Number of the burst just done.
    membrane_potentials : float32 (N,)
    refractory_countdowns, consecutive_fire_counts : uint16 (N,)
    weights, eligibility_traces : float32 (S,)
    was_candidate : bool (N,)
        Non-accumulating neurons that were candidates in the burst just done and did not fire in it, forced or not. They
        restart from 0 in the next burst, unless they are refractory then.
    pending : int64 (D, N)
        Contributions under way in units of 2^-k; row j arrives in burst ``burst_count + 1 + j``.
    pending_candidate : bool (D, N)
        Whether a contribution, even one of 0, is under way to that neuron.
    fired_ids, fired_potentials : uint32, float32 (F,)
        The fired list of the burst just done, ascending; its contributions are in ``pending`` already.
    last_fired : int64 (N,)
        Number of the last burst in which the neuron fired, if it lies within the longest plasticity window that
        still matters (the last W - 1 bursts), else 0. All 0 without plastic mappings.
    fire_streak : uint16 (N,)
        Length of the unbroken run of firings that ends at ``last_fired``, at most W; 0 where ``last_fired`` is 0.
    history_bursts : int
        Number of past bursts that ``last_fired`` covers, at most W - 1 (0 without plastic mappings).
    clamped : bool
        Whether a contribution was ever clamped (SEMANTICS section 7).
    fixed_point : FixedPoint or None
        Scale, width and clamp of the sums, which a restored run keeps; ``None`` in files older than 2026-11-22.
    features : FeatureState or None
        State of the network's features; ``None`` if and only if it has none.
    """

    burst_count: int
    membrane_potentials: npt.NDArray[np.float32]
    refractory_countdowns: npt.NDArray[np.uint16]
    consecutive_fire_counts: npt.NDArray[np.uint16]
    weights: npt.NDArray[np.float32]
    eligibility_traces: npt.NDArray[np.float32]
    was_candidate: npt.NDArray[np.bool_]
    pending: npt.NDArray[np.int64]
    pending_candidate: npt.NDArray[np.bool_]
    fired_ids: npt.NDArray[np.uint32]
    fired_potentials: npt.NDArray[np.float32]
    last_fired: npt.NDArray[np.int64]
    fire_streak: npt.NDArray[np.uint16]
    history_bursts: int
    clamped: bool
    fixed_point: FixedPoint | None = None
    features: FeatureState | None = None

    def differences(self, other: EngineState) -> tuple[str, ...]:
        """Names of the fields that are not equal bit for bit (NaN equals NaN; +0 equals -0 in learnt columns)."""
        return _differences(self, other, "")


def _differences(mine: Any, theirs: Any, prefix: str) -> tuple[str, ...]:
    """Names of the fields in which two values of a dataclass differ, with ``prefix``."""
    found: list[str] = []
    for item in dataclasses.fields(mine):
        own, other, name = getattr(mine, item.name), getattr(theirs, item.name), prefix + item.name
        if isinstance(own, np.ndarray):
            same = _equal_bits(own, other, signed_zeros=item.name not in LEARNT_FIELDS)
        elif dataclasses.is_dataclass(own) and type(own) is type(other) and not isinstance(own, FixedPoint):
            found += _differences(own, other, f"{name}.")
            continue
        else:
            same = bool(own == other)
        if not same:
            found.append(name)
    return tuple(found)


def _equal_bits(mine: npt.NDArray[Any], theirs: npt.NDArray[Any], *, signed_zeros: bool) -> bool:
    """Whether two arrays are equal bit for bit, where NaN equals NaN, and +0 equals -0 unless ``signed_zeros``."""
    if mine.dtype.kind != "f" or not signed_zeros:
        return bool(np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"))
    nan = np.isnan(mine)
    return mine.shape == theirs.shape and bool(
        np.array_equal(nan, np.isnan(theirs))
        and np.array_equal(mine.view(np.uint32)[~nan], theirs.view(np.uint32)[~nan])
    )


class Record(Enum):
    """What a run records: nothing, counts per burst, or also the fired lists."""

    NONE = "none"
    COUNTS = "counts"
    FIRED = "fired"


@dataclass(frozen=True, eq=False)
class Recording:
    """The result of a run of B bursts with K firings.

    ``bursts`` (B,) int64 numbers; ``fired_counts``, ``candidate_counts`` (B,) int64; ``fired_ids`` (K,) uint32 and
    ``fired_potentials`` (K,) float32 in burst order, ascending ids within a burst (empty unless recorded).
    """

    bursts: npt.NDArray[np.int64]
    fired_counts: npt.NDArray[np.int64]
    candidate_counts: npt.NDArray[np.int64]
    fired_ids: npt.NDArray[np.uint32]
    fired_potentials: npt.NDArray[np.float32]

    def spikes(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
        """One row per firing: burst numbers (K,) int64 and neuron ids (K,) uint32, by burst, then id.

        Raises
        ------
        InputError
            The run did not record fired lists.
        """
        if len(self.fired_ids) != int(self.fired_counts.sum()):
            raise InputError(
                "the recording holds no fired lists", got="record=counts", cure="Run with record='fired', the default"
            )
        return np.repeat(self.bursts, self.fired_counts), self.fired_ids

    def __repr__(self) -> str:
        if not len(self.bursts):
            return f"{type(self).__name__}(no bursts)"
        firings = int(self.fired_counts.sum())
        return f"{type(self).__name__}(bursts {self.bursts[0]} to {self.bursts[-1]}, {firings} firings)"
