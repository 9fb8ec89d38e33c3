"""The exchange between the processes of a sharded engine; this one is for a single process."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn, TypeVar

from burstproof.engine.sharded.shard import Fired
from burstproof.errors import BurstproofError

_Object = TypeVar("_Object")


class Exchange:
    """The collective operations of the processes of a run; all call the same methods in the same order.

    This is the exchange of a run in one process. This process is ``rank`` of ``ranks``; rank 0 writes files and output.
    """

    rank: int = 0
    ranks: int = 1

    def total(self, count: int) -> int:
        """Sum of ``count`` over all processes."""
        return count

    def gather(self, fired: Fired) -> Fired:
        """What fired in all processes, ids ascending."""
        return fired

    def share(self, what: str, own: _Object) -> list[_Object]:
        """``own`` of every process, by rank; ``what`` names the purpose in messages."""
        return [own]

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """A context in which the caller itself waits for other processes, under the time-out of the exchange.

        The caller must let other threads run meanwhile. With several processes, a ``ShardLostError`` inside or a wait
        that takes too long ends the run.
        """
        return nullcontext()

    def agree(self, error: BurstproofError | None) -> None:
        """Raise the ``error`` of any process in all of them.

        Raises
        ------
        BurstproofError
            The error of the lowest rank that has one, prefixed with the rank if not all have one.
        """
        found = self.share("the report of errors", error)
        met = [(rank, one) for rank, one in enumerate(found) if one is not None]
        if not met:
            return
        rank, first = met[0]
        if len(met) < self.ranks:
            first.args = (f"rank {rank} of {self.ranks}: {first}",)
        raise first

    def abort(self, message: str, code: int) -> NoReturn:
        """End all processes, this one with ``message``."""
        print(f"burstproof: error: {message}", file=sys.stderr)
        raise SystemExit(code)

    def close(self) -> None:
        """End the exchange."""
