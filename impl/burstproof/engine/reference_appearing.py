"""Synapses and neurons that appear while the reference runs: FEATURES.md sections 8 and 7 within a burst.

The rules of one mapping or memory area are in ``reference_associative.py`` and ``reference_memory.py``; this module
connects them with sums, contributions and dense neurons.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import MadeSynapses as MadeState
from burstproof.engine.reference_associative import MadeSynapses, associated, check_room, missing_pairs
from burstproof.engine.reference_features import Homeostats, Modulators, Trains
from burstproof.engine.reference_memory import INJECTED, REPLAYED, Memories, Memory, Replay
from burstproof.engine.reference_numbers import float_of_sums, quantised
from burstproof.engine.reference_plasticity import factor_of
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import NO_LIMIT, NeuronTable

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


class Appearing:
    """The part of the reference engine for synapses and neurons that appear; the attributes are the engine's."""

    network: Network
    fixed_point: FixedPoint
    burst_count: int
    neurons: NeuronTable
    v: Floats
    weights: Floats
    eligibility: Floats
    last_fired: Ids
    pending: Ids
    pending_candidate: Bools
    fired_ids: Ids
    fired_potentials: Floats
    clamped: bool
    homeostats: Homeostats
    modulators: Modulators
    trains: Trains
    memories: Memories
    made: MadeSynapses
    twins: list[tuple[int, int]]
    _outgoing: Ids
    _incoming: Ids
    _row_start: Ids

    def _put(self, ids: Ids, amounts: Floats, sums: Ids, in_fcl: npt.NDArray[np.bool_]) -> None:
        """Add amounts to the sums (step 4, and those of memories); several amounts to one neuron add up."""
        integers, clamped = quantised(amounts, self.fixed_point)
        np.add.at(sums, ids, integers)
        in_fcl[ids] = True
        self.clamped = self.clamped or clamped

    # Section 8: synapses that appear -------------------------------------------------------------------

    def _associate(self, number: int, mapping: PlasticMapping, rows: Ids, rise: np.float32, fall: np.float32) -> None:
        """Section 8: the synapses of the pair learn from the activity of both areas; then missing ones are made."""
        association = self.network.features.associative[number]
        factor = factor_of(mapping, self.modulators)
        if rise == 0 and fall == 0 and factor == 0:
            return
        sources, targets = (self._active(area, mapping.window) for area in (association.source, association.target))
        active = bool(len(sources) and len(targets))
        learn = mapping, factor, rise, active
        self.weights[rows], self.eligibility[rows] = associated(self.weights[rows], self.eligibility[rows], *learn)
        own, made = self.made.of_mapping(number), self.made
        made.weights[own], made.traces[own] = associated(made.weights[own], made.traces[own], *learn)
        if active and (not mapping.rewarded or factor > 0):
            synapses = self.network.synapses
            old_sources = np.concatenate([synapses.source_neurons[rows].astype(np.int64), made.sources[own]])
            old_targets = np.concatenate([synapses.target_neurons[rows].astype(np.int64), made.targets[own]])
            new = missing_pairs(sources, targets, (old_sources, old_targets))
            made.make(number, *new, rise, np.float32(association.psp))
            check_room(new[1], self._incoming, made)

    def _active(self, area: int, window: int) -> Ids:
        """Neurons of an area, memory neurons included, that fired in the last ``window`` bursts."""
        since = max(self.burst_count - window + 1, 1)
        dense = np.flatnonzero((self.neurons.cortical_areas == area) & (self.last_fired >= since))
        own = self.memories.of_area(area)
        return np.concatenate([dense, [number for number in sorted(own) if own[number].last_fired >= since]]).astype(
            np.int64
        )

    def _propagate_made(self) -> None:
        """Contributions of synapses that appeared; they arrive in the next burst."""
        made = self.made
        potential = dict(zip(self.fired_ids.tolist(), self.fired_potentials, strict=True))
        rows = np.flatnonzero(np.isin(made.sources, self.fired_ids))
        sources, targets = made.sources[rows], made.targets[rows]
        psps, divisors = made.psps[rows], np.ones(len(rows), np.float32)
        if self.network.flags_registered:
            flags = {area.index: area for area in self.network.areas}
            areas = [flags.get(index) for index in self._areas_of(sources).tolist()]
            driven = np.array([bool(area and area.mp_driven_psp) for area in areas], np.bool_)
            held = np.array([max(potential[one], np.float32(0)) for one in sources.tolist()], np.float32)
            psps = np.where(driven, held, psps)
            uniform = np.array([bool(area and area.psp_uniform_distribution) for area in areas], np.bool_)
            outgoing = made.outgoing(sources)
            dense = sources < len(self.v)
            outgoing[dense] += self._outgoing[sources[dense]]
            divisors = np.where(uniform, 1, outgoing).astype(np.float32)
        mappings = [self.network.features.associative[one] for one in made.mappings[rows].tolist()]
        factors = self.modulators.transmission()[np.array([one.rule for one in mappings], np.int64)]
        integers, clamped = quantised(made.weights[rows] * psps / divisors * factors, self.fixed_point)
        self.clamped = self.clamped or clamped
        inhibitory = np.array([one.inhibitory for one in mappings], np.bool_)
        for target, amount in zip(targets.tolist(), np.where(inhibitory, -integers, integers).tolist(), strict=True):
            if target < len(self.v):
                self.pending[0, target] += amount
                self.pending_candidate[0, target] = True
            else:
                self.memories.arriving[target] = self.memories.arriving.get(target, 0) + amount

    # Section 7: memory areas ---------------------------------------------------------------------------

    def _fired_dense(self) -> tuple[Ids, Floats]:
        """The fired list without memory neurons."""
        dense = self.fired_ids < len(self.v)
        return self.fired_ids[dense], self.fired_potentials[dense]

    def _areas_of(self, ids: Ids) -> npt.NDArray[np.uint32]:
        """Cortical index of each neuron, dense or memory."""
        columns, live = self.neurons.cortical_areas, self.memories.live
        dense = ids < len(columns)
        areas = columns[np.where(dense, ids, 0)]
        areas[~dense] = [live[one].area for one in ids[~dense].tolist()]
        return areas

    def _collect_memories(self) -> tuple[dict[int, np.float32], set[int]]:
        """Section 7.3: sums of the memory neurons that are candidates, and which of them are injected."""
        sums, self.memories.arriving = self.memories.arriving, {}
        injected = self.memories.due_injections(self.burst_count)
        amount = int(quantised(np.array([INJECTED]), self.fixed_point)[0][0]) if injected else 0
        for number in injected:
            sums[number] = sums.get(number, 0) + amount
        totals = float_of_sums(np.array(list(sums.values()), np.int64), self.fixed_point.k)
        return dict(zip(sums, totals, strict=True)), set(injected)

    def _memorise(self, early: Ids) -> None:
        """Section 7: replays of memories that fired, patterns and the life of memories, then twins."""
        if not self.memories.areas:
            return
        remembered = {
            number: potential
            for number, potential in zip(self.fired_ids.tolist(), self.fired_potentials, strict=True)
            if number in self.memories.live
        }
        for number, potential in remembered.items():
            self._replay(self.memories.live[number], potential)
        self.memories.remember(self.fired_ids, self.fired_potentials, self._areas_of(self.fired_ids))
        for number in self.memories.after(self.burst_count, self.modulators, early):
            self._add_twin(number, self.memories.live[number])
        self._feed_twins(remembered)
        dense = self.made.sources < len(self.v), self.made.targets < len(self.v)
        live = list(self.memories.live)
        self.made.keep((dense[0] | np.isin(self.made.sources, live)) & (dense[1] | np.isin(self.made.targets, live)))

    def _replay(self, memory: Memory, potential: np.float32) -> None:
        """Sections 7.6 and 7.7: schedule the voxels of each frame in the twin areas, to be forced or added to."""
        area = self.memories.areas[memory.area]
        flags = {one.index: one for one in self.network.areas}.get(memory.area)
        forced = potential if flags and flags.mp_driven_psp and self.network.flags_registered else REPLAYED
        for at, frame in enumerate(memory.frames):
            for index, (ids, stored_potentials) in sorted(frame.items()):
                for one, kept in zip(ids.tolist(), stored_potentials, strict=True):
                    for neuron in self._voxel_neurons(one, area.twins.get(index)):
                        replayed = kept if area.mp_learning else forced
                        replay = Replay(self.burst_count + at + 1, neuron, replayed, area.mp_learning)
                        self.memories.replays.append(replay)

    def _voxel_neurons(self, neuron: int, area: int | None) -> list[int]:
        """Valid neurons of ``area`` at the coordinates of ``neuron``."""
        table = self.network.neurons
        if area is None or neuron >= len(table):
            return []
        same = (table.coordinates == table.coordinates[neuron]).all(1) & (table.cortical_areas == area)
        found: list[int] = np.flatnonzero(same & table.valid_mask).tolist()
        return found

    def _add_twin(self, number: int, memory: Memory) -> None:
        """Section 7.5: add a dense neuron with the parameters of the memory's area, its limits taken raw."""
        memory.twin, memory.twin_due = len(self.v), False
        self._add_neuron(memory.area)
        self.twins.append((memory.area, number))

    def _add_neuron(self, area: int) -> None:
        """Append a neuron like the first of ``area`` to every neuron column; a threshold limit of none becomes 0."""
        table = self.network.neurons
        model = int(np.flatnonzero(table.cortical_areas == area)[0])
        columns = {column.name: getattr(table, column.name)[model : model + 1] for column in dataclasses.fields(table)}
        limit = columns["threshold_limits"]
        columns["threshold_limits"] = np.where(limit == NO_LIMIT, np.float32(0), limit)
        columns["valid_mask"] = np.ones(1, np.bool_)
        self.neurons = dataclasses.replace(
            self.neurons, **{name: np.concatenate([getattr(self.neurons, name), new]) for name, new in columns.items()}
        )
        for owner, name in (
            *((self, name) for name in ("v", "rc", "cc", "was_candidate", "last_fired", "fire_streak")),
            *((self, name) for name in ("_outgoing", "_incoming")),
            *((self.homeostats, name) for name in ("rates", "leaks")),
            *((self.trains, name) for name in ("active", "held")),
        ):
            column = getattr(owner, name)
            setattr(owner, name, np.concatenate([column, np.zeros(1, column.dtype)]))
        self._row_start = np.concatenate([self._row_start, self._row_start[-1:]])
        slots = ((0, 0), (0, 1))
        self.pending, self.pending_candidate = np.pad(self.pending, slots), np.pad(self.pending_candidate, slots)

    def _feed_twins(self, fired: dict[int, np.float32]) -> None:
        """Section 7.5: in the burst after a firing with potential p the twin gets max(p, its threshold)."""
        for number, potential in fired.items():
            memory = self.memories.live.get(number)
            if memory is not None and memory.twin is not None:
                amounts = np.array([max(potential, self.neurons.thresholds[memory.twin])], np.float32)
                self._put(np.array([memory.twin]), amounts, self.pending[0], self.pending_candidate[0])

    def _made_state(self) -> MadeState:
        """Synapses that appeared, by source, then target."""
        made = self.made
        order = np.lexsort((made.targets, made.sources))
        return MadeState(
            sources=made.sources[order].astype(np.uint32),
            targets=made.targets[order].astype(np.uint32),
            mappings=made.mappings[order].astype(np.uint32),
            weights=made.weights[order],
            postsynaptic_potentials=made.psps[order],
            eligibility_traces=made.traces[order],
        )
