"""The arrays of the CPU engine for a network or one shard, and their conversion from and to the canonical state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.countdowns import running_countdowns, shown_countdowns
from burstproof.engine.cpu.arrays import (
    Model,
    Neurons,
    Recall,
    StimulusTable,
    computed_of,
    fill,
    fits,
    own_parameters,
    plastic_of,
    room_for,
    scalars_of,
    static_of,
    stimulus_table,
    without_synapses,
)
from burstproof.engine.cpu.extras import make_extras, state_of, take_state
from burstproof.engine.cpu.held import Held
from burstproof.engine.cpu.kernels import Kernels, kernels_for
from burstproof.engine.cpu.key import CLAMPED, HISTORY, KernelKey
from burstproof.engine.cpu.lines import OTHERS, POTENTIALS, copy_at, zeros_at
from burstproof.engine.cpu.recall import CACHED_BYTES, recall_of
from burstproof.engine.cpu.regions import ALIGNED
from burstproof.engine.cpu.sums import decoded, encoded
from burstproof.engine.feature_state import FeatureState
from burstproof.engine.features.key import ExtrasKey, extras_key
from burstproof.engine.features.levels import clamped
from burstproof.engine.features.support import EVERYTHING
from burstproof.engine.layout import Layout, StaticRows, build_layout, refuse_overflow
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.precision import storage_for
from burstproof.engine.profile import LARGE_NETWORK_NEURONS
from burstproof.engine.rules import features_of
from burstproof.engine.state import EngineState
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

SPECIALISED_NEURONS, _SPECIALISED_SYNAPSES = 1 << 16, 1 << 23
"""Sizes from which kernels are compiled for the network at once: the seconds that this takes are saved again within
some 25 000 bursts. Bursts on the general kernels take 1.1 to 2.3 times as long."""

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Members = npt.NDArray[np.uint32]


class Packed(NamedTuple):
    """A network or a shard as an engine reads it: its layout, and ascending ids and rows in the network's tables."""

    layout: Layout
    members: Members | slice
    rows: Rows | slice


Pack = Callable[[Floats | None], Packed]
"""Packs n neurons and s synapses with the network's weights (``None``) or with others (s,)."""


