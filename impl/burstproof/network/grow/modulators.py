"""The genome's modulator instances: checked as the released engine checks them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from burstproof.network.grow.areas import IdReader
from burstproof.network.grow.blueprint import encode_id
from burstproof.network.grow.fields import Field, is_number

AREA_KINDS = ("neuro.firing_threshold", "neuro.leak", "neuro.firing_probability")
"""Types of modulators that act on the neurons of an area."""

MEMORY_KIND = "memory.formation"
"""The type that acts on a memory area."""

SYNAPTIC_KINDS = ("synaptic.transmission_gain", "synaptic.gate", "synaptic.reward", "synaptic.learning_rate")
"""Types of modulators that act on the synapses of a rule."""

_KINDS = (*AREA_KINDS, MEMORY_KIND, *SYNAPTIC_KINDS)
_UINT16_MAX = 65535


def modulator_kinds(root: Field, area_ids: Collection[str], read_id: IdReader) -> Mapping[str, str]:
    """Id to type of every instance under the genome's ``modulators``.

    Parameters
    ----------
    root : Field
        The genome.
    area_ids : collection of str
        The areas of the genome, base64.
    read_id : callable
        How the genome writes area ids.

    Raises
    ------
    GenomeError
        An instance for which the released engine rejects the genome: of an unknown type, without a magnitude >= -100
        or a duration 1...65535, graded without a full scale above 0, or driven by no area of the genome.

    Notes
    -----
    Source: FEATURES section 2.
    """
    if root.mapping().get("modulators") is None:
        return MappingProxyType({})
    kinds = {}
    for name, record in root.item("modulators").items():
        kinds[name] = _kind(record)
        driver = _required(record, "driver_cortical_id", "the id of an area of this genome")
        if encode_id(read_id(driver.text(), driver)) not in area_ids:
            raise driver.error(
                "the modulator's driver is no area of the genome",
                allowed="the id of an area of this genome",
                cure="Correct the id or add the area",
            )
    return MappingProxyType(kinds)


def _required(record: Field, key: str, allowed: str) -> Field:
    if key not in record.mapping():
        raise record.error(f"the modulator lacks {key}", allowed=allowed, cure="Add it")
    return record.item(key)


def _kind(record: Field) -> str:
    """The type of one instance, whose numbers are checked."""
    kind = _required(record, "type", ", ".join(_KINDS))
    if kind.text() not in _KINDS:
        raise kind.error("unknown type of modulator", allowed=", ".join(_KINDS), cure="Use one of these")
    magnitude = _required(record, "magnitude_percent", "a number >= -100")
    if magnitude.number() < -100:
        raise magnitude.error("out of range", allowed="a number >= -100", cure="Write a number in that range")
    _required(record, "effect_duration_bursts", "a whole number 1...65535").integer(1, _UINT16_MAX)
    given = record.mapping()
    if "rest_bursts" in given:
        record.item("rest_bursts").integer(0, _UINT16_MAX)
    if "graded" in given and record.item("graded").truth():
        scale = _required(record, "full_scale_potential", "a number above 0")
        if not is_number(scale.value) or scale.number() <= 0:
            raise scale.error("out of range", allowed="a number above 0", cure="Write a number in that range")
    return kind.text()
