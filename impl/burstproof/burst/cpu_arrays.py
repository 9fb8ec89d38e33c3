"""The arrays of the numba CPU engine as named tuples: what its kernels take, made from a Layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.burst.fixed_point import FixedPoint
from burstproof.burst.layout import Layout
from burstproof.burst.stimulus import PackedStimulus

Array = npt.NDArray[Any]


class Parameters(NamedTuple):
    """Per-neuron parameters, (N,) each; see ``layout.NeuronArrays``."""

    thresholds: Array
    threshold_limits: Array
    keep: Array
    periods: Array
    fire_limits: Array
    snoozes: Array
    excitabilities: Array
    accumulates: Array


class Neurons(NamedTuple):
    """Per-neuron state, (N,) each; ``last_fired`` and ``streak`` are empty without plastic mappings."""

    v: Array
    rc: Array
    cc: Array
    was_candidate: Array
    last_fired: Array
    streak: Array


class Ring(NamedTuple):
    """FCL of the bursts to come: D slots of N, flat; burst b has slot b mod D. ``flags`` is empty if not needed."""

    sums: Array
    flags: Array


class Static(NamedTuple):
    """Static rows, see ``layout.StaticRows``; absent columns are empty."""

    offsets: Array
    targets: Array
    contributions: Array
    delays: Array
    clamped_sources: Array


class Computed(NamedTuple):
    """Computed rows, see ``layout.ComputedRows``; ``weights`` is the engine's own."""

    offsets: Array
    targets: Array
    weights: Array
    psps: Array
    signs: Array
    delays: Array
    mp_driven: Array
    divisors: Array


class Plastic(NamedTuple):
    """Plastic rules, see ``layout.PlasticRules``, and the eligibility traces (L,) of their synapses."""

    starts: Array
    positions: Array
    sources: Array
    targets: Array
    windows: Array
    potentiations: Array
    depressions: Array
    eligibility: Array


class Scalars(NamedTuple):
    """Numbers that are the same in every burst."""

    neurons: int
    slots: int
    unit: np.float32
    scale: float
    clamp_float: float
    clamp: int
    power_neuron: int
    power_amount: int
    longest_window: int


class Plan(NamedTuple):
    """Stimulus of the next bursts: burst k has ids[starts[k]:starts[k + 1]], forced[forced_starts[k]:...]."""

    starts: Array
    ids: Array
    amounts: Array
    forced_starts: Array
    forced: Array


_NO_BYTES = np.empty(0, np.uint8)
_NO_FLAGS = np.empty(0, np.bool_)
_NO_FLOATS = np.empty(0, np.float32)
_NO_OFFSETS = np.empty(0, np.int64)
_NO_IDS = np.empty(0, np.uint32)

NO_COMPUTED = Computed(
    _NO_OFFSETS,
    _NO_IDS,
    _NO_FLOATS,
    _NO_FLOATS,
    np.empty(0, np.int8),
    _NO_BYTES,
    _NO_FLAGS,
    _NO_FLOATS,
)
NO_PLASTIC = Plastic(_NO_OFFSETS, _NO_OFFSETS, _NO_IDS, _NO_IDS, _NO_OFFSETS, _NO_FLOATS, _NO_FLOATS, _NO_FLOATS)


def _writable(array: Array) -> Array:
    """``array`` in the one mutability that the kernels are compiled for (they only read it)."""
    return array if array.flags.writeable else array.copy()


def parameters_of(layout: Layout) -> Parameters:
    """Parameters of ``layout``."""
    n = layout.neurons
    return Parameters(
        _writable(n.thresholds),
        _writable(n.threshold_limits),
        _writable(n.keep),
        _writable(n.refractory_periods),
        _writable(n.fire_limits),
        _writable(n.snooze_periods),
        _writable(n.excitabilities),
        _writable(n.accumulates),
    )


def static_of(layout: Layout) -> Static:
    """Static rows of ``layout``."""
    rows = layout.static
    return Static(
        rows.offsets,
        _readonly(rows.targets),
        _readonly(rows.contributions),
        _readonly(_NO_BYTES if rows.delays is None else rows.delays),
        _NO_FLAGS if rows.clamped_sources is None else rows.clamped_sources,
    )


def _readonly(array: Array) -> Array:
    """A read-only view, so that a column taken from the network as it is needs no kernel of its own."""
    view = array.view()
    view.flags.writeable = False
    return view


def computed_of(layout: Layout) -> Computed:
    """Computed rows of ``layout`` with weights of their own."""
    rows = layout.computed
    if rows is None:
        return NO_COMPUTED
    return Computed(
        rows.offsets,
        rows.targets.copy(),
        rows.weights.copy(),
        rows.psps.copy(),
        rows.signs,
        _NO_BYTES if rows.delays is None else rows.delays.copy(),
        rows.mp_driven,
        rows.divisors,
    )


def plastic_of(layout: Layout) -> Plastic:
    """Plastic rules of ``layout``; eligibility starts at 0."""
    rules = layout.plastic
    if rules is None:
        return NO_PLASTIC
    return Plastic(
        rules.starts,
        rules.positions,
        rules.sources,
        rules.targets,
        rules.windows,
        rules.potentiations,
        rules.depressions,
        np.zeros(len(rules.positions), np.float32),
    )


def scalars_of(layout: Layout, fixed_point: FixedPoint) -> Scalars:
    """Scalars of ``layout`` under ``fixed_point``."""
    return Scalars(
        layout.neuron_count,
        layout.max_delay,
        fixed_point.unit,
        fixed_point.scale,
        fixed_point.clamp_float,
        fixed_point.clamp,
        layout.power_neuron,
        layout.power_amount,
        1 if layout.plastic is None else layout.plastic.longest_window,
    )


def plan_of(stimuli: Sequence[PackedStimulus | None], fixed_point: FixedPoint) -> Plan:
    """The stimulus of consecutive bursts, ``None`` for none."""
    starts = np.zeros(len(stimuli) + 1, np.int64)
    forced_starts = np.zeros(len(stimuli) + 1, np.int64)
    np.cumsum([0 if s is None else len(s.ids) for s in stimuli], out=starts[1:])
    np.cumsum([0 if s is None else len(s.forced) for s in stimuli], out=forced_starts[1:])
    given = [s for s in stimuli if s is not None]
    return Plan(
        starts,
        np.concatenate([_NO_IDS, *(s.ids for s in given)]),
        np.concatenate([np.empty(0, fixed_point.dtype), *(s.amounts for s in given)]),
        forced_starts,
        np.concatenate([_NO_IDS, *(s.forced for s in given)]),
    )
