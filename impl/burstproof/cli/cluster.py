"""The command as one of several ranks: all of them ``run``, each in a child of its process; the rest is for rank 0."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

from burstproof.engine.cluster.launch import Place, place_of, stand_guard

if TYPE_CHECKING:
    from burstproof.engine.sharded.exchange import Exchange


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


def exchange_of(options: argparse.Namespace) -> Exchange:
    """The exchange of this process with the other ranks of the run, if there are any; see ``join_ranks``."""
    from burstproof.engine.cluster.together import join_ranks

    place = _place(options)
    alone = place is None and options.mpi != "on"
    return join_ranks(place, alone=alone, timeout_s=options.rank_timeout, advice=lambda: _advice(options))


def may_be_rank(options: argparse.Namespace) -> bool:
    """Whether a launcher started this process as one of several ranks, or the options ask for MPI without one."""
    return options.mpi == "on" or place_of(os.environ) is not None


def _place(options: argparse.Namespace) -> Place | None:
    return None if options.mpi == "off" else place_of(os.environ)


def _advice(options: argparse.Namespace) -> str:
    """What to do after a rank is gone."""
    path = options.checkpoint
    if path is None:
        return "Start again; --checkpoint FILE keeps what was done"
    return f"Go on from the last checkpoint: --resume {path}" if path.exists() else "No checkpoint was written yet"
