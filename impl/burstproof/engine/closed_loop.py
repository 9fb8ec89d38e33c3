"""A closed loop: each call takes a stimulus, runs one burst and returns what fired."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Self

import numpy as np
import numpy.typing as npt

from burstproof.engine.interruption import alone, deferred_interrupt
from burstproof.engine.state import Burst, Stimulus
from burstproof.errors import InputError

Ids = npt.NDArray[np.uint32]
Amounts = npt.NDArray[np.float32]

NO_IDS: Ids = np.empty(0, np.uint32)
NO_AMOUNTS: Amounts = np.empty(0, np.float32)


class ClosedLoop:
    """A closed loop over an engine (``Engine.closed_loop``); this one calls ``step`` of the engine.

    Use it in a ``with`` block. The engine itself stays usable, within the block too.

    Parameters
    ----------
    step : callable
        Runs one burst.
    neurons : int
        N.
    outputs : uint32 (W,), optional
        Neurons whose firings are returned; all by default.

    Attributes
    ----------
    lock : RLock
        Held during a call; a thread that does not get it at once is refused. Reentrant: a call may call the engine.
        Whoever guards the engine's own calls puts its lock here, so that loop and engine exclude each other.
    """

    def __init__(self, step: Callable[[Stimulus], Burst], neurons: int, outputs: Ids | None = None) -> None:
        self._one_burst = step
        self.lock = RLock()
        self._closed = False
        self._wanted: npt.NDArray[np.bool_] | None = None
        if outputs is not None:
            self._wanted = np.zeros(neurons, np.bool_)
            self._wanted[outputs] = True

    def step(self, ids: Ids = NO_IDS, amounts: Amounts = NO_AMOUNTS, forced: Ids = NO_IDS) -> Ids:
        """Run one burst and return what fired in it.

        Parameters
        ----------
        ids : uint32 (Q,)
            Stimulated neurons. Ascending ids without repetition are fastest.
        amounts : float32 (Q,)
            Amount for each of them.
        forced : uint32 (R,)
            Neurons that are forced to fire.

        Returns
        -------
        uint32 (F,)
            Neurons that fired, ascending; a copy.

        Raises
        ------
        StimulusError
            As ``Engine.step``; no burst was done.
        InputError
            The loop is closed, or another thread is using the engine; no burst was done.
        """
        with alone(self.lock, "step"), deferred_interrupt():
            self._check_open()
            return self._chosen(self._one_burst(Stimulus(ids, amounts, forced)).fired_ids)

    def close(self) -> None:
        """End the loop. The engine stays open. Closing twice is allowed.

        Raises
        ------
        InputError
            Another thread is using the engine; the loop stays open.
        """
        with alone(self.lock, "close"):
            self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise InputError("the closed loop has ended", where="step", cure="Open another one")

    def _chosen(self, fired: Ids) -> Ids:
        """Those of ``fired`` that are outputs."""
        return fired if self._wanted is None else fired[self._wanted[fired]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
