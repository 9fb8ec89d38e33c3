"""What engines share of a run: a loop of steps, recordings, and telling the caller of bursts done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np

from burstproof.engine.protocol import Progress
from burstproof.engine.state import Burst, Record, Recording


def record_steps(coming: range, step: Callable[[int], Burst], record: Record, progress: Progress | None) -> Recording:
    """Call ``step`` with each ``coming`` burst's number, and keep what is asked for."""
    done: list[Burst] = []
    for number in coming:
        burst = step(number)
        if record is not Record.NONE:
            done.append(burst)
        if progress is not None:
            progress(1)
    return recording_of(done, record)


def recording_of(bursts: list[Burst], record: Record) -> Recording:
    """The recording that ``bursts`` make up."""
    fired = bursts if record is Record.FIRED else []
    return Recording(
        bursts=np.array([b.number for b in bursts], np.int64),
        fired_counts=np.array([len(b.fired_ids) for b in bursts], np.int64),
        candidate_counts=np.array([b.candidates for b in bursts], np.int64),
        fired_ids=np.concatenate([np.empty(0, np.uint32), *(b.fired_ids for b in fired)]),
        fired_potentials=np.concatenate([np.empty(0, np.float32), *(b.fired_potentials for b in fired)]),
    )


def joined(pieces: Sequence[Recording]) -> Recording:
    """Consecutive recordings as one; a single piece is not copied."""
    if len(pieces) == 1:
        return pieces[0]
    parts = [recording_of([], Record.NONE), *pieces]
    columns = ([getattr(part, item.name) for part in parts] for item in fields(Recording))
    return Recording(*(np.concatenate(column) for column in columns))


def tell(progress: Progress | None, bursts: int, settle: Callable[[], None]) -> None:
    """Call ``progress`` with ``bursts``; if it raises, ``settle`` what is under way, then pass on what it raised."""
    if progress is None:
        return
    try:
        progress(bursts)
    except BaseException:
        settle()
        raise
