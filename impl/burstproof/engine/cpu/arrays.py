"""The arrays of the numba CPU engine as named tuples: what its kernels take, made from a Layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.extras import Extras
from burstproof.engine.cpu.lines import OTHERS, copy_at
from burstproof.engine.layout import Layout
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.stimulus import FORCED_POTENTIAL
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.schema import Parameters

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32]
Counters = npt.NDArray[np.int64]


class Neurons(NamedTuple):
    """State of n neurons here, N in the network.

    Attributes
    ----------
    membrane_potentials : float32 (n,)
        Values of the format in which they are stored (``engine.precision``).
    refractory_countdowns, consecutive_fire_counts : uint16 (n,)
    was_candidate : bool (n,)
    last_fired, fire_streak : int64 (N,)
        Burst of the last firing, and length of the run of firings that ends there; empty without plastic mappings.
    ids : uint32 (n,)
        Ids in the network, for draws; empty where the place is the id.
    unclamped : bool (n,)
        Neurons whose potentials the precision feagi-int8 leaves as they are; empty under other precisions.
    settled : bool (n / 64 + 1,)
        Parts of 64 neurons that a burst without arrivals leaves as they are.
    """

    membrane_potentials: Array
    refractory_countdowns: Array
    consecutive_fire_counts: Array
    was_candidate: Array
    last_fired: Array
    fire_streak: Array
    ids: Array
    unclamped: Array
    settled: Array


class Static(NamedTuple):
    """Static rows of N sources, S synapses, see ``layout.StaticRows``; absent columns are empty.

    Attributes
    ----------
    offsets : int64 (N + 1,)
    targets : uint32 (S,)
    contributions : int16, int32 or int64 (S,)
    delays : uint8 (S,)
        Empty where every delay is 1.
    clamped_sources : bool (N,)
        Empty where no contribution was clamped.
    """

    offsets: Array
    targets: Array
    contributions: Array
    delays: Array
    clamped_sources: Array


class Rows(NamedTuple):
    """Static rows as words for the queues of ``queues.py``; ``offsets`` and ``clamped_sources`` as in ``Static``.

    ``words`` (S,) are what goes into a queue, ``bins`` (S,) the number of the queue for a firing in slot D - 1.
    """

    offsets: Array
    words: npt.NDArray[np.void]
    bins: Array
    clamped_sources: Array


class Recall(NamedTuple):
    """Static rows and fired lists of ``recall.py``: N neurons of T threads in R regions, D delays, P contributions.

    Attributes
    ----------
    bounds, owned, regions
        As in ``Regions``.
    offsets : uint32 or int64 (N R D + 1,)
        The synapses of source i onto region r with delay d begin at ``offsets[(i R + r) D + d - 1]``, and the next ones
        follow.
    words : uint32 (S,)
        Synapses: the target's place in its region, and the place in the palette above ``target_bits``.
    palette : int64 (P,)
    target_bits : int
    clamped_sources
        As in ``Static``.
    lists : uint32 (D + 1, N)
        Fired list of burst b in row b mod (D + 1): thread t's starts at its bound.
    counts : int64 (D + 1, T, LINE)
        Their lengths, each in the first place of a line.
    sums : (N,)
        FCL of the burst under way, see ``sums.py``.
    ahead : int64 (R, D)
        Whether a slot of the ring may hold anything for a region.
    """

    bounds: Array
    owned: Array
    regions: Array
    offsets: Array
    words: Array
    palette: Array
    target_bits: int
    clamped_sources: Array
    lists: Array
    counts: Array
    sums: Array
    ahead: Array


class Computed(NamedTuple):
    """Computed rows of N sources, C synapses, see ``layout.ComputedRows``; absent columns are empty.

    Attributes
    ----------
    offsets : int64 (N + 1,)
    targets : uint32 (C,)
    weights, psps : float32 (C,)
        The engine's own.
    signs : int8 (C,)
    delays : uint8 (C,)
    mp_driven : bool (N,)
    divisors : float32 (N,)
    rules : uint16 (C,)
    degeneration : float32 (N,)
    transmission : float32 (2, R + 1)
        That of ``Extras``.
    """

    offsets: Array
    targets: Array
    weights: Array
    psps: Array
    signs: Array
    delays: Array
    mp_driven: Array
    divisors: Array
    rules: Array
    degeneration: Array
    transmission: Array


class Plastic(NamedTuple):
    """R plastic rules with L synapses, see ``layout.PlasticRules``.

    Attributes
    ----------
    starts : int64 (R + 1,)
    positions : int64 (L,)
        Places in the arrays of ``Computed``.
    sources, targets : uint32 (L,)
    windows : int64 (R,)
    potentiations, depressions, decays, etas, max_weights : float32 (R,)
    frozen : bool (R,)
    eligibility : float32 (L,)
        Traces.
    learning : float32 (2, P)
        That of ``Extras``.
    """

    starts: Array
    positions: Array
    sources: Array
    targets: Array
    windows: Array
    potentiations: Array
    depressions: Array
    decays: Array
    etas: Array
    max_weights: Array
    frozen: Array
    eligibility: Array
    learning: Array


class Turn(NamedTuple):
    """What a kernel of plasticity does in one burst: synapses ``first`` ... ``end`` - 1 of a rule."""

    burst: int
    rule: int
    window: int
    first: int
    end: int


class Scalars(NamedTuple):
    """Numbers that are the same in every burst.

    Attributes
    ----------
    neurons, slots : int
        Neurons here, and the D slots of the ring.
    unit : float32
        2^-k of the fixed-point scale (``network.fixed_point``), ``scale`` is 2^k.
    clamp, clamp_float : int, float
        Largest magnitude of a contribution.
    power_neuron : int
        -1 for none.
    power_amount : int
        In units of 2^-k.
    longest_window : int
        Of the plastic rules, in bursts; 1 without any.
    emulate_batch : bool
        Whether the batch path is emulated.
    """

    neurons: int
    slots: int
    unit: np.float32
    scale: float
    clamp_float: float
    clamp: int
    power_neuron: int
    power_amount: int
    longest_window: int
    emulate_batch: bool


class StimulusTable(NamedTuple):
    """Stimulus of the next B bursts, with Q amounts and R forced firings in all; ``room_for`` makes longer arrays.

    Attributes
    ----------
    starts : int64 (B + 1,)
        Burst k has ``ids[starts[k]:starts[k + 1]]`` and their amounts.
    ids : uint32 (Q,)
    amounts : int32 or int64 (Q,)
        Of the type of the sums.
    forced_starts : int64 (B + 1,)
        Burst k has ``forced[forced_starts[k]:forced_starts[k + 1]]`` and their potentials.
    forced : uint32 (R,)
    forced_potentials : float32 (R,)
        Those that forced firings carry.
    forced_rc, forced_cc : uint16 (R,)
        Room for the countdowns and counts of forced neurons during a burst.
    """

    starts: Array
    ids: Array
    amounts: Array
    forced_starts: Array
    forced: Array
    forced_potentials: Array
    forced_rc: Array
    forced_cc: Array


class Model(NamedTuple):
    """The network in memory, with the stimulus of the next bursts.

    ``ring``, int32 or int64 (D n,), is the FCL of the bursts to come, of n neurons over D slots: burst b has slot
    b mod D; see ``sums.py``. Static rows are ``Rows`` where there are queues; ``extras`` is empty where no feature of
    them is used, ``recall`` where rows are not recalled.
    """

    ring: Array
    plan: StimulusTable
    parameters: Parameters
    neurons: Neurons
    static: Static | Rows
    computed: Computed
    plastic: Plastic
    scalars: Scalars
    extras: Extras | tuple[()]
    recall: Recall | tuple[()]


class Output(NamedTuple):
    """Firings one after another; of each burst where it ends among them, and its candidates."""

    ids: Ids
    potentials: Floats
    ends: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int64]


_NO_BYTES = np.empty(0, np.uint8)
_NO_FLAGS = np.empty(0, np.bool_)
_NO_FLOATS = np.empty(0, np.float32)
_NO_OFFSETS = np.empty(0, np.int64)
_NO_IDS = np.empty(0, np.uint32)

_NO_SHORTS = np.empty(0, np.uint16)
_NO_FACTORS = np.empty((2, 0), np.float32)

NO_COMPUTED = Computed(
    _NO_OFFSETS,
    _NO_IDS,
    _NO_FLOATS,
    _NO_FLOATS,
    np.empty(0, np.int8),
    _NO_BYTES,
    _NO_FLAGS,
    _NO_FLOATS,
    _NO_SHORTS,
    _NO_FLOATS,
    _NO_FACTORS,
)
NO_PLASTIC = Plastic(
    _NO_OFFSETS,
    _NO_OFFSETS,
    _NO_IDS,
    _NO_IDS,
    _NO_OFFSETS,
    _NO_FLOATS,
    _NO_FLOATS,
    _NO_FLOATS,
    _NO_FLOATS,
    _NO_FLOATS,
    _NO_FLAGS,
    _NO_FLOATS,
    _NO_FACTORS,
)


def own_parameters(parameters: Parameters) -> Parameters:
    """A copy of ``parameters`` that an engine may change."""
    return Parameters.of(lambda name: copy_at(OTHERS, getattr(parameters, name)))


def static_of(layout: Layout, general: bool) -> Static:
    """Static rows of ``layout``; no column is absent from ``general`` ones, and contributions are 64 bit wide."""
    rows = layout.static
    if general:
        clamped = rows.clamped_sources
        return Static(
            rows.offsets,
            _readonly(rows.targets),
            _readonly(rows.contributions.astype(np.int64)),
            _readonly(np.ones(len(rows.targets), np.uint8) if rows.delays is None else rows.delays),
            np.zeros(layout.source_count, np.bool_) if clamped is None else clamped,
        )
    return Static(
        rows.offsets,
        _readonly(rows.targets),
        _readonly(rows.contributions),
        _readonly(_NO_BYTES if rows.delays is None else rows.delays),
        _NO_FLAGS if rows.clamped_sources is None else rows.clamped_sources,
    )


def without_synapses(static: Static) -> Static:
    """``static`` with empty columns of the same types, which keep none of its memory alive."""
    names = ("targets", "contributions", "delays")
    return static._replace(**{name: _readonly(np.empty(0, getattr(static, name).dtype)) for name in names})


def _readonly(array: Array) -> Array:
    """A read-only view, so that a column taken from the network as it is needs no kernel of its own."""
    view = array.view()
    view.flags.writeable = False
    return view


def computed_of(layout: Layout, general: bool, extras: Extras) -> Computed:
    """Computed rows of ``layout`` with weights of their own; ``general`` ones have a delay each, and may be empty."""
    rows = layout.computed
    count = layout.source_count
    if rows is None and general:
        return NO_COMPUTED._replace(
            offsets=np.zeros(count + 1, np.int64),
            mp_driven=np.zeros(count, np.bool_),
            divisors=np.ones(count, np.float32),
            degeneration=np.zeros(count, np.float32),
        )
    if rows is None:
        return NO_COMPUTED
    no_delays = np.ones(len(rows.targets), np.uint8) if general else _NO_BYTES
    return Computed(
        rows.offsets,
        rows.targets.copy(),
        rows.weights.copy(),
        rows.psps.copy(),
        rows.signs,
        no_delays if rows.delays is None else rows.delays.copy(),
        rows.mp_driven,
        rows.divisors,
        rows.rules.copy(),
        rows.degeneration,
        extras.transmission,
    )


def plastic_of(layout: Layout, extras: Extras) -> Plastic:
    """Plastic rules of ``layout``; eligibility starts at 0."""
    rules = layout.plastic
    if rules is None:
        return NO_PLASTIC
    columns = {name: getattr(rules, name) for name in Plastic._fields[:-2]}
    return Plastic(**columns, eligibility=np.zeros(len(rules.positions), np.float32), learning=extras.learning)


def scalars_of(layout: Layout, options: EngineOptions, fixed_point: FixedPoint) -> Scalars:
    """Scalars of ``layout`` under ``options`` and ``fixed_point``."""
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
        options.emulate_batch_path,
    )


def stimulus_table(stimuli: Sequence[PackedStimulus | None], sums: np.dtype[Any]) -> StimulusTable:
    """The stimulus of consecutive bursts, ``None`` for none; amounts have the type ``sums``."""
    starts = np.zeros(len(stimuli) + 1, np.int64)
    forced_starts = np.zeros(len(stimuli) + 1, np.int64)
    np.cumsum([0 if s is None else len(s.ids) for s in stimuli], out=starts[1:])
    np.cumsum([0 if s is None else len(s.forced) for s in stimuli], out=forced_starts[1:])
    given = [s for s in stimuli if s is not None]
    forced = np.concatenate([_NO_IDS, *(s.forced for s in given)])
    return StimulusTable(
        starts,
        np.concatenate([_NO_IDS, *(s.ids for s in given)]),
        np.concatenate([np.empty(0, sums), *(s.amounts.astype(sums) for s in given)]),
        forced_starts,
        forced,
        np.concatenate([_NO_FLOATS, *(_forced_potentials(s) for s in given)]),
        np.zeros(len(forced), np.uint16),
        np.zeros(len(forced), np.uint16),
    )


def room_for(plan: StimulusTable | None, sums: np.dtype[Any]) -> StimulusTable:
    """Arrays for stimuli of up to twice the size of ``plan``, or for a few; amounts have the type of ``sums``."""
    starts, ids, forced = 2, 16, 16
    if plan is not None:
        starts, ids, forced = 2 * len(plan.starts), 2 * len(plan.ids), 2 * len(plan.forced)
    return StimulusTable(
        np.zeros(starts, np.int64),
        np.zeros(ids, np.uint32),
        np.zeros(ids, sums),
        np.zeros(starts, np.int64),
        np.zeros(forced, np.uint32),
        np.zeros(forced, np.float32),
        np.zeros(forced, np.uint16),
        np.zeros(forced, np.uint16),
    )


def fits(plan: StimulusTable, room: StimulusTable) -> bool:
    """Whether ``room`` holds the stimuli of ``plan``."""
    return (
        len(plan.starts) <= len(room.starts) and len(plan.ids) <= len(room.ids) and len(plan.forced) <= len(room.forced)
    )


def fill(room: StimulusTable, plan: StimulusTable) -> None:
    """Put the stimuli of ``plan`` into ``room``."""
    for own, given in zip(room, plan, strict=True):
        own[: len(given)] = given


def _forced_potentials(stimulus: PackedStimulus) -> Floats:
    if stimulus.forced_potentials is None:
        return np.full(len(stimulus.forced), FORCED_POTENTIAL)
    return stimulus.forced_potentials
