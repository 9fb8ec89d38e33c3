"""Associative mappings on the host: synapses that appear and go while a network runs (FEATURES section 8)."""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.made import Made, Synapses
from burstproof.engine.features.sent import SentRows
from burstproof.engine.features.tables import decay_of
from burstproof.engine.fixed_point import MOST_NEW_SYNAPSES
from burstproof.errors import NetworkError
from burstproof.network.features import Features
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping, steps

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]

_ZERO, _ONE = np.float32(0), np.float32(1)
_NO_IDS: Ids = np.empty(0, np.int64)
_NO_WORDS: Words = np.empty(0, np.uint32)


class Governed(NamedTuple):
    """Which rule governs which synapses, where associative mappings govern pairs of areas, too.

    ``mappings`` are the plastic mappings of the device, with the rows that they govern; those that govern nothing any
    more are left out, and ``features`` name the others by their new positions. ``associative`` has for each acting
    association its position in the network's ``Features.associative`` and the rows (K,) of dense synapses that it
    governs.
    """

    mappings: tuple[PlasticMapping, ...]
    features: Features
    associative: tuple[tuple[int, Ids], ...]


def governed(network: Network) -> Governed:
    """The rules of ``network`` by what they govern: of all rules for an ordered pair of areas the last one counts."""
    synapses, areas = network.synapses, network.neurons.cortical_areas.astype(np.int64)
    width = int(areas.max(initial=0)) + 1
    pairs = areas[synapses.source_neurons] * width + areas[synapses.target_neurons]
    associative = {one.plastic: at for at, one in enumerate(network.features.associative)}
    rules: dict[int, int] = {}
    for number, mapping in enumerate(network.plastic_mappings):
        rules.update(dict.fromkeys(np.unique(pairs[mapping.synapses]).tolist(), number))
        if number in associative:
            one = network.features.associative[associative[number]]
            rules[one.source * width + one.target] = number
    mappings: list[PlasticMapping] = []
    places: dict[int, int] = {}
    found: list[tuple[int, Ids]] = []
    for number, mapping in enumerate(network.plastic_mappings):
        own = [pair for pair, rule in rules.items() if rule == number]
        rows = np.flatnonzero(synapses.valid_mask & np.isin(pairs, own)) if own else _NO_IDS
        if number in associative and own:
            found.append((associative[number], rows))
            rows = _NO_IDS
        if own or not len(mapping.synapses):
            places[number] = len(mappings)
            mappings.append(dataclasses.replace(mapping, synapses=rows))
    acting = [one for one in network.features.associative if one.plastic in places]
    renumbered = tuple(dataclasses.replace(one, plastic=places[one.plastic]) for one in acting)
    features = dataclasses.replace(network.features, associative=renumbered)
    return Governed(tuple(mappings), features, tuple(found))


class Association:
    """One associative mapping: dense synapses between its areas (``rows``), and those that it ``made``.

    Contributions of the dense ones belong to the device, which gets their weights, unless the host ``sends`` them.

    Attributes
    ----------
    sent : SentRows or None
        The dense synapses, where the host sends along them.
    """

    def __init__(self, network: Network, position: int, rows: Ids, sends: bool = False) -> None:
        one = network.features.associative[position]
        mapping = network.plastic_mappings[one.plastic]
        synapses = network.synapses
        self.position, self.source, self.target, self.rows = position, one.source, one.target, rows
        self.window, self.frozen, self.rewarded = mapping.window, mapping.frozen, mapping.rewarded
        self.rise, self.fall = steps(mapping)
        decays = mapping.rewarded and mapping.eligibility_decay > 0
        self.decay = decay_of(mapping.eligibility_decay) if decays else _ZERO
        self.eta = np.float32(mapping.eta)
        self.most = np.float32(np.inf if mapping.max_weight is None else mapping.max_weight)
        self.rewards, self.learning_rates = mapping.rewards, mapping.learning_rates
        self.psp, self.sign = np.float32(one.psp), -1 if one.inhibitory else 1
        rule = network.features.rules[one.rule - 1] if one.rule else None
        self.gains, self.gates = (rule.gains, rule.gates) if rule else ((), ())
        ends = (synapses.source_neurons[rows], synapses.target_neurons[rows])
        self.sent = SentRows(network, rows) if sends and len(rows) else None
        self.made = Made(*(end.astype(np.int64) for end in ends))
        self.resume(synapses.weights[rows].copy(), synapses.eligibility_traces[rows].copy())

    def resume(self, weights: Floats, traces: Floats) -> None:
        """Go on from the dense synapses' ``weights`` and ``traces``, with no others."""
        self.made.clear()
        self.weights[:], self.traces[:] = weights, traces
        self._checked: tuple[bytes, bytes] | None = None
        self._quiet = False

    @property
    def weights(self) -> Floats:
        """Of the dense synapses, float32 (K,)."""
        return self.made.weights[: len(self.rows)]

    @property
    def traces(self) -> Floats:
        """Of the dense synapses, float32 (K,)."""
        return self.made.traces[: len(self.rows)]

    def transmission(self, signals: Floats) -> np.float32:
        """The factor T of the synapses that the mapping makes."""
        factor = product(self.gains, signals)
        if self.gates:
            factor = factor * max([_ZERO, *(signals[one] for one in self.gates)])
        return np.float32(factor)

    def learning(self, signals: Floats) -> np.float32:
        """Reward and learning factor M."""
        factor = product(self.learning_rates, signals)
        if not self.rewarded:
            return factor
        reward = _ZERO
        for one in self.rewards:
            reward = reward + signals[one]
        return np.float32(reward * factor)

    def learn(self, sources: Words, targets: Words, factor: np.float32) -> tuple[bool, dict[int, int]]:
        """One burst; ``sources`` and ``targets`` fired in the window.

        Returns whether weights may have changed, and how many synapses were made by source.
        """
        if self.rise == 0 and self.fall == 0 and factor == 0:
            return False, {}
        active = bool(len(sources) and len(targets))
        if not (self._quiet and not active):
            self._fade(self.rise if active else _ZERO)
            self._quiet = not self.decay and not active
        if not active:
            return False, {}
        self._weigh(factor)
        if self.rewarded and not factor > 0:
            return True, {}
        return True, self._make(sources, targets)

    def _fade(self, rise: np.float32) -> None:
        """What traces are after a burst that adds ``rise``."""
        traces = self.made.traces
        if self.decay:
            traces *= self.decay
            traces += rise
        else:
            traces.fill(rise)

    def _weigh(self, factor: np.float32) -> None:
        weights, traces = self.made.weights, self.made.traces
        if factor == 0:
            return
        if not self.decay:  # all traces are the one step
            self._weigh_alike(weights, factor)
            return
        changes = self.eta * factor * traces
        moved = weights + changes
        changed = np.where(changes >= 0, np.minimum(moved, self.most), np.maximum(moved, _ZERO))
        still = (traces == 0) | ((factor < 0) & (traces < 0))
        weights[:] = np.where(still, weights, changed)

    def _weigh_alike(self, weights: Floats, factor: np.float32) -> None:
        change = self.eta * factor * self.rise
        if self.rise == 0:
            return
        weights += change
        if change < 0:
            np.maximum(weights, _ZERO, out=weights)
        elif self.most < np.inf:
            np.minimum(weights, self.most, out=weights)

    def _make(self, sources: Words, targets: Words) -> dict[int, int]:
        checked = sources.tobytes(), targets.tobytes()
        if checked == self._checked:
            return {}
        self._checked = checked
        found = self.made.add_missing(sources.tolist(), targets.astype(np.int64), self.rise, self.psp)
        self._quiet = self._quiet and not found
        return found

    def append(self, made: Synapses) -> None:
        """Add synapses of a state."""
        self.made.add(made)
        self._quiet = False

    def remove(self, gone: Sequence[int]) -> set[int]:
        """Take away the synapses of memories that are ``gone``; returns the other sources that had some."""
        self._checked = None
        return self.made.remove(gone)


