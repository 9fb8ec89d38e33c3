"""Memory areas of the reference: FEATURES.md section 7, in the order of its text.

A memory neuron is a record, not a row of the neuron table; dense neurons (twins, voxels) belong to the engine. What the
text leaves open is defined here: areas assign ids in the order of ``Features.memory_order``. Of short-term neurons with
equal lifespans the one with the lowest id is evicted first; of long-term neurons the one with the earliest last
activation, then the one with the lowest id. Replays keep the order of their causes.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from burstproof.engine.reference_features import ONE, ZERO, Modulators
from burstproof.network.features import FIRST_MEMORY_ID, Features, MemoryArea, MemoryChange, ModulatorKind

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Frame = dict[int, tuple[Ids, Floats]]
"""Firings of one burst by upstream area: ids, ascending, and their potentials."""

INJECTED, MEMORY_THRESHOLD = np.float32(1.5), np.float32(1)
REPLAYED = np.float32(1)
LONGEST_LIFESPAN = 2**32 - 1


@dataclass
class Memory:
    """A live memory neuron; ``twin`` is the id of its dense neuron, ``twin_due``: it has yet to be added."""

    area: int
    key: int
    lifespan: int
    created: int
    last_activation: int
    frames: list[Frame]
    activations: int = 1
    longterm: bool = False
    v: np.float32 = ZERO
    last_fired: int = 0
    twin: int | None = None
    twin_due: bool = False


@dataclass(frozen=True)
class Injection:
    """An input to ``memory`` in burst ``due``, caused by its pattern; ``learnt``: potentials to average then."""

    due: int
    memory: int
    learnt: list[Frame] | None = None


@dataclass(frozen=True)
class Replay:
    """In burst ``due`` a memory forces ``neuron`` to fire with ``potential``, or ``adds`` it to the neuron's sum."""

    due: int
    neuron: int
    potential: np.float32
    adds: bool


