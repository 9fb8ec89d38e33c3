"""The exchange over MPI: one process per rank, standard collectives, and a time-out that ends runs that hang (MG-5)."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from burstproof.engine.cluster.roll_call import RollCall
from burstproof.engine.cores import usable_cores
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.shard import Fired, merged
from burstproof.errors import EnvironmentInvalidError, ExitCode, ShardLostError

EAGER_FIRINGS = 256
"""Least firings per rank that are sent with the counts, and their granularity; longer lists need a second message."""

TIMEOUT_S = 300.0
"""Seconds after which a rank that others wait for counts as missing."""

_HEAD = 2
"""Words before the list in a message: counts of firings and of candidates."""

_NAP_S = 50e-6
_FORWARDING_S = 1.0
_SIGNAL_DELAY_S = 0.5
"""Wait before an abort is reported: a signal to all ranks may reach this one a little later than those it misses."""
_Object = TypeVar("_Object")


def load_mpi() -> Any:
    """``mpi4py.MPI``, initialised.

    Raises
    ------
    EnvironmentInvalidError
        mpi4py or an MPI library is missing, or the library cannot be called from two threads.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise EnvironmentInvalidError(
            f"MPI, which several ranks need, cannot be loaded: {error}",
            where="mpi4py",
            cure="pip install '.[cluster]' in the folder of the clone, or run one process, with --mpi off",
        ) from None
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        raise EnvironmentInvalidError(
            "the MPI library does not let two threads call it, which the watch over the ranks needs",
            where=" ".join(MPI.Get_library_version().split())[:80],
            cure="Use an MPI built with MPI_THREAD_MULTIPLE",
        )
    return MPI


