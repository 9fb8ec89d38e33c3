"""Kernel arguments of the CPU engine: arrays and scalars as named tuples, made from a ``Layout``."""

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
        Rounded to the storage format (``engine.precision``).
    refractory_countdowns, consecutive_fire_counts : uint16 (n,)
    was_candidate : bool (n,)
    last_fired, fire_streak : int64 (N,)
        Burst of the last firing, and length of the run of firings that ends there; empty without plastic mappings.
    ids : uint32 (n,)
        Ids in the network, for the excitability draws; empty if they are 0 ... n - 1.
    unclamped : bool (n,)
        Neurons whose potentials the precision feagi-int8 does not clamp; empty under other precisions.
    settled : bool (n / 64 + 1,)
        Groups of 64 neurons in which a burst without arrivals changes nothing.
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
    """Static rows of N sources and S synapses, see ``layout.StaticRows``; absent columns are empty.

    Attributes
    ----------
    offsets : int64 (N + 1,)
    targets : uint32 (S,)
    contributions : int16, int32 or int64 (S,)
    delays : uint8 (S,)
        Empty if every delay is 1.
    clamped_sources : bool (N,)
        Empty if no contribution was clamped.
    """

    offsets: Array
    targets: Array
    contributions: Array
    delays: Array
    clamped_sources: Array


class Rows(NamedTuple):
    """Static rows packed for the queues of ``queues.py``; ``offsets`` and ``clamped_sources`` as in ``Static``.

    ``words`` (S,) are the entries of queues, ``bins`` (S,) the numbers of their queues for a firing in slot D - 1.
    """

    offsets: Array
    words: npt.NDArray[np.void]
    bins: Array
    clamped_sources: Array


