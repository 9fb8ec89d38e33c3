"""Associative mappings on the host: synapses that appear and go while a network runs (FEATURES section 8)."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.made import MadeColumns, Synapses
from burstproof.engine.features.tables import decay_of
from burstproof.engine.fixed_point import MOST_NEW_SYNAPSES
from burstproof.errors import NetworkError
from burstproof.network.features import Features
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping, steps

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

_ZERO, _ONE = np.float32(0), np.float32(1)
_NO_IDS: Ids = np.empty(0, np.int64)


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

    Contributions of the dense ones belong to the device; it gets their weights.

    Attributes
    ----------
    weights, traces : float32 (K,)
        Of the dense synapses.
    """

    def __init__(self, network: Network, position: int, rows: Ids) -> None:
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
        self.made = MadeColumns(*(end.astype(np.int64) for end in ends))
        self.resume(synapses.weights[rows].copy(), synapses.eligibility_traces[rows].copy())

    def resume(self, weights: Floats, traces: Floats) -> None:
        """Go on from the dense synapses' ``weights`` and ``traces``, with no others."""
        self.weights, self.traces = weights, traces
        self.made.clear()
        self._checked: tuple[bytes, bytes] | None = None
        self._quiet = False

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

    def learn(self, sources: Ids, targets: Ids, factor: np.float32) -> tuple[bool, Ids, Ids]:
        """One burst; ``sources`` and ``targets`` fired in the window.

        Returns whether weights may have changed, and the ends of the synapses that were made.
        """
        if self.rise == 0 and self.fall == 0 and factor == 0:
            return False, _NO_IDS, _NO_IDS
        active = bool(len(sources) and len(targets))
        made = self.made
        if not (self._quiet and not active):
            for traces in (self.traces, made.traces):
                if self.decay:
                    traces *= self.decay
                else:
                    traces.fill(0)
            self._quiet = not self.decay and not active
        if not active:
            return False, _NO_IDS, _NO_IDS
        for weights, traces in ((self.weights, self.traces), (made.weights, made.traces)):
            traces += self.rise
            self._weigh(weights, traces, factor)
        if self.rewarded and not factor > 0:
            return True, _NO_IDS, _NO_IDS
        return True, *self._make(sources, targets)

    def _weigh(self, weights: Floats, traces: Floats, factor: np.float32) -> None:
        if factor == 0 or not len(weights):
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
        if change >= 0:
            np.minimum(weights, self.most, out=weights)
        else:
            np.maximum(weights, _ZERO, out=weights)

    def _make(self, sources: Ids, targets: Ids) -> tuple[Ids, Ids]:
        checked = sources.tobytes(), targets.tobytes()
        if checked == self._checked:
            return _NO_IDS, _NO_IDS
        self._checked = checked
        ends = self.made.missing(sources, targets)
        if len(ends[0]):
            values = (np.full(len(ends[0]), value, np.float32) for value in (self.rise, self.psp, _ZERO))
            self.append(Synapses(*ends, *values))
        return ends

    def append(self, made: Synapses) -> None:
        """Add synapses."""
        self.made.add(made)
        self._quiet = False

    def remove(self, gone: Sequence[int]) -> tuple[Ids, Ids]:
        """Take away the synapses of memories that are ``gone``; returns their ends."""
        self._checked = None
        return self.made.remove(gone)


def product(positions: Iterable[int], signals: Floats) -> np.float32:
    """((1 (1 + s1)) (1 + s2))..."""
    factor = _ONE
    for position in positions:
        factor = factor * (_ONE + signals[position])
    return np.float32(factor)


class Degrees:
    """How many synapses lead out of and into neurons, those of the network and those made while it runs."""

    def __init__(self, network: Network) -> None:
        synapses = network.synapses
        valid = synapses.valid_mask
        self._out = np.bincount(synapses.source_neurons[valid], minlength=network.neuron_count)
        self._into = np.bincount(synapses.target_neurons[valid], minlength=network.neuron_count)
        self._most = int(self._into.max(initial=0)) + MOST_NEW_SYNAPSES
        self.made_out: dict[int, int] = {}
        self.made_into: dict[int, int] = {}

    def change(self, sources: Ids, targets: Ids, by: int) -> None:
        """Synapses appeared (``by`` 1) or went (-1).

        Raises
        ------
        NetworkError
            More synapses onto a neuron than its sums have room for.
        """
        for ends, counts in ((sources, self.made_out), (targets, self.made_into)):
            for one, number in Counter(ends.tolist()).items():
                counts[one] = counts.get(one, 0) + by * number
        if by > 0:
            for one in set(targets.tolist()):
                self._check(one)

    def _check(self, neuron: int) -> None:
        degree = self.made_into[neuron] + (int(self._into[neuron]) if neuron < len(self._into) else 0)
        if degree > self._most:
            raise NetworkError(
                "an associative mapping made more synapses onto a neuron than its sums have room for",
                where=f"neuron {neuron}",
                got=degree,
                allowed=f"{self._most}",
                cure="Make the areas of the mapping smaller, or its window shorter",
            )

    def outgoing(self, sources: Sequence[int]) -> Floats:
        """Divisors of sources that divide: their present number of outgoing synapses, at least 1."""
        count = len(self._out)
        found = [self.made_out.get(one, 0) + (int(self._out[one]) if one < count else 0) for one in sources]
        return np.maximum(np.array(found, np.int64), 1).astype(np.float32)


class RecentlyFired:
    """Ids that fired in an area in each of the last bursts."""

    def __init__(self, longest: int) -> None:
        self._lists: deque[Ids] = deque(maxlen=longest)

    def add(self, ids: Ids) -> None:
        """The ids of one more burst."""
        self._lists.append(ids)

    def within(self, window: int, live: Mapping[int, object], first_memory: int) -> Ids:
        """Ids of the last ``window`` bursts, ascending; memories only if they are still ``live``."""
        lists = [ids for ids in list(self._lists)[-window:] if len(ids)]
        if not lists:
            return _NO_IDS
        found = lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists))
        if found[-1] >= first_memory:
            kept = [one < first_memory or one in live for one in found.tolist()]
            found = found[np.array(kept, np.bool_)]
        return found
