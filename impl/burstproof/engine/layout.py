"""A network packed for an engine: integer contributions, computed synapses, plastic rules, parameters.

The layout is independent of the device: the CPU engine and the CUDA engine use the same arrays. Contributions that
never change are *static*: they are quantised once. Those of plastic synapses, of mp-driven and degenerating sources and
of rules with transmission factors are *computed* when the source fires. They have separate rows, so a network without
them pays nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import check_network, refuse_large_sums
from burstproof.engine.features.levels import clamped_levels
from burstproof.engine.features.support import NOTHING, Section, refuse_features
from burstproof.engine.features.synapses import associated, degeneration, transmitting
from burstproof.engine.features.tables import decay_of
from burstproof.engine.fixed_point import division, static_contributions
from burstproof.engine.options import EngineOptions
from burstproof.engine.spans import on_spans
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network, NeuronTable
from burstproof.network.plasticity import steps
from burstproof.network.schema import Parameters

_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class StaticRows:
    """Synapses whose contribution is a constant integer, grouped by source: P of them.

    Attributes
    ----------
    offsets : int64 (N + 1,)
        Row of source s is ``offsets[s]:offsets[s + 1]``.
    targets : uint32 (P,)
    contributions : int16, int32 or int64 (P,)
        Signed, in units of 2^-k; the narrowest type that holds them all.
    delays : uint8 (P,) or None
        ``None`` when every delay in the network is 1.
    clamped_sources : bool (N,) or None
        Sources with a clamped contribution, whose firing sets the sticky clamp flag; ``None`` if there are none.
    """

    offsets: npt.NDArray[np.int64]
    targets: npt.NDArray[np.uint32]
    contributions: npt.NDArray[Any]
    delays: npt.NDArray[np.uint8] | None
    clamped_sources: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, eq=False)
class ComputedRows:
    """Synapses whose contribution is computed when the source fires, grouped by source: C of them.

    contribution = sign * quantise(weight * (psp or potential at firing) / divisor), the float32 product first.

    Attributes
    ----------
    offsets : int64 (N + 1,)
    targets : uint32 (C,)
    rows : int64 (C,)
        Row of the network's synapse table.
    weights : float32 (C,)
        Weights at the time of packing; a plastic engine changes its own copy.
    psps : float32 (C,)
    signs : int8 (C,)
        +1, -1, or 0 for a plastic synapse onto an invalid neuron, which learns, but contributes nothing.
    delays : uint8 (C,) or None
    mp_driven : bool (N,)
        Whether the source's potential at firing replaces psp.
    divisors : float32 (N,)
    rules : uint16 (C,)
        Column of the synapse table: the rule whose transmission factor multiplies the contribution, 0 for none.
    degeneration : float32 (N,)
        Amount by which a firing of the source lowers psp afterwards.
    """

    offsets: npt.NDArray[np.int64]
    targets: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]
    psps: npt.NDArray[np.float32]
    signs: npt.NDArray[np.int8]
    delays: npt.NDArray[np.uint8] | None
    mp_driven: npt.NDArray[np.bool_]
    divisors: npt.NDArray[np.float32]
    rules: npt.NDArray[np.uint16]
    degeneration: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PlasticRules:
    """Plastic mappings over the computed rows: R mappings with L valid plastic synapses.

    Attributes
    ----------
    starts : int64 (R + 1,)
        Mapping r has the entries ``starts[r]:starts[r + 1]`` of the (L,) arrays.
    positions : int64 (L,)
        Index into the arrays of ``ComputedRows``.
    sources, targets : uint32 (L,)
    windows : int64 (R,)
    potentiations, depressions : float32 (R,)
        The steps of ``plasticity.steps``.
    decays, etas, max_weights : float32 (R,)
        FEATURES section 4; a trace is multiplied by its decay, infinity stands for no largest weight.
    frozen : bool (R,)
    longest_window : int
    """

    starts: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    sources: npt.NDArray[np.uint32]
    targets: npt.NDArray[np.uint32]
    windows: npt.NDArray[np.int64]
    potentiations: npt.NDArray[np.float32]
    depressions: npt.NDArray[np.float32]
    decays: npt.NDArray[np.float32]
    etas: npt.NDArray[np.float32]
    max_weights: npt.NDArray[np.float32]
    frozen: npt.NDArray[np.bool_]
    longest_window: int


@dataclass(frozen=True, eq=False)
class Layout:
    """The constant arrays and values of a network that an engine needs.

    Attributes
    ----------
    neuron_count : int
    max_delay : int
        Slots D of the FCL ring: the largest delay of a valid synapse, at least 1.
    neurons : Parameters
    static : StaticRows
        Synapses that are not valid or end in an invalid neuron are left out.
    computed : ComputedRows or None
    plastic : PlasticRules or None
    power_neuron : int
        Id of the power neuron, or -1 when there is none or it is not valid.
    power_amount : int
        Quantised amount.
    power_clamped : bool
    needs_flags : bool
        Whether a candidate may have the sum 0 without external stimulus, so that CUDA and WGPU need a flag beside the
        sum; otherwise a neuron is a candidate if and only if its sum is not 0.
    drawn_in_degree : int
        The largest in-degree if a device generates the static rows itself; they are not in the layout then.
    """

    neuron_count: int
    max_delay: int
    neurons: Parameters
    static: StaticRows
    computed: ComputedRows | None
    plastic: PlasticRules | None
    power_neuron: int
    power_amount: int
    power_clamped: bool
    needs_flags: bool
    drawn_in_degree: int = 0

    @cached_property
    def in_degree(self) -> int:
        """Most contributions that a neuron can receive in a burst: its synapses, each of which arrives at most once."""
        counts = np.zeros(self.neuron_count, np.int64)
        rows = (self.static.targets, self.computed.targets) if self.computed is not None else (self.static.targets,)
        for targets in rows:
            for start in range(0, len(targets), _CHUNK):
                counts += np.bincount(targets[start : start + _CHUNK], minlength=self.neuron_count)
        return max(self.drawn_in_degree, int(counts.max(initial=0)))

    @property
    def source_count(self) -> int:
        """Number of rows: neurons of the whole network, also in the layout of a shard."""
        return len(self.static.offsets) - 1


@dataclass(frozen=True, eq=False)
class SynapseFacts:
    """Facts of all synapses of a network that packing a part of them needs.

    ``divisors`` (N,) float32 per source, or ``None`` if nothing is divided. ``max_delay``: the largest delay of a valid
    synapse, at least 1.
    """

    divisors: npt.NDArray[np.float32] | None
    max_delay: int


def synapse_facts(network: Network) -> SynapseFacts:
    """The facts of the whole of ``network``."""
    synapses = network.synapses
    return SynapseFacts(division(network), int(synapses.delay_bursts.max(initial=1, where=synapses.valid_mask)))


def build_layout(
    network: Network,
    options: EngineOptions,
    fixed_point: FixedPoint,
    facts: SynapseFacts | None = None,
    modelled: frozenset[Section] = NOTHING,
) -> Layout:
    """Pack ``network``.

    ``facts`` are those of the whole network, if ``network`` has only some of its synapses. ``modelled``: the features
    that the engine supports.

    Raises
    ------
    NetworkError
        What ``check_network``, ``refuse_features`` and ``static_contributions`` refuse.
    """
    check_network(network, options)
    refuse_features(network, options, modelled)
    neurons = parameters_of(clamped_levels(network))
    facts = synapse_facts(network) if facts is None else facts
    divisors, max_delay = facts.divisors, facts.max_delay
    mp_driven = network.flags_registered and bool(network.area_flag("mp_driven_psp").any())
    mp_sources = network.area_flag("mp_driven_psp") if mp_driven else np.zeros(network.neuron_count, np.bool_)
    kinds = _synapse_kinds(network, mp_sources if mp_driven else None)
    static, static_may_cancel = _static_rows(network, fixed_point, divisors, kinds.static, max_delay)
    computed = _computed_rows(network, divisors, mp_sources, kinds, max_delay)
    plastic = _plastic_rules(network, computed)
    power = network.power_neuron
    power_neuron = -1 if power is None or not network.neurons.valid_mask[power] else power
    power_units, power_clamped = fixed_point.quantise(np.array([network.power_amount], np.float32))
    power_may_cancel = power_neuron >= 0 and int(power_units[0]) <= 0
    return Layout(
        neuron_count=network.neuron_count,
        max_delay=max_delay,
        neurons=neurons,
        static=static,
        computed=computed,
        plastic=plastic,
        power_neuron=power_neuron,
        power_amount=int(power_units[0]),
        power_clamped=power_clamped,
        needs_flags=static_may_cancel or computed is not None or power_may_cancel,
    )


def refuse_overflow(
    layout: Layout,
    network: Network,
    options: EngineOptions,
    fixed_point: FixedPoint,
    ids: npt.NDArray[np.uint32] | None = None,
) -> None:
    """Refuse restored weights whose sums do not fit the accumulator planned for the network.

    ``ids`` are the neurons' ids, if the layout is that of a shard.

    Raises
    ------
    NetworkError
        The sum onto some neuron is too large.
    """
    if not len(layout.static.targets):
        return
    sums = np.bincount(layout.static.targets, np.abs(layout.static.contributions.astype(np.float64)))
    refuse_large_sums(sums, network, options, fixed_point, ids)


def parameters_of(neurons: NeuronTable) -> Parameters:
    """The parameters of ``neurons`` as contiguous arrays (N,); ``decays`` is float32(1) - leak."""
    with np.errstate(over="ignore", invalid="ignore"):
        made = {"decays": np.float32(1) - neurons.leak_coefficients}
    return Parameters.of(lambda name: np.ascontiguousarray(made[name] if name in made else getattr(neurons, name)))


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Masks over the synapse table, (S,) bool; ``static`` is ``None`` when every synapse is static."""

    static: npt.NDArray[np.bool_] | None
    computed: npt.NDArray[np.bool_] | None
    contributes: npt.NDArray[np.bool_] | None


