"""Memories as the canonical arrays of ``MemoryState``, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import MemoryState
from burstproof.engine.features.memories import Injection, Memories, Memory, Replay
from burstproof.engine.features.patterns import NOBODY, Fired, Window

Mask = npt.NDArray[np.bool_]


def state_of_memories(
    memories: Memories, burst: int, oldest: int, twin_areas: Sequence[int], twin_memories: Sequence[int]
) -> MemoryState:
    """The state after ``burst``; firings before burst ``oldest`` matter no more."""
    if not memories.areas:
        return MemoryState()
    ones = [memories.live[number] for number in sorted(memories.live)]
    injections = [
        (due, one)
        for due in sorted(memories.injections)
        for one in memories.injections[due]
        if one.memory.number in memories.live
    ]
    learnt = [window for _, one in injections if (window := one.learnt) is not None]
    replays = [(due, one) for due in sorted(memories.replays) for one in memories.replays[due]]
    arriving = memories.arriving
    return MemoryState(
        next_id=memories.next_id,
        **_recent(memories, burst),
        ids=np.array([one.number for one in ones], np.uint32),
        areas=np.array([one.area for one in ones], np.uint32),
        keys=np.array([one.key for one in ones], np.uint64),
        lifespans=np.array([one.lifespan(burst) for one in ones], np.uint32),
        activation_counts=np.array([one.activations for one in ones], np.uint32),
        longterm=np.array([one.longterm for one in ones], np.bool_),
        twin_due=np.array([one.twin_due for one in ones], np.bool_),
        created=np.array([one.created for one in ones], np.int64),
        last_activations=np.array([one.last_activation for one in ones], np.int64),
        potentials=np.array([one.v for one in ones], np.float32),
        last_fired=np.array([one.last_fired * (one.last_fired >= oldest) for one in ones], np.int64),
        twins=np.array([one.twin for one in ones], np.int64),
        arriving=np.array([arriving.get(one.number, 0) for one in ones], np.int64),
        arriving_candidate=np.array([one.number in arriving for one in ones], np.bool_),
        **_frames(memories, ones),
        injection_bursts=np.array([due for due, _ in injections], np.int64),
        injection_memories=np.array([one.memory.number for _, one in injections], np.uint32),
        injection_learns=np.array([one.learnt is not None for _, one in injections], np.bool_),
        learnt_potentials=_joined([fired.potentials for one in learnt for frame in one for fired in frame], np.float32),
        replay_bursts=np.repeat(np.array([due for due, _ in replays], np.int64), [len(r.neurons) for _, r in replays]),
        replay_neurons=_joined([one.neurons for _, one in replays], np.uint32),
        replay_potentials=_joined([one.potentials for _, one in replays], np.float32),
        replay_adds=_joined([np.full(len(one.neurons), one.adds) for _, one in replays], np.bool_),
        twin_areas=np.array(twin_areas, np.uint32),
        twin_memories=np.array(twin_memories, np.uint32),
    )


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *parts])


def _recent(memories: Memories, burst: int) -> dict[str, Any]:
    """Firings of the past bursts that patterns still reach, by burst, then id."""
    history = min(len(memories.frames), memories.depth - 1)
    rows = []
    for number, frame in enumerate(list(memories.frames)[len(memories.frames) - history :], burst - history + 1):
        parts = [
            (number, one, area, p)
            for area, fired in frame.items()
            if area in memories.upstream
            for one, p in zip(fired.ids.tolist(), fired.potentials, strict=True)
        ]
        rows += sorted(parts, key=lambda row: (row[1], row[2]))
    return {
        "history_bursts": history,
        "recent_bursts": np.array([row[0] for row in rows], np.int64),
        "recent_ids": np.array([row[1] for row in rows], np.uint32),
        "recent_areas": np.array([row[2] for row in rows], np.uint32),
        "recent_potentials": np.array([row[3] for row in rows], np.float32),
    }


def _frames(memories: Memories, ones: Sequence[Memory]) -> dict[str, Any]:
    """What memories replay: a row for each voxel."""
    parts = [
        (one.number, at, area, fired)
        for one in ones
        for at, frame in enumerate(one.frames)
        for area, fired in zip(memories.areas[one.area].upstream, frame, strict=True)
    ]
    counts = [len(fired.ids) for *_, fired in parts]
    return {
        "frame_memories": np.repeat(np.array([part[0] for part in parts], np.uint32), counts),
        "frame_bursts": np.repeat(np.array([part[1] for part in parts], np.uint32), counts),
        "frame_areas": np.repeat(np.array([part[2] for part in parts], np.uint32), counts),
        "frame_ids": _joined([part[3].ids for part in parts], np.uint32),
        "frame_potentials": _joined([part[3].potentials for part in parts], np.float32),
    }


def restored_memories(memories: Memories, state: MemoryState, burst: int) -> Memories:
    """New ``memories`` in the state after ``burst``."""
    if not memories.areas:
        return memories
    memories.next_id = state.next_id
    for row, number in enumerate(state.ids.tolist()):
        longterm, lifespan = bool(state.longterm[row]), int(state.lifespans[row])
        memory = Memory(
            number=number,
            area=int(state.areas[row]),
            key=int(state.keys[row]),
            mark=lifespan if longterm else burst + lifespan,
            created=int(state.created[row]),
            last_activation=int(state.last_activations[row]),
            activations=int(state.activation_counts[row]),
            longterm=longterm,
            v=np.float32(state.potentials[row]),
            last_fired=int(state.last_fired[row]),
            twin=int(state.twins[row]),
            twin_due=bool(state.twin_due[row]),
        )
        own = state.frame_memories == number
        if own.any():
            memories.keep_frames(memory, _window_of(memories, memory, state, own))
        memories.take(memory)
    for number in range(burst - state.history_bursts + 1, burst + 1):
        then = state.recent_bursts == number
        areas = np.unique(state.recent_areas[then]).tolist()
        chosen = {area: then & (state.recent_areas == area) for area in areas}
        memories.frames.append(
            {area: Fired(state.recent_ids[own], state.recent_potentials[own]) for area, own in chosen.items()}
        )
    for due, injection in _injections(memories, state):
        memories.inject(due, injection)
    for row, due in enumerate(state.replay_bursts.tolist()):
        one = slice(row, row + 1)
        replay = Replay(state.replay_neurons[one], state.replay_potentials[one], bool(state.replay_adds[row]))
        memories.replays.setdefault(due, []).append(replay)
    candidates = state.arriving_candidate
    memories.arriving = dict(zip(state.ids[candidates].tolist(), state.arriving[candidates].tolist(), strict=True))
    return memories


def _window_of(memories: Memories, memory: Memory, state: MemoryState, own: Mask) -> Window:
    life = memories.areas[memory.area]

    def part(at: int, area: int) -> Fired:
        chosen = own & (state.frame_bursts == at) & (state.frame_areas == area)
        return Fired(state.frame_ids[chosen], state.frame_potentials[chosen]) if chosen.any() else NOBODY

    return [[part(at, area) for area in life.upstream] for at in range(life.area.temporal_depth)]


def _injections(memories: Memories, state: MemoryState) -> Iterator[tuple[int, Injection]]:
    at = 0
    columns = state.injection_bursts, state.injection_memories, state.injection_learns
    for due, number, learns in zip(*(column.tolist() for column in columns), strict=True):
        memory = memories.live[number]
        learnt: list[list[Fired]] = []
        for frame in memory.frames if learns else ():
            learnt.append([])
            for fired in frame:
                learnt[-1].append(Fired(fired.ids, state.learnt_potentials[at : at + len(fired.ids)].copy()))
                at += len(fired.ids)
        yield due, Injection(memory, learnt if learns else None)
