"""The catalogue of a shard's kernels: every kernel of a variant as (name, Python function, numba signature)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numba import types

from burstproof.engine.cuda.kernels.catalogue import KernelSpec
from burstproof.engine.cuda.kernels.merged import make_merged
from burstproof.engine.cuda.kernels.plastic import make_learn
from burstproof.engine.cuda.kernels.propagate import make_propagate, make_propagate_computed
from burstproof.engine.cuda.kernels.shard import make_dynamics
from burstproof.engine.cuda.kernels.shard_ahead import make_census, make_stimulate
from burstproof.engine.cuda.kernels.shard_deliver import make_age, make_collect, make_send
from burstproof.engine.cuda.kernels.tiles import make_open_rows, make_send_tile, make_sort_rows
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.precision import Precision

_POTENTIALS = {
    Precision.FP32: types.float32,
    Precision.FP16: types.float16,
    Precision.BF16: types.uint16,
    Precision.INT8: types.int8,
}


def _array(dtype: Any) -> Any:
    return types.Array(dtype, 1, "C")


_LONGS, _IDS, _WORDS = _array(types.int64), _array(types.uint32), _array(types.uint64)
_BYTES, _SHORTS, _FLOATS = _array(types.uint8), _array(types.uint16), _array(types.float32)


def _sums(variant: Variant) -> Any:
    return _array(types.int32 if variant.accumulator_bits == 32 else types.int64)


def _cells(variant: Variant) -> Any:
    return _array({8: types.uint8, 16: types.uint16, 32: types.int32, 64: types.int64}[variant.sum_bits])


def _offsets(variant: Variant) -> Any:
    return _array(types.uint32 if variant.offset_bits == 32 else types.uint64)


def _contributions(variant: Variant) -> Any:
    return _array({16: types.int16, 32: types.int32, 64: types.int64}[variant.contribution_bits])


@lru_cache(maxsize=64)
def shard_catalogue(shard: ShardVariant) -> tuple[KernelSpec, ...]:
    """Every kernel that a shard of ``shard`` launches."""
    variant = shard.variant
    sums = _sums(variant)
    table = (_LONGS, _IDS, sums, _LONGS, _IDS)
    specs = [
        KernelSpec("stimulate", make_stimulate(variant), types.void(_LONGS, _LONGS, _LONGS, *table, sums, _BYTES)),
        KernelSpec("dynamics", make_dynamics(shard), _dynamics_signature(variant)),
    ]
    if shard.merged:
        return specs[0], KernelSpec("merged", make_merged(shard), _merged_signature(shard))
    if variant.count_ahead:
        specs.append(KernelSpec("census", make_census(variant), _census_signature(variant)))
    if not shard.collects:
        specs.append(KernelSpec("send", make_send(shard), _send_signature(variant)))
        return tuple(specs)
    lists = (_IDS, _FLOATS, _LONGS, _SHORTS, types.int32)
    collect = types.void(_LONGS, _LONGS, _WORDS, *lists, types.uint64, types.uint64, types.uint64)
    specs.append(KernelSpec("collect", make_collect(shard), collect))
    if shard.fused:
        return (*specs, *_tiled(variant))
    rows = (_offsets(variant), _IDS, _contributions(variant), _BYTES, _BYTES)
    propagate = types.void(_LONGS, _IDS, *rows, sums, _BYTES, types.uint32, types.uint32)
    specs.append(KernelSpec("propagate", make_propagate(variant), propagate))
    if variant.computed:
        specs.append(KernelSpec("propagate_computed", make_propagate_computed(variant), _computed_signature(variant)))
    if variant.plastic:
        rules = (_LONGS, _LONGS, _FLOATS, _FLOATS, _LONGS, _IDS, _IDS)
        learn = types.void(_LONGS, *rules, _LONGS, _SHORTS, _FLOATS, _FLOATS, types.int64)
        specs.append(KernelSpec("learn", make_learn(variant), learn))
        specs.append(KernelSpec("age", make_age(), types.void(_LONGS, types.int64)))
    return tuple(specs)


def _tiled(variant: Variant) -> tuple[KernelSpec, ...]:
    """The kernels of the engine for one device that propagate tile by tile."""
    sums, contributions = _sums(variant), _contributions(variant)
    rows, lists = (_IDS, contributions, _BYTES), (_WORDS, sums)
    opened = types.void(_LONGS, _IDS, _offsets(variant), contributions, _BYTES, *lists)
    sent = types.void(_LONGS, *lists, *rows, sums, _BYTES, *(types.uint32,) * 3)
    return (
        KernelSpec("sort_rows", make_sort_rows(variant), types.void(_offsets(variant), *rows, types.uint32)),
        KernelSpec("open_rows", make_open_rows(variant), opened),
        KernelSpec("send_tile", make_send_tile(variant), sent),
    )


def _state(variant: Variant) -> tuple[Any, ...]:
    """Cells, state and parameters of the neurons."""
    state = (_cells(variant), _BYTES, _array(_POTENTIALS[variant.features.storage.precision]), _SHORTS, _SHORTS)
    return (*state, _BYTES, _BYTES, _FLOATS, _FLOATS, _FLOATS, _SHORTS, _SHORTS, _SHORTS, _FLOATS)


_COMMON = (*(types.float32,) * 3, *(types.int32,) * 3, types.float32)


def _dynamics_signature(variant: Variant) -> Any:
    sums = _sums(variant)
    scalars = (types.float32, types.int64, sums.dtype, *(types.uint32,) * 3, types.int64)
    sizes = (types.uint64, types.uint64, *(types.uint32,) * 4, types.uint64)
    steering = (_LONGS, _LONGS, _LONGS, _WORDS, _WORDS, _WORDS, _IDS, sums, _BYTES)
    return types.void(*steering, *_state(variant), _IDS, _FLOATS, *scalars, *sizes, *_COMMON)


def _merged_signature(shard: ShardVariant) -> Any:
    variant = shard.variant
    sums, targets = _sums(variant), _WORDS if shard.row_words else _IDS
    steering = (_LONGS, _LONGS, _LONGS, _WORDS, _WORDS, _WORDS, _IDS, sums, _BYTES)
    rows = (_offsets(variant), targets, _contributions(variant), _BYTES, _BYTES, sums)
    scalars = (types.float32, types.int64, sums.dtype, *(types.uint32,) * 3, types.int64)
    sizes = (types.uint64, *(types.uint32,) * 5, types.uint64)
    lists = (_IDS, _FLOATS)
    return types.void(*steering, *_state(variant), *lists, *rows, *scalars, *sizes, *_COMMON, *(types.uint32,) * 3)


def _census_signature(variant: Variant) -> Any:
    arrays = (_LONGS, _LONGS, _LONGS, _WORDS, _WORDS, _cells(variant), _BYTES, _sums(variant))
    return types.void(*arrays, types.int64, *(types.uint32,) * 3, types.uint64)


def _send_signature(variant: Variant) -> Any:
    rows = (_offsets(variant), _IDS, _contributions(variant), _BYTES, _BYTES)
    sizes = (types.uint32, types.uint32, types.uint64, types.uint64)
    return types.void(_LONGS, _LONGS, _WORDS, *rows, _sums(variant), _BYTES, *sizes)


def _computed_signature(variant: Variant) -> Any:
    rows = (_offsets(variant), _IDS, _FLOATS, _FLOATS, _array(types.int8), _BYTES, _BYTES, _FLOATS)
    scalars = (types.float64, types.int64, types.float64, types.uint32, types.uint32)
    return types.void(_LONGS, _IDS, _FLOATS, *rows, _sums(variant), _BYTES, *scalars)
