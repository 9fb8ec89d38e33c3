"""Genome keys on which the released engine acts and which burstproof does not model yet (requirement BE-19)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burstproof.errors import GenomeError
from burstproof.network.grow.areas import RawArea
from burstproof.network.grow.blueprint import AreaSpec, encode_id, label
from burstproof.network.grow.failing_rules import R_STDP, is_synaptic, plasticity_mode
from burstproof.network.grow.fields import FLOAT32_MAX, Field, is_number, readable
from burstproof.network.grow.modulators import AREA_KINDS, MEMORY_KIND

MOST_LISTED = 12
"""Findings that a message lists; more are counted."""

_TWIN_KEYS = ("memory_twin_areas", "memory_twin_of")
_REPLAY = "memory_replay"
_LARGEST_FINITE_LIMIT = 65534
_SMALLEST_FLOAT32 = 2.0**-150
"""A number up to this one is 0 in float32."""


@dataclass(frozen=True)
class Finding:
    """A key at a value that acts: ``subject`` is the area or mapping, ``place`` where the value stands in the file."""

    subject: str
    key: str
    value: str
    place: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.key} = {self.value}"


def unmodelled(
    raw_areas: Sequence[RawArea], areas: Sequence[AreaSpec], modulator_kinds: Mapping[str, str], schema: int
) -> tuple[Finding, ...]:
    """All keys of a genome that act and are not modelled.

    Parameters
    ----------
    raw_areas : sequence of RawArea
        The areas as the file states them.
    areas : sequence of AreaSpec
        The same parsed. Keys of a rule that is not among their mappings make no difference and are not looked at.
    modulator_kinds : Mapping
        Modulator id to type.
    schema : int
        Schema version 2...7.

    Returns
    -------
    tuple of Finding
        In the order of the file.

    Notes
    -----
    Source: FEATURES section 13, column "acts when".
    """
    specs = {area.cortical_id: area for area in areas}
    made = {rule.place: rule.plastic for area in areas for mapping in area.mappings for rule in mapping.rules}
    replays = any(rule.morphology == _REPLAY for area in areas for mapping in area.mappings for rule in mapping.rules)
    findings: list[Finding] = []
    for raw in raw_areas:
        spec = specs[encode_id(raw.raw_id)]
        for field, key in _area_keys(raw.fields, spec, modulator_kinds, replays):
            findings.append(Finding(f"area {label(spec)}", key, shown(field.value), field.where))
        for mapping in spec.mappings:
            target = label(specs[mapping.target])
            rules = raw.fields["cortical_mapping_dst"].item(mapping.key).elements()
            for position, rule in enumerate(rules):
                if rule.where not in made:
                    continue
                for field, key in _rule_keys(rule, made[rule.where], modulator_kinds, schema):
                    subject = f"mapping {label(spec)} -> {target}, rule {position}"
                    findings.append(Finding(subject, key, shown(field.value), field.where))
    return tuple(findings)


def _area_keys(
    fields: Mapping[str, Field], spec: AreaSpec, kinds: Mapping[str, str], replays: bool
) -> Iterator[tuple[Field, str]]:
    """The keys of an area that act."""

    def value(key: str) -> Any:
        return fields[key].value if key in fields else None

    memory = value("is_mem_type") is True
    own_kinds = (*AREA_KINDS, MEMORY_KIND) if memory else AREA_KINDS
    named = value("modulators")
    acting = {
        "rate_modulated_leak": is_homeostat(value("rate_modulated_leak")),
        "modulators": isinstance(named, list) and any(isinstance(m, str) and kinds.get(m) in own_kinds for m in named),
        "spike_train": value("spike_train") is True and 1 <= _fire_limit(spec) <= _LARGEST_FINITE_LIMIT,
        "degeneration": is_number(value("degeneration")) and value("degeneration") > _SMALLEST_FLOAT32,
        "is_mem_type": memory,
        **{key: replays and value(key) is not None for key in _TWIN_KEYS},
    }
    yield from ((fields[key], key) for key, acts in acting.items() if acts)


def _fire_limit(spec: AreaSpec) -> int:
    """The consecutive-fire limit as growth stores it, in 16 bits."""
    return spec.consecutive_fire_limit % (_LARGEST_FINITE_LIMIT + 2)


def is_homeostat(block: object) -> bool:
    """Whether a ``rate_modulated_leak`` is enabled and every value in it valid; one that is not switches it off.

    Source: FEATURES section 1.
    """
    if not isinstance(block, dict) or block.get("enabled", False) is not True:
        return False
    target, tau, gain, least, most = (
        block.get(key, default)
        for key, default in (
            ("target_firing_per_burst", 0.1),
            ("rate_ema_tau_bursts", 50),
            ("gain", 0.2),
            ("leak_min", 0.02),
            ("leak_max", 0.5),
        )
    )
    every = block.get("update_every_n_bursts", 1)
    if not all(is_number(value) for value in (target, tau, gain, least, most)):
        return False
    return (
        0 <= target <= 1
        and _SMALLEST_FLOAT32 < tau <= FLOAT32_MAX
        and 0 <= gain <= FLOAT32_MAX
        and 0 <= least <= most <= 1
        and isinstance(every, int)
        and not isinstance(every, bool)
        and every >= 0
    )


def _rule_keys(rule: Field, plastic: bool, kinds: Mapping[str, str], schema: int) -> Iterator[tuple[Field, str]]:
    """The keys of a rule that act."""
    fields = {"morphology_id": rule.item(0)} if isinstance(rule.value, list) else dict(rule.items())

    def value(key: str) -> Any:
        return fields[key].value if key in fields else None

    morphology, named = value("morphology_id"), value("modulators")
    acting = {
        "morphology_id": morphology in ("episodic_memory", _REPLAY) or (morphology == "associative_memory" and plastic),
        "modulators": isinstance(named, list) and any(is_synaptic(one, kinds) for one in named),
        "reward_source_area": schema <= 3 and value("reward_source_area") is not None,
        "punishment_source_area": schema <= 3 and value("punishment_source_area") is not None,
        "gate_source_area": schema <= 6 and value("gate_source_area") is not None,
    }
    if plastic:
        eta, decay = value("plasticity_eta"), value("eligibility_decay_bursts")
        acting |= {
            "plasticity_mode": plasticity_mode(fields) in ("off", *R_STDP),
            "max_weight": value("max_weight") is not None,
            "plasticity_eta": eta is not None and not (is_number(eta) and eta == 1),
            "eligibility_decay_bursts": decay is not None and not (is_number(decay) and decay == 0),
            "plasticity_frozen": value("plasticity_frozen") not in (None, False),
        }
    yield from ((fields[key], key) for key, acts in acting.items() if acts)


def unexamined(root: Field, raw_areas: Sequence[RawArea]) -> tuple[str, ...]:
    """Keys that are accepted although nobody examined what they do to a burst.

    Source: FEATURES section 13, last line; ``nx-snooze-f``: golden/growth/RULES.md, seen with the value 0 only.
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
