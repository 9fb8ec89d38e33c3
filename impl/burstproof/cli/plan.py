"""``burstproof info --plan``: what a network takes of a device's memory, what would fit, how it would be run."""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import asdict, replace
from typing import Any

from burstproof.analysis.text import gibibytes, table
from burstproof.cli.feature_report import feature_line, used_features
from burstproof.cli.idle import BACKEND, refuse_idle
from burstproof.cli.settings import configuration_of, engine_options, expected_rate
from burstproof.cli.sources import read_source, reading_of, source_of
from burstproof.engine.ask_machine import ask_cuda, this_machine
from burstproof.engine.buffers import total_bytes
from burstproof.engine.cuda.plan.budget import available_bytes
from burstproof.engine.profile import FEAGI_2_6
from burstproof.engine.registry import AUTO, planned
from burstproof.engine.select import choose_backend
from burstproof.errors import ExitCode, OutOfMemoryError
from burstproof.network.model import Network
from burstproof.sources import Source

DEFAULT_BACKEND = "cuda"
"""Backend whose memory is planned unless the command line names one, or ``auto``, which chooses one."""

_ONE_GPU = (
    "Planned as on one GPU, although cuda.multi_gpu.enabled is set: each of several holds its own neurons, the synapses"
    " onto these, and the fired lists of all."
)
_WIDTH = 80


def plan(options: argparse.Namespace) -> ExitCode:
    """Print the buffers of the network that the options name, and what the engine would choose for it."""
    source = source_of(options)
    config = configuration_of(options)
    backend, why = options.backend or DEFAULT_BACKEND, ""
    refuse_idle(options, asked=backend, **({} if backend == AUTO else {BACKEND: backend}))
    network = _network(source, options)
    if backend == AUTO:
        count, rate = network.neuron_count, expected_rate(options)
        choice = choose_backend(AUTO, count, rate, config, this_machine(), synapses=network.synapse_count)
        backend, why = choice.backend, choice.reason
        refuse_idle(options, backend=backend)
    settings = engine_options(options, config, FEAGI_2_6)
    devices = ask_cuda().devices if backend == "cuda" else ()
    here = next((one for one in devices if one.number == config.cuda.device_id), None)
    if here is not None:
        limit = available_bytes(here.memory_bytes, settings)
        settings = replace(settings, cuda=replace(settings.cuda, memory_limit_bytes=limit))
    found = planned(network, settings, backend)
    totals = {place: total_bytes(found.buffers, place) for place in ("device", "host")}
    share = 2**30 / max(totals[found.buffers[0].place], 1)
    document = {
        "source": source.where,
        "backend": backend,
        "chosen_by_auto": why,
        "neurons": network.neuron_count,
        "synapses": network.synapse_count,
        "features": used_features(network),
        "as_on_one_gpu": backend == "cuda" and config.cuda.multi_gpu.enabled,
        "choices": found.choices,
        "buffers": [asdict(buffer) for buffer in found.buffers],
        "total_bytes": totals,
        "per_gibibyte": {"neurons": int(network.neuron_count * share), "synapses": int(network.synapse_count * share)},
        "device": here and {**asdict(here), "fits": totals["device"] <= settings.cuda.memory_limit_bytes},
    }
    print(json.dumps(document, indent=1) if options.json else _as_text(document))
    return ExitCode.PASS


def _network(source: Source, options: argparse.Namespace) -> Network:
    """The network of ``source``; one that this machine cannot hold has another cure here than in a run."""
    try:
        return read_source(source, reading_of(options), bars=not options.json)
    except OutOfMemoryError as error:
        cure = "Plan a smaller one: what a network needs grows in proportion"
        raise OutOfMemoryError(error.problem, where=source.where, got=error.got, cure=cure) from None


def _as_text(document: dict[str, Any]) -> str:
    rows = [
        (one["name"], one["dtype"], str(one["count"]), str(one["bytes"]), one["place"]) for one in document["buffers"]
    ]
    totals = document["total_bytes"]
    rows += [("total", "", "", str(size), place) for place, size in totals.items() if size]
    share, why = document["per_gibibyte"], document["chosen_by_auto"]
    sizes = f"{document['neurons']} neurons, {document['synapses']} synapses"
    lines = [
        f"{document['source']}: {sizes} on {document['backend']}",
        *textwrap.wrap(f"auto chooses {document['backend']} here: {why}" if why else "", _WIDTH),
        *textwrap.wrap(_ONE_GPU if document["as_on_one_gpu"] else "", _WIDTH),
        *map(feature_line, document["features"]),
        *_choice_lines(document["choices"]),
        "",
        table(("buffer", "dtype", "elements", "bytes", "place"), rows, left=2),
        "",
        f"1 GiB holds about {share['neurons']} neurons with {share['synapses']} synapses at this density",
    ]
    if (device := document["device"]) is not None:
        beside = ", its synapses in host memory" if totals["host"] else ""
        verdict = f"fits{beside}" if device["fits"] else "does not fit"
        lines.append(f"device {device['number']}, {device['name']}, {gibibytes(device['memory_bytes'])}: {verdict}")
    return "\n".join(lines)


def _choice_lines(choices: str) -> list[str]:
    """A heading and each choice with its reason; nothing of a backend that has none."""
    if not choices:
        return []
    found = (textwrap.wrap(f"- {one}", _WIDTH, subsequent_indent="  ") for one in choices.split("; "))
    return ["how it would be run, and why:", *(line for lines in found for line in lines)]
