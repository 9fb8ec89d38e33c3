"""Options that would do nothing where they are given: one table, and the check that refuses them.

An option that is silently without effect makes two runs look different that are the same, and hides a slip.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from burstproof.errors import InputError
from burstproof.sources import Kind

SOURCE, BACKEND, ASKED, RANKS = "source", "backend", "asked", "ranks"
"""What a need is about: kind of the source, backend that runs, backend as asked for, whether there are ranks."""

MADE = (Kind.GENOME, Kind.SYNTHETIC)
GROWN = (Kind.GENOME,)


@dataclass(frozen=True)
class Need:
    """An option, by its name in the namespace, and where it has an effect.

    Attributes
    ----------
    option : str
    about : str
        ``SOURCE``, ``BACKEND``, ``ASKED`` or ``RANKS``.
    values : tuple
        Values of that with which the option has an effect.
    only : str
        What has such an option, in words.
    default : object
        Value that the option has where it is not given.
    """

    option: str
    about: str
    values: tuple[object, ...]
    only: str
    default: object = None


NEEDS = (
    Need("kind", SOURCE, (Kind.SYNTHETIC,), "only a synthetic network has it"),
    Need("synapses", SOURCE, (Kind.SYNTHETIC,), "only a synthetic network has it"),
    Need("rate", SOURCE, (Kind.SYNTHETIC,), "only a synthetic network has it"),
    Need("seed", SOURCE, MADE, "only a genome that is grown and a synthetic network have a seed", 0),
    Need("max_neurons", SOURCE, GROWN, "only the growth of a genome has a cap"),
    Need("max_synapses", SOURCE, GROWN, "only the growth of a genome has a cap"),
    Need("apply_flags", SOURCE, (Kind.CONNECTOME,), "only a connectome has a genome inside", False),
    Need("ignore_unmodelled", SOURCE, GROWN, "only a genome has keys that may not be modelled", False),
    Need("as_the_engine", SOURCE, GROWN, "only a genome is grown", False),
    Need("device", BACKEND, ("cuda",), "only the backend cuda has devices"),
    Need("no_graphs", BACKEND, ("cuda",), "only the backend cuda has graphs", False),
    Need("autotune", BACKEND, ("cuda",), "only the backend cuda has launch configurations", False),
    Need("threads", BACKEND, ("cpu",), "only the backend cpu has threads", 0),
    Need("firing_rate", ASKED, ("auto", "cuda"), "only the backends auto and cuda choose by it"),
    Need("rank_timeout", RANKS, (True,), "only ranks wait for each other", 300.0),
    Need("mpi", RANKS, (True,), "no launcher started this process as one of several ranks", "auto"),
)
"""Every option of the command that has an effect only in some contexts; those of shards are in ``run.py``."""

_CURES = dict.fromkeys(("kind", "synapses", "rate"), "Add --synthetic N")


def refuse_idle(options: argparse.Namespace, **context: object) -> None:
    """Refuse an option that does nothing in this context; ``context`` has what is known of it by now.

    Raises
    ------
    InputError
        Names the option, its value and what has such an option.
    """
    for need in NEEDS:
        value = getattr(options, need.option, need.default)
        if value == need.default or need.about not in context or context[need.about] in need.values:
            continue
        found = context[need.about]
        raise InputError(
            f"{need.only}, so it does nothing here",
            where=f"--{need.option.replace('_', '-')}",
            got=value,
            allowed=_given(need, found),
            cure=_CURES.get(need.option, "Leave it out"),
        )


def _given(need: Need, found: object) -> str | None:
    """What there is instead, where that helps."""
    if need.about == BACKEND:
        return f"with --backend {' or '.join(map(str, need.values))}; here it is {found}"
    return None