class Recall(NamedTuple):
    """Static rows and fired lists of ``recall.py``: N neurons, T threads, R regions, delays 1 ... D, P amounts.

    Attributes
    ----------
    bounds, owned, regions
        As in ``Regions``.
    offsets : uint32 or int64 (N R D + 1,)
        The synapses of source i onto region r with delay d begin at ``offsets[(i R + r) D + d - 1]`` and end where the
        next ones begin.
    words : uint32 (S,)
        Synapses: the target's number in its region in the low ``target_bits``, the palette index above.
    palette : int64 (P,)
        The different contributions.
    target_bits : int
    clamped_sources
        As in ``Static``.
    lists : uint32 (D + 1, N)
        Fired list of burst b in row b mod (D + 1); that of thread t starts at ``bounds[t]``.
    counts : int64 (D + 1, T, LINE)
        Lengths of the lists, in entry 0 of each line.
    sums : (N,)
        FCL of the current burst, see ``sums.py``.
    in_ring : int64 (R, D)
        Whether a slot of the ring may hold contributions onto a region.
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
    in_ring: Array


class Computed(NamedTuple):
    """Computed rows of N sources and C synapses, see ``layout.ComputedRows``; absent columns are empty.

    Attributes
    ----------
    offsets : int64 (N + 1,)
    targets : uint32 (C,)
    weights, psps : float32 (C,)
        The engine's own copies.
    signs : int8 (C,)
    delays : uint8 (C,)
    mp_driven : bool (N,)
    divisors : float32 (N,)
    rules : uint16 (C,)
    degeneration : float32 (N,)
    transmission : float32 (2, R + 1)
        As in ``Extras``.
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
        Indices into the arrays of ``Computed``.
    sources, targets : uint32 (L,)
    windows : int64 (R,)
    potentiations, depressions, decays, etas, max_weights : float32 (R,)
    frozen : bool (R,)
    eligibility : float32 (L,)
        Traces.
    learning : float32 (2, P)
        As in ``Extras``.
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
    """The work of one plasticity call: synapses ``first`` ... ``end`` - 1 of ``rule`` in ``burst``."""

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
        Neurons held here, and the D slots of the ring.
    unit, scale : float32, float
        2^-k and 2^k of the fixed-point scale (``network.fixed_point``).
    clamp_float, clamp : float, int
        Largest magnitude of a contribution.
    power_neuron : int
        -1 if there is none.
    power_amount : int
        In units of 2^-k.
    longest_window : int
        Longest window of the plastic rules, in bursts; 1 without any.
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
    """Stimulus of the next B bursts: Q amounts and R forced firings. Arrays of ``room_for`` may be longer.

    Attributes
    ----------
    starts : int64 (B + 1,)
        Burst k has ``ids[starts[k]:starts[k + 1]]`` and their amounts.
    ids : uint32 (Q,)
    amounts : int32 or int64 (Q,)
        In the type of the sums.
    forced_starts : int64 (B + 1,)
        Burst k has ``forced[forced_starts[k]:forced_starts[k + 1]]`` and their potentials.
    forced : uint32 (R,)
    forced_potentials : float32 (R,)
        Potentials in the fired list.
    forced_rc, forced_cc : uint16 (R,)
        Scratch: countdowns and counts of forced neurons before the burst.
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
    b mod D; see ``sums.py``. ``static`` is a ``Rows`` with queues. ``extras`` is empty if no feature needs it, and
    ``recall`` if contributions are not recalled.
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
    """Output of a batch: all firings in burst order; per burst, where its firings end, and its candidate count."""

    ids: Ids
    potentials: Floats
    ends: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int64]


_NO_BYTES = np.empty(0, np.uint8)
_NO_FLAGS = np.empty(0, np.bool_)
_NO_FLOATS = np.empty(0, np.float32)
_NO_OFFSETS = np.empty(0, np.int64)
_NO_IDS = np.empty(0, np.uint32)
_NO_FACTORS = np.empty((2, 0), np.float32)

NO_COMPUTED = Computed(
    offsets=_NO_OFFSETS,
    targets=_NO_IDS,
    weights=_NO_FLOATS,
    psps=_NO_FLOATS,
    signs=np.empty(0, np.int8),
    delays=_NO_BYTES,
    mp_driven=_NO_FLAGS,
    divisors=_NO_FLOATS,
    rules=np.empty(0, np.uint16),
    degeneration=_NO_FLOATS,
    transmission=_NO_FACTORS,
)
NO_PLASTIC = Plastic(
    starts=_NO_OFFSETS,
    positions=_NO_OFFSETS,
    sources=_NO_IDS,
    targets=_NO_IDS,
    windows=_NO_OFFSETS,
    potentiations=_NO_FLOATS,
    depressions=_NO_FLOATS,
    decays=_NO_FLOATS,
    etas=_NO_FLOATS,
    max_weights=_NO_FLOATS,
    frozen=_NO_FLAGS,
    eligibility=_NO_FLOATS,
    learning=_NO_FACTORS,
)


def own_parameters(parameters: Parameters) -> Parameters:
    """A copy of ``parameters`` that an engine may change."""
    return Parameters.of(lambda name: copy_at(OTHERS, getattr(parameters, name)))


def static_of(layout: Layout, general: bool) -> Static:
    """Static rows of ``layout``; ``general`` ones have all columns, and int64 contributions."""
    rows, delays, clamped = layout.static, layout.static.delays, layout.static.clamped_sources
    if delays is None:
        delays = np.ones(len(rows.targets), np.uint8) if general else _NO_BYTES
    if clamped is None:
        clamped = np.zeros(layout.source_count, np.bool_) if general else _NO_FLAGS
    return Static(
        offsets=rows.offsets,
        targets=_readonly(rows.targets),
        contributions=_readonly(rows.contributions.astype(np.int64) if general else rows.contributions),
        delays=_readonly(delays),
        clamped_sources=clamped,
    )


def without_synapses(static: Static) -> Static:
    """``static`` without synapses: empty columns of the same types, so that its memory can be freed."""
    names = ("targets", "contributions", "delays")
    return static._replace(**{name: _readonly(np.empty(0, getattr(static, name).dtype)) for name in names})


def _readonly(array: Array) -> Array:
    """A read-only view: numba would compile separate kernels for the network's columns, which are read-only."""
    view = array.view()
    view.flags.writeable = False
    return view


