"""The flat blueprint of genomes 2.x: one key per area and parameter, told apart by a prefix."""

from __future__ import annotations

import re

from burstproof.errors import GenomeError
from burstproof.network.grow.areas import RawArea, object_id
from burstproof.network.grow.blueprint import CORE_AREAS
from burstproof.network.grow.fields import Field

PREFIX = "_____10c-"
"""What every key of a flat blueprint starts with; the area id, ``-`` and the parameter follow. The id has 6
characters, or the 12 of base64 in what the engine itself writes (``genome/download``)."""

_PARAMETER_NAMES = {
    "cx-__name-t": "cortical_name",
    "cx-___bbx-i": "width",
    "cx-___bby-i": "height",
    "cx-___bbz-i": "depth",
    "cx-_n_cnt-i": "per_voxel_neuron_cnt",
    "cx-pspuni-b": "psp_uniform_distribution",
    "cx-dstmap-d": "cortical_mapping_dst",
    "nx-fire_t-f": "firing_threshold",
    "nx-ftincx-f": "firing_threshold_increment_x",
    "nx-ftincy-f": "firing_threshold_increment_y",
    "nx-ftincz-f": "firing_threshold_increment_z",
    "nx-fthlim-f": "firing_threshold_limit",
    "nx-leak_c-f": "leak_coefficient",
    "nx-refrac-i": "refractory_period",
    "nx-c_fr_c-i": "consecutive_fire_cnt_max",
    "nx-excite-f": "neuron_excitability",
    "nx-mp_acc-b": "mp_charge_accumulation",
    "nx-mp_psp-b": "mp_driven_psp",
    "nx-pstcr_-f": "postsynaptic_current",
    "cx-hmlk-d": "rate_modulated_leak",
    "cx-modls-d": "modulators",
    "cx-spktrn-b": "spike_train",
    "cx-de_gen-f": "degeneration",
    "cx-memory-b": "is_mem_type",
    "cx-tmpdpt-i": "temporal_depth",
    "cx-mem_ls-i": "init_lifespan",
    "cx-mem_gr-i": "lifespan_growth_rate",
    "cx-mem__t-i": "longterm_mem_threshold",
    "cx-memcap-i": "memory_neuron_cap",
    "cx-ltmevc-t": "ltm_eviction",
    "cx-mplrn-b": "mp_learning_enabled",
    "cx-twinrf-t": "memory_twin_of",
    "nx-snooze-f": "nx-snooze-f",
}

_SHORT_ID, _LONG_ID = 6, 12

_SEGMENTED_VISION = re.compile(r"iic(\d)00")
_BINARY_IDS = {"omot00": b"omot\x05\x00\x00\x00", "ogaz00": b"ogaz\x02\x00\x00\x00"}


def flat_id(text: str, field: Field) -> bytes:
    """The 8 bytes of an area id of 6 characters, or of 12 in base64.

    Parameters
    ----------
    text : str
        The id as the flat blueprint writes it, in keys and as target of a mapping.
    field : Field
        Where it stands, for the message.

    Raises
    ------
    GenomeError
        The id is neither.
    """
    if len(text) == 12:
        return object_id(text, field)
    if len(text) != 6 or not (text.isascii() and text.isprintable()):
        raise GenomeError(
            "not an area id",
            where=field.where,
            got=text,
            allowed="6 printable ASCII characters, or base64 of 8 bytes",
            cure="Use the id of an area of this genome",
        )
    vision = _SEGMENTED_VISION.fullmatch(text)
    if vision:
        return b"isvi" + bytes([16 * int(vision[1]) + 9, 0, 0, 0])
    if text in _BINARY_IDS:
        return _BINARY_IDS[text]
    if "__" + text in CORE_AREAS:
        return ("__" + text).encode("ascii")
    return text.ljust(8, "_").encode("ascii")


def flat_areas(blueprint: Field) -> list[RawArea]:
    """The areas of a flat blueprint, in the order in which the file first names them.

    Keys without the prefix and unknown parameters are passed over, as the real engine does.

    Raises
    ------
    GenomeError
        A key with the prefix that is not an area id and a parameter.
    """
    areas: dict[str, RawArea] = {}
    for key, field in blueprint.items():
        if not key.startswith(PREFIX):
            continue
        rest = key.removeprefix(PREFIX)
        length = _SHORT_ID if rest[_SHORT_ID : _SHORT_ID + 1] == "-" else _LONG_ID
        text, dash, parameter = rest[:length], rest[length : length + 1], rest[length + 1 :]
        if dash != "-":
            raise GenomeError(
                "not a key of a flat blueprint",
                where=field.where,
                allowed=f"{PREFIX}, 6 or 12 characters of area id, -, parameter",
                cure="Correct the key",
            )
        if text not in areas:
            place = Field(blueprint.file, f"{blueprint.path}.{PREFIX}{text}", text)
            areas[text] = RawArea(flat_id(text, field), place, {})
        name = _PARAMETER_NAMES.get(parameter)
        if name is not None:
            areas[text].fields[name] = field
    return list(areas.values())