class MpiExchange(Exchange):
    """The exchange of the ranks of a communicator.

    MPI libraries wait by polling. On a host with more ranks than cores that would take cores from ranks that still
    work, so there a waiting rank sleeps between polls.

    Parameters
    ----------
    timeout_s : float
        How long a rank may keep the others waiting before the run ends with an error that names it.
    advice : callable, optional
        Returns the advice at the end of that error.
    world : mpi4py.MPI.Comm, optional
        The communicator; by default that of all ranks.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S, advice: Callable[[], str] = str, world: Any | None = None) -> None:
        self._advice = advice
        self._mpi = load_mpi()
        self._world = self._mpi.COMM_WORLD if world is None else world
        self._world.Set_errhandler(self._mpi.ERRORS_RETURN)
        self.rank = self._world.Get_rank()
        self.ranks = self._world.Get_size()
        self._oversubscribed = self._is_oversubscribed()
        self._watch = RollCall(self._mpi, self._world.Dup(), timeout_s, self._give_up)
        self._eager_room = 0
        self._resize_eager(EAGER_FIRINGS)

    def _is_oversubscribed(self) -> bool:
        """Whether this host has more ranks than cores; ranks may be bound to different cores."""
        here = self._world.Split_type(self._mpi.COMM_TYPE_SHARED)
        own = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
        cores = len(set().union(*here.allgather(own)))
        quota = usable_cores()
        if quota < len(own):  # the container has fewer cores than its affinity mask shows
            cores = min(cores, quota)
        ranks: int = here.Get_size()
        here.Free()
        return ranks > cores

    def _finish(self, what: str, begin: Callable[..., Any], *arguments: Any) -> None:
        """Start a collective and wait for it, with time-out; a failure ends the run."""
        with self._watch.waiting(what):
            try:
                request = begin(*arguments)
                while self._oversubscribed and not request.Test():
                    time.sleep(_NAP_S)
                request.Wait()
            except self._mpi.Exception as error:
                self._watch.failed(f"{what} failed: {' '.join(str(error).split())}")

    def _counts(self, what: str, own: int) -> npt.NDArray[np.int64]:
        """``own`` of every rank, (ranks,) int64."""
        counts = np.empty(self.ranks, np.int64)
        self._finish(what, self._world.Iallgather, np.array([own], np.int64), counts)
        return counts

    def _joined(self, what: str, own: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> list[npt.NDArray[Any]]:
        """The arrays ``own`` of all ranks, which have ``counts`` elements."""
        received = np.empty(int(counts.sum()), own.dtype)
        self._finish(what, self._world.Iallgatherv, own, [received, counts.tolist()])
        return np.split(received, np.cumsum(counts)[:-1])

    def share(self, what: str, own: _Object) -> list[_Object]:
        """See ``Exchange.share``; ``own`` must be picklable."""
        content = np.frombuffer(pickle.dumps(own), np.uint8)
        pieces = self._joined(what, content, self._counts(what, len(content)))
        return [pickle.loads(piece.data) for piece in pieces]

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """See ``Exchange.waiting``."""
        with self._watch.waiting(what):
            try:
                yield
            except ShardLostError as error:
                self._watch.failed(f"{what} failed: {error}")

    def total(self, count: int) -> int:
        """See ``Exchange.total``."""
        return int(self._counts("the count of candidates", count).sum())

    def gather(self, fired: Fired) -> Fired:
        """See ``Exchange.gather``."""
        count, room = len(fired.ids), self._eager_room
        self._own[0], self._own[1] = count, fired.candidates
        if count <= room:
            self._own[_HEAD : _HEAD + count] = fired.ids
            self._own[_HEAD + room :][:count] = fired.potentials.view(np.uint32)
        self._finish("the exchange of what fired", self._world.Iallgather, self._own, self._all)
        counts, candidates = self._all[:, 0].astype(np.int64), int(self._all[:, 1].astype(np.int64).sum())
        lists = self._eager_lists(counts) if counts.max() <= room else self._long_lists(fired, counts)
        joined = merged([Fired(words[0].copy(), words[1].view(np.float32).copy(), 0) for words in lists])
        self._resize_eager(int(counts.max()))
        return Fired(joined.ids, joined.potentials, candidates)

    def _resize_eager(self, most: int) -> None:
        """Make room beside the counts for the longest list, ``most``, and a quarter more; all ranks know ``most``."""
        room = max(1, -(-(most + most // 4) // EAGER_FIRINGS)) * EAGER_FIRINGS
        if self._eager_room >= room > self._eager_room // 4:
            return
        self._eager_room = room
        self._own = np.zeros(_HEAD + 2 * self._eager_room, np.uint32)
        self._all = np.zeros((self.ranks, len(self._own)), np.uint32)

    def _eager_lists(self, counts: npt.NDArray[np.int64]) -> list[npt.NDArray[np.uint32]]:
        """Ids and potentials of each rank, (2, count) words, from the message with the counts."""
        bodies = (own[_HEAD:].reshape(2, self._eager_room) for own in self._all)
        return [body[:, :count] for body, count in zip(bodies, counts.tolist(), strict=True)]

    def _long_lists(self, fired: Fired, counts: npt.NDArray[np.int64]) -> list[npt.NDArray[np.uint32]]:
        """Ids and potentials of each rank, from a second message with lists of different lengths."""
        words = np.concatenate([fired.ids, fired.potentials.view(np.uint32)])
        return [piece.reshape(2, -1) for piece in self._joined("the exchange of long lists", words, 2 * counts)]

    def abort(self, message: str, code: int) -> NoReturn:
        """End all ranks, this one with ``message``, after the launcher has had time to forward it.

        A launcher that ends drops the contents of its pipes.
        """
        time.sleep(_SIGNAL_DELAY_S)
        print(f"burstproof: error: rank {self.rank} of {self.ranks}: {message}", file=sys.stderr, flush=True)
        time.sleep(_FORWARDING_S)
        self._mpi.COMM_WORLD.Abort(code)
        raise SystemExit(code)

    def _give_up(self, message: str) -> None:
        self.abort(f"{message}. {self._advice()}".rstrip(), int(ExitCode.INVALID_ENVIRONMENT))

    def close(self) -> None:
        """End the watch thread; MPI is finalised at the end of the process."""
        self._watch.close()