def computed_of(layout: Layout, general: bool, extras: Extras) -> Computed:
    """Computed rows of ``layout`` with copies of the weights; ``general`` ones always have delays, and may be empty."""
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
        offsets=rows.offsets,
        targets=rows.targets.copy(),
        weights=rows.weights.copy(),
        psps=rows.psps.copy(),
        signs=rows.signs,
        delays=no_delays if rows.delays is None else rows.delays.copy(),
        mp_driven=rows.mp_driven,
        divisors=rows.divisors,
        rules=rows.rules.copy(),
        degeneration=rows.degeneration,
        transmission=extras.transmission,
    )


def plastic_of(layout: Layout, extras: Extras) -> Plastic:
    """Plastic rules of ``layout``; all traces are 0."""
    rules = layout.plastic
    if rules is None:
        return NO_PLASTIC
    columns = {name: getattr(rules, name) for name in Plastic._fields[:-2]}
    return Plastic(**columns, eligibility=np.zeros(len(rules.positions), np.float32), learning=extras.learning)


def scalars_of(layout: Layout, options: EngineOptions, fixed_point: FixedPoint) -> Scalars:
    """Scalars of ``layout`` under ``options`` and ``fixed_point``."""
    return Scalars(
        neurons=layout.neuron_count,
        slots=layout.max_delay,
        unit=fixed_point.unit,
        scale=fixed_point.scale,
        clamp_float=fixed_point.clamp_float,
        clamp=fixed_point.clamp,
        power_neuron=layout.power_neuron,
        power_amount=layout.power_amount,
        longest_window=1 if layout.plastic is None else layout.plastic.longest_window,
        emulate_batch=options.emulate_batch_path,
    )


def stimulus_table(stimuli: Sequence[PackedStimulus | None], sums: np.dtype[Any]) -> StimulusTable:
    """The stimuli of consecutive bursts (``None``: no stimulus) as one table; amounts have the type ``sums``."""
    starts = np.zeros(len(stimuli) + 1, np.int64)
    forced_starts = np.zeros(len(stimuli) + 1, np.int64)
    np.cumsum([0 if s is None else len(s.ids) for s in stimuli], out=starts[1:])
    np.cumsum([0 if s is None else len(s.forced) for s in stimuli], out=forced_starts[1:])
    given = [s for s in stimuli if s is not None]
    forced = np.concatenate([_NO_IDS, *(s.forced for s in given)])
    return StimulusTable(
        starts=starts,
        ids=np.concatenate([_NO_IDS, *(s.ids for s in given)]),
        amounts=np.concatenate([np.empty(0, sums), *(s.amounts.astype(sums) for s in given)]),
        forced_starts=forced_starts,
        forced=forced,
        forced_potentials=np.concatenate([_NO_FLOATS, *(_forced_potentials(s) for s in given)]),
        forced_rc=np.zeros(len(forced), np.uint16),
        forced_cc=np.zeros(len(forced), np.uint16),
    )


def room_for(plan: StimulusTable | None, sums: np.dtype[Any]) -> StimulusTable:
    """Arrays with room for twice the stimuli of ``plan``, or for a few; amounts have the type ``sums``."""
    starts, ids, forced = 2, 16, 16
    if plan is not None:
        starts, ids, forced = 2 * len(plan.starts), 2 * len(plan.ids), 2 * len(plan.forced)
    return StimulusTable(
        starts=np.zeros(starts, np.int64),
        ids=np.zeros(ids, np.uint32),
        amounts=np.zeros(ids, sums),
        forced_starts=np.zeros(starts, np.int64),
        forced=np.zeros(forced, np.uint32),
        forced_potentials=np.zeros(forced, np.float32),
        forced_rc=np.zeros(forced, np.uint16),
        forced_cc=np.zeros(forced, np.uint16),
    )


def fits(plan: StimulusTable, room: StimulusTable) -> bool:
    """Whether ``room`` holds the stimuli of ``plan``."""
    return all(len(given) <= len(own) for given, own in zip(plan, room, strict=True))


def fill(room: StimulusTable, plan: StimulusTable) -> None:
    """Copy the stimuli of ``plan`` into ``room``."""
    for target, source in zip(room, plan, strict=True):
        target[: len(source)] = source


def _forced_potentials(stimulus: PackedStimulus) -> Floats:
    if stimulus.forced_potentials is None:
        return np.full(len(stimulus.forced), FORCED_POTENTIAL)
    return stimulus.forced_potentials
