"""Writing of checkpoints during a run, and resuming from one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burstproof.engine.admission import check_state
from burstproof.engine.protocol import Engine
from burstproof.engine.recorder import joined
from burstproof.engine.sharded.checkpoint import (
    Checkpoint,
    check_identity,
    load_checkpoint,
    run_identity,
    save_checkpoint,
    stimulus_so_far,
)
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.state import Recording, StimulusPlan
from burstproof.errors import InputError, NetworkError

DEFAULT_EVERY = 1000
"""Default number of bursts between two checkpoints."""


@dataclass
class Checkpoints:
    """The checkpoints of a run of ``bursts`` bursts; without ``file`` and ``resume`` it does nothing.

    Attributes
    ----------
    bursts : int
    plan : StimulusPlan
    exchange : Exchange
    file : Path or None
        File to which checkpoints are written.
    every : int or None
        Bursts between two of them (``None``: 1000); another one follows the last burst.
    resume : Path or None
        The checkpoint to resume from.
    recorded : bool
        Whether the run records all its bursts.
    resumed_after : int or None
        Burst of the checkpoint that the run was resumed from.
    saved_after : int or None
        Burst of the last checkpoint that this process wrote.
    """

    bursts: int
    plan: StimulusPlan
    exchange: Exchange
    file: Path | None = None
    every: int | None = None
    resume: Path | None = None
    recorded: bool = False
    resumed_after: int | None = None
    saved_after: int | None = None
    _identity: dict[str, Any] = field(default_factory=dict)
    _begun: int = 0
    _refused: bool = False

    def __post_init__(self) -> None:
        self.every = None if self.file is None else self.every or DEFAULT_EVERY

    def begin(self, engine: Engine) -> list[Recording]:
        """Restore ``engine`` from the checkpoint to resume; returns its recording as a list of one or none.

        Raises
        ------
        CheckpointError
            The checkpoint is damaged or belongs to another run.
        InputError
            It has no recording though the run is recorded, or lies after the last burst.
        """
        if self.file is None and self.resume is None:
            return []
        self._identity = run_identity(engine.network, engine.options, engine.fixed_point)
        self._begun = begun = engine.network.burst_count
        if self.resume is None:
            return []
        where, found = str(self.resume), load_checkpoint(self.resume)
        reached = found.state.burst_count
        check_identity(found, {"network": self._identity["network"]}, where)
        if not self.allows(reached):  # before the identity, which would differ by the shorter stimulus
            raise InputError(
                f"the checkpoint is at burst {reached}, and the run is to end with burst {begun + self.bursts}",
                where=where,
                got=f"--bursts {self.bursts}",
                allowed=f"{reached - begun + 1} or more, counted from the beginning of the run",
                cure="Ask for more --bursts, or resume from an earlier checkpoint",
            )
        check_identity(found, {**self._identity, **stimulus_so_far(self.plan, reached)}, where)
        if self.recorded and found.recording is None:
            raise InputError(
                "the checkpoint holds no record of the bursts before it",
                where=where,
                cure="Leave out --record, or run from the beginning with --record and --checkpoint",
            )
        engine.restore(found.state)
        self.resumed_after = reached
        return [] if found.recording is None else [found.recording]

    def allows(self, reached: int) -> bool:
        """Whether a run can resume from burst ``reached``; from the last burst only to write the record."""
        end = self._begun + self.bursts
        return reached < end or (reached == end and self.recorded)

    def save_if_due(self, engine: Engine, recordings: Sequence[Recording] | None) -> str:
        """Write a checkpoint if one is due after the burst just done; one is always due after the last burst.

        A state from which no run could resume, as one with NaN, leaves the last checkpoint as it is. Returns a note at
        the first such state, else an empty text. All ranks call this; rank 0 writes.
        """
        done = engine.burst_count - engine.network.burst_count
        if self.file is None or self.every is None or (done % self.every and done < self.bursts):
            return ""
        state = engine.state()
        if self.exchange.rank > 0:
            return ""
        try:
            check_state(state, engine.network, engine.fixed_point)
        except NetworkError as error:
            return self._refuse(state.burst_count, error)
        identity = {**self._identity, **stimulus_so_far(self.plan, state.burst_count)}
        recording = None if recordings is None else joined(recordings)
        save_checkpoint(self.file, Checkpoint(state, identity, recording))
        self.saved_after = state.burst_count
        return ""

    def _refuse(self, burst: int, error: NetworkError) -> str:
        """Why the state after ``burst`` is not written, if it is the first."""
        if self._refused:
            return ""
        self._refused = True
        kept = "" if self.saved_after is None else f"; {self.file} keeps burst {self.saved_after}"
        return f"no checkpoint from burst {burst} on while --resume would refuse it{kept}: {error}"


def chunks(done: int, total: int, longest: int, stops: Sequence[int | None]) -> Iterator[int]:
    """Numbers of bursts of the pieces in which bursts ``done`` + 1 ... ``total`` are run.

    The first piece is one burst, because it compiles. Further ones have at most ``longest`` bursts, and end at each
    multiple of one of ``stops``.
    """
    first = True
    while done < total:
        size = min([1 if first else longest, total - done, *(stop - done % stop for stop in stops if stop)])
        yield size
        done, first = done + size, False
