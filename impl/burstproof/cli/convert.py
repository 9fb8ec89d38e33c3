"""``burstproof convert``: a genome, connectome or network file as another one; the extensions say which."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from burstproof.cli.idle import refuse_idle
from burstproof.cli.notes import note_lines, notes_in
from burstproof.cli.progress import task
from burstproof.cli.sources import read_source, reading_of
from burstproof.errors import ExitCode
from burstproof.network.files.paths import check_input, check_output
from burstproof.network.model import Network
from burstproof.sources import Kind, Source, kind_of, kind_to_write, write_network


def convert(options: argparse.Namespace) -> ExitCode:
    """Read ``options.source`` and write it as ``options.target``.

    A connectome written as a connectome keeps its tail byte for byte; what a connectome cannot hold of another
    network is named on standard error.
    """
    source, target = options.source, options.target
    source_kind, target_kind = kind_of(source, "IN"), kind_to_write(target, "OUT")
    check_input(source, "IN")
    check_output(target, "OUT", [source])
    refuse_idle(options, source=source_kind)
    if source_kind is target_kind is Kind.CONNECTOME and not options.apply_flags:
        network = _copy_connectome(source, target, bars=not options.json)
        losses: tuple[str, ...] = ()
    else:
        network = read_source(Source(source.name, source_kind, source), reading_of(options), bars=not options.json)
        losses = _losses(network, target_kind)
        with task(f"writing {target.name}", shown=not options.json):
            write_network(target, target_kind, network)
    _report(options, network, losses)
    return ExitCode.PASS


def _copy_connectome(source: Path, target: Path, *, bars: bool) -> Network:
    """Read and write a connectome with everything that its network does not hold."""
    from burstproof.network.files.connectome import read_connectome, write_connectome

    with task(f"copying {source.name}", shown=bars):
        connectome = read_connectome(source)
        write_connectome(target, connectome)
    return connectome.network


def _losses(network: Network, kind: Kind) -> tuple[str, ...]:
    """What the target cannot hold."""
    if kind is not Kind.CONNECTOME:
        return ()
    from burstproof.network.files.connectome import connectome_losses

    return connectome_losses(network)


def _report(options: argparse.Namespace, network: Network, losses: tuple[str, ...]) -> None:
    notes = notes_in(network.provenance)
    if options.json:
        document = {
            "notes": notes,
            "source": str(options.source),
            "target": str(options.target),
            "neurons": network.neuron_count,
            "synapses": network.synapse_count,
            "areas": len(network.areas),
            "burst_count": network.burst_count,
            "not_kept": list(losses),
        }
        print(json.dumps(document, indent=1))
        return
    for line in note_lines(notes):
        print(line)
    for loss in losses:
        print(f"burstproof: note: a .connectome does not hold: {loss}", file=sys.stderr)
    print(
        f"{options.target}: {network.neuron_count} neurons, {network.synapse_count} synapses, "
        f"{len(network.areas)} areas, burst count {network.burst_count}"
    )
