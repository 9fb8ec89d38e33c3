"""The network that the options name, read or grown under a progress bar."""

from __future__ import annotations

import argparse

from burstproof.cli.arguments import NO_FILE
from burstproof.cli.idle import refuse_idle
from burstproof.cli.progress import task
from burstproof.errors import InputError, NetworkError
from burstproof.network.files.paths import check_input
from burstproof.network.grow.blueprint import GenomePolicy
from burstproof.network.model import Network
from burstproof.network.synthetic.kinds import MICROCIRCUIT, UNIFORM
from burstproof.network.synthetic.microcircuit import microcircuit_spec
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
        None or several are named, a synthetic one without its size, a file that cannot be read, an extension that does
        not fit, or an option that a source of this kind does not have.
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
    given = [(option, value, kind) for option, (value, kind) in read.items() if value not in (None, NO_FILE)]
    laws = [law for law in ("kind", "synapses", "rate") if getattr(options, law) is not None]
    if laws and not given:
        size = microcircuit_spec().neurons if options.kind == MICROCIRCUIT else "N"
        raise InputError(
            "the size of the synthetic network is missing",
            where=f"--{laws[0]}",
            got=getattr(options, laws[0]),
            cure=f"Add --synthetic {size}",
        )
    if len(given) != 1:
        raise InputError(
            "name one genome, connectome or network, or a synthetic one",
            got=", ".join(option for option, _, _ in given) or None,
            cure=f"See burstproof {options.command} --help",
        )
    option, value, kind = given[0]
    if kind is Kind.SYNTHETIC:
        refuse_idle(options, source=kind)
        return _synthetic_source(options)
    found = kind_of(value, option)
    if kind is not None and found is not kind:
        raise InputError(
            f"this is a {found.value} by its extension", where=option, got=str(value), cure=f"Use --{found.value}"
        )
    check_input(value, option)
    refuse_idle(options, source=found)
    return Source(value.name, found, value)


_OPTIONS = {
    "kind": "--kind",
    "SyntheticSpec.neurons": "--synthetic",
    "SyntheticSpec.synapses_per_neuron": "--synapses",
    "SyntheticSpec.firing_rate": "--rate",
    "SyntheticSpec.seed": "--seed",
}
"""Options by what the errors of synthetic networks call their values."""


def _synthetic_source(options: argparse.Namespace) -> Source:
    """The synthetic network of the options; an error names the option that it is about."""
    kind = options.kind or UNIFORM
    try:
        return synthetic_source(options.synthetic, options.synapses, options.rate, options.seed, kind)
    except NetworkError as error:
        where = _OPTIONS.get(error.where or "", error.where)
        cure = (error.cure or "").replace("firing_rate", "--rate")
        raise NetworkError(error.problem, where=where, got=error.got, allowed=error.allowed, cure=cure) from None


def read_source(source: Source, reading: Reading, *, bars: bool = True) -> Network:
    """The network of ``source``. ``bars`` allows a progress bar."""
    verb = {Kind.GENOME: "growing", Kind.SYNTHETIC: "making"}.get(source.kind, "reading")
    with task(f"{verb} {source.name}", shown=bars) as bar:
        return source.read(reading, bar.reach)
