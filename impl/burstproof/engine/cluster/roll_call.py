"""A watchdog over the ranks of a run: it names the ranks that keep others waiting, and ends the run instead of hanging.

A thread of each rank checks periodically how long the rank has been inside one MPI or NCCL operation. After the
time-out it calls the roll: the thread of every live rank answers with what its rank waits for. A rank without an answer
is dead or stopped; a rank that waits for nothing is late. The threads use a separate communicator.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

TICK_S = 0.2
"""Seconds between two checks of the thread."""

GRACE_S = 5.0
"""Seconds within which a live rank answers the roll."""

_ASK, _ANSWER = 1, 2


class RollCall:
    """The watchdog of one rank.

    Parameters
    ----------
    mpi, world
        ``mpi4py.MPI``, and a communicator that is used by nothing else.
    timeout_s : float
        Longest duration of one operation.
    give_up : callable
        Called with a sentence that names who is missing; ends the run.
    """

    def __init__(self, mpi: Any, world: Any, timeout_s: float, give_up: Callable[[str], None]) -> None:
        self._mpi, self._world, self._timeout_s, self._give_up = mpi, world, timeout_s, give_up
        world.Set_errhandler(mpi.ERRORS_RETURN)
        self._what, self._since = "", 0.0
        self._lock = threading.Lock()
        self._requests: list[Any] = []
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="burstproof-roll-call", daemon=True)
        self._thread.start()

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """A context for an operation that waits for other ranks; ``what`` names it."""
        self._since, self._what = time.monotonic(), what
        try:
            yield
        finally:
            self._what = ""

    def failed(self, message: str) -> NoReturn:
        """Report a failed operation: call the roll at once and end the run."""
        self._finish(message)
        raise SystemExit(message)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(TICK_S):
            try:
                self._answer()
            except self._mpi.Exception:
                continue
            what, since = self._what, self._since
            if what and time.monotonic() - since > self._timeout_s:
                self._finish(f"waited {self._timeout_s:g} s for {what}")

    def _answer(self) -> None:
        """Answer every rank that has called the roll."""
        while (asker := self._received(_ASK)) is not None:
            self._send(self._what, asker[0], _ANSWER)

    def _received(self, tag: int) -> tuple[int, str] | None:
        """Rank and text of an arrived message; probed and received in one step, since two threads may do it."""
        status = self._mpi.Status()
        message = self._world.improbe(self._mpi.ANY_SOURCE, tag, status)
        return None if message is None else (status.Get_source(), message.recv())

    def _send(self, text: str, rank: int, tag: int) -> None:
        """Send without waiting; requests are kept until they complete."""
        self._requests = [request for request in self._requests if not request.Test()]
        self._requests.append(self._world.isend(text, dest=rank, tag=tag))

    def _finish(self, message: str) -> None:
        """Call the roll and give up."""
        with self._lock:
            self._give_up(f"{message}; {self._roll()}")

    def _roll(self) -> str:
        """The ranks that do not answer, or else those that are not waiting, in words."""
        others = [rank for rank in range(self._world.Get_size()) if rank != self._world.Get_rank()]
        for rank in others:
            self._send("", rank, _ASK)
        doing = self._answers(len(others))
        missing = [rank for rank in others if rank not in doing]
        late = [rank for rank, what in doing.items() if not what]
        if missing:
            return f"no answer from {_named(missing)}: dead, stopped or cut off"
        return f"still at work: {_named(late)}" if late else "all ranks answer and wait"

    def _answers(self, wanted: int) -> dict[int, str]:
        """By rank that answers in time, what it waits for; empty if it is not waiting."""
        doing: dict[int, str] = {}
        end = time.monotonic() + GRACE_S
        while len(doing) < wanted and time.monotonic() < end:
            self._answer()
            answer = self._received(_ANSWER)
            if answer is None:
                time.sleep(TICK_S / 10)
            else:
                doing[answer[0]] = answer[1]
        return doing


def _named(ranks: list[int]) -> str:
    numbers = ", ".join(str(rank) for rank in ranks)
    return f"rank {numbers}" if len(ranks) == 1 else f"ranks {numbers}"
