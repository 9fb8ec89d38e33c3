"""Checkpoints of ``burstproof run``: when they are written, and how a run goes on from one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from burstproof.errors import InputError

DEFAULT_EVERY = 1000
"""Bursts between two checkpoints where only a file is named."""


@dataclass
class Checkpoints:
    """The checkpoints of one run; without ``--checkpoint`` and ``--resume`` it does nothing.

    Attributes
    ----------
    options : argparse.Namespace
    exchange : Exchange
    plan : StimulusPlan
    resumed_after : int or None
        Burst of the checkpoint from which the run goes on.
    """

    options: argparse.Namespace
    exchange: Exchange
    plan: StimulusPlan
    resumed_after: int | None = None
    _identity: dict[str, Any] = field(default_factory=dict)

    @property
    def every(self) -> int | None:
        """Bursts between two checkpoints; ``None``: none are written."""
        return None if self.options.checkpoint is None else self.options.checkpoint_every or DEFAULT_EVERY

    def resume(self, engine: Engine) -> list[Recording]:
        """Put ``engine`` where the checkpoint left off; returns what had been recorded, in one piece or none.

        Raises
        ------
        CheckpointError
            The checkpoint is damaged or belongs to another run.
        InputError
            It has no record though one is wanted, or lies behind the last burst.
        """
        if self.options.checkpoint is None and self.options.resume is None:
            return []
        self._identity = run_identity(engine.network, engine.options, engine.fixed_point)
        if self.options.resume is None:
            return []
        where = str(self.options.resume)
        found = load_checkpoint(self.options.resume)
        reached = found.state.burst_count
        check_identity(found, {"network": self._identity["network"]}, where)
        self._check_bursts(engine.network.burst_count, reached, where)
        check_identity(found, {**self._identity, **stimulus_so_far(self.plan, reached)}, where)
        if self.options.record is not None and found.recording is None:
            raise InputError(
                "the checkpoint holds no record of the bursts before it",
                where=where,
                cure="Leave out --record, or run from the beginning with --record and --checkpoint",
            )
        engine.restore(found.state)
        self.resumed_after = reached
        return [] if found.recording is None else [found.recording]

    def _check_bursts(self, begun: int, reached: int, where: str) -> None:
        """Refuse a checkpoint behind which nothing is left to run, before what shorter stimulus makes of its identity.

        ``begun`` and ``reached`` are the burst counts at which the run and the checkpoint stand.
        """
        asked = self.options.bursts
        if reached >= begun + asked:
            raise InputError(
                f"the checkpoint is at burst {reached}, and the run is to end with burst {begun + asked}",
                where=where,
                got=f"--bursts {asked}",
                allowed=f"{reached - begun + 1} or more, counted from the beginning of the run",
                cure="Ask for more --bursts, or resume from an earlier checkpoint",
            )

    def save_if_due(self, engine: Engine, recordings: Sequence[Recording] | None) -> None:
        """Write a checkpoint if one is due after the burst just done, as it is after the last of the run.

        All ranks call it, rank 0 writes.
        """
        done = engine.burst_count - engine.network.burst_count
        if self.every is None or (done % self.every and done < self.options.bursts):
            return
        state = engine.state()
        if self.exchange.rank == 0:
            identity = {**self._identity, **stimulus_so_far(self.plan, state.burst_count)}
            recording = None if recordings is None else joined(recordings)
            save_checkpoint(self.options.checkpoint, Checkpoint(state, identity, recording))


def chunks(done: int, total: int, longest: int, stops: Sequence[int | None]) -> Iterator[int]:
    """Sizes of the pieces in which bursts ``done`` + 1 ... ``total`` are run.

    The first burst alone, since it compiles; then at most ``longest``, cut at every multiple of each of ``stops``.
    """
    first = True
    while done < total:
        size = min([1 if first else longest, total - done, *(stop - done % stop for stop in stops if stop)])
        yield size
        done, first = done + size, False
