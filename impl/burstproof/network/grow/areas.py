"""Areas, mappings and rules: from JSON records to their parsed form."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from burstproof.errors import GenomeError
from burstproof.network.cortical_ids import encode_id
from burstproof.network.features import ModulatorKind
from burstproof.network.grow.area_features import area_features, listed_ids
from burstproof.network.grow.blueprint import CORE_AREAS, AreaSpec, MappingSpec, RuleSpec
from burstproof.network.grow.failing_rules import plasticity_mode, why_delay_fails, why_plasticity_fails
from burstproof.network.grow.fields import Field

UINT32_MAX = 2**32 - 1

_CORE_BYTES = tuple(name.encode("ascii") for name in CORE_AREAS)
_POWER_BYTES = b"___power"

_FAMILIES = b"cmiog_"
"""What an area id may begin with."""

_LIST_KEYS = ("plasticity_constant", "ltp_multiplier", "ltd_multiplier")
"""v3 names of the last three elements of a rule in the flat form."""

_OLD_SOURCES = {"reward_source_area": 3, "punishment_source_area": 3, "gate_source_area": 6}
"""Keys of a rule that became modulators, and the last schema version in which they act."""

IdReader = Callable[[str, Field], bytes]
"""How a format writes area ids: text and place to 8 bytes."""


@dataclass(frozen=True)
class GenomeForm:
    """What reading a record depends on: how ids are written, whether the blueprint is flat, the schema version, and
    the kind of each modulator by its id."""

    read_id: IdReader
    flat: bool
    schema: int
    modulator_kinds: Mapping[str, ModulatorKind]


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


def by_family(raw: list[RawArea]) -> tuple[list[RawArea], list[RawArea]]:
    """The areas that the engine takes, and those that it skips because no family has the first letter of their ids."""
    taken = [area for area in raw if area.raw_id[0] in _FAMILIES]
    return taken, [area for area in raw if area.raw_id[0] not in _FAMILIES]


def area_ids(raw: list[RawArea]) -> frozenset[str]:
    """base64 ids of the areas and of the core areas, which every network has."""
    return frozenset(encode_id(raw_id) for raw_id in (*_CORE_BYTES, *(area.raw_id for area in raw)))


def parse_areas(raw: list[RawArea], form: GenomeForm) -> tuple[AreaSpec, ...]:
    """All areas in order of cortical index: the core areas, given or not, then the others as they come.

    Parameters
    ----------
    raw : list of RawArea
        The areas of the genome.
    form : GenomeForm
        In a flat blueprint a core area takes the defaults of an ordinary area.

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
        specs[area.raw_id] = _area(area, form)
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


def _defaults(raw_id: bytes, *, flat: bool) -> AreaSpec:
    """What an area is as far as its record says nothing."""
    if raw_id not in _CORE_BYTES:
        return AreaSpec(encode_id(raw_id))
    missing = _missing_core(raw_id)
    return AreaSpec(missing.cortical_id, name=missing.name) if flat else missing


def _area(area: RawArea, form: GenomeForm) -> AreaSpec:
    """The parsed form of one area; what the record lacks keeps its default."""
    base = _defaults(area.raw_id, flat=form.flat)
    fields = area.fields

    def number(name: str, default: float) -> float:
        return fields[name].number() if name in fields else default

    def count(name: str, default: int, low: int = 0) -> int:
        return fields[name].integer(low, UINT32_MAX) if name in fields else default

    def truth(name: str, default: bool) -> bool:
        return fields[name].truth() if name in fields else default

    mappings = fields.get("cortical_mapping_dst")
    fire_limit = count("consecutive_fire_cnt_max", 0)
    spec = AreaSpec(
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
        consecutive_fire_limit=fire_limit,
        snooze_length=count("snooze_length", 0),
        excitability=number("neuron_excitability", base.excitability),
        mp_charge_accumulation=truth("mp_charge_accumulation", base.mp_charge_accumulation),
        postsynaptic_current=number("postsynaptic_current", base.postsynaptic_current),
        psp_uniform_distribution=truth("psp_uniform_distribution", base.psp_uniform_distribution),
        mp_driven_psp=truth("mp_driven_psp", base.mp_driven_psp),
        mappings=_mappings(mappings, form) if mappings is not None else (),
        features=area_features(fields, form.read_id, fire_limit % 65536),
        place=area.place.where,
    )
    return _as_power(spec) if area.raw_id == _POWER_BYTES else spec


