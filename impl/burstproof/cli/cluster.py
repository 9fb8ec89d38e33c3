"""The command as one of several ranks: all of them ``run``, each in a child of its process; the rest is for rank 0."""

from __future__ import annotations

import argparse
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, TypeVar

from burstproof.engine.cluster.launch import Place, place_of, stand_guard
from burstproof.errors import BurstproofError, EnvironmentInvalidError, ExitCode

if TYPE_CHECKING:
    from burstproof.engine.sharded.exchange import Exchange

_Result = TypeVar("_Result")


def enter_rank(options: argparse.Namespace) -> None:
    """Where a launcher started this process as one of several ranks, go on in a child that it guards."""
    place = _place(options)
    if place is not None:
        stand_guard(place, lambda: _advice(options))


def is_later_rank() -> bool:
    """Whether a launcher started this process as one of several ranks, and not as the first of them."""
    place = place_of(os.environ)
    return place is not None and place.rank > 0


@contextmanager
def silent() -> Iterator[None]:
    """Say nothing: another rank says the same."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def _place(options: argparse.Namespace) -> Place | None:
    return None if options.mpi == "off" else place_of(os.environ)


def _advice(options: argparse.Namespace) -> str:
    """What to do after a rank is gone."""
    path = options.checkpoint
    if path is None:
        return "Start again; --checkpoint FILE keeps what was done"
    return f"Go on from the last checkpoint: --resume {path}" if path.exists() else "No checkpoint was written yet"


def join_ranks(options: argparse.Namespace) -> Exchange:
    """The exchange of this process with the other ranks of the run, if there are any.

    Raises
    ------
    EnvironmentInvalidError
        MPI cannot be loaded, or the launcher and the library do not see the same ranks.
    """
    from burstproof.engine.sharded.exchange import OneProcess

    place = _place(options)
    if place is None and options.mpi != "on":
        return OneProcess()
    from burstproof.engine.cluster.mpi import MpiExchange

    exchange = MpiExchange(options.rank_timeout, lambda: _advice(options))
    if place is not None and exchange.ranks != place.ranks:
        exchange.close()
        raise EnvironmentInvalidError(
            "the launcher and the MPI library do not belong together",
            where="MPI",
            got=f"{place.ranks} ranks started, {exchange.ranks} seen",
            cure="Start with the mpiexec of the library that mpi4py uses, or one process with --mpi off",
        )
    return exchange


def together(exchange: Exchange, work: Callable[[], _Result]) -> _Result:
    """The result of ``work``, which all ranks do; an error of the package in any of them is raised in all."""
    try:
        result = work()
    except BurstproofError as error:
        exchange.agree(error)
        raise
    except Exception as error:
        _end_all(exchange, error)
        raise
    exchange.agree(None)
    return result


@contextmanager
def ending_all_ranks(exchange: Exchange) -> Iterator[None]:
    """An error in one rank ends all of them: the others would wait for it."""
    try:
        yield
    except Exception as error:
        _end_all(exchange, error)
        raise


def _end_all(exchange: Exchange, error: Exception) -> None:
    """End all ranks, if there are several, and say why; where the error was not foreseen, where it came from too."""
    if exchange.ranks == 1:
        return
    if isinstance(error, BurstproofError):
        exchange.abort(str(error), int(error.exit_code))
    if not isinstance(error, (OSError, MemoryError)):
        traceback.print_exception(error)
    message = " ".join(str(error).split())
    exchange.abort(f"{type(error).__name__}: {message}", int(ExitCode.INVALID_ENVIRONMENT))
