"""What ``burstproof run`` reports: as values for JSON, as text, and inside the record."""

from __future__ import annotations

import dataclasses
from typing import Any

from burstproof.analysis.statistics import ActivityCounter, AreaActivity, activity_table
from burstproof.cli.feature_report import feature_lines
from burstproof.cli.notes import note_lines, notes_in
from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import storage_for
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.quality import partition_quality
from burstproof.engine.state import EngineState
from burstproof.sources import Kind

_SHARDS = ("shards", "strategy", "neurons", "synapses", "cut_synapses", "cut_share")
_INSIDE = "psp flags, plasticity and features"
_IMBALANCES = ("neuron_imbalance", "synapse_imbalance", "cost_imbalance")


def engine_values(engine: Engine, end: EngineState) -> dict[str, Any]:
    """The network, and the rules under which the engine ran it."""
    network, options = engine.network, engine.options
    storage = storage_for(options.precision, network.neurons.thresholds)
    clamped = ", a contribution was clamped" if end.clamped else ""
    potentials = f"{storage.words} clamped to 0...255" if network.features.clamp_potentials else storage.words
    named = network.provenance.get("quantization_precision", "")
    wish = f" (the genome names {named})" if named else ""
    return {
        "notes": notes_in(network.provenance),
        "neurons": network.neuron_count,
        "synapses": network.synapse_count,
        "launch": engine.launch,
        "profile": options.profile.name,
        "emulate_batch_path": options.emulate_batch_path,
        "fixed_point": {**dataclasses.asdict(engine.fixed_point), "clamped": end.clamped},
        "potentials": {
            "precision": storage.precision.value,
            "step": storage.step,
            "genome_asks_for": named or None,
        },
        "rules": f"{options.profile.name}, {engine.fixed_point}{clamped}, {potentials}{wish}",
    }


def stimulus_values(options: EngineOptions, bursts: int) -> dict[str, Any]:
    """How many bursts get stimulus, and its bounds."""
    return {
        "bursts": bursts,
        "max_stimulus": options.max_stimulus,
        "fractional_stimulus": options.fractional_stimulus,
    }


def shard_values(engine: Engine, ranks: int, counter: ActivityCounter) -> dict[str, Any] | None:
    """How the network was split, and what that cost; ``None`` for one engine as a whole."""
    partition = getattr(engine, "partition", None)
    if partition is None:
        return None
    quality = partition_quality(engine.network, partition, counter.rates)
    return {
        "backend": engine.backend,
        "exchange": getattr(engine, "exchange_path", "in one process"),
        "ranks": ranks,
        **{name: getattr(quality, name) for name in (*_SHARDS, *_IMBALANCES)},
        "bytes_per_burst": quality.bytes_per_burst(counter.firings / max(counter.bursts, 1)),
    }


def activity_values(counter: ActivityCounter, neurons: int) -> dict[str, Any]:
    """What fired, in all and by area."""
    chances = neurons * counter.bursts
    return {
        "firings": counter.firings,
        "rate": counter.firings / chances if chances else 0.0,
        "areas": [dataclasses.asdict(area) for area in counter.areas()],
    }


def trace_settings(document: dict[str, Any]) -> dict[str, Any]:
    """What the record says of where it came from, what ran it and any fallback."""
    source, backend, sums = document["source"], document["backend"], document["fixed_point"]
    return {
        **document["notes"],
        "source": source["path"],
        "seed": source["seed"],
        "backend": backend["backend"],
        "backend_requested": backend["requested"],
        "backend_reason": backend["reason"],
        "fallback": backend["fallback"],
        "sums_exact": sums["exact"],
        "clamped": sums["clamped"],
    }


def as_text(document: dict[str, Any], *, every_area: bool) -> str:
    """The report for people: areas that fired, or ``every_area``."""
    source, backend, bursts = document["source"], document["backend"], document["bursts"]
    areas = tuple(AreaActivity(**area) for area in document["areas"])
    named = "1 area" if len(areas) == 1 else f"{len(areas)} areas"
    sizes = f"{document['neurons']} neurons, {document['synapses']} synapses, {named}"
    tables_only = source["kind"] == Kind.CONNECTOME.value and not source["apply_flags"]
    resumed = "" if document["resumed_after"] is None else f", resumed after {document['resumed_after']},"
    rows = [
        (source["kind"], f"{source['path']}: {sizes}"),
        (
            "not taken",
            f"what a genome inside the file would say of {_INSIDE}; --apply-flags takes it" if tables_only else "",
        ),
        ("backend", f"{backend['backend']}: {backend['reason']}" + (document["launch"] and f"; {document['launch']}")),
        ("fallback", backend["fallback"]),
        ("shards", _shards(document["shards"])),
        ("rules", document["rules"]),
        ("bursts", f"{bursts['first']}...{bursts['last']}{resumed} in {_times(document)}"),
        ("firings", f"{document['firings']}, {100 * document['rate']:.4f} % of the neurons per burst"),
    ]
    lines = [*note_lines(document["notes"]), *(f"{name:<11}{text}" for name, text in rows if text)]
    lines += feature_lines(document["features"], every=every_area)
    lines += ["", activity_table(areas, every_area=every_area)]
    if document["files"]:
        lines += ["", *(f"wrote {name}" for name in document["files"])]
    return "\n".join(lines)


def _shards(values: dict[str, Any] | None) -> str:
    if values is None:
        return ""
    ranks = f" in {values['ranks']} ranks" if values["ranks"] > 1 else ""
    whats = ("neurons", "synapses", "cost")
    imbalances = ", ".join(f"{values[name]:.3f} of {what}" for name, what in zip(_IMBALANCES, whats, strict=True))
    cut = f"{100 * values['cut_share']:.1f} % of the synapses cut"
    sent = f"{values['bytes_per_burst']:.0f} bytes per burst {values['exchange']}"
    return (
        f"{values['shards']} on {values['backend']}{ranks}, {values['strategy']}: {cut}, imbalance {imbalances}; {sent}"
    )


def _times(document: dict[str, Any]) -> str:
    elapsed_s, first_s, bursts = document["elapsed_s"], document["first_burst_s"], document["timed_bursts"]
    if not bursts:
        return "0 s: the checkpoint was at the last burst"
    then = f"; then {1000 * (elapsed_s - first_s) / (bursts - 1):.3f} ms each" if bursts > 1 else ""
    return f"{elapsed_s:.3f} s, compilation included (the first {first_s:.3f} s{then})"