def product(positions: Iterable[int], signals: Floats) -> np.float32:
    """((1 (1 + s1)) (1 + s2))..."""
    factor = _ONE
    for position in positions:
        factor = factor * np.float32(_ONE + signals[position])
    return factor


class Degrees:
    """How many synapses lead out of and into neurons, those of the network and those that associations made."""

    def __init__(self, network: Network, associations: Sequence[Association]) -> None:
        synapses = network.synapses
        valid = synapses.valid_mask
        self._associations = associations
        self._out = np.bincount(synapses.source_neurons[valid], minlength=network.neuron_count)
        self._into = np.bincount(synapses.target_neurons[valid], minlength=network.neuron_count)
        self._most = int(self._into.max(initial=0)) + MOST_NEW_SYNAPSES
        self._sure = MOST_NEW_SYNAPSES

    def grew(self, by: int) -> None:
        """So many synapses were made; they are counted by target only where a neuron may have too many.

        Raises
        ------
        NetworkError
            More synapses onto a neuron than its sums have room for.
        """
        self._sure -= by
        if self._sure >= 0:
            return
        made = np.concatenate([one.made.all().targets for one in self._associations])
        targets, degrees = np.unique(made, return_counts=True)
        dense = targets < len(self._into)
        degrees[dense] += self._into[targets[dense]]
        place = int(degrees.argmax())
        if degrees[place] > self._most:
            raise NetworkError(
                "an associative mapping made more synapses onto a neuron than its sums have room for",
                where=f"neuron {targets[place]}",
                got=int(degrees[place]),
                allowed=f"{self._most}",
                cure="Make the areas of the mapping smaller, or its window shorter",
            )
        self._sure = self._most - max(int(degrees[place]), int(self._into.max(initial=0)))

    def divisor(self, source: int) -> np.float32:
        """Of a source that divides: its present number of outgoing synapses, at least 1."""
        made = sum(one.made.outgoing(source) for one in self._associations)
        dense = int(self._out[source]) if source < len(self._out) else 0
        return np.float32(max(dense + made, 1))


class RecentlyFired:
    """Ids that fired in an area in each of the last bursts."""

    def __init__(self, longest: int) -> None:
        self._lists: deque[Words] = deque([_NO_WORDS] * longest, longest)

    def add(self, ids: Words) -> None:
        """The ids of one more burst."""
        self._lists.append(ids)

    def within(self, window: int, live: Mapping[int, object], first_memory: int) -> Words:
        """Ids of the last ``window`` bursts, ascending; memories only if they are still ``live``.

        Of the last burst all are: memories go at the end of a burst.
        """
        if window == 1:
            return self._lists[-1]
        lists = [ids for ids in itertools.islice(reversed(self._lists), window) if len(ids)]
        if not lists:
            return _NO_WORDS
        found = lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists))
        if found[-1] >= first_memory:
            kept = [one < first_memory or one in live for one in found.tolist()]
            if not all(kept):
                found = found[np.array(kept, np.bool_)]
        return found
