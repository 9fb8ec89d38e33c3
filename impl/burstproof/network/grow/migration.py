"""Old genomes: areas that reward, punish or open a gate become modulators with drivers of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from burstproof.errors import GenomeError
from burstproof.network.cortical_ids import encode_id, readable_id
from burstproof.network.features import ModulatorKind
from burstproof.network.grow.blueprint import AreaFeatureSpec, AreaSpec, MappingSpec, ModulatorSpec, RuleSpec

_INSTANCES = {
    "reward_source_area": ("reward", ModulatorKind.REWARD, 100.0),
    "punishment_source_area": ("punishment", ModulatorKind.REWARD, -100.0),
    "gate_source_area": ("gate", ModulatorKind.GATE, 100.0),
}
"""Key of a rule to the name, kind and magnitude in percent of its modulator, in the order of migration."""

_Old = tuple[str, str]
"""A key and the area that it names (base64)."""


def migrated(
    areas: Sequence[AreaSpec], modulators: Sequence[ModulatorSpec]
) -> tuple[tuple[AreaSpec, ...], tuple[ModulatorSpec, ...]]:
    """The areas and modulators of the genome in schema version 7.

    Each area that a rule names as source of rewards, punishments or a gate gets one modulator of that kind, driven by
    a neuron that a projector from the area feeds.

    Raises
    ------
    GenomeError
        A rule names an area that does not exist.

    Notes
    -----
    Source: FEATURES section 10.
    """
    named: dict[_Old, RuleSpec] = {}
    for area in areas:
        for rule in (rule for mapping in area.mappings for rule in mapping.rules):
            for old in rule.old_sources:
                named.setdefault(old, rule)
    if not named:
        return tuple(areas), tuple(modulators)
    known = {area.cortical_id for area in areas}
    added: dict[_Old, ModulatorSpec] = {}
    drivers: list[AreaSpec] = []
    for key, (word, kind, magnitude) in _INSTANCES.items():
        for old, rule in named.items():
            if old[0] == key:
                _check_source(old, rule, known)
                name = _free_name(f"{word} {readable_id(old[1])}", (*modulators, *added.values()))
                driver = _driver(name, rule.place, known)
                known.add(driver.cortical_id)
                drivers.append(driver)
                added[old] = ModulatorSpec(name, kind, driver.cortical_id, magnitude)
    kept = tuple(_rewired(area, added) for area in areas)
    return (*kept, *drivers), (*modulators, *added.values())


def _check_source(old: _Old, rule: RuleSpec, known: set[str]) -> None:
    key, source = old
    if source not in known:
        raise GenomeError(
            f"{key} names an area that does not exist",
            where=rule.place,
            got=source,
            allowed="the id of an area of this genome",
            cure="Correct the id or remove the key",
        )


def _free_name(wanted: str, taken: Sequence[ModulatorSpec]) -> str:
    """``wanted``, or with a number behind it where a modulator has that name."""
    names = {one.name for one in taken}
    numbered = (f"{wanted} {number}" for number in range(2, len(names) + 3))
    return wanted if wanted not in names else next(name for name in numbered if name not in names)


def _driver(name: str, place: str, known: set[str]) -> AreaSpec:
    """A driver of one neuron that fires once for each input, under the first free id of drivers."""
    ids = (encode_id(b"g___" + index.to_bytes(4, "little")) for index in range(len(known) + 1))
    return AreaSpec(
        next(one for one in ids if one not in known),
        name=name,
        consecutive_fire_limit=1,
        features=AreaFeatureSpec(spike_train=True),
        place=place,
    )


def _rewired(area: AreaSpec, added: dict[_Old, ModulatorSpec]) -> AreaSpec:
    """The area with its rules subscribed to the modulators, and wired to the drivers that it feeds."""
    mappings = [
        dataclasses.replace(mapping, rules=tuple(_subscribed(rule, added) for rule in mapping.rules))
        for mapping in area.mappings
    ]
    for (_, source), one in added.items():
        if source == area.cortical_id:
            mappings.append(MappingSpec(one.driver, (RuleSpec("projector", place=area.place),), one.driver))
    return dataclasses.replace(area, mappings=tuple(mappings))


def _subscribed(rule: RuleSpec, added: dict[_Old, ModulatorSpec]) -> RuleSpec:
    names = tuple(added[old].name for old in rule.old_sources)
    return dataclasses.replace(rule, modulators=(*rule.modulators, *names), old_sources=())
