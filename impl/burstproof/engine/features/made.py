"""The synapses that one associative mapping made (FEATURES section 8), in bundles found by source.

Learning asks whether areas are active, never which neurons fired. So the synapses that one source got in one burst have
one weight, one psp and one trace as long as they live: a bundle. A burst touches the bundles of what fired, appeared or
went; only learning passes over all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from burstproof.network.features import FIRST_MEMORY_ID

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

T = TypeVar("T", bound=np.generic)

_FIRST_ROOM = 64


class Synapses(NamedTuple):
    """Made synapses in any order: ids int64 (S,), the rest float32 (S,)."""

    sources: Ids
    targets: Ids
    weights: Floats
    psps: Floats
    traces: Floats


@dataclass(slots=True)
class Bundle:
    """Synapses of one source: ``targets`` int64 (K,), their ``psp``, and the ``place`` of weight and trace.

    Bundles may share the array of targets, which is never changed.
    """

    targets: Ids
    psp: np.float32
    place: int


class Made:
    """Synapses that appear and go.

    Attributes
    ----------
    weights, traces : float32 (K + room,)
        Of the K synapses that the network has from the start, which belong to the owner, then of the bundles; what
        stands in free places means nothing.
    """

    def __init__(self, sources: Ids, targets: Ids) -> None:
        """``sources`` and ``targets``: ends (K,) of the synapses that the network has from the start."""
        self._dense = sources, targets
        self.clear()

    def clear(self) -> None:
        """Take all away."""
        dense = len(self._dense[0])
        self.weights, self.traces = (np.zeros(dense + _FIRST_ROOM, np.float32) for _ in range(2))
        self._free = list(range(dense, dense + _FIRST_ROOM))
        self._bundles: dict[int, list[Bundle]] = {}
        self._reached: dict[int, set[int]] = {}
        self._senders: dict[int, set[int]] = {}
        for source, target in zip(*(ends.tolist() for ends in self._dense), strict=True):
            self._reached.setdefault(source, set()).add(target)

    def __len__(self) -> int:
        return sum(self.outgoing(source) for source in self._bundles)

    @property
    def sources(self) -> Iterable[int]:
        """What has synapses here."""
        return self._bundles.keys()

    def outgoing(self, source: int) -> int:
        """How many synapses ``source`` has here."""
        return sum(len(bundle.targets) for bundle in self._bundles.get(source, ()))

    def sending(self, fired: Iterable[int]) -> Iterator[tuple[int, Bundle]]:
        """The bundles of what ``fired``, each with the place of its source among it."""
        bundles = self._bundles
        return ((at, bundle) for at, source in enumerate(fired) if source in bundles for bundle in bundles[source])

    def all(self) -> Synapses:
        """A copy of every synapse."""
        found = [(source, bundle) for source, bundles in self._bundles.items() for bundle in bundles]
        lengths = [len(bundle.targets) for _, bundle in found]
        places = np.array([bundle.place for _, bundle in found], np.int64)
        psps = np.array([bundle.psp for _, bundle in found], np.float32)
        return Synapses(
            np.repeat(np.array([source for source, _ in found], np.int64), lengths),
            np.concatenate([np.empty(0, np.int64), *(bundle.targets for _, bundle in found)]),
            *(np.repeat(values, lengths) for values in (self.weights[places], psps, self.traces[places])),
        )

    def add_missing(self, sources: Iterable[int], targets: Ids, weight: np.float32, psp: np.float32) -> dict[int, int]:
        """Make what is missing between ``sources`` and ``targets``; how many by source, of those that got some."""
        found: dict[int, int] = {}
        listed, values = targets.tolist(), (weight, psp, np.float32(0))
        for source in sources:
            reached = self._reached.get(source)
            if reached is None:
                self._add(source, targets, listed, values)
                found[source] = len(listed)
            elif new := [one for one in listed if one not in reached]:
                self._add(source, np.array(new, np.int64), new, values)
                found[source] = len(new)
        return found

    def add(self, made: Synapses) -> None:
        """Add synapses between which there are none."""
        bundles: dict[tuple[int, bytes], list[int]] = {}
        values = np.stack([made.weights, made.psps, made.traces], axis=1)
        for source, target, own in zip(made.sources.tolist(), made.targets.tolist(), values, strict=True):
            bundles.setdefault((source, own.tobytes()), []).append(target)
        for (source, alike), targets in bundles.items():
            self._add(source, np.array(targets, np.int64), targets, np.frombuffer(alike, np.float32))

    def _add(self, source: int, targets: Ids, listed: Sequence[int], values: Iterable[np.float32]) -> None:
        """Add a bundle; ``listed``: its targets once more."""
        if not self._free:
            size = len(self.weights)
            self._free += range(size, 2 * size)
            self.weights, self.traces = (
                np.concatenate([one, np.zeros_like(one)]) for one in (self.weights, self.traces)
            )
        place = self._free.pop()
        self.weights[place], psp, self.traces[place] = values
        self._bundles.setdefault(source, []).append(Bundle(targets, psp, place))
        self._reached.setdefault(source, set()).update(listed)
        for target in listed:
            if target >= FIRST_MEMORY_ID:
                self._senders.setdefault(target, set()).add(source)

    def remove(self, gone: Iterable[int]) -> set[int]:
        """Take away the synapses of memories that are ``gone``; returns the other sources that had some."""
        senders: set[int] = set()
        for one in gone:
            for bundle in self._bundles.pop(one, ()):
                self._free.append(bundle.place)
            for target in self._reached.pop(one, ()):
                if target >= FIRST_MEMORY_ID:
                    self._senders[target].discard(one)
            for sender in self._senders.pop(one, ()):
                self._forget(sender, one)
                senders.add(sender)
        return senders.difference(gone)

    def _forget(self, source: int, target: int) -> None:
        self._reached[source].remove(target)
        kept = []
        for bundle in self._bundles[source]:
            bundle.targets = bundle.targets[bundle.targets != target]
            if len(bundle.targets):
                kept.append(bundle)
            else:
                self._free.append(bundle.place)
        self._bundles[source] = kept
