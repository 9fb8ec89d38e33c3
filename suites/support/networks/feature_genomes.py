"""Small genomes with features, in either form, and the networks that they make."""

from __future__ import annotations

import copy
import json
from typing import Any

from burstproof.network.features import AreaFeatures
from burstproof.network.grow.blueprint import Genome
from burstproof.network.grow.genome import GenomePolicy, parse_genome
from burstproof.network.grow.growth import grow
from burstproof.network.model import Network
from suites.support.networks.growth_golden import GOLDEN

Keys = dict[str, Any]

FEATURES = sorted((GOLDEN / "features").glob("*.genome.json.gz"))
"""Genomes of the recordings of features."""

KINDS = {
    "th": "neuro.firing_threshold",
    "lk": "neuro.leak",
    "pr": "neuro.firing_probability",
    "mf": "memory.formation",
    "tg": "synaptic.transmission_gain",
    "gt": "synaptic.gate",
    "rw": "synaptic.reward",
    "lr": "synaptic.learning_rate",
}
MODULATORS: dict[str, Keys] = {
    name: {"type": kind, "magnitude_percent": 50, "effect_duration_bursts": 1, "driver_cortical_id": "g___"}
    for name, kind in KINDS.items()
}
LEARNING: Keys = {
    "plasticity_flag": True,
    "plasticity_window": 1,
    "plasticity_constant": 1,
    "ltp_multiplier": 1,
    "ltd_multiplier": 1,
}


def tree_of(
    area: Keys | None = None,
    rule: Keys | None = None,
    target: Keys | None = None,
    *,
    rules: list[Keys] | None = None,
    schema: int = 7,
) -> Keys:
    """Areas cA (index 7) -> cB (8) with a driver (9), and the given keys; by default one rule of a projector."""
    made = [{"morphology_id": "projector", **one} for one in (rules if rules is not None else [rule or {}])]
    blueprint = {
        "cA": {**(area or {}), "cortical_name": "first", "cortical_mapping_dst": {"cB": made}},
        "cB": target or {},
        "g___": {},
    }
    return copy.deepcopy(
        {"version": "3.0", "genome_schema_version": schema, "modulators": MODULATORS, "blueprint": blueprint}
    )


def parse(tree: Keys, policy: GenomePolicy | None = None) -> Genome:
    return parse_genome(json.dumps(tree).encode(), "case.json", policy or GenomePolicy())


def grown(tree: Keys) -> Network:
    return grow(parse(tree))


def first_area(keys: Keys) -> AreaFeatures:
    """What area cA adds with ``keys``."""
    return grown(tree_of(area=keys)).features.areas.get(7, AreaFeatures())


def short(keys: object) -> str:
    """A name for a case."""
    return json.dumps(keys)[:60]
