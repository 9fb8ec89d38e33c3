"""How the processes of a sharded engine come to one fired list."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn, TypeVar

from burstproof.engine.sharded.shard import Fired
from burstproof.errors import BurstproofError

_Object = TypeVar("_Object")


class Exchange:
    """What the processes of one run tell each other; all of them call the same methods in the same order.

    This is the exchange of a run in one process. ``rank`` of ``ranks`` is this process; rank 0 writes files and speaks.
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
        """``own`` of every process, by rank; ``what`` says to people what it is for."""
        return [own]

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Under the watch of the exchange while the caller waits for other processes in a way of its own.

        The caller lets other threads run meanwhile. A ``ShardLostError`` inside ends the run where there are several
        processes, as a wait that takes too long does.
        """
        return nullcontext()

    def agree(self, error: BurstproofError | None) -> None:
        """Raise in every process what any of them met.

        Raises
        ------
        BurstproofError
            The error of the lowest rank that has one, with the rank in front where not all have it.
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
        """Tell nobody anything any more."""
