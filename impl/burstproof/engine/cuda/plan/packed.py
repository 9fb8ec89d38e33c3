"""A network made ready for one CUDA engine: layout, kernel variant and sizes, all known before a device is touched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec
from burstproof.engine.costs import USUAL_RATE
from burstproof.engine.cuda.plan.buffers import (
    BatchSizes,
    NetworkSizes,
    batch_sizes,
    buffer_specs,
    common_contribution,
    default_batch_length,
    largest_contribution,
    network_sizes,
    palette_size,
    uniform_parameters,
)
from burstproof.engine.cuda.plan.columns import narrow_columns
from burstproof.engine.cuda.plan.features import MOST_CLASSES, MOST_MODULATORS, FeaturePlan, Members, levels_of
from burstproof.engine.cuda.plan.queues import without_queues
from burstproof.engine.cuda.plan.sizing import sized
from burstproof.engine.cuda.plan.streaming import split_buffers
from burstproof.engine.cuda.plan.variant import Variant, variant_of
from burstproof.engine.cuda.plan.word import Word, largest_sum, marked_word, stimulus_bound
from burstproof.engine.features.key import extras_key
from burstproof.engine.features.support import EVERYTHING
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.layout import Layout, build_layout, refuse_overflow
from burstproof.engine.options import EngineOptions
from burstproof.engine.rules import Features, features_of
from burstproof.engine.state import EngineState
from burstproof.errors import ConfigError
from burstproof.network.fixed_point import UNBOUNDED, FixedPoint
from burstproof.network.model import Network, NeuronTable

_LONGEST_BATCH = 4096


@dataclass(frozen=True, eq=False)
class Packed:
    """Everything that the engine needs.

    Attributes
    ----------
    layout : Layout
        Without static rows if the device generates them itself.
    weights : float32 (S,)
        The weights from which the static contributions were made.
    without : frozenset of str
        See ``sizing.sized``.
    """

    network: Network
    options: EngineOptions
    fixed_point: FixedPoint
    layout: Layout
    features: Features
    variant: Variant
    sizes: NetworkSizes
    batch: BatchSizes
    weights: npt.NDArray[np.float32]
    feature_plan: FeaturePlan | None = None
    without: frozenset[str] = frozenset()

    @property
    def streamed(self) -> bool:
        """Whether the synapses lie in host memory."""
        return self.variant.streamed

    @property
    def longest_window(self) -> int:
        """Longest window of plasticity in bursts, 1 without plastic mappings."""
        return self.layout.plastic.longest_window if self.layout.plastic is not None else 1

    @property
    def buffers(self) -> tuple[BufferSpec, ...]:
        """Every buffer on the device."""
        return self._split[0]

    @property
    def host_buffers(self) -> tuple[BufferSpec, ...]:
        """Every buffer in host memory that the kernels read."""
        return self._split[1]

    def sized(self, variant: Variant, **changed: Any) -> Packed:
        """The same with ``variant``, sized anew, and the fields in ``changed``."""
        packed = replace(self, **changed)
        return replace(packed, variant=sized(variant, packed.sizes, without=packed.without))

    def firing(self, rate: float) -> Packed:
        """The same, laid out for bursts in which a share ``rate`` of the neurons fires."""
        return self.sized(self.variant, sizes=replace(self.sizes, firing_rate=rate))

    def lacking(self, what: str) -> Packed:
        """The same without ``what``, one of the names of ``sizing``; that holds when it is packed for a state, too."""
        return self.sized(self.variant, without=self.without | {what})

    @property
    def _split(self) -> tuple[tuple[BufferSpec, ...], tuple[BufferSpec, ...]]:
        specs = buffer_specs(self.sizes, self.variant, self.batch)
        return split_buffers(specs, self.variant.uniform_rows) if self.streamed else (specs, ())


def pack_network(
    network: Network, options: EngineOptions, point: FixedPoint | None = None, loaded: int | None = None
) -> Packed:
    """Pack ``network``.

    Parameters
    ----------
    point, loaded
        Of a network with room for neurons that appear (``features.growing``): the scale and the neurons without it.

    Raises
    ------
    NetworkError
        A network that the profile refuses, or a contribution that is not finite.
    ConfigError
        A batch length out of range.
    """
    point = plan_fixed_point(network, options) if point is None else point
    loaded = network.neuron_count if loaded is None else loaded
    packed = pack_layout(network, options, point, _layout(network, options, point, loaded))
    palette = palette_size(packed.layout, packed.variant)
    packed = packed.sized(packed.variant, sizes=replace(packed.sizes, palette=palette))
    return featured(packed, network, loaded, slice(None))


def featured(packed: Packed, network: Network, loaded: int, members: Members) -> Packed:
    """``packed``, which has the neurons ``members`` of ``network``, with the features of ``network``."""
    replays = any(area.memory is not None for area in network.features.areas.values())
    key = replace(extras_key(network), replays=replays)
    if not key and not network.features:
        return packed
    plan = FeaturePlan.of(network, loaded).taken(members)
    sizes = replace(packed.sizes, features=plan.sizes)
    few = plan.sizes.modulators <= MOST_MODULATORS and plan.sizes.classes <= MOST_CLASSES
    return packed.sized(replace(packed.variant, extras=key, few_classes=few), sizes=sizes, feature_plan=plan)


def _layout(network: Network, options: EngineOptions, point: FixedPoint, loaded: int) -> Layout:
    return with_raw_levels(build_layout(network, options, point, modelled=EVERYTHING), network, loaded, slice(None))


def with_raw_levels(layout: Layout, network: Network, loaded: int, members: Members) -> Layout:
    """``layout`` of the neurons ``members`` of ``network``, of which the precision clamps the first ``loaded``."""
    if loaded == network.neuron_count:
        return layout
    levels = levels_of(network, loaded)
    thresholds, limits = levels.thresholds[members], levels.threshold_limits[members]
    return replace(layout, neurons=layout.neurons._replace(thresholds=thresholds, threshold_limits=limits))


def pack_layout(
    network: Network,
    options: EngineOptions,
    point: FixedPoint,
    layout: Layout,
    *,
    bounded: bool = True,
    several_kernels: bool = False,
) -> Packed:
    """Pack ``layout``, that of ``network`` or of a shard; rules that depend on the size take that of ``network``.

    Parameters
    ----------
    bounded : bool
        Sums keep to the bound of ``point``; with restored weights they may not.
    several_kernels : bool
        A burst must take several kernels.

    Raises
    ------
    ConfigError
        A batch length out of range.
    """
    neurons, features = network.neuron_count, features_of(network, options)
    layout_of_all = replace(layout, neuron_count=neurons)
    variant = variant_of(layout_of_all, features, options, point, bounded=bounded, several_kernels=several_kernels)
    variant = replace(variant, powered=network.power_neuron is not None)
    fused, largest = variant.fused is not None, point.largest_sum if bounded else UNBOUNDED
    sizes = network_sizes(layout, features, fused, largest, _narrow(network, layout, network.neurons))
    sizes = replace(sizes, firing_rate=options.cuda.firing_rate or USUAL_RATE)
    batch = batch_sizes(neurons, batch_length(options, default_batch_length(neurons)))
    variant, weights = sized(variant, sizes), network.synapses.weights
    return Packed(network, options, point, layout, features, variant, sizes, batch, weights)


def streaming(packed: Packed) -> Packed:
    """``packed`` with its synapses in host memory."""
    return packed.sized(replace(packed.variant, streamed=True))


def packed_for(packed: Packed, state: EngineState) -> Packed:
    """What can run ``state``: ``packed`` itself unless the state needs other contributions or other kernels.

    Raises
    ------
    NetworkError
        Weights that the network's fixed-point scale does not admit.
    """
    different = state.weights != packed.weights
    if packed.layout.computed is not None:
        different[packed.layout.computed.rows] = False
    if different.any():
        packed = _with_weights(packed, np.where(different, state.weights, packed.weights))
    counts_down = packed.features.refractory_periods or bool(state.refractory_countdowns.any())
    features, variant = replace(packed.features, refractory_periods=counts_down), without_queues(packed.variant)
    narrow = packed.sizes.narrow & _narrow(packed.network, packed.layout, state)
    word = _word_for(packed, variant.word, state)
    if features == packed.features and word == variant.word and narrow == packed.sizes.narrow:
        return packed
    sizes = replace(packed.sizes, uniform=uniform_parameters(packed.layout, features), narrow=narrow)
    return packed.sized(replace(variant, features=features, word=word), features=features, sizes=sizes)


def _with_weights(packed: Packed, weights: npt.NDArray[np.float32]) -> Packed:
    """``packed`` with static contributions from ``weights`` (S,), whose sums no bound is known of."""
    options, point, old = packed.options, packed.fixed_point, packed.variant
    network = packed.network.replace(synapses=replace(packed.network.synapses, weights=weights))
    loaded = network.neuron_count if packed.feature_plan is None else packed.feature_plan.loaded
    layout = _layout(network, options, point, loaded)
    refuse_overflow(layout, packed.network, options, point)
    variant = variant_of(layout, packed.features, options, point, bounded=False)
    variant = replace(variant, streamed=old.streamed, extras=old.extras, few_classes=old.few_classes)
    variant = replace(variant, powered=old.powered)
    sizes = replace(
        packed.sizes,
        largest_contribution=largest_contribution(layout),
        common_contribution=common_contribution(layout),
        palette=palette_size(layout, variant),
        sum_bits=UNBOUNDED.bit_length(),
    )
    return packed.sized(variant, layout=layout, weights=weights, sizes=sizes)


def _narrow(network: Network, layout: Layout, state: NeuronTable | EngineState) -> frozenset[str]:
    """``narrow_columns`` from ``state`` on; none if neurons with other parameters may appear."""
    areas = network.features.areas.values()
    if any(area.memory is not None for area in areas):
        return frozenset()
    trains = any(area.spike_train for area in areas)
    return narrow_columns(layout.neurons, state.refractory_countdowns, state.consecutive_fire_counts, trains)


def _word_for(packed: Packed, word: Word, state: EngineState) -> Word:
    """``word``, or a wider one if pending sums do not fit, later contributions included, or need a mark.

    A pending sum needs a mark if it is 0, or negative: later contributions may cancel it.
    """
    point, pending = packed.fixed_point, state.pending
    now, later = (int(np.abs(part).max(initial=0)) for part in (pending[:1], pending[1:]))
    largest = max(now, later + point.largest_sum if len(pending) > 1 else 0)
    cancels = bool((state.pending_candidate & (pending <= 0)).any())
    if word.marked or cancels:
        largest = max(largest + stimulus_bound(point), largest_sum(point))
        kept = word.marked and word.holds(-largest, largest)
        return word if kept else marked_word(packed.layout, point, largest)
    kept = not word.packed or word.holds(int(pending.min(initial=0)), largest)
    return word if kept else Word(point.bits)


def batch_length(options: EngineOptions, default: int) -> int:
    """Bursts that one graph captures: ``default`` unless the options name a number.

    Raises
    ------
    ConfigError
        Out of range.
    """
    length = options.cuda.batch_length or default
    if not 1 <= length <= _LONGEST_BATCH:
        raise ConfigError(
            "not a batch length", where="cuda.batch_length", got=length, allowed=f"0, or 1...{_LONGEST_BATCH}"
        )
    return length
