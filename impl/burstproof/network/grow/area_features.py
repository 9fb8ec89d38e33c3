"""What the record of an area adds to leaky integrate-and-fire: its keys of FEATURES section 13 as values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from burstproof.network.cortical_ids import encode_id
from burstproof.network.features import Homeostat, MemoryArea, MemoryChange
from burstproof.network.grow.blueprint import AreaFeatureSpec
from burstproof.network.grow.fields import FLOAT32_MAX, Field, is_number

LARGEST_FINITE_LIMIT = 65534
"""Largest consecutive-fire limit in 16 bits that is one; 0 and 65535 stand for none."""

_SMALLEST_FLOAT32 = 2.0**-150
"""A number up to this one is 0 in float32."""

_UINT32_MAX = 2**32 - 1
_Value = TypeVar("_Value")
_EVICTIONS = {"lru": True, "none": False}


def area_features(
    fields: Mapping[str, Field], read_id: Callable[[str, Field], bytes], fire_limit: int
) -> AreaFeatureSpec:
    """What an area adds; a key that does not act, whatever its value, is passed over.

    Parameters
    ----------
    fields : Mapping
        The values of the record under their v3 names.
    read_id : callable
        How the genome writes area ids.
    fire_limit : int
        Consecutive-fire limit in 16 bits.

    Raises
    ------
    GenomeError
        A parameter of a memory area of the wrong type or out of range, or a twin that is no area id.

    Notes
    -----
    Source: FEATURES sections 1, 3, 5, 7 and 13.
    """

    def value(key: str) -> Any:
        return fields[key].value if key in fields else None

    degeneration = value("degeneration")
    decays = is_number(degeneration) and degeneration > _SMALLEST_FLOAT32
    memory = value("is_mem_type") is True
    return AreaFeatureSpec(
        homeostat=_homeostat(value("rate_modulated_leak")),
        modulators=listed_ids(value("modulators")),
        spike_train=value("spike_train") is True and 1 <= fire_limit <= LARGEST_FINITE_LIMIT,
        degeneration=fields["degeneration"].number() if decays else 0.0,
        memory=_memory(fields) if memory else None,
        twins=_twins(fields["memory_twin_areas"], read_id) if memory and value("memory_twin_areas") else (),
        twin_of=_id(fields["memory_twin_of"], read_id) if value("memory_twin_of") else "",
    )


def listed_ids(value: object) -> tuple[str, ...]:
    """The texts in a list of modulator ids; anything else names none."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _homeostat(block: object) -> Homeostat | None:
    """The homeostat of a ``rate_modulated_leak``; ``None`` if it is off, as one invalid value switches it.

    Source: FEATURES section 1.
    """
    if not isinstance(block, dict) or block.get("enabled", False) is not True:
        return None
    default = Homeostat()
    target, tau, gain, least, most = (
        block.get(key, value)
        for key, value in (
            ("target_firing_per_burst", default.target),
            ("rate_ema_tau_bursts", default.tau),
            ("gain", default.gain),
            ("leak_min", default.leak_min),
            ("leak_max", default.leak_max),
        )
    )
    every = block.get("update_every_n_bursts", default.update_every)
    if not all(is_number(value) for value in (target, tau, gain, least, most)):
        return None
    valid = (
        0 <= target <= 1
        and _SMALLEST_FLOAT32 < tau <= FLOAT32_MAX
        and 0 <= gain <= FLOAT32_MAX
        and 0 <= least <= most <= 1
        and isinstance(every, int)
        and not isinstance(every, bool)
        and every >= 0
    )
    if not valid:
        return None
    return Homeostat(float(target), float(tau), float(gain), float(least), float(most), min(max(1, every), _UINT32_MAX))


def _memory(fields: Mapping[str, Field]) -> MemoryArea:
    """The parameters of a memory area, whose upstream areas and twins are still unknown; null counts as absent."""
    fields = {key: field for key, field in fields.items() if field.value is not None}
    default = MemoryArea()

    def count(key: str, otherwise: int, least: int = 0) -> int:
        return fields[key].integer(least, _UINT32_MAX) if key in fields else otherwise

    def quantum(key: str, otherwise: float) -> float:
        if key not in fields:
            return otherwise
        if fields[key].number() <= 0:
            raise fields[key].error("out of range", allowed="a number above 0", cure="Write a number in that range")
        return fields[key].number()

    growth = fields["lifespan_growth_rate"].number() if "lifespan_growth_rate" in fields else default.lifespan_growth
    return MemoryArea(
        temporal_depth=count("temporal_depth", default.temporal_depth, 1),
        init_lifespan=count("init_lifespan", default.init_lifespan),
        lifespan_growth=min(max(0, math.trunc(growth)), _UINT32_MAX),
        longterm_threshold=count("longterm_mem_threshold", default.longterm_threshold),
        neuron_cap=count("memory_neuron_cap", default.neuron_cap),
        evicts=_one_of(fields, "ltm_eviction", _EVICTIONS, default.evicts),
        mp_learning="mp_learning_enabled" in fields and fields["mp_learning_enabled"].truth(),
        change=_one_of(fields, "mp_change_mode", {one.value: one for one in MemoryChange}, default.change),
        delta_quantization=quantum("mp_delta_quantization", default.delta_quantization),
        ratio_quantization=quantum("mp_ratio_quantization", default.ratio_quantization),
    )


def _one_of(fields: Mapping[str, Field], key: str, values: Mapping[str, _Value], default: _Value) -> _Value:
    """What the text under ``key`` stands for."""
    if key not in fields:
        return default
    text = fields[key].text()
    if text not in values:
        raise fields[key].error("unknown value", allowed=", ".join(values), cure="Use one of these")
    return values[text]


def _twins(field: Field, read_id: Callable[[str, Field], bytes]) -> tuple[tuple[str, str], ...]:
    """Upstream areas and their twins, base64."""
    return tuple((encode_id(read_id(upstream, twin)), _id(twin, read_id)) for upstream, twin in field.items())


def _id(field: Field, read_id: Callable[[str, Field], bytes]) -> str:
    """The base64 id of the area that ``field`` names."""
    return encode_id(read_id(field.text(), field))
