"""Memory areas on the host: the life of memory neurons (FEATURES section 7.2), their injections, firings and replays.

No step depends on how many memories live: a burst looks at the patterns of each area, at what is due in it, and at the
memories that fire. A short-term memory's end is known when it is touched, so those that end in a burst lie in a bucket.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.patterns import NOBODY, Fired, Window, key_of
from burstproof.network.features import (
    FIRST_MEMORY_ID,
    LONGEST_LIFESPAN,
    Features,
    MemoryArea,
    MemoryChange,
    ModulatorKind,
)
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

INJECTED = np.float32(1.5)
"""What a pattern puts into its memory neuron."""

_THRESHOLD, _ZERO, _ONE = np.float32(1), np.float32(0), np.float32(1)


@dataclass(slots=True)
class Memory:
    """A live memory neuron.

    A short-term one has the lifespan ``mark`` - b after burst b, at least 0; a long-term one keeps ``mark`` as it is.
    ``frames`` is what it replays, and ``replayed`` the neurons of the twin areas for each of them.
    """

    number: int
    area: int
    key: int
    mark: int
    created: int
    last_activation: int
    frames: list[list[Fired]] = field(default_factory=list)
    replayed: list[tuple[npt.NDArray[np.uint32], list[npt.NDArray[np.int64]]]] = field(default_factory=list)
    activations: int = 1
    longterm: bool = False
    v: np.float32 = _ZERO
    last_fired: int = 0
    twin: int = -1
    twin_due: bool = False

    def lifespan(self, burst: int) -> int:
        """Bursts to live, after ``burst``."""
        return self.mark if self.longterm else max(self.mark - burst, 0)


@dataclass(frozen=True, slots=True)
class Injection:
    """What a pattern does to its memory; ``learnt`` are frames whose potentials are averaged then."""

    memory: Memory
    learnt: Window | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """Dense ``neurons`` (V,) uint32 that are forced with ``potentials`` (V,), or get them added if ``adds``."""

    neurons: npt.NDArray[np.uint32]
    potentials: npt.NDArray[np.float32]
    adds: bool


class AreaLife:
    """The memories of one area; ``upstream`` and ``twins`` are those of its ``MemoryArea``."""

    def __init__(self, index: int, area: MemoryArea, features: Features, network: Network) -> None:
        self.index, self.area = index, area
        self.by_key: dict[int, Memory] = {}
        self.upstream = tuple(sorted(area.upstream))
        self.keeps_frames = bool(area.twins) and area.change is MemoryChange.NONE
        own = features.areas[index].modulators
        formation = ModulatorKind.MEMORY_FORMATION
        self.formation = [position for position in own if features.modulators[position].kind is formation]
        flags = {one.index: one for one in network.areas}.get(index)
        self.mp_driven = bool(flags and flags.mp_driven_psp)
        self.queue: list[tuple[bool, int, int]] = []
        self.to_promote: list[Memory] = []
        self._voxels = {one: _voxel_neurons(network, one, area.twins.get(one)) for one in self.upstream}

    def replayed(self, frame: list[Fired]) -> tuple[npt.NDArray[np.uint32], list[npt.NDArray[np.int64]]]:
        """Dense neurons that a frame forces, in order, and for each upstream area the voxels they stand for."""
        neurons, places = [np.empty(0, np.uint32)], []
        for upstream, fired in zip(self.upstream, frame, strict=True):
            table = self._voxels[upstream]
            found = [(twin, at) for at, one in enumerate(fired.ids.tolist()) for twin in table.get(one, ())]
            neurons.append(np.array([twin for twin, _ in found], np.uint32))
            places.append(np.array([at for _, at in found], np.int64))
        return np.concatenate(neurons), places

    def enqueue(self, memory: Memory) -> None:
        """Remember in which order memories make room; what has become untrue is passed over when it comes up."""
        if self.area.neuron_cap and self.area.evicts:
            order = memory.last_activation if memory.longterm else memory.mark
            heapq.heappush(self.queue, (memory.longterm, order, memory.number))

    def least_used(self, live: Mapping[int, Memory]) -> Memory:
        """The short-term memory with the least lifespan, else the long-term one longest without activation."""
        while True:
            longterm, order, number = heapq.heappop(self.queue)
            memory = live.get(number)
            if memory is None or memory.longterm != longterm:
                continue
            if order == (memory.last_activation if longterm else memory.mark):
                return memory


class Memories:
    """All memory areas of a network; ``arriving`` holds sums that arrive in the next burst, by memory."""

    def __init__(self, network: Network, fixed_point: FixedPoint) -> None:
        features = network.features
        found = {index: area.memory for index, area in features.areas.items() if area.memory is not None}
        order = [index for index in features.memory_order if index in found]
        order += sorted(found.keys() - set(order))
        self.areas = {index: AreaLife(index, found[index], features, network) for index in order}
        self.upstream = sorted({one for life in self.areas.values() for one in life.upstream})
        self.keeps_frames = any(life.keeps_frames for life in self.areas.values())
        self.depth = max((life.area.temporal_depth for life in self.areas.values()), default=1)
        self.live: dict[int, Memory] = {}
        self.next_id = FIRST_MEMORY_ID
        self.frames: deque[Mapping[int, Fired]] = deque(maxlen=self.depth)
        self.injections: dict[int, list[Injection]] = {}
        self.replays: dict[int, list[Replay]] = {}
        self.arriving: dict[int, int] = {}
        self.twins_due: dict[int, Memory] = {}
        self.gone: list[int] = []
        self._ends: dict[int, list[Memory]] = {}
        self._unit = fixed_point.unit
        self._amount = int(fixed_point.quantise(np.array([INJECTED]))[0][0])
        self._injected = self._potential(self._amount)

    # 7.3: firing

    def fire(self, burst: int) -> tuple[list[Memory], list[np.float32], int]:
        """Memories that fire in ``burst``, ids ascending, their potentials, and how many were candidates."""
        sums, self.arriving = self.arriving, {}
        injected = set()
        for injection in self.injections.pop(burst, ()):
            memory = injection.memory
            if memory.number not in self.live:
                continue
            if injection.learnt is not None:
                memory.frames = [_averaged(*pair) for pair in zip(memory.frames, injection.learnt, strict=True)]
            injected.add(memory.number)
            sums[memory.number] = sums.get(memory.number, 0) + self._amount
        fired, potentials = [], []
        for number in sorted(sums):
            memory, units = self.live[number], sums[number]
            total = self._injected if units == self._amount else self._potential(units)
            if number not in injected:
                memory.v = total = memory.v + total
                if not total >= _THRESHOLD:
                    continue
                memory.v = _ZERO
            memory.last_fired = burst
            fired.append(memory)
            potentials.append(total)
        return fired, potentials, len(sums)

    def _potential(self, units: int) -> np.float32:
        """A sum as a potential."""
        return np.float32(np.int64(units).astype(np.float32) * self._unit)

    # 7.6 and 7.7: replay

    def replay(self, burst: int, fired: Iterable[Memory], potentials: Iterable[np.float32], flags: bool) -> None:
        """Put the frames of the memories that fired in ``burst`` under way; ``flags``: areas have psp flags."""
        if not self.keeps_frames:
            return
        for memory, potential in zip(fired, potentials, strict=True):
            if not memory.replayed:
                continue
            life = self.areas[memory.area]
            held = potential if life.mp_driven and flags else _ONE
            for at, (neurons, places) in enumerate(memory.replayed):
                if not len(neurons):
                    continue
                values = np.full(len(neurons), held, np.float32)
                if life.area.mp_learning:
                    frame = memory.frames[at]
                    values = np.concatenate([part.potentials[own] for part, own in zip(frame, places, strict=True)])
                self.replays.setdefault(burst + at + 1, []).append(Replay(neurons, values, life.area.mp_learning))

    # 7.2: life

    def after(
        self, burst: int, frame: Mapping[int, Fired], signals: npt.NDArray[np.float32], early: Iterable[int]
    ) -> list[Memory]:
        """Patterns that end in ``burst`` and the life of all memories; returns those whose twins are added now.

        ``frame`` is what fired upstream; a twin comes a burst after its memory became long-term, in ``early`` areas
        at once.
        """
        early = set(early)
        self.frames.append(frame)
        waiting = set(self.twins_due)
        for life in self.areas.values():
            self._promote(life, burst)
            self._recognise(life, burst, signals, burst + 1 if life.index in early else burst + 2)
        for memory in self._ends.pop(burst, ()):
            if memory.number in self.live and not memory.longterm and _end(memory) == burst:
                self._forget(memory)
        if not self.twins_due:
            return []
        due = [memory for memory in self.twins_due.values() if memory.number in waiting or memory.area in early]
        for memory in due:
            del self.twins_due[memory.number]
        return sorted(due, key=lambda memory: memory.number)

    def _promote(self, life: AreaLife, burst: int) -> None:
        candidates, life.to_promote = life.to_promote, []
        for memory in candidates:
            lifespan = memory.lifespan(burst - 1)
            if memory.number not in self.live or memory.longterm or lifespan < life.area.longterm_threshold:
                continue
            memory.mark, memory.longterm, memory.twin_due = lifespan, True, True
            self.twins_due[memory.number] = memory
            life.enqueue(memory)

    def _recognise(self, life: AreaLife, burst: int, signals: npt.NDArray[np.float32], due: int) -> None:
        area = life.area
        if len(self.frames) < area.temporal_depth:
            return
        recent = list(self.frames)[-area.temporal_depth :]
        window = [[frame.get(index, NOBODY) for index in life.upstream] for frame in recent]
        key = key_of(area, window)
        if key is None:
            return
        memory = life.by_key.get(key)
        if memory is not None:
            memory.activations += 1
            memory.last_activation = burst
            if not memory.longterm:
                memory.mark = min(memory.lifespan(burst - 1) + area.lifespan_growth, LONGEST_LIFESPAN) + burst
                self._schedule(life, memory)
            life.enqueue(memory)
            self.inject(due, Injection(memory, window if area.mp_learning and memory.frames else None))
            return
        if not self._may_form(life, signals):
            return
        memory = Memory(self.next_id, life.index, key, burst + area.init_lifespan, burst, burst)
        if life.keeps_frames:
            self.keep_frames(memory, window)
        self.next_id += 1
        self.live[memory.number] = life.by_key[key] = memory
        self._schedule(life, memory)
        life.enqueue(memory)
        self.inject(due, Injection(memory))

    def keep_frames(self, memory: Memory, window: Window) -> None:
        """Let ``memory`` replay ``window``."""
        life = self.areas[memory.area]
        memory.frames = [list(frame) for frame in window]
        memory.replayed = [life.replayed(frame) for frame in memory.frames]

    def inject(self, due: int, injection: Injection) -> None:
        """Put an injection under way."""
        self.injections.setdefault(due, []).append(injection)

    def _may_form(self, life: AreaLife, signals: npt.NDArray[np.float32]) -> bool:
        factor = _ONE
        for position in life.formation:
            factor = factor * (_ONE + signals[position])
        if not factor > 0:
            return False
        cap = life.area.neuron_cap
        if cap and len(life.by_key) >= cap:
            if not life.area.evicts:
                return False
            self._forget(life.least_used(self.live))
        return True

    def _schedule(self, life: AreaLife, memory: Memory) -> None:
        """Note when a short-term memory ends unless it is touched again, and that it may have become long-term."""
        self._ends.setdefault(_end(memory), []).append(memory)
        life.to_promote.append(memory)

    def take(self, memory: Memory) -> None:
        """Add a memory of a restored state."""
        life = self.areas[memory.area]
        self.live[memory.number] = life.by_key[memory.key] = memory
        if not memory.longterm:
            self._schedule(life, memory)
        if memory.twin_due:
            self.twins_due[memory.number] = memory
        life.enqueue(memory)

    def _forget(self, memory: Memory) -> None:
        """A memory goes, with what is under way to it and its injections."""
        del self.live[memory.number], self.areas[memory.area].by_key[memory.key]
        self.arriving.pop(memory.number, None)
        self.twins_due.pop(memory.number, None)
        self.gone.append(memory.number)


def _end(memory: Memory) -> int:
    """The burst after which a short-term memory is gone: not that of its last activation."""
    return max(memory.mark, memory.last_activation + 1)


def _averaged(stored: list[Fired], new: Iterable[Fired]) -> list[Fired]:
    two = np.float32(2)
    return [Fired(old.ids, (old.potentials + found.potentials) / two) for old, found in zip(stored, new, strict=True)]


def _voxel_neurons(network: Network, upstream: int, twin: int | None) -> dict[int, list[int]]:
    """Valid neurons of the twin area in the voxel of each neuron of the upstream area."""
    if twin is None:
        return {}
    table = network.neurons
    by_voxel: dict[tuple[int, ...], list[int]] = {}
    for one in np.flatnonzero((table.cortical_areas == twin) & table.valid_mask).tolist():
        by_voxel.setdefault(tuple(table.coordinates[one].tolist()), []).append(one)
    own = np.flatnonzero(table.cortical_areas == upstream).tolist()
    return {one: by_voxel.get(tuple(table.coordinates[one].tolist()), []) for one in own}
