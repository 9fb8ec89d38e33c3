"""Read a FEAGI genome and check it as far as it can be checked before anything is grown."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType

from burstproof.errors import GenomeError
from burstproof.network.blueprint import AreaSpec, Genome, MappingSpec, RuleSpec
from burstproof.network.flat import PREFIX, flat_areas, flat_id
from burstproof.network.genome_areas import IdReader, RawArea, object_areas, object_id, parse_areas
from burstproof.network.genome_fields import Field, readable
from burstproof.network.genome_json import load_tree, parse_tree
from burstproof.network.morphology import Morphology, parse_morphology, resolve

__all__ = ["AreaSpec", "Genome", "MappingSpec", "Morphology", "RuleSpec", "parse_genome", "read_genome"]


def read_genome(path: str | os.PathLike[str]) -> Genome:
    """Read a genome of format 2.x (flat blueprint) or 3.x (one object per area).

    Parameters
    ----------
    path : path-like
        A ``.json`` or ``.json.gz`` file.

    Returns
    -------
    Genome
        With all seven core areas, whether the file names them or not.

    Raises
    ------
    GenomeError
        The file cannot be read, is not strict JSON, has a value of the wrong type or out of range, or a rule that
        names an unknown morphology or a missing area. The message names file, place, value and cure.

    Notes
    -----
    Accepted as the real engine does: unknown keys, missing parameters, blueprint keys of no known format in a 2.x
    genome (they make no area). Source: golden/growth/RULES.md.
    """
    root, digest = load_tree(Path(path))
    return _genome(root, digest, Path(path))


def parse_genome(data: bytes, name: str) -> Genome:
    """The same from the bytes of a genome that is no file of its own, such as the one embedded in a connectome.

    Parameters
    ----------
    data : bytes
        JSON text in UTF-8, or gzip of it.
    name : str
        What messages call it; also the ``path`` of the result.

    Raises
    ------
    GenomeError
        As ``read_genome``.
    """
    root, digest = parse_tree(data, name)
    return _genome(root, digest, Path(name))


def _genome(root: Field, digest: str, path: Path) -> Genome:
    """Read the parts of a genome and check that they fit."""
    top = root.mapping()
    if "blueprint" not in top:
        raise root.error("the genome has no blueprint", allowed="an object under blueprint", cure="Pass a FEAGI genome")
    version = _version(root)
    blueprint = root.item("blueprint")
    raw_areas, read_id = _blueprint(blueprint, version)
    genome = Genome(
        title=root.item("genome_title").text() if "genome_title" in top else "",
        version=version,
        areas=parse_areas(raw_areas, read_id),
        morphologies=_morphologies(root),
        physiology=_physiology(root),
        path=path,
        sha256=digest,
        ignored_blueprint_keys=_ignored_keys(blueprint) if read_id is flat_id else 0,
    )
    _check_references(genome)
    return genome


def _version(root: Field) -> str:
    """The format version; a genome without one is told by the shape of its blueprint."""
    if "version" not in root.mapping():
        return ""
    field = root.item("version")
    version = field.text()
    if version.split(".")[0] not in ("2", "3"):
        raise field.error("unknown genome version", allowed="2.x or 3.x", cure="Convert the genome to one of these")
    return version


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


def _check_references(genome: Genome) -> None:
    """Every mapping leads to an area of the genome, every rule names a morphology that can be resolved."""
    known = {area.cortical_id for area in genome.areas}
    for area in genome.areas:
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
                if resolve(rule.morphology, genome.morphologies) is None:
                    raise GenomeError(
                        "unknown morphology",
                        where=rule.place,
                        got=readable(rule.morphology),
                        allowed="a name under neuron_morphologies or a core morphology",
                        cure="Correct the name or define the morphology",
                    )
