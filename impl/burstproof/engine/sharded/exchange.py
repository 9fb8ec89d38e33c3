"""How the processes of a sharded engine come to one fired list: the protocol, and the case of one process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn, Protocol, TypeVar

import numpy as np

from burstproof.engine.sharded.shard import Fired, StatePiece
from burstproof.errors import BurstproofError

_Object = TypeVar("_Object")


class Exchange(Protocol):
    """What the processes of one run tell each other; all of them call the same methods in the same order.

    ``rank`` of ``ranks`` is this process; rank 0 writes files and speaks.
    """

    rank: int
    ranks: int

    def total(self, count: int) -> int:
        """Sum of ``count`` over all processes."""
        ...

    def gather(self, fired: Fired) -> Fired:
        """What fired in all processes, ids ascending."""
        ...

    def pieces(self, own: Sequence[StatePiece]) -> Sequence[StatePiece]:
        """The pieces of state of all processes."""
        ...

    def share(self, what: str, own: _Object) -> list[_Object]:
        """``own`` of every process, by rank; ``what`` says to people what it is for."""
        ...

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Under the watch of the exchange while the caller waits for other processes in a way of its own.

        The caller lets other threads run meanwhile. A ``ShardLostError`` inside ends the run where there are several
        processes, as a wait that takes too long does.
        """
        ...

    def agree(self, error: BurstproofError | None) -> None:
        """Raise in every process what any of them met.

        Raises
        ------
        BurstproofError
            The error of the lowest rank that has one, with the rank in front where not all have it.
        """
        ...

    def abort(self, message: str, code: int) -> NoReturn:
        """End all processes, this one with ``message``."""
        ...

    def close(self) -> None:
        """Tell nobody anything any more."""
        ...


class OneProcess:
    """The exchange of an engine that has all shards in this process."""

    rank, ranks = 0, 1

    def total(self, count: int) -> int:
        """See ``Exchange.total``."""
        return count

    def gather(self, fired: Fired) -> Fired:
        """See ``Exchange.gather``."""
        return fired

    def pieces(self, own: Sequence[StatePiece]) -> Sequence[StatePiece]:
        """See ``Exchange.pieces``."""
        return own

    def share(self, what: str, own: _Object) -> list[_Object]:
        """See ``Exchange.share``."""
        return [own]

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """See ``Exchange.waiting``."""
        return nullcontext()

    def agree(self, error: BurstproofError | None) -> None:
        """See ``Exchange.agree``."""
        if error is not None:
            raise error

    def abort(self, message: str, code: int) -> NoReturn:
        """See ``Exchange.abort``."""
        print(f"burstproof: error: {message}", file=sys.stderr)
        raise SystemExit(code)

    def close(self) -> None:
        """See ``Exchange.close``."""


def merged(parts: Sequence[Fired]) -> Fired:
    """The lists of several shards as one, ids ascending."""
    if len(parts) == 1:
        return parts[0]
    ids = np.concatenate([part.ids for part in parts])
    potentials = np.concatenate([part.potentials for part in parts])
    candidates = sum(part.candidates for part in parts)
    if bool((ids[1:] > ids[:-1]).all()):
        return Fired(ids, potentials, candidates)
    order = np.argsort(ids, kind="stable")
    return Fired(ids[order], potentials[order], candidates)