def _synapse_kinds(network: Network, mp_sources: npt.NDArray[np.bool_] | None) -> _Kinds:
    """Masks of the static and the computed synapses; ``contributes`` marks valid synapses onto valid neurons."""
    synapses = network.synapses
    transmits, losses, changing = transmitting(network), degeneration(network), associated(network)
    varied = any(one is not None for one in (mp_sources, transmits, losses, changing))
    constant = not varied and not network.plastic_pairs
    everything = bool(synapses.valid_mask.all() and network.neurons.valid_mask.all())
    if everything and constant:
        return _Kinds(None, None, None)
    contributes = synapses.valid_mask & network.neurons.valid_mask[synapses.target_neurons]
    if constant:
        return _Kinds(contributes, None, contributes)
    computed = np.zeros(network.synapse_count, np.bool_) if transmits is None else transmits & contributes
    if changing is not None:
        computed |= changing
    if losses is not None:
        computed |= synapses.valid_mask & (losses > 0)[synapses.source_neurons]
    for mapping in network.plastic_pairs:
        computed[mapping.synapses] = True
    if mp_sources is not None:
        computed |= contributes & mp_sources[synapses.source_neurons]
    return _Kinds(contributes & ~computed, computed, contributes)


def _grouped(
    network: Network, mask: npt.NDArray[np.bool_] | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    """Offsets (N + 1,) and table rows of the masked synapses, by source; rows ``None``: the table is in this order."""
    order = network.row_order
    if mask is None:
        return order.offsets, order.order
    rows = np.flatnonzero(mask) if order.order is None else order.order[mask[order.order]]
    offsets = np.zeros(network.neuron_count + 1, np.int64)
    counts = np.bincount(network.synapses.source_neurons[rows], minlength=network.neuron_count)
    np.cumsum(counts, out=offsets[1:])
    return offsets, rows


def _taken(column: npt.NDArray[Any], rows: npt.NDArray[np.int64] | None) -> npt.NDArray[Any]:
    """``column`` in packed order, contiguous."""
    return np.ascontiguousarray(column if rows is None else column[rows])


def _narrowest(highest: int) -> np.dtype[Any]:
    """The narrowest signed type for contributions of magnitude ``highest``."""
    for kind in (np.int16, np.int32):
        if highest <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


def _static_rows(
    network: Network,
    fixed_point: FixedPoint,
    divisors: npt.NDArray[np.float32] | None,
    mask: npt.NDArray[np.bool_] | None,
    max_delay: int,
) -> tuple[StaticRows, bool]:
    """The static rows, and whether a contribution is 0 or negative, so that a sum can be 0."""
    synapses = network.synapses
    offsets, rows = _grouped(network, mask)
    clamped = np.zeros(network.neuron_count, np.bool_)

    def pack(part: slice) -> tuple[npt.NDArray[Any], int]:
        integers, any_clamped = fixed_point.quantise(static_contributions(network, part, divisors))
        chosen = slice(None) if mask is None else mask[part]
        if any_clamped:
            outside = np.abs(integers) >= fixed_point.clamp
            clamped[synapses.source_neurons[part][chosen][outside[chosen]]] = True
        np.negative(integers, out=integers, where=synapses.types[part] != 0)
        kept = integers[chosen]
        return integers.astype(_narrowest(int(np.abs(kept).max(initial=0)))), int(kept.min(initial=1))

    packed = on_spans(0, network.synapse_count, pack)
    contributions = np.concatenate([piece for piece, _ in packed]) if packed else np.empty(0, np.int16)
    smallest = min((least for _, least in packed), default=1)
    static = StaticRows(
        offsets,
        _taken(synapses.target_neurons, rows),
        _taken(contributions, rows),
        _taken(synapses.delay_bursts, rows) if max_delay > 1 else None,
        clamped if clamped.any() else None,
    )
    return static, smallest <= 0


def _computed_rows(
    network: Network,
    divisors: npt.NDArray[np.float32] | None,
    mp_sources: npt.NDArray[np.bool_],
    kinds: _Kinds,
    max_delay: int,
) -> ComputedRows | None:
    if kinds.computed is None or kinds.contributes is None:
        return None
    synapses = network.synapses
    offsets, grouped = _grouped(network, kinds.computed)
    rows = np.empty(0, np.int64) if grouped is None else grouped
    signs = np.where(synapses.types[rows] == 0, 1, -1) * kinds.contributes[rows]
    losses = degeneration(network)
    return ComputedRows(
        offsets=offsets,
        targets=_taken(synapses.target_neurons, rows),
        rows=rows,
        weights=_taken(synapses.weights, rows),
        psps=_taken(synapses.postsynaptic_potentials, rows),
        signs=signs.astype(np.int8),
        delays=_taken(synapses.delay_bursts, rows) if max_delay > 1 else None,
        mp_driven=mp_sources,
        divisors=np.ones(network.neuron_count, np.float32) if divisors is None else divisors,
        rules=_taken(synapses.rules, rows),
        degeneration=np.zeros(network.neuron_count, np.float32) if losses is None else losses,
    )


def _plastic_rules(network: Network, computed: ComputedRows | None) -> PlasticRules | None:
    if not network.plastic_pairs or computed is None:
        return None
    synapses, pairs = network.synapses, network.plastic_pairs
    position_of_row = np.full(network.synapse_count, -1, np.int64)
    position_of_row[computed.rows] = np.arange(len(computed.rows))
    rows = [mapping.synapses for mapping in pairs]
    flat = np.concatenate(rows)
    changes = np.stack([steps(m) for m in pairs])
    windows = np.array([m.window for m in pairs], np.int64)
    decays = [decay_of(m.eligibility_decay) if m.rewarded and m.eligibility_decay > 0 else 0 for m in pairs]
    return PlasticRules(
        starts=np.concatenate(([0], np.cumsum([len(r) for r in rows]))).astype(np.int64),
        positions=position_of_row[flat],
        sources=synapses.source_neurons[flat],
        targets=synapses.target_neurons[flat],
        windows=windows,
        potentiations=np.ascontiguousarray(changes[:, 0]),
        depressions=np.ascontiguousarray(changes[:, 1]),
        decays=np.array(decays, np.float32),
        etas=np.array([m.eta for m in pairs], np.float32),
        max_weights=np.array([np.inf if m.max_weight is None else m.max_weight for m in pairs], np.float32),
        frozen=np.array([m.frozen for m in pairs], np.bool_),
        longest_window=int(windows.max()),
    )
