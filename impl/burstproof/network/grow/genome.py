"""Read a FEAGI genome and check it as far as it can be checked before anything is grown."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from burstproof.errors import GenomeError
from burstproof.network.cortical_ids import encode_id, readable_id
from burstproof.network.grow.areas import (
    GenomeForm,
    IdReader,
    RawArea,
    area_ids,
    by_family,
    object_areas,
    object_id,
    parse_areas,
)
from burstproof.network.grow.blueprint import (
    STRICT,
    AreaSpec,
    Genome,
    GenomePolicy,
    MappingSpec,
    RuleSpec,
    label,
    wiring_rule,
)
from burstproof.network.grow.failing_rules import failing_rule_error, without_failing
from burstproof.network.grow.fields import Field
from burstproof.network.grow.flat import PREFIX, flat_areas, flat_id
from burstproof.network.grow.genome_version import genome_version
from burstproof.network.grow.json_tree import load_tree, parse_tree
from burstproof.network.grow.migration import migrated
from burstproof.network.grow.modulators import parse_modulators
from burstproof.network.grow.morphology import Morphology, parse_morphology
from burstproof.network.grow.regions import check_replays
from burstproof.network.grow.unmodelled import unexamined, unmodelled, unmodelled_error

__all__ = ["AreaSpec", "Genome", "GenomePolicy", "MappingSpec", "Morphology", "RuleSpec", "parse_genome", "read_genome"]


def read_genome(path: str | os.PathLike[str], policy: GenomePolicy = STRICT) -> Genome:
    """Read a genome of format 2.x (flat blueprint) or 3.x (one object per area).

    Parameters
    ----------
    path : path-like
        A ``.json`` or ``.json.gz`` file.
    policy : GenomePolicy
        What to do with keys that are not modelled and with rules at which the released engine fails.

    Returns
    -------
    Genome
        With all seven core areas, whether the file names them or not. ``notes`` says what was left out.

    Raises
    ------
    GenomeError
        The file cannot be read, is not strict JSON, has a value of the wrong type or out of range, a version that the
        engine rejects, or a rule that names an unknown morphology or a missing area. Unless ``policy`` says
        otherwise: a key that the released engine acts on and that is not modelled (FEATURES section 13), or a rule
        at which it fails (section 4). The message names file, place, value and cure.

    Notes
    -----
    Accepted as the real engine does: unknown keys, missing parameters, blueprint keys of no known format in a 2.x
    genome (they make no area). Source: golden/growth/RULES.md; FEATURES sections 2, 4, 10, 13.
    """
    root, digest = load_tree(Path(path))
    return _genome(root, digest, Path(path), policy)


def parse_genome(data: bytes, name: str, policy: GenomePolicy = STRICT) -> Genome:
    """The same from the bytes of a genome that is no file of its own, such as the one embedded in a connectome.

    Parameters
    ----------
    data : bytes
        JSON text in UTF-8, or gzip of it.
    name : str
        What messages call it; also the ``path`` of the result.
    policy : GenomePolicy
        As for ``read_genome``.

    Raises
    ------
    GenomeError
        As ``read_genome``.
    """
    root, digest = parse_tree(data, name)
    return _genome(root, digest, Path(name), policy)


def _genome(root: Field, digest: str, path: Path, policy: GenomePolicy) -> Genome:
    """Read the parts of a genome and check that they fit."""
    top = root.mapping()
    if "blueprint" not in top:
        raise root.error("the genome has no blueprint", allowed="an object under blueprint", cure="Pass a FEAGI genome")
    version, schema = genome_version(root)
    blueprint = root.item("blueprint")
    all_areas, read_id = _blueprint(blueprint, version)
    raw_areas, skipped = by_family(all_areas)
    modulators = parse_modulators(root, area_ids(raw_areas), read_id)
    kinds = {one.name: one.kind for one in modulators}
    areas = parse_areas(raw_areas, GenomeForm(read_id, read_id is flat_id, schema, kinds))
    areas = _without_targets(areas, {encode_id(area.raw_id) for area in skipped})
    areas, modulators = migrated(areas, modulators)
    areas, ended = _grown_as_there(areas, policy)
    morphologies = _morphologies(root)
    _check_references(areas, morphologies)
    findings = unmodelled(areas)
    if findings and not policy.ignore_unmodelled:
        raise unmodelled_error(findings)
    notes = {
        "unmodelled": findings,
        "as_the_engine": ended,
        "skipped_areas": [readable_id(encode_id(area.raw_id)) for area in skipped],
        "not_examined": unexamined(root, raw_areas, areas),
    }
    genome = Genome(
        title=root.item("genome_title").text() if "genome_title" in top else "",
        version=version,
        areas=areas,
        modulators=modulators,
        morphologies=morphologies,
        physiology=_physiology(root),
        path=path,
        sha256=digest,
        ignored_blueprint_keys=_ignored_keys(blueprint) if read_id is flat_id else 0,
        schema=schema,
        notes=MappingProxyType({key: "; ".join(map(str, items)) for key, items in notes.items() if items}),
    )
    check_replays(genome, root, read_id)
    return genome


def _without_targets(areas: tuple[AreaSpec, ...], skipped: Collection[str]) -> tuple[AreaSpec, ...]:
    """The areas without mappings to areas that the engine skips."""
    return tuple(
        dataclasses.replace(area, mappings=tuple(one for one in area.mappings if one.target not in skipped))
        for area in areas
    )


def _grown_as_there(areas: tuple[AreaSpec, ...], policy: GenomePolicy) -> tuple[tuple[AreaSpec, ...], list[str]]:
    """The areas with the rules that the released engine gets to, and a text for each area whose growth ends early."""
    outcomes = [without_failing(area) for area in areas]
    failed = [rule for _, rule, _ in outcomes if rule is not None]
    if failed and not policy.as_the_engine:
        raise failing_rule_error(failed[0], len(failed) - 1)
    ended = [
        f"area {label(area)}: {rule.failure} ({rule.place.rpartition(': ')[2]}), {lost} rules make no synapse"
        for area, rule, lost in outcomes
        if rule is not None
    ]
    return tuple(area for area, _, _ in outcomes), ended


def _blueprint(field: Field, version: str) -> tuple[list[RawArea], IdReader]:
    """The areas of the blueprint by the form that its keys show, and how that form writes ids."""
    keys = field.mapping()
    if version.startswith("2") or any(key.startswith(PREFIX) for key in keys):
        return flat_areas(field), flat_id
    return object_areas(field), object_id


def _ignored_keys(blueprint: Field) -> int:
    """How many keys of a flat blueprint belong to no area."""
    return sum(not key.startswith(PREFIX) for key in blueprint.mapping())


def _morphologies(root: Field) -> MappingProxyType[str, Morphology]:
    """The genome's own morphologies by name."""
    if "neuron_morphologies" not in root.mapping():
        return MappingProxyType({})
    return MappingProxyType(
        {name: parse_morphology(name, record) for name, record in root.item("neuron_morphologies").items()}
    )


def _physiology(root: Field) -> MappingProxyType[str, int | float | str | bool]:
    """The scalar entries of the physiology; nested ones steer engine parts that do not exist here."""
    if "physiology" not in root.mapping():
        return MappingProxyType({})
    entries = root.item("physiology").mapping()
    return MappingProxyType({key: value for key, value in entries.items() if isinstance(value, int | float | str)})


def _check_references(areas: tuple[AreaSpec, ...], morphologies: Mapping[str, Morphology]) -> None:
    """Every mapping leads to an area of the genome, every rule names a morphology that can be resolved."""
    known = {area.cortical_id for area in areas}
    for area in areas:
        for mapping in area.mappings:
            if mapping.target not in known:
                raise GenomeError(
                    "a mapping leads to an area that does not exist",
                    where=mapping.rules[0].place if mapping.rules else area.place,
                    got=mapping.target,
                    allowed="the id of an area of this genome",
                    cure="Correct the target or remove the mapping",
                )
            for rule in mapping.rules:
                wiring_rule(rule, morphologies)
