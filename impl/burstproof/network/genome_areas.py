"""Areas, mappings and rules: from JSON records to their parsed form."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass

from burstproof.errors import GenomeError
from burstproof.network.blueprint import CORE_AREAS, AreaSpec, MappingSpec, RuleSpec, encode_id
from burstproof.network.genome_fields import Field

UINT32_MAX = 2**32 - 1

_CORE_BYTES = tuple(name.encode("ascii") for name in CORE_AREAS)
_POWER_BYTES = b"___power"

IdReader = Callable[[str, Field], bytes]
"""How a format writes area ids: text and place to 8 bytes."""


@dataclass(frozen=True)
class RawArea:
    """An area before its values are read: id bytes, place, and the fields under their v3 names."""

    raw_id: bytes
    place: Field
    fields: dict[str, Field]


def object_id(text: str, field: Field) -> bytes:
    """The 8 bytes of an area id as genomes 3.x write it: base64 text, or up to 8 characters padded with ``_``.

    Raises
    ------
    GenomeError
        The text is neither.
    """
    if len(text) == 12:
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) == 8:
            return raw
    if 1 <= len(text) <= 8 and text.isascii() and text.isprintable():
        return text.ljust(8, "_").encode("ascii")
    raise GenomeError(
        "not an area id",
        where=field.where,
        got=text,
        allowed="base64 of 8 bytes, or up to 8 printable ASCII characters",
        cure="Use the id of an area of this genome",
    )


def object_areas(blueprint: Field) -> list[RawArea]:
    """The areas of a 3.x blueprint, one object per area, in the order of the file."""
    areas = []
    for key, record in blueprint.items():
        fields = dict(record.items())
        fields.update(_dimensions(fields))
        areas.append(RawArea(object_id(key, record), record, fields))
    return areas


def _dimensions(fields: dict[str, Field]) -> dict[str, Field]:
    """Width, height and depth from ``cortical_dimensions`` or, without it, ``block_boundaries``."""
    names = ("width", "height", "depth")
    given = fields.get("cortical_dimensions")
    if given is not None:
        record = given.mapping()
        return {name: given.item(name) for name in names if name in record}
    if "block_boundaries" in fields:
        return dict(zip(names, fields["block_boundaries"].triple(), strict=True))
    return {}


def parse_areas(raw: list[RawArea], read_id: IdReader) -> tuple[AreaSpec, ...]:
    """All areas in order of cortical index: the core areas, given or not, then the others as they come.

    Raises
    ------
    GenomeError
        A value of the wrong type or out of range, or the same area twice.
    """
    specs: dict[bytes, AreaSpec] = {}
    for area in raw:
        if area.raw_id in specs:
            raise area.place.error(
                "the area is defined twice", allowed="one definition per area", cure="Remove or rename one of the two"
            )
        specs[area.raw_id] = _area(area, read_id)
    core = tuple(specs.get(core_id) or _missing_core(core_id) for core_id in _CORE_BYTES)
    return core + tuple(spec for raw_id, spec in specs.items() if raw_id not in _CORE_BYTES)


def _missing_core(raw_id: bytes) -> AreaSpec:
    """The engine's own definition of a core area (RULES.md, "Core areas that the genome lacks")."""
    return AreaSpec(
        encode_id(raw_id),
        name=raw_id.decode("ascii").strip("_"),
        firing_threshold=0.1,
        psp_uniform_distribution=True,
    )


