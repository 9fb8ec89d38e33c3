"""What the host does of a burst where neurons or synapses appear: memory areas and associative mappings (7 and 8).

An engine asks ``begin`` what a burst gets from memories, and after the burst tells ``end`` what fired. So one exchange
a burst is enough. Ids from ``FIRST_MEMORY_ID`` on are memory neurons, which only the host has; ids N, N + 1, ... are
twins, for which the engine reserves neurons. Synapses that associative mappings make are propagated here; those of the
network stay with the engine, which gets new weights for the ones between associated areas and new divisors for the
sources of synapses that were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import MadeSynapses, MemoryState
from burstproof.engine.features.associations import Association, Degrees, Governed, RecentlyFired
from burstproof.engine.features.made import Bundle, Synapses
from burstproof.engine.features.memories import Memories, Memory
from burstproof.engine.features.memory_state import restored_memories, state_of_memories
from burstproof.engine.features.patterns import Fired
from burstproof.network.features import FIRST_MEMORY_ID, MemoryChange
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]
Ids = npt.NDArray[np.int64]

Sums = list[tuple[Ids, Ids]]
"""Targets (Q,), and what arrives at each; they may come several times."""

_NO_WORDS, _NO_FLOATS, _NO_IDS = np.empty(0, np.uint32), np.empty(0, np.float32), np.empty(0, np.int64)


@dataclass(slots=True, eq=False)
class Begun:
    """What a burst gets from memories.

    Attributes
    ----------
    ids, amounts : uint32, int64 (Q,)
        Replays that are added to sums, in units of 2^-k; an id may come several times.
    forced, forced_potentials : uint32, float32 (R,)
        Replays that force firings, ids ascending, each once.
    fired_ids, fired_potentials : uint32, float32 (F,)
        Memory neurons that fire in the burst, ids ascending.
    candidates : int
        Memory neurons that are candidates.
    """

    ids: Words
    amounts: Ids
    forced: Words
    forced_potentials: Floats
    fired_ids: Words
    fired_potentials: Floats
    candidates: int


@dataclass(slots=True, eq=False)
class Ended:
    """What the next burst takes from this one.

    Attributes
    ----------
    targets, amounts : int64 (Q,)
        What arrives in the next burst; a target may come several times, and is a candidate even if it gets 0.
    rows, weights : int64, float32 (K,)
        Rows of the network's synapse table, and their weights from now on.
    sources, divisors : int64, float32 (D,)
        Dense sources whose divisor changes.
    twins : list of int
        Areas of the dense neurons that are added now.
    """

    targets: Ids
    amounts: Ids
    rows: Ids
    weights: Floats
    sources: Ids
    divisors: Floats
    twins: list[int]


class MemoryMachine:
    """Memories and associations of one network.

    Parameters
    ----------
    network : Network
        As it was loaded, N neurons.
    fixed_point : FixedPoint
    rules : Governed
    longest_window : int
        Of all plastic mappings.
    sends : bool
        Whether the engine leaves the synapses that associations govern to the machine.

    Attributes
    ----------
    history_bursts : int
        See ``EngineState``.
    """

    def __init__(
        self, network: Network, fixed_point: FixedPoint, rules: Governed, longest_window: int, sends: bool
    ) -> None:
        self.clamped = False
        self.twin_areas: list[int] = []
        self.twin_memories: list[int] = []
        self.fired: tuple[Words, Floats] = _NO_WORDS, _NO_FLOATS
        self.associations = [Association(network, *one, sends) for one in rules.associative]
        self.memories = Memories(network, fixed_point)
        self._network, self._fixed_point = network, fixed_point
        self._degrees = Degrees(network, self.associations)
        self._longest_window, self.history_bursts = longest_window, 0
        self._flags = network.flags_registered
        self._areas = {area.index: area for area in network.areas}
        self._losses = {index: np.float32(area.degeneration) for index, area in network.features.areas.items()}
        ends = {area for one in self.associations for area in (one.source, one.target)}
        self._watched = sorted({*ends, *self.memories.upstream})
        self._watched_memories = frozenset(self._watched) & self.memories.areas.keys()
        self._recent = {area: RecentlyFired(longest_window) for area in sorted(ends)}
        self._codes = np.zeros(network.neuron_count, np.uint16)
        for code, area in enumerate(self._watched, 1):
            self._codes[network.neurons.cortical_areas == area] = code
        self._in_one_piece, self._ends, self._scattered = self._pieces()
        self._firing: list[Memory] = []
        self.models = {area: int(np.argmax(network.neurons.cortical_areas == area)) for area in self.memories.areas}

    def _pieces(self) -> tuple[list[int], Words, bool]:
        """Watched areas whose ids follow one another, first id and end of each, and whether there are others."""
        areas, ends = [], []
        for code, area in enumerate(self._watched, 1):
            ids = np.flatnonzero(self._codes == code)
            if len(ids) and ids[-1] - ids[0] == len(ids) - 1:
                areas.append(area)
                ends += [int(ids[0]), int(ids[-1]) + 1]
        return areas, np.array(ends, np.uint32), len(areas) < len(self._watched)

    # A burst ---------------------------------------------------------------------------------------------------

    def begin(self, burst: int) -> Begun:
        """What ``burst`` gets from memories; to be asked once, before its end."""
        self._firing, potentials, candidates = self.memories.fire(burst)
        self.fired = _NO_WORDS, _NO_FLOATS
        if self._firing:
            numbers = np.array([memory.number for memory in self._firing], np.uint32)
            self.fired = numbers, np.array(potentials, np.float32)
        due = self.memories.replays.pop(burst, None)
        if due is None:
            return Begun(_NO_WORDS, _NO_IDS, _NO_WORDS, _NO_FLOATS, *self.fired, candidates)
        adding = [one for one in due if one.adds]
        forcing = [one for one in due if not one.adds]
        ids = np.concatenate([_NO_WORDS, *(one.neurons for one in adding)])
        amounts = self._quantised(np.concatenate([_NO_FLOATS, *(one.potentials for one in adding)]))
        forced, first = np.unique(np.concatenate([_NO_WORDS, *(one.neurons for one in forcing)]), return_index=True)
        held = np.concatenate([_NO_FLOATS, *(one.potentials for one in forcing)])[first]
        return Begun(ids, amounts, forced, held, *self.fired, candidates)

    def end(
        self,
        burst: int,
        ids: Words,
        potentials: Floats,
        in_force: Floats,
        signals: Floats,
        early: Iterable[int],
    ) -> Ended:
        """Take in what fired in ``burst``.

        Parameters
        ----------
        ids, potentials : uint32, float32 (F,)
            Dense neurons, ids ascending.
        in_force, signals : float32 (M,)
            Signals that acted in the burst, and those that its firings gave.
        early : iterable of int
            Memory areas whose pattern of this burst is injected in the next one already.
        """
        fired, sums = self.take(ids, potentials, in_force)
        return self.live_on(burst, fired, sums, in_force, signals, early)

    def take(self, ids: Words, potentials: Floats, in_force: Floats) -> tuple[dict[int, Fired], Sums]:
        """The first half of ``end``: what fired by area, and what synapses of the host carry into the next burst."""
        fired = self._by_area(ids, potentials)
        return fired, self._send(fired, in_force)

    def live_on(
        self, burst: int, fired: dict[int, Fired], sums: Sums, in_force: Floats, signals: Floats, early: Iterable[int]
    ) -> Ended:
        """The other half: what is learnt, forgotten and remembered; only twins add to the ``sums``."""
        rows, weights, changed = self._learn(fired, in_force)
        self.history_bursts = min(self.history_bursts + 1, self._longest_window - 1)
        twins: list[int] = []
        if self.memories.areas:
            self.memories.replay(burst, self._firing, self.fired[1], self._flags)
            for memory in self.memories.after(burst, fired, signals, early):
                memory.twin, memory.twin_due = self._network.neuron_count + len(self.twin_areas), False
                self.add_twin(memory.area, memory.number)
                twins.append(memory.area)
            if self.twin_areas:
                self._feed_twins(sums)
            changed |= self._prune()
        return Ended(*added(sums), rows, weights, *self._new_divisors(changed), twins)

    @property
    def gives_synapses_alone(self) -> bool:
        """Whether all that reaches dense neurons is what ``take`` returns, and no potential of theirs matters."""
        lives = self.memories.areas.values()
        plain = all(not life.area.twins and life.area.change is MemoryChange.NONE for life in lives)
        driven = self._flags and any(self._flag(one.source, _MP_DRIVEN) for one in self.associations)
        return plain and not driven and self.memories.depth == 1 and not self._network.features.modulators

    def may_feed_twins(self, early: Sequence[int]) -> bool:
        """Whether ``live_on`` may add to the sums after a burst in which ``early`` areas inject."""
        return bool(self.twin_areas or self.memories.twins_due or early)

    def _new_divisors(self, changed: set[int]) -> tuple[Ids, Floats]:
        """Dense sources among those whose outgoing synapses have ``changed``, if they divide, and their divisors."""
        divided = [one for one in sorted(changed) if self._divides(one)] if self._flags else []
        if not divided:
            return _NO_IDS, _NO_FLOATS
        return np.array(divided, np.int64), np.array([self._degrees.divisor(one) for one in divided], np.float32)

    def add_twin(self, area: int, memory: int) -> None:
        """One more dense neuron of ``area``."""
        self.twin_areas.append(area)
        self.twin_memories.append(memory)
        count = self._network.neuron_count + len(self.twin_areas)
        if count > len(self._codes):
            self._codes = np.concatenate([self._codes, np.zeros(len(self._codes) + 1, np.uint16)])
        if area in self._watched:
            self._codes[count - 1] = self._watched.index(area) + 1

    def _by_area(self, ids: Words, potentials: Floats) -> dict[int, Fired]:
        """What fired in the watched areas that anything fired in."""
        found: dict[int, Fired] = {}
        cuts = ids.searchsorted(self._ends).tolist()
        for area, first, end in zip(self._in_one_piece, cuts[::2], cuts[1::2], strict=True):
            if first < end:
                found[area] = Fired(ids[first:end], potentials[first:end])
        if self._scattered or (self.twin_areas and len(ids) and ids[-1] >= self._network.neuron_count):
            self._find_scattered(found, ids, potentials)
        if self._firing and self._watched_memories:
            self._add_memories(found)
        return found

    def _add_memories(self, found: dict[int, Fired]) -> None:
        """Memory neurons that fired in watched areas; their ids are above those of dense neurons."""
        firing = [memory.area for memory in self._firing]
        for area in self._watched_memories.intersection(firing):
            ids, potentials = self.fired
            if firing.count(area) < len(firing):
                own = np.array([one == area for one in firing])
                ids, potentials = ids[own], potentials[own]
            if area in found:
                dense = found[area]
                ids, potentials = np.concatenate([dense.ids, ids]), np.concatenate([dense.potentials, potentials])
            found[area] = Fired(ids, potentials)

    def _find_scattered(self, found: dict[int, Fired], ids: Words, potentials: Floats) -> None:
        """What fired in areas whose ids do not follow one another, as those of areas with twins never do."""
        codes = self._codes[ids]
        places = np.flatnonzero(codes)
        codes = codes[places]
        for code in np.unique(codes).tolist():
            own = places[codes == code]
            found[self._watched[code - 1]] = Fired(ids[own], potentials[own])

    def _quantised(self, values: Floats) -> Ids:
        integers, clamped = self._fixed_point.quantise(values)
        self.clamped = self.clamped or clamped
        return integers

    # Section 8 -------------------------------------------------------------------------------------------------

    def _send(self, fired: dict[int, Fired], in_force: Floats) -> Sums:
        """Contributions of the host's synapses: what arrives at dense neurons; memories get theirs here."""
        sums: Sums = []
        for one in self.associations:
            area = fired.get(one.source)
            if area is None:
                continue
            ids = area.ids.tolist()
            if one.sent is not None and (places := one.sent.places(ids)):
                targets, products, signs = one.sent.contributions(places, one.weights)
                sums.append((targets, self._quantised(products) * signs))
            if not one.made.sources or not (sending := list(one.made.sending(ids))):
                continue
            amounts = self._quantised(self._contributions(one, area, sending) * one.transmission(in_force)) * one.sign
            targets = np.concatenate([bundle.targets for _, bundle in sending])
            amounts = np.repeat(amounts, [len(bundle.targets) for _, bundle in sending])
            if one.target in self.memories.areas:
                targets, amounts = self._remembered(targets, amounts)
            sums.append((targets, amounts))
            loss = self._losses.get(one.source, 0)
            if loss > 0:
                for _, bundle in sending:
                    bundle.psp = max(bundle.psp - loss, np.float32(0))
        return sums

    def _contributions(self, one: Association, area: Fired, sending: list[tuple[int, Bundle]]) -> Floats:
        """weight x psp of each bundle, or x the potential of its source, by the number of synapses if that divides."""
        weights, found = one.made.weights, []
        mp_driven = self._flags and self._flag(one.source, _MP_DRIVEN)
        divides = self._flags and not self._flag(one.source, _UNIFORM)
        potentials = np.maximum(area.potentials, np.float32(0)) if mp_driven else area.potentials
        for at, bundle in sending:
            value = weights[bundle.place] * (potentials[at] if mp_driven else bundle.psp)
            found.append(value / self._degrees.divisor(int(area.ids[at])) if divides else value)
        return np.array(found, np.float32)

    def _remembered(self, targets: Ids, amounts: Ids) -> tuple[Ids, Ids]:
        """What of the contributions arrives at dense neurons; memories get theirs."""
        arriving, remembered = self.memories.arriving, targets >= FIRST_MEMORY_ID
        for target, amount in zip(targets[remembered].tolist(), amounts[remembered].tolist(), strict=True):
            arriving[target] = arriving.get(target, 0) + amount
        return targets[~remembered], amounts[~remembered]

    def _flag(self, area: int, name: str) -> bool:
        return area in self._areas and bool(getattr(self._areas[area], name))

    def _divides(self, source: int) -> bool:
        dense = source < self._network.neuron_count
        return dense and not self._flag(int(self._network.neurons.cortical_areas[source]), _UNIFORM)

    def _learn(self, fired: dict[int, Fired], in_force: Floats) -> tuple[Ids, Floats, set[int]]:
        """What of the dense synapses of the engine changed, and the sources of the synapses that were made."""
        live = self.memories.live
        for area, recent in self._recent.items():
            recent.add(fired[area].ids if area in fired else _NO_WORDS)
        rows: list[Ids] = []
        weights: list[Floats] = []
        changed: set[int] = set()
        for one in self.associations:
            if one.frozen or self.history_bursts < one.window - 1:
                continue
            before = self._recent[one.source].within(one.window, live, FIRST_MEMORY_ID)
            after = self._recent[one.target].within(one.window, live, FIRST_MEMORY_ID)
            moved, made = one.learn(before, after, one.learning(in_force))
            if moved and one.sent is None and len(one.rows):
                rows.append(one.rows)
                weights.append(one.weights)
            if made:
                self._degrees.grew(sum(made.values()))
                changed.update(made)
        if not rows:
            return _NO_IDS, _NO_FLOATS, changed
        return np.concatenate(rows), np.concatenate(weights), changed

    def _prune(self) -> set[int]:
        """Take away the synapses of memories that have gone; returns the other sources that had some."""
        gone, self.memories.gone = self.memories.gone, []
        if not gone or not self.associations:
            return set()
        return set().union(*[one.remove(gone) for one in self.associations])

    # Section 7.5 -----------------------------------------------------------------------------------------------

    def _feed_twins(self, sums: Sums) -> None:
        """Twins of the memories that fired get max(potential, threshold)."""
        for memory, potential in zip(self._firing, self.fired[1], strict=True):
            if memory.twin >= 0 and memory.number in self.memories.live:
                amount = max(potential, self.twin_threshold(memory.area))
                sums.append((np.array([memory.twin], np.int64), self._quantised(np.array([amount], np.float32))))

    def twin_threshold(self, area: int) -> np.float32:
        """Threshold of a twin of ``area``: that of the area's first dense neuron."""
        return np.float32(self._network.neurons.thresholds[self.models[area]])

    # State -----------------------------------------------------------------------------------------------------

    def made_state(self) -> MadeSynapses:
        """The synapses that were made, by source, then target."""
        parts = [one.made.all() for one in self.associations]
        mappings = [
            np.full(len(part.sources), one.position) for one, part in zip(self.associations, parts, strict=True)
        ]
        made = MadeSynapses(
            _joined([part.sources for part in parts], np.uint32),
            _joined([part.targets for part in parts], np.uint32),
            _joined(mappings, np.uint32),
            _joined([part.weights for part in parts], np.float32),
            _joined([part.psps for part in parts], np.float32),
            _joined([part.traces for part in parts], np.float32),
        )
        order = np.lexsort((made.targets, made.sources))
        return MadeSynapses(*(getattr(made, item.name)[order] for item in fields(made)))

    def memory_state(self, burst: int) -> MemoryState:
        """The memories after ``burst``."""
        oldest = max(1, burst - self._longest_window + 2)
        return state_of_memories(self.memories, burst, oldest, self.twin_areas, self.twin_memories)

    def learnt(self) -> tuple[Ids, Floats, Floats]:
        """Dense rows (K,) between associated areas, their weights, and their eligibility."""
        ones = self.associations
        columns = ([getattr(one, name) for one in ones] for name in ("rows", "weights", "traces"))
        rows, weights, traces = columns
        empty = _NO_FLOATS
        return np.concatenate([_NO_IDS, *rows]), np.concatenate([empty, *weights]), np.concatenate([empty, *traces])

    def restore(
        self,
        burst: int,
        made: MadeSynapses,
        memory: MemoryState,
        dense: tuple[Floats, Floats, Ids, int],
        fired: tuple[Words, Floats],
    ) -> tuple[Ids, Floats]:
        """Continue after ``burst``; returns sources and their divisors.

        Parameters
        ----------
        made, memory
            Of the state.
        dense : tuple
            Weights and eligibility (S,), bursts ``last_fired`` (N + T,), ``history_bursts``.
        fired : tuple of uint32 (F,) and float32 (F,)
            The fired list, memory neurons included.
        """
        weights, eligibility, last_fired, self.history_bursts = dense
        self.memories = restored_memories(Memories(self._network, self._fixed_point), memory, burst)
        own = fired[0] >= FIRST_MEMORY_ID
        self.fired = fired[0][own], fired[1][own]
        self.clamped = False
        self._codes[self._network.neuron_count :] = 0
        self.twin_areas, self.twin_memories = [], []
        for area, number in zip(memory.twin_areas.tolist(), memory.twin_memories.tolist(), strict=True):
            self.add_twin(area, number)
        for one in self.associations:
            one.resume(weights[one.rows].copy(), eligibility[one.rows].copy())
            chosen = made.mappings == one.position
            ends = made.sources[chosen].astype(np.int64), made.targets[chosen].astype(np.int64)
            values = made.weights[chosen], made.postsynaptic_potentials[chosen], made.eligibility_traces[chosen]
            one.append(Synapses(*ends, *values))
        self._degrees = Degrees(self._network, self.associations)
        self._degrees.grew(len(made.sources))
        self._restore_recent(burst, last_fired)
        return self._new_divisors({source for one in self.associations for source in one.made.sources})

    def _restore_recent(self, burst: int, last_fired: Ids) -> None:
        for area in self._recent:
            self._recent[area] = RecentlyFired(self._longest_window)
            code = self._watched.index(area) + 1
            dense = np.flatnonzero(self._codes[: len(last_fired)] == code)
            own = [(one.last_fired, one.number) for one in self.memories.live.values() if one.area == area]
            for number in range(max(burst - self._longest_window + 1, 1), burst + 1):
                late = sorted(one for when, one in own if when == number)
                ids = np.concatenate([dense[last_fired[dense] == number], np.array(late, np.int64)])
                self._recent[area].add(ids.astype(np.uint32))


def added(sums: Sums) -> tuple[Ids, Ids]:
    """``sums`` one after another."""
    if not sums:
        return _NO_IDS, _NO_IDS
    targets, amounts = (np.concatenate([pair[part] for pair in sums]) for part in (0, 1))
    return targets, amounts


def _joined(columns: Sequence[npt.NDArray[Any]], dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *(column.astype(dtype) for column in columns)])


_UNIFORM, _MP_DRIVEN = "psp_uniform_distribution", "mp_driven_psp"