class CpuMemory:
    """The arrays of one engine, as its kernels take them.

    Parameters
    ----------
    network, options, fixed_point
        Of the whole network.
    pack_shard : callable, optional
        Packs a shard; without it the memory holds the whole network.
    threads : int
        Threads that run the whole network; 0 for a shard, which cannot recall.

    Attributes
    ----------
    layout : Layout
        Without static rows, which are in ``static`` or ``recall``.
    members, rows : array or slice
        Ids of the neurons and rows of the synapses that are held.
    general : bool
        Whether the general kernels are used, which serve every network.
    kernels : Kernels
    ring, parameters, neurons, static, computed, plastic, scalars
        As in ``arrays.Model``.
    recall : Recall or None
        The static synapses, if they are recalled; ``static`` then has none.
    counters : int64 (2,)
        Sticky clamp flag, and number of bursts with known firings.
    fired : tuple of uint32 (F,) and float32 (F,)
        Fired list of the last burst: local numbers and potentials.
    """

    def __init__(
        self,
        network: Network,
        options: EngineOptions,
        fixed_point: FixedPoint,
        pack_shard: Pack | None = None,
        threads: int = 0,
    ) -> None:
        small = network.neuron_count < SPECIALISED_NEURONS and network.synapse_count < _SPECIALISED_SYNAPSES
        self.general = small if options.cpu.specialise is None else not options.cpu.specialise
        self._network, self._options, self._fixed_point = network, options, fixed_point
        self._pack_shard = pack_shard
        self._threads = 0 if self.general else threads
        used = extras_key(network)
        packed = self._pack(None)
        self.extras = make_extras(network, packed.members, bool(used or network.features))
        self.parameters = own_parameters(packed.layout.neurons)
        self._take_rows(packed)
        self._weights = network.synapses.weights[self.rows]
        self._eligibility = network.synapses.eligibility_traces[self.rows]
        self._psps = network.synapses.postsynaptic_potentials[self.rows]
        self.scalars = scalars_of(self.layout, options, fixed_point)
        self._storage = storage_for(options.precision, network.neurons.thresholds)
        self.neurons = self._initial_neurons(pack_shard is not None)
        self.counters = np.zeros(2, np.int64)
        self.fired = np.empty(0, np.uint32), np.empty(0, np.float32)
        self._key = self._kernel_key(pack_shard is not None, used)
        self.kernels: Kernels = kernels_for(self._key)
        self._since_load, self._loaded_at = 0, network.burst_count
        self._derive()
        cells = self.layout.max_delay * self.layout.neuron_count
        self.ring = np.zeros(cells, np.int64 if self.general else fixed_point.dtype)
        self.plastic.eligibility[:] = self._eligibility[self.plastic_places]
        self._room = room_for(None, self.ring.dtype)
        self._planned: StimulusTable | None = None
        self._model: Sequence[object] = [None] * len(Model._fields)
        self._held: Held

    def _pack(self, weights: Floats | None) -> Packed:
        """Pack the shard, or the whole network."""
        if self._pack_shard is not None:
            return self._pack_shard(weights)
        network = self._network
        if weights is not None:
            network = network.replace(synapses=dataclasses.replace(network.synapses, weights=weights))
        layout = build_layout(network, self._options, self._fixed_point, modelled=EVERYTHING)
        return Packed(layout, slice(None), slice(None))

    def _take_rows(self, packed: Packed) -> None:
        """Take over the synapses of ``packed``."""
        layout, self.members, self.rows = packed
        self.static = static_of(layout, self.general)
        self.computed = computed_of(layout, self.general, self.extras)
        self.plastic = plastic_of(layout, self.extras)
        self.recall: Recall | None = None
        if self._threads:
            self.recall = recall_of(layout, self.static, self._fixed_point.dtype, self._threads)
        empty = without_synapses(self.static)
        if self.recall is not None:
            self.static = empty
        clamped_sources = layout.static.clamped_sources
        no_rows = StaticRows(empty.offsets, empty.targets, empty.contributions, None, clamped_sources)
        self.layout = dataclasses.replace(layout, neurons=self.parameters, static=no_rows)
        computed = np.empty(0, np.int64) if layout.computed is None else layout.computed.rows
        self.computed_places = computed if isinstance(self.rows, slice) else np.searchsorted(self.rows, computed)
        self.plastic_places = self.computed_places[self.plastic.positions]

    def _initial_neurons(self, shard: bool) -> Neurons:
        """The state at the start; the firing history covers all neurons, since plastic synapses come from anywhere."""
        table, members = self._network.neurons, self.members
        remembered = self._network.neuron_count if self.general or self.layout.plastic is not None else 0
        countdowns = running_countdowns(table.refractory_countdowns, table.valid_mask)
        return Neurons(
            membrane_potentials=copy_at(POTENTIALS, self._stored(table.membrane_potentials[members])),
            refractory_countdowns=copy_at(OTHERS, countdowns[members]),
            consecutive_fire_counts=copy_at(OTHERS, table.consecutive_fire_counts[members]),
            was_candidate=zeros_at(OTHERS, self.layout.neuron_count, np.bool_),
            last_fired=np.zeros(remembered, np.int64),
            fire_streak=np.zeros(remembered, np.int64),
            ids=np.array(members, np.uint32) if shard else np.empty(0, np.uint32),
            unclamped=np.zeros(self.layout.neuron_count if self._network.features.clamp_potentials else 0, np.bool_),
            settled=np.zeros(self.layout.neuron_count // ALIGNED + 1, np.bool_),
        )

    def _stored(self, potentials: Floats) -> Floats:
        """Potentials as they are kept between bursts."""
        rounded = self._storage.rounded(potentials)
        return clamped(rounded) if self._network.features.clamp_potentials else rounded

    def _derive(self) -> None:
        """Compute the factors from the signals; before the first burst the area factors are NaN: none was applied."""
        if not self._key.extras:
            return
        for row in (0, 1):
            self.kernels.derive(row, self.extras)
        if not self._since_load:
            self.extras.area_factors[:] = np.nan

    def _kernel_key(self, shard: bool, extras: ExtrasKey) -> KernelKey:
        layout, profile = self.layout, self._options.profile
        features = features_of(self._network, self._options)
        large = self._network.neuron_count >= LARGE_NETWORK_NEURONS
        key = KernelKey(
            features,
            delayed=layout.max_delay > 1,
            static_clamps=layout.static.clamped_sources is not None,
            computed=layout.computed is not None,
            plastic=layout.plastic is not None,
            round_mp_driven=profile.round_mp_driven,
            plastic_all_window=profile.plastic_all_window,
            restart_fired=features.restarts and profile.restart_all and large,
            shard=shard,
            extras=extras,
            recalled=self.recall is not None,
        )
        return key.general() if self.general else key

    @property
    def computes(self) -> bool:
        """Whether some contributions are computed when a source fires."""
        return self._key.computed

    @property
    def needs_queues(self) -> bool:
        """Whether even a single thread needs queues, because its ring does not fit the cache."""
        return self.recall is None and self.ring.nbytes > CACHED_BYTES

    def flush_lists(self, burst_count: int) -> None:
        """After burst ``burst_count``: move what the fired lists still have to deliver into the ring."""
        if self.recall is not None:
            self.kernels.flush_lists(burst_count, self.recall, self.ring, self.scalars)

    @property
    def needs_last(self) -> bool:
        """Whether a burst reads the fired list of the one before."""
        return self._key.restart_fired or self._key.extras.trains

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All arrays, named ``group.name``."""
        rows = "static" if self.recall is None else "recall"
        found = {"ring": self.ring}
        for group in ("parameters", "neurons", rows, "computed", "plastic"):
            for name, value in getattr(self, group)._asdict().items():
                if isinstance(value, np.ndarray):
                    found[f"{group}.{name}"] = value
        return found

    def model(self, plan: StimulusTable) -> Model:
        """The arrays as they are now, with the stimulus ``plan``."""
        return Model(
            ring=self.ring,
            plan=plan,
            parameters=self.parameters,
            neurons=self.neurons,
            static=self.static,
            computed=self.computed,
            plastic=self.plastic,
            scalars=self.scalars,
            extras=self.extras if self._key.extras else (),
            recall=() if self.recall is None else self.recall,
        )

    def held(self, plan: StimulusTable) -> Held:
        """The model with the stimulus ``plan``, for the kernels; unpacked anew only if an array was replaced."""
        if plan is not self._planned:
            if not fits(plan, self._room):
                self._room = room_for(plan, self.ring.dtype)
            fill(self._room, plan)
            self._planned = plan
        model = self.model(self._room)
        if not all(map(is_, model, self._model)):
            self._model, self._held = model, Held(model)
        return self._held

    def plan(self, stimuli: Sequence[PackedStimulus | None]) -> StimulusTable:
        """The stimuli of consecutive bursts as a table."""
        return stimulus_table(stimuli, self.ring.dtype)

    def keep_fired(self, ids: Members, potentials: Floats) -> None:
        """Keep the last fired list, copied if the next burst reads it: that burst overwrites ``ids``."""
        self.fired = (ids.copy(), potentials.copy()) if self.needs_last else (ids, potentials)

    def note_power(self) -> None:
        """Set the sticky clamp flag if the power amount, which every burst adds, is clamped."""
        if self.layout.power_clamped and self._network.power_neuron is not None:
            self.counters[CLAMPED] = 1

    def note_clamped(self, stimuli: Sequence[PackedStimulus | None]) -> None:
        """Set the sticky clamp flag if an amount was clamped in ``stimuli``, of bursts that were done."""
        for stimulus in stimuli:
            if stimulus is not None and stimulus.clamped:
                self.counters[CLAMPED] = 1

    def waiting(self, number: int, plan: StimulusTable) -> int:
        """Candidates that burst ``number`` will have here; ``plan`` holds the stimulus of this burst only."""
        slots, neurons = self.layout.max_delay, self.layout.neuron_count
        candidates = self.ring.reshape(slots, neurons)[number % slots] != 0
        candidates[plan.ids] = True
        if self.scalars.power_neuron >= 0:
            candidates[self.scalars.power_neuron] = True
        return int(np.count_nonzero(candidates))

    def _compile(self, **changes: Any) -> None:
        self._key = dataclasses.replace(self._key, **changes)
        self.kernels = kernels_for(self._key)

    def state(self, burst_count: int) -> EngineState:
        """The canonical state of the held neurons and synapses after burst ``burst_count``; copies."""
        table, members, neurons = self._network.neurons, self.members, self.neurons
        shape, slots = (self.layout.max_delay, self.layout.neuron_count), self._slots(burst_count)
        pending, candidates = decoded(self.ring.reshape(shape)[slots])
        own, valid = table.refractory_countdowns[members], table.valid_mask[members]
        weights, eligibility = self._weights.copy(), self._eligibility.copy()
        weights[self.computed_places] = self.computed.weights
        eligibility[self.plastic_places] = self.plastic.eligibility
        last_fired, streak = self._history(burst_count)
        return EngineState(
            burst_count=burst_count,
            membrane_potentials=neurons.membrane_potentials.copy(),
            refractory_countdowns=shown_countdowns(neurons.refractory_countdowns, own, valid),
            consecutive_fire_counts=neurons.consecutive_fire_counts.copy(),
            weights=weights,
            eligibility_traces=eligibility,
            was_candidate=neurons.was_candidate.copy(),
            pending=pending,
            pending_candidate=candidates,
            fired_ids=self.fired[0].copy(),
            fired_potentials=self.fired[1].copy(),
            last_fired=last_fired,
            fire_streak=streak,
            history_bursts=int(self.counters[HISTORY]),
            clamped=bool(self.counters[CLAMPED]),
            fixed_point=self._fixed_point,
            features=self._feature_state(burst_count),
        )

    def _feature_state(self, burst_count: int) -> FeatureState | None:
        """The features' part of the state, ``None`` without features; copies."""
        if not self._network.features:
            return None
        psps = self._psps.copy()
        psps[self.computed_places] = self.computed.psps
        since_load = int(self._since_load or burst_count > self._loaded_at)
        return state_of(self.extras, self.parameters, burst_count, since_load, psps)

    def _slots(self, burst_count: int) -> Rows:
        """Ring slot of each row of the canonical ``pending``."""
        return (burst_count + 1 + np.arange(self.layout.max_delay)) % self.layout.max_delay

    def _history(self, burst_count: int) -> tuple[Rows, npt.NDArray[np.uint16]]:
        rules, count = self.layout.plastic, self.layout.neuron_count
        if rules is None:
            return np.zeros(count, np.int64), np.zeros(count, np.uint16)
        last = self.neurons.last_fired[self.members]
        last = np.where(last > max(0, burst_count - (rules.longest_window - 1)), last, 0)
        return last, np.where(last > 0, self.neurons.fire_streak[self.members], 0).astype(np.uint16)

    def restore(self, state: EngineState) -> None:
        """Take over the part of ``state`` for the held neurons and synapses.

        Raises
        ------
        NetworkError
            Weights that the network's fixed-point scale does not admit.
        """
        self._restore_weights(state)
        members, neurons, valid = self.members, self.neurons, self._network.neurons.valid_mask
        neurons.membrane_potentials[:] = self._stored(state.membrane_potentials[members])
        if len(neurons.unclamped):
            free = neurons.unclamped
            neurons.membrane_potentials[free] = self._storage.rounded(state.membrane_potentials[members][free])
        neurons.refractory_countdowns[:] = running_countdowns(state.refractory_countdowns, valid)[members]
        neurons.consecutive_fire_counts[:] = state.consecutive_fire_counts[members]
        neurons.was_candidate[:] = state.was_candidate[members]
        neurons.settled[:] = False
        if self.layout.plastic is not None:
            neurons.last_fired[:] = state.last_fired
            neurons.fire_streak[:] = state.fire_streak
        self.counters[HISTORY], self.counters[CLAMPED] = state.history_bursts, state.clamped
        self.fired = state.fired_ids.copy(), state.fired_potentials.copy()
        if not self._key.features.refractory_periods and state.refractory_countdowns.any():
            self._compile(features=dataclasses.replace(self._key.features, refractory_periods=True))
        self._restore_pending(state)
        if state.features is not None:
            self._restore_features(state.features, state.burst_count)

    def _restore_features(self, state: FeatureState, burst_count: int) -> None:
        take_state(self.extras, self.parameters, self.members, state)
        self._psps = state.postsynaptic_potentials[self.rows].copy()
        self.computed.psps[:] = self._psps[self.computed_places]
        self._since_load, self._loaded_at = state.bursts_since_load, burst_count
        self._derive()

    def _restore_pending(self, state: EngineState) -> None:
        members = self.members
        arriving = state.pending_candidate[:, members] & self._network.neurons.valid_mask[members]
        shape, slots = (self.layout.max_delay, self.layout.neuron_count), self._slots(state.burst_count)
        self.ring.reshape(shape)[slots] = encoded(state.pending[:, members], arriving, self.ring.dtype)
        if self.recall is not None:
            self.recall.in_ring[:] = 1

    def _restore_weights(self, state: EngineState) -> None:
        """Take over weights and traces; pack again if the weight of a constant contribution has changed."""
        weights = state.weights[self.rows]
        static = np.ones(len(weights), np.bool_)
        static[self.computed_places] = False
        changed = bool((static & (weights != self._weights)).any())
        if changed:
            self._repack(np.where(static, weights, self._network.synapses.weights[self.rows]))
        if changed or len(self.computed_places):
            self._weights = weights.copy()
        self.computed.weights[:] = weights[self.computed_places]
        self._eligibility = state.eligibility_traces[self.rows].copy()
        self.plastic.eligibility[:] = self._eligibility[self.plastic_places]

    def _repack(self, weights: Floats) -> None:
        packed = self._pack(weights)
        ids = None if isinstance(packed.members, slice) else packed.members
        refuse_overflow(packed.layout, self._network, self._options, self._fixed_point, ids)
        self._take_rows(packed)
        clamps = self.general or packed.layout.static.clamped_sources is not None
        self._compile(static_clamps=clamps, recalled=self.recall is not None)
