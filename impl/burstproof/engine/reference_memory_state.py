"""Memories of the reference as the canonical arrays of ``MemoryState``, and back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import MemoryState
from burstproof.engine.reference_memory import Frame, Injection, Memories, Memory, Replay

Floats = npt.NDArray[np.float32]


def state_of(memories: Memories, burst: int, oldest_firing: int, twins: list[tuple[int, int]]) -> MemoryState:
    """The state after ``burst``; firings before ``oldest_firing`` are dropped; ``twins``: areas and memories."""
    if not memories.areas:
        return MemoryState()
    live = sorted(memories.live.items())
    ones = [one for _, one in live]
    history = min(len(memories.frames), memories.longest_depth - 1)
    past = memories.frames[len(memories.frames) - history :]
    recent = [(burst - history + 1 + at, *row) for at, frame in enumerate(past) for row in _by_id(frame)]
    frames = [(number, *row) for number, one in live for row in _voxels(one.frames)]
    injections = sorted(memories.injections, key=lambda one: one.due)
    learnt = [row[-1] for one in injections if one.learnt is not None for row in _voxels(one.learnt)]
    replays = sorted(memories.replays, key=lambda one: one.due)
    return MemoryState(
        next_id=memories.next_id,
        history_bursts=history,
        ids=np.array([number for number, _ in live], np.uint32),
        areas=np.array([one.area for one in ones], np.uint32),
        keys=np.array([one.key for one in ones], np.uint64),
        lifespans=np.array([one.lifespan for one in ones], np.uint32),
        activation_counts=np.array([one.activations for one in ones], np.uint32),
        longterm=np.array([one.longterm for one in ones], np.bool_),
        twin_due=np.array([one.twin_due for one in ones], np.bool_),
        created=np.array([one.created for one in ones], np.int64),
        last_activations=np.array([one.last_activation for one in ones], np.int64),
        potentials=np.array([one.v for one in ones], np.float32),
        last_fired=np.array([one.last_fired * (one.last_fired >= oldest_firing) for one in ones], np.int64),
        twins=np.array([-1 if one.twin is None else one.twin for one in ones], np.int64),
        arriving=np.array([memories.arriving.get(number, 0) for number, _ in live], np.int64),
        arriving_candidate=np.array([number in memories.arriving for number, _ in live], np.bool_),
        frame_memories=np.array([row[0] for row in frames], np.uint32),
        frame_bursts=np.array([row[1] for row in frames], np.uint32),
        frame_areas=np.array([row[2] for row in frames], np.uint32),
        frame_ids=np.array([row[3] for row in frames], np.uint32),
        frame_potentials=np.array([row[4] for row in frames], np.float32),
        recent_bursts=np.array([row[0] for row in recent], np.int64),
        recent_ids=np.array([row[1] for row in recent], np.uint32),
        recent_areas=np.array([row[2] for row in recent], np.uint32),
        recent_potentials=np.array([row[3] for row in recent], np.float32),
        injection_bursts=np.array([one.due for one in injections], np.int64),
        injection_memories=np.array([one.memory for one in injections], np.uint32),
        injection_learns=np.array([one.learnt is not None for one in injections], np.bool_),
        learnt_potentials=np.array(learnt, np.float32),
        replay_bursts=np.array([one.due for one in replays], np.int64),
        replay_neurons=np.array([one.neuron for one in replays], np.uint32),
        replay_potentials=np.array([one.potential for one in replays], np.float32),
        replay_adds=np.array([one.adds for one in replays], np.bool_),
        twin_areas=np.array([area for area, _ in twins], np.uint32),
        twin_memories=np.array([memory for _, memory in twins], np.uint32),
    )


def restore(memories: Memories, state: MemoryState, burst: int) -> None:
    """Put ``memories`` into the state after ``burst``."""
    if not memories.areas:
        return
    memories.next_id = state.next_id
    memories.live = {}
    for row, number in enumerate(state.ids.tolist()):
        area = int(state.areas[row])
        memories.live[number] = Memory(
            area=area,
            key=int(state.keys[row]),
            lifespan=int(state.lifespans[row]),
            created=int(state.created[row]),
            last_activation=int(state.last_activations[row]),
            frames=_frames(memories, state, number, area),
            activations=int(state.activation_counts[row]),
            longterm=bool(state.longterm[row]),
            v=state.potentials[row],
            last_fired=int(state.last_fired[row]),
            twin=None if state.twins[row] < 0 else int(state.twins[row]),
            twin_due=bool(state.twin_due[row]),
        )
    upstream = sorted({one for area in memories.areas.values() for one in area.upstream})
    first = burst - state.history_bursts + 1
    memories.frames = [
        {
            index: _rows(state.recent_ids, state.recent_potentials, (state.recent_areas == index) & then)
            for index in upstream
        }
        for then in (state.recent_bursts == number for number in range(first, burst + 1))
    ]
    memories.injections = list(_injections(memories, state))
    replays = state.replay_bursts, state.replay_neurons, state.replay_potentials, state.replay_adds
    memories.replays = [
        Replay(int(due), int(neuron), potential, bool(adds))
        for due, neuron, potential, adds in zip(*replays, strict=True)
    ]
    candidates = state.arriving_candidate
    memories.arriving = dict(zip(state.ids[candidates].tolist(), state.arriving[candidates].tolist(), strict=True))


def _rows(
    ids: npt.NDArray[np.uint32], potentials: Floats, chosen: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], Floats]:
    return ids[chosen].astype(np.int64), potentials[chosen]


def _by_id(frame: Frame) -> list[tuple[int, int, np.float32]]:
    """Id, area and potential of all firings of a burst, by id."""
    return sorted((int(i), index, p) for index, fired in frame.items() for i, p in zip(*fired, strict=True))


def _voxels(frames: list[Frame]) -> Iterator[tuple[int, int, int, np.float32]]:
    """Index of the burst, area, id and potential of all voxels of a pattern."""
    for at, frame in enumerate(frames):
        for index, (ids, potentials) in sorted(frame.items()):
            for number, potential in zip(ids.tolist(), potentials, strict=True):
                yield at, index, number, potential


def _frames(memories: Memories, state: MemoryState, number: int, index: int) -> list[Frame]:
    """The frames of a memory; empty if its area replays nothing."""
    area = memories.areas[index]
    own = state.frame_memories == number
    if not own.any():
        return []
    return [
        {
            one: _rows(
                state.frame_ids, state.frame_potentials, own & (state.frame_bursts == at) & (state.frame_areas == one)
            )
            for one in area.upstream
        }
        for at in range(area.temporal_depth)
    ]


def _injections(memories: Memories, state: MemoryState) -> Iterator[Injection]:
    """Pending injections; learnt potentials have the form of the memory's frames."""
    at = 0
    columns = state.injection_bursts, state.injection_memories, state.injection_learns
    for due, number, learns in zip(*(column.tolist() for column in columns), strict=True):
        if not learns:
            yield Injection(due, number)
            continue
        learnt: list[Frame] = []
        for frame in memories.live[number].frames:
            learnt.append({})
            for index, (ids, _) in sorted(frame.items()):
                learnt[-1][index] = ids, state.learnt_potentials[at : at + len(ids)].copy()
                at += len(ids)
        yield Injection(due, number, learnt)