def _as_power(spec: AreaSpec) -> AreaSpec:
    """The power area: one neuron that always passes, uniform, whatever the genome says (RULES.md)."""
    return dataclasses.replace(
        spec, dimensions=(1, 1, 1), neurons_per_voxel=1, excitability=1.0, psp_uniform_distribution=True
    )


def _mappings(field: Field, form: GenomeForm) -> tuple[MappingSpec, ...]:
    """The mappings of one area: target id to list of rules."""
    return tuple(
        MappingSpec(
            encode_id(form.read_id(target, rules)), tuple(_rule(rule, form) for rule in rules.elements()), target
        )
        for target, rules in field.items()
    )


def _rule(field: Field, form: GenomeForm) -> RuleSpec:
    """One rule: an object (3.x) or a list of seven (flat)."""
    if isinstance(field.value, dict):
        return _object_rule(field, form)
    if isinstance(field.value, list):
        return _list_rule(field)
    raise field.error(
        "wrong type", allowed="an object, or a list of 7 (flat form)", cure="Write the rule in either form"
    )


def _object_rule(field: Field, form: GenomeForm) -> RuleSpec:
    """A rule as genomes 3.x write it."""
    fields = dict(field.items())
    if "morphology_id" not in fields:
        raise field.error("the rule lacks morphology_id", allowed="the name of a morphology", cure="Name one")
    attractivity = fields["synapse_attractivity"].number() if "synapse_attractivity" in fields else 100.0
    if attractivity < 0:
        raise fields["synapse_attractivity"].error(
            "a negative probability", allowed="0...100 percent", cure="Write a percentage"
        )
    multiplier, delay = (fields.get(name) for name in ("postSynapticCurrent_multiplier", "synaptic_delay_bursts"))
    rule = RuleSpec(
        fields["morphology_id"].text(),
        multiplier=multiplier.number() if multiplier is not None else 1.0,
        delay_bursts=delay.integer(0, UINT32_MAX) if delay is not None else 1,
        attractivity=attractivity,
        plastic="plasticity_flag" in fields and fields["plasticity_flag"].truth(),
        modulators=listed_ids(fields["modulators"].value) if "modulators" in fields else (),
        old_sources=tuple(
            (key, encode_id(form.read_id(fields[key].text(), fields[key])))
            for key, last in _OLD_SOURCES.items()
            if form.schema <= last and key in fields and fields[key].value is not None
        ),
        place=field.where,
    )
    kinds = form.modulator_kinds
    return _learning(dataclasses.replace(rule, failure=why_delay_fails(rule.delay_bursts)), fields, kinds)


def _learning(rule: RuleSpec, fields: dict[str, Field], kinds: Mapping[str, ModulatorKind]) -> RuleSpec:
    """The rule with what it says about plasticity, which counts only in a plastic rule."""
    if not rule.plastic or rule.failure:
        return rule
    failure = why_plasticity_fails(fields, kinds, migrated=bool(rule.old_sources))
    if failure:
        return dataclasses.replace(rule, failure=failure)
    given = {key: field for key, field in fields.items() if field.value is not None}
    return dataclasses.replace(
        rule,
        window=fields["plasticity_window"].integer(1, UINT32_MAX),
        constant=fields["plasticity_constant"].number(),
        ltp_multiplier=fields["ltp_multiplier"].number(),
        ltd_multiplier=fields["ltd_multiplier"].number(),
        mode=plasticity_mode(fields),
        eligibility_decay=given["eligibility_decay_bursts"].integer(0, UINT32_MAX)
        if "eligibility_decay_bursts" in given
        else 0,
        eta=given["plasticity_eta"].number() if "plasticity_eta" in given else 1.0,
        max_weight=given["max_weight"].number() if "max_weight" in given else None,
        frozen="plasticity_frozen" in given and given["plasticity_frozen"].truth(),
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
    rule = RuleSpec(
        items[0].text(),
        multiplier=items[2].number(),
        plastic=items[3].truth() if len(items) > 3 else False,
        place=field.where,
    )
    window = Field(field.file, field.path, 1)
    return _learning(rule, {"plasticity_window": window, **dict(zip(_LIST_KEYS, items[4:7], strict=False))}, {})