def _area(area: RawArea, read_id: IdReader) -> AreaSpec:
    """The parsed form of one area; what the record lacks keeps its default."""
    power = area.raw_id == _POWER_BYTES
    base = _missing_core(area.raw_id) if area.raw_id in _CORE_BYTES else AreaSpec(encode_id(area.raw_id))
    fields = area.fields

    def number(name: str, default: float) -> float:
        return fields[name].number() if name in fields else default

    def count(name: str, default: int, low: int = 0) -> int:
        return fields[name].integer(low, UINT32_MAX) if name in fields else default

    def truth(name: str, default: bool) -> bool:
        return fields[name].truth() if name in fields else default

    excitability = number("neuron_excitability", base.excitability)
    uniform = truth("psp_uniform_distribution", base.psp_uniform_distribution)
    return AreaSpec(
        base.cortical_id,
        name=fields["cortical_name"].text() if "cortical_name" in fields else base.name,
        dimensions=(count("width", 1, 1), count("height", 1, 1), count("depth", 1, 1)),
        neurons_per_voxel=count("per_voxel_neuron_cnt", 1),
        firing_threshold=number("firing_threshold", base.firing_threshold),
        threshold_increments=(
            number("firing_threshold_increment_x", 0.0),
            number("firing_threshold_increment_y", 0.0),
            number("firing_threshold_increment_z", 0.0),
        ),
        threshold_limit=number("firing_threshold_limit", 0.0),
        leak_coefficient=number("leak_coefficient", 0.0),
        refractory_period=count("refractory_period", 0),
        consecutive_fire_limit=count("consecutive_fire_cnt_max", 0),
        snooze_length=count("snooze_length", 0),
        excitability=base.excitability if power else excitability,
        mp_charge_accumulation=truth("mp_charge_accumulation", base.mp_charge_accumulation),
        postsynaptic_current=number("postsynaptic_current", base.postsynaptic_current),
        psp_uniform_distribution=base.psp_uniform_distribution if power else uniform,
        mp_driven_psp=truth("mp_driven_psp", base.mp_driven_psp),
        mappings=_mappings(fields["cortical_mapping_dst"], read_id) if "cortical_mapping_dst" in fields else (),
        place=area.place.where,
    )


def _mappings(field: Field, read_id: IdReader) -> tuple[MappingSpec, ...]:
    """The mappings of one area: target id to list of rules."""
    return tuple(
        MappingSpec(encode_id(read_id(target, rules)), tuple(_rule(rule) for rule in rules.elements()))
        for target, rules in field.items()
    )


def _rule(field: Field) -> RuleSpec:
    """One rule: an object (3.x) or a list of seven (flat)."""
    if isinstance(field.value, dict):
        return _object_rule(field)
    if isinstance(field.value, list):
        return _list_rule(field)
    raise field.error(
        "wrong type", allowed="an object, or a list of 7 (flat form)", cure="Write the rule in either form"
    )


def _object_rule(field: Field) -> RuleSpec:
    """A rule as genomes 3.x write it; a window of 0 counts as 1, the window of the flat form."""
    fields = dict(field.items())
    if "morphology_id" not in fields:
        raise field.error("the rule lacks morphology_id", allowed="the name of a morphology", cure="Name one")

    def number(name: str, default: float = 1.0) -> float:
        return fields[name].number() if name in fields else default

    def count(name: str) -> int:
        return fields[name].integer(0, UINT32_MAX) if name in fields else 1

    attractivity = number("synapse_attractivity", 100.0)
    if attractivity < 0:
        raise fields["synapse_attractivity"].error(
            "a negative probability", allowed="0...100 percent", cure="Write a percentage"
        )
    return RuleSpec(
        fields["morphology_id"].text(),
        multiplier=number("postSynapticCurrent_multiplier"),
        delay_bursts=count("synaptic_delay_bursts"),
        attractivity=attractivity,
        plastic=fields["plasticity_flag"].truth() if "plasticity_flag" in fields else False,
        window=max(1, count("plasticity_window")),
        constant=number("plasticity_constant"),
        ltp_multiplier=number("ltp_multiplier"),
        ltd_multiplier=number("ltd_multiplier"),
        place=field.where,
    )


def _list_rule(field: Field) -> RuleSpec:
    """A rule of the flat form: morphology, scalar, multiplier, plastic, constant, ltp, ltd; more is passed over."""
    items = list(field.elements())
    if len(items) < 3:
        raise field.error(
            "the rule is too short",
            allowed="[morphology, scalar, multiplier, plastic, constant, ltp, ltd]",
            cure="Give at least morphology, scalar and multiplier",
        )
    constant, ltp, ltd = ([item.number() for item in items[4:7]] + [1.0] * 3)[:3]
    return RuleSpec(
        items[0].text(),
        multiplier=items[2].number(),
        plastic=items[3].truth() if len(items) > 3 else False,
        constant=constant,
        ltp_multiplier=ltp,
        ltd_multiplier=ltd,
        place=field.where,
    )
