"""The genome's modulator instances: checked as the released engine checks them."""

from __future__ import annotations

from collections.abc import Collection

from burstproof.network.cortical_ids import encode_id
from burstproof.network.features import ModulatorKind
from burstproof.network.grow.areas import IdReader
from burstproof.network.grow.blueprint import ModulatorSpec
from burstproof.network.grow.fields import Field, is_number

_UINT16_MAX = 65535


def parse_modulators(root: Field, area_ids: Collection[str], read_id: IdReader) -> tuple[ModulatorSpec, ...]:
    """Every instance under the genome's ``modulators``, in the order of the file.

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
        return ()
    return tuple(_modulator(name, record, area_ids, read_id) for name, record in root.item("modulators").items())


def _required(record: Field, key: str, allowed: str) -> Field:
    if key not in record.mapping():
        raise record.error(f"the modulator lacks {key}", allowed=allowed, cure="Add it")
    return record.item(key)


def _modulator(name: str, record: Field, area_ids: Collection[str], read_id: IdReader) -> ModulatorSpec:
    """One instance; duration and rest are checked, and belong to the record of its driver."""
    kinds = ", ".join(kind.value for kind in ModulatorKind)
    kind = _required(record, "type", kinds)
    if kind.text() not in {one.value for one in ModulatorKind}:
        raise kind.error("unknown type of modulator", allowed=kinds, cure="Use one of these")
    magnitude = _required(record, "magnitude_percent", "a number >= -100")
    if magnitude.number() < -100:
        raise magnitude.error("out of range", allowed="a number >= -100", cure="Write a number in that range")
    _required(record, "effect_duration_bursts", "a whole number 1...65535").integer(1, _UINT16_MAX)
    given = record.mapping()
    if "rest_bursts" in given:
        record.item("rest_bursts").integer(0, _UINT16_MAX)
    scale = None
    if "graded" in given and record.item("graded").truth():
        field = _required(record, "full_scale_potential", "a number above 0")
        if not is_number(field.value) or field.number() <= 0:
            raise field.error("out of range", allowed="a number above 0", cure="Write a number in that range")
        scale = field.number()
    driver = _required(record, "driver_cortical_id", "the id of an area of this genome")
    driver_id = encode_id(read_id(driver.text(), driver))
    if driver_id not in area_ids:
        raise driver.error(
            "the modulator's driver is no area of the genome",
            allowed="the id of an area of this genome",
            cure="Correct the id or add the area",
        )
    return ModulatorSpec(name, ModulatorKind(kind.text()), driver_id, magnitude.number(), scale)