@dataclass
class Memories:
    """Section 7 of one network; ``arriving``: the sums of the next burst, by memory."""

    features: Features
    live: dict[int, Memory] = field(default_factory=dict)
    next_id: int = FIRST_MEMORY_ID
    frames: list[Frame] = field(default_factory=list)
    injections: list[Injection] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)
    arriving: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = {index: area.memory for index, area in self.features.areas.items() if area.memory is not None}
        ordered = [index for index in self.features.memory_order if index in found]
        self.areas: dict[int, MemoryArea] = {
            index: found[index] for index in [*ordered, *sorted(found.keys() - set(ordered))]
        }
        self.longest_depth = max((area.temporal_depth for area in self.areas.values()), default=1)

    # 7.1 and 7.7: patterns -------------------------------------------------------------------------------------

    def remember(self, fired: Ids, potentials: Floats, areas: npt.NDArray[np.uint32]) -> None:
        """Keep this burst's firings of upstream areas; ``areas`` are those of the fired neurons."""
        upstream = sorted({one for area in self.areas.values() for one in area.upstream})
        frame = {index: (fired[areas == index], potentials[areas == index]) for index in upstream}
        self.frames = [*self.frames, frame][-self.longest_depth :]

    def window(self, area: MemoryArea) -> list[Frame]:
        """The last D bursts of an area's upstream areas, the oldest first; empty before D bursts are known."""
        if len(self.frames) < area.temporal_depth:
            return []
        return [{index: frame[index] for index in area.upstream} for frame in self.frames[-area.temporal_depth :]]

    def key_of(self, area: MemoryArea, window: list[Frame]) -> int | None:
        """The key of a pattern, or ``None`` if there is nothing to remember."""
        if area.change is MemoryChange.NONE:
            lists = [ids for frame in window for _, (ids, _) in sorted(frame.items())]
            if not any(len(ids) for ids in lists):
                return None
            return digest(b"".join(struct.pack("<I", len(ids)) + ids.astype("<u4").tobytes() for ids in lists))
        steps = [self.step_of(area, *pair) for pair in pairwise(window)]
        buckets = [bucket for step in steps for bucket in step]
        if not any(buckets):
            return None
        packed = bytes([1 if area.change is MemoryChange.DIFFERENTIAL else 2])
        for found in buckets:
            packed += struct.pack("<I", len(found)) + b"".join(struct.pack("<Iq", *pair) for pair in found)
        return digest(packed)

    def step_of(self, area: MemoryArea, old: Frame, new: Frame) -> list[list[tuple[int, int]]]:
        """Buckets of the step between two bursts, by upstream area: pairs of id and bucket, ids ascending."""
        found = []
        for index in sorted(area.upstream):
            before, after = ({int(i): float(p) for i, p in zip(*frame[index], strict=True)} for frame in (old, new))
            if area.change is MemoryChange.DIFFERENTIAL:
                size = float(np.float32(area.delta_quantization))
                ids = sorted(before.keys() | after.keys())
                found.append([(i, half_away((after.get(i, 0.0) - before.get(i, 0.0)) / size)) for i in ids])
            else:
                size = math.log1p(float(np.float32(area.ratio_quantization)) / 100)
                ids = sorted(i for i in before.keys() & after.keys() if before[i] > 0 and after[i] > 0)
                found.append([(i, half_away(math.log(after[i] / before[i]) / size)) for i in ids])
        return found

    # 7.2: life --------------------------------------------------------------------------------------------------

    def of_area(self, index: int) -> dict[int, Memory]:
        """Live memories of an area, ids ascending."""
        return {number: one for number, one in self.live.items() if one.area == index}

    def after(self, burst: int, modulators: Modulators, early: Ids) -> list[int]:
        """Patterns that end in this burst, and the life of all memories.

        Areas in ``early`` inject in the next burst. Returns the memories whose twins are added now: one burst after
        they became long-term, in ``early`` areas at once.
        """
        waiting = [number for number, one in self.live.items() if one.twin_due]
        for index, area in self.areas.items():
            self.promote(index, area)
            touched = self.recognise(index, area, burst, modulators, early)
            self.age(index, touched)
        due = [number for number, one in self.live.items() if one.twin_due]
        return [number for number in due if number in waiting or self.live[number].area in early]

    def promote(self, index: int, area: MemoryArea) -> None:
        """(i) Short-term neurons whose lifespan reaches the threshold become long-term."""
        for one in self.of_area(index).values():
            if not one.longterm and one.lifespan >= area.longterm_threshold:
                one.longterm = one.twin_due = True

    def recognise(self, index: int, area: MemoryArea, burst: int, modulators: Modulators, early: Ids) -> int | None:
        """(ii) The memory of this burst's pattern, existing or new; ``None`` without one."""
        window = self.window(area)
        key = self.key_of(area, window)
        if key is None:
            return None
        due = burst + 1 if index in early else burst + 2
        for number, one in self.of_area(index).items():
            if one.key == key:
                one.activations += 1
                one.last_activation = burst
                if not one.longterm:
                    one.lifespan = min(one.lifespan + area.lifespan_growth, LONGEST_LIFESPAN)
                self.injections.append(Injection(due, number, window if area.mp_learning and one.frames else None))
                return number
        if not self.forms(index, area, modulators):
            return None
        number, self.next_id = self.next_id, self.next_id + 1
        kept = window if area.twins and area.change is MemoryChange.NONE else []
        self.live[number] = Memory(index, key, area.init_lifespan, burst, burst, kept)
        self.injections.append(Injection(due, number))
        return number

    def forms(self, index: int, area: MemoryArea, modulators: Modulators) -> bool:
        """Whether a new neuron can be formed; at the cap another one may be evicted for it."""
        formation = modulators.product(modulators.of_kind(index, ModulatorKind.MEMORY_FORMATION))
        if np.clip(formation, ZERO, ONE) == 0:
            return False
        found = self.of_area(index)
        if area.neuron_cap and len(found) >= area.neuron_cap:
            if not area.evicts:
                return False
            self.forget(min(found, key=lambda number: least_used(number, found[number])))
        return True

    def age(self, index: int, touched: int | None) -> None:
        """(iii) Lifespans of short-term neurons other than ``touched`` shrink by 1; at 0 a neuron is forgotten."""
        for number, one in self.of_area(index).items():
            if not one.longterm and number != touched:
                one.lifespan = max(one.lifespan - 1, 0)
                if one.lifespan == 0:
                    self.forget(number)

    def forget(self, number: int) -> None:
        """Remove a neuron, with its arriving sum and its pending injections."""
        del self.live[number]
        self.arriving.pop(number, None)
        self.injections = [one for one in self.injections if one.memory != number]

    # 7.3: firing ------------------------------------------------------------------------------------------------

    def due_injections(self, burst: int) -> list[int]:
        """Memories to inject in this burst, once for each injection; averages the potentials that they learnt."""
        due = [one for one in self.injections if one.due == burst]
        self.injections = [one for one in self.injections if one.due != burst]
        for one in due:
            if one.learnt is not None:
                memory = self.live[one.memory]
                memory.frames = [averaged(*pair) for pair in zip(memory.frames, one.learnt, strict=True)]
        return [one.memory for one in due]

    def fire(self, burst: int, sums: dict[int, np.float32], injected: set[int]) -> tuple[Ids, Floats]:
        """Memories that fire with these sums; injected ones always fire."""
        fired: dict[int, np.float32] = {}
        for number, total in sorted(sums.items()):
            memory = self.live[number]
            if number in injected:
                fired[number] = total
            else:
                memory.v = memory.v + total
                if memory.v >= MEMORY_THRESHOLD:
                    fired[number], memory.v = memory.v, ZERO
        for number in fired:
            self.live[number].last_fired = burst
        return np.array(list(fired), np.int64), np.array(list(fired.values()), np.float32)

    # 7.6 and 7.7: replay ----------------------------------------------------------------------------------------

    def due_replays(self, burst: int) -> list[Replay]:
        """Replays of this burst, in the order of their causes."""
        due = [one for one in self.replays if one.due == burst]
        self.replays = [one for one in self.replays if one.due != burst]
        return due


def digest(packed: bytes) -> int:
    """XXH64 with seed 0."""
    import xxhash

    return xxhash.xxh64_intdigest(packed, 0)


def half_away(value: float) -> int:
    """The nearest integer of 64 bits, halves away from 0; 0 for NaN."""
    if math.isnan(value):
        return 0
    if abs(value) >= 2.0**63:
        return 2**63 - 1 if value > 0 else -(2**63)
    whole = math.trunc(value)
    return whole + (abs(value - whole) >= 0.5) * (1 if value > 0 else -1)


def least_used(number: int, memory: Memory) -> tuple[bool, int, int]:
    """Order of eviction: short-term memories by lifespan, then long-term ones by last activation."""
    return memory.longterm, memory.last_activation if memory.longterm else memory.lifespan, number


def averaged(stored: Frame, new: Frame) -> Frame:
    """(stored + new) / 2 of a frame's potentials."""
    return {index: (ids, (potentials + new[index][1]) / np.float32(2)) for index, (ids, potentials) in stored.items()}
