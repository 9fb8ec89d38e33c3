"""What the released engine acts on and burstproof does not model (requirement BE-19), and what nobody examined."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from burstproof.errors import GenomeError
from burstproof.network.grow.areas import RawArea
from burstproof.network.grow.blueprint import AreaSpec, RuleSpec, label
from burstproof.network.grow.fields import Field, readable
from burstproof.network.grow.morphology import ASSOCIATIVE, TWO_WAYS

MOST_LISTED = 12
"""Findings that a message lists; more are counted."""


@dataclass(frozen=True)
class Finding:
    """A key at a value that acts: ``subject`` is the area or mapping, ``place`` where the value stands in the file."""

    subject: str
    key: str
    value: str
    place: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.key} = {self.value}"


def unmodelled(areas: Sequence[AreaSpec]) -> tuple[Finding, ...]:
    """All rules that act and are not modelled, in the order of the file: those of ``bi_directional_stdp``.

    Source: FEATURES section 12.
    """
    return tuple(
        Finding(subject, "morphology_id", shown(rule.morphology), rule.place)
        for subject, _, rule in _rules(areas)
        if rule.morphology == TWO_WAYS
    )


def _rules(areas: Sequence[AreaSpec]) -> Iterator[tuple[str, AreaSpec, RuleSpec]]:
    """What messages call it, source area and rule, for every rule."""
    names = {area.cortical_id: label(area) for area in areas}
    for area in areas:
        for mapping in area.mappings:
            for position, rule in enumerate(mapping.rules):
                yield f"mapping {label(area)} -> {names.get(mapping.target, mapping.key)}, rule {position}", area, rule


def unexamined(root: Field, raw_areas: Sequence[RawArea], areas: Sequence[AreaSpec]) -> tuple[str, ...]:
    """What is accepted although nobody examined what it does to a burst.

    Source: FEATURES sections 12 and 13, last line; ``nx-snooze-f``: golden/growth/RULES.md, seen with the value 0 only.
    """
    found = []
    top = root.mapping()
    if top.get("classifiers"):
        found.append(f"classifiers = {shown(top['classifiers'])}")
    physiology = top.get("physiology")
    if isinstance(physiology, dict):
        keys = [key for key in ("sleep", "quantization_precision") if physiology.get(key) is not None]
        found += [f"physiology.{key} = {shown(physiology[key])}" for key in keys]
    for raw in raw_areas:
        snooze = raw.fields.get("nx-snooze-f")
        if snooze is not None and snooze.value != 0:
            found.append(f"{snooze.path} = {shown(snooze.value)}")
        mappings = raw.fields.get("cortical_mapping_dst")
        rules = [] if mappings is None else [rule for _, given in mappings.items() for rule in given.elements()]
        stated = (rule.item(TWO_WAYS) for rule in rules if isinstance(rule.value, dict) and TWO_WAYS in rule.value)
        found += [f"{key.path} = {shown(key.value)}" for key in stated if key.value]
    found += [
        f"memory area {label(area)} with {area.neuron_count} neurons of its own, not 1"
        for area in areas
        if area.features.memory is not None and area.neuron_count != 1
    ]
    found += [
        f"{subject}: a plastic rule of {rule.morphology} out of a memory area"
        for subject, area, rule in _rules(areas)
        if area.features.memory is not None and rule.plastic and rule.morphology != ASSOCIATIVE
    ]
    return tuple(found)


def unmodelled_error(findings: Sequence[Finding]) -> GenomeError:
    """The refusal of a genome with keys that act."""
    return GenomeError(
        f"the released engine acts on keys that burstproof does not model: {listed(findings)}",
        where=findings[0].place,
        cure="Remove them, or run without what they do with --ignore-unmodelled (ignore_unmodelled=True)",
    )


def listed(items: Collection[object]) -> str:
    """Items in one line, the first ``MOST_LISTED`` by text and the others by number."""
    texts = [str(item) for item in items][:MOST_LISTED]
    more = len(items) - len(texts)
    return "; ".join([*texts, *([f"and {more} more"] if more else [])])


def shown(value: object) -> str:
    """A JSON value on one line of at most 60 characters."""
    return readable(json.dumps(value))
