"""The processes of a run as ranks: connected by an exchange, and failing together."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from burstproof.engine.cluster.launch import Place
from burstproof.engine.sharded.exchange import Exchange
from burstproof.errors import BurstproofError, EnvironmentInvalidError, ExitCode

_Result = TypeVar("_Result")


def join_ranks(place: Place | None, *, alone: bool, timeout_s: float, advice: Callable[[], str]) -> Exchange:
    """The exchange of this process with the other ranks of the run; with ``alone``, that of a single process.

    Raises
    ------
    EnvironmentInvalidError
        MPI cannot be loaded, launcher and library disagree about the ranks, or there is no launcher and only one rank.
    """
    if alone:
        return Exchange()
    from burstproof.engine.cluster.mpi import MpiExchange

    exchange = MpiExchange(timeout_s, advice)
    if place is not None and exchange.ranks != place.ranks:
        exchange.close()
        raise EnvironmentInvalidError(
            "the launcher and the MPI library do not belong together",
            where="MPI",
            got=f"{place.ranks} ranks started, {exchange.ranks} seen",
            cure="Start with the mpiexec of the library that mpi4py uses, or one process with --mpi off",
        )
    if place is None and exchange.ranks == 1:
        exchange.close()
        cure = "Start with mpiexec -n RANKS, or leave out --mpi on"
        raise EnvironmentInvalidError("no launcher started several ranks", where="MPI", got="1 rank", cure=cure)
    return exchange


def together(exchange: Exchange, work: Callable[[], _Result]) -> _Result:
    """Do ``work`` in all ranks and return the result; an error of the package in any rank is raised in all."""
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
    """A context in which an error of one rank ends all ranks, since the others would wait for it."""
    try:
        yield
    except Exception as error:
        _end_all(exchange, error)
        raise


def _end_all(exchange: Exchange, error: Exception) -> None:
    """End all ranks, if there are several, with the reason; an unforeseen error also prints its traceback."""
    if exchange.ranks == 1:
        return
    if isinstance(error, BurstproofError):
        exchange.abort(str(error), int(error.exit_code))
    foreseen = isinstance(error, (OSError, MemoryError))
    if not foreseen:
        traceback.print_exception(error)
    message = " ".join(str(error).split())
    code = ExitCode.INVALID_ENVIRONMENT if foreseen else ExitCode.UNDECIDED
    exchange.abort(f"{type(error).__name__}: {message}", int(code))
