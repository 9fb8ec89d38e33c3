"""The network that the options name, read or grown under a progress bar."""

from __future__ import annotations

import argparse

from burstproof.cli.idle import refuse_idle
from burstproof.cli.progress import task
from burstproof.errors import InputError
from burstproof.network.files.paths import check_input
from burstproof.network.grow.blueprint import GenomePolicy
from burstproof.network.model import Network
from burstproof.network.synthetic.kinds import UNIFORM
from burstproof.sources import Kind, Reading, Source, kind_of, synthetic_source


def reading_of(options: argparse.Namespace) -> Reading:
    """How the options want a file read."""
    return Reading(
        seed=options.seed,
        max_neurons=options.max_neurons,
        max_synapses=options.max_synapses,
        apply_flags=options.apply_flags,
        policy=GenomePolicy(ignore_unmodelled=options.ignore_unmodelled, as_the_engine=options.as_the_engine),
    )


def source_of(options: argparse.Namespace) -> Source:
    """The one source that the options name.

    Raises
    ------
    InputError
        None or several are named, a file that cannot be read, an extension that does not fit, or an option that a
        source of this kind does not have.
    """
    named = {
        "--genome": ("genome", Kind.GENOME),
        "--connectome": ("connectome", Kind.CONNECTOME),
        "--network": ("network", Kind.NETWORK),
        "--synthetic": ("synthetic", Kind.SYNTHETIC),
        "--plan": ("plan", None),
        "FILE": ("input", None),
    }
    read = {option: (getattr(options, name, None), kind) for option, (name, kind) in named.items()}
    given = [(option, value, kind) for option, (value, kind) in read.items() if value is not None]
    if len(given) != 1:
        raise InputError(
            "name one genome, connectome or network, or a synthetic one",
            got=", ".join(option for option, _, _ in given) or "none",
            cure=f"See burstproof {options.command} --help",
        )
    option, value, kind = given[0]
    if kind is Kind.SYNTHETIC:
        refuse_idle(options, source=kind)
        return synthetic_source(value, options.synapses, options.rate, options.seed, options.kind or UNIFORM)
    found = kind_of(value, option)
    if kind is not None and found is not kind:
        raise InputError(
            f"this is a {found.value} by its extension", where=option, got=str(value), cure=f"Use --{found.value}"
        )
    check_input(value, option)
    refuse_idle(options, source=found)
    return Source(value.name, found, value)


def read_source(source: Source, reading: Reading, *, bars: bool = True) -> Network:
    """The network of ``source``. ``bars`` allows a progress bar."""
    verb = {Kind.GENOME: "growing", Kind.SYNTHETIC: "making"}.get(source.kind, "reading")
    with task(f"{verb} {source.name}", shown=bars) as bar:
        return source.read(reading, bar.reach)
