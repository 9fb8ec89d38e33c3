"""Calls with a time limit, for C functions that may never return and cannot be interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

Value = TypeVar("Value")


class TimedCalls:
    """Calls functions, one at a time, in a thread of its own; the thread is abandoned with a call that does not return.

    Parameters
    ----------
    limit_s : float
        How long a call may take, in seconds.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._questions: SimpleQueue[Callable[[], object]] | None = None
        self._answers: SimpleQueue[object] = SimpleQueue()
        self._stuck = ""

    def call(self, name: str, function: Callable[[], Value], limit_s: float | None = None) -> Value:
        """Return what ``function()`` returns, or raise what it raises.

        Raises
        ------
        TimeoutError
            The call did not return within ``limit_s`` (by default that of all calls), or an earlier one has not.
        """
        with self._lock:
            if self._stuck:
                raise TimeoutError(f"{name} was not called: {self._stuck} has not returned")
            if self._questions is None:
                self._questions = SimpleQueue()
                threading.Thread(target=self._work, args=(self._questions,), name="timed calls", daemon=True).start()
            outcome: list[Value] = []
            self._questions.put(lambda: outcome.append(function()))
            try:
                error = self._answers.get(timeout=self._limit_s if limit_s is None else limit_s)
            except Empty:
                self._stuck = name
                raise TimeoutError(f"{name} did not return") from None
        if isinstance(error, BaseException):
            raise error
        return outcome[0]

    def _work(self, questions: SimpleQueue[Callable[[], object]]) -> None:
        while True:
            question = questions.get()
            try:
                question()
            except BaseException as error:
                self._answers.put(error)
            else:
                self._answers.put(None)
