"""Detection of a launcher that started this process as one of several ranks, and a guard that reports the rank's end.

The launcher (``mpiexec``, ``srun``) ends the other ranks when one dies, but names at most the process. So the process
that it starts becomes a guard, and the rank runs in a child process. If the child is killed, the guard reports which
rank it was, before the launcher notices.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from burstproof.errors import ExitCode, InputError

_LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""Environment variables of rank and number of ranks: MPICH and its derivatives, Open MPI, Slurm."""

_PR_SET_PDEATHSIG = 1

_SIGNAL_DELAY_S = 0.3
"""Wait before a loss is reported: a signal to all ranks may reach this process a little later than the others."""


@dataclass(frozen=True)
class Place:
    """One of ``ranks`` ranks, as the launcher numbers them."""

    rank: int
    ranks: int


def place_of(environment: Mapping[str, str]) -> Place | None:
    """The rank of a process with this environment; ``None`` if no launcher started it as one of several.

    Raises
    ------
    InputError
        A launcher's variable that is no number.
    """
    for rank, ranks in _LAUNCHERS:
        if rank in environment and ranks in environment:
            try:
                place = Place(int(environment[rank]), int(environment[ranks]))
            except ValueError:
                raise InputError(
                    "a launcher's variables are no numbers", where=f"{rank}, {ranks}", got=environment[rank]
                ) from None
            return place if place.ranks > 1 else None
    return None


def stand_guard(place: Place, advice: Callable[[], str]) -> None:
    """Continue in a child process; this process waits for it, reports its end and exits with its code.

    If a signal ends the rank, the message ends with the result of ``advice``. Without ``fork`` this does nothing.
    """
    if not hasattr(os, "fork"):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _die_with_parent()
        return
    passed_on = _pass_on_signals(child)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code and not passed_on:
        time.sleep(_SIGNAL_DELAY_S)
    if passed_on:  # all ranks were asked to end; rank 0 reports it
        name = signal.Signals(passed_on[0]).name
        if place.rank == 0:
            print(f"burstproof: the run was ended by {name}. {advice()}".rstrip(), file=sys.stderr, flush=True)
        code = 128 + passed_on[0]
    elif code < 0:
        name = signal.Signals(-code).name
        print(
            f"burstproof: error: rank {place.rank} of {place.ranks} was ended by {name}. {advice()}".rstrip(),
            file=sys.stderr,
            flush=True,
        )
        code = int(ExitCode.INVALID_ENVIRONMENT)
    os._exit(code)


def _pass_on_signals(child: int) -> list[int]:
    """Forward terminating signals to the child; returns a list to which their numbers are appended.

    A launcher may signal twice, or signal the child as well. A child that has ended is not signalled.
    """
    passed_on: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        passed_on.append(number)
        with suppress(ProcessLookupError):
            os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    return passed_on


def _die_with_parent() -> None:
    """On Linux, have this process killed when the guard dies; elsewhere the launcher must end both."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
