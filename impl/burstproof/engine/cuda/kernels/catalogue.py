"""The catalogue of kernels: every kernel of a variant as (name, Python function, numba signature).

Nothing is compiled here. Importing this module imports numba-cuda.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numba import types

from burstproof.engine.cuda.kernels.advance import make_advance
from burstproof.engine.cuda.kernels.dynamics import make_count_ahead, make_dynamics
from burstproof.engine.cuda.kernels.fused import make_fused
from burstproof.engine.cuda.kernels.gather import make_begin, make_gather, make_stimulate
from burstproof.engine.cuda.kernels.lines import make_send_piece_over_link
from burstproof.engine.cuda.kernels.plastic import make_learn
from burstproof.engine.cuda.kernels.propagate import make_propagate, make_propagate_computed
from burstproof.engine.cuda.kernels.rows import make_send_long, make_send_piece
from burstproof.engine.cuda.kernels.stimulus import make_force, make_inject
from burstproof.engine.cuda.kernels.tiles import make_open_rows, make_send_tile, make_sort_rows
from burstproof.engine.cuda.plan.streaming import packed_contributions
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.precision import Precision

_POTENTIALS = {
    Precision.FP32: types.float32,
    Precision.FP16: types.float16,
    Precision.BF16: types.uint16,
    Precision.INT8: types.int8,
}


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """A kernel to compile: ``function`` in Python with the numba ``signature`` that it is launched with."""

    name: str
    function: Callable[..., None]
    signature: Any


def _array(dtype: Any) -> Any:
    return types.Array(dtype, 1, "C")


@dataclass(frozen=True)
class _Arrays:
    """Array types of a variant, named for their contents."""

    steering: Any
    ids: Any
    offsets: Any
    table_offsets: Any
    cells: Any
    sums: Any
    bytes: Any
    shorts: Any
    potentials: Any
    floats: Any
    longs: Any


def _arrays(variant: Variant) -> _Arrays:
    return _Arrays(
        steering=_array(types.int64),
        ids=_array(types.uint32),
        offsets=_array(types.uint32 if variant.offset_bits == 32 else types.uint64),
        table_offsets=_array(types.int64),
        cells=_array({8: types.uint8, 16: types.uint16, 32: types.int32, 64: types.int64}[variant.sum_bits]),
        sums=_array(types.int32 if variant.accumulator_bits == 32 else types.int64),
        bytes=_array(types.uint8),
        shorts=_array(types.uint16),
        potentials=_array(_POTENTIALS[variant.features.storage.precision]),
        floats=_array(types.float32),
        longs=_array(types.int64),
    )


@lru_cache(maxsize=64)
def catalogue(variant: Variant) -> tuple[KernelSpec, ...]:
    """Every kernel that a network of ``variant`` launches."""
    a = _arrays(variant)
    if variant.fused is not None:
        return _fused_catalogue(variant, a)
    specs = [
        KernelSpec(
            "advance",
            make_advance(),
            types.void(a.steering, a.steering, types.int64, types.int64, types.int64, types.int64),
        ),
        KernelSpec(
            "inject",
            make_inject(variant),
            types.void(a.steering, a.steering, a.table_offsets, a.ids, a.sums, a.sums, a.bytes, types.uint32),
        ),
        KernelSpec("dynamics", make_dynamics(variant), _dynamics_signature(variant, a)),
        KernelSpec("force", make_force(variant), _force_signature(a)),
        KernelSpec("propagate", make_propagate(variant), _propagate_signature(variant, a)),
    ]
    if variant.count_ahead:
        signature = types.void(a.steering, a.sums, a.bytes, types.int64, types.uint32)
        specs.append(KernelSpec("count_ahead", make_count_ahead(variant), signature))
    if variant.computed:
        specs.append(KernelSpec("propagate_computed", make_propagate_computed(variant), _computed_signature(a)))
    if variant.plastic:
        specs.append(KernelSpec("learn", make_learn(variant), _learn_signature(a)))
    return tuple(specs)


def _fused_catalogue(variant: Variant, a: _Arrays) -> tuple[KernelSpec, ...]:
    """The kernels of a network whose bursts are done in one piece."""
    stimulus = (a.table_offsets, a.ids, a.sums, a.table_offsets, a.ids)
    slots = (a.cells, a.sums, a.bytes, types.uint32, types.uint32)
    tallies = _array(types.uint64)
    place = (types.uint32, types.int64, types.uint32, types.uint32)
    stimulate = types.void(a.steering, a.steering, tallies, *stimulus, a.bytes, *slots, *place)
    chunks, list_ = (a.ids, a.ids, a.ids, a.floats), (a.ids, a.floats)
    limits = (types.uint32, types.int64, *(types.uint32,) * 3)
    gather = types.void(a.steering, a.steering, tallies, *chunks, *list_, *list_, a.steering, *limits)
    tiled = _tiled_catalogue(variant, a) if variant.tiles else ()
    return (
        *tiled,
        *_long_row_catalogue(variant, a),
        KernelSpec("begin", make_begin(), types.void(*(a.steering,) * 3, types.int64, types.int64)),
        KernelSpec("stimulate", make_stimulate(variant), stimulate),
        KernelSpec("fused", make_fused(variant), _fused_signature(variant, a)),
        KernelSpec("gather", make_gather(variant), gather),
    )


def _long_row_catalogue(variant: Variant, a: _Arrays) -> tuple[KernelSpec, ...]:
    """The kernel that sends pieces of long rows, where there are any."""
    if not variant.long_rows:
        return ()
    contributions, delays = _fused_entries(variant, a)
    rows = (a.offsets, a.ids, contributions, delays)
    pieces = (a.ids, _array(types.uint64))
    send_piece = (make_send_piece_over_link if variant.streamed else make_send_piece)(variant)
    signature = types.void(a.steering, *pieces, *rows, a.sums, a.bytes, *(types.uint32,) * 3)
    return (KernelSpec("send_long", make_send_long(send_piece), signature),)


def _tiled_catalogue(variant: Variant, a: _Arrays) -> tuple[KernelSpec, ...]:
    """The kernels that propagate tile by tile."""
    rows, lists = (a.ids, _contributions(variant), a.bytes), (_array(types.uint64), a.sums)
    opened = types.void(a.steering, a.ids, a.offsets, _contributions(variant), a.bytes, *lists)
    sent = types.void(a.steering, *lists, *rows, a.sums, a.bytes, types.uint32, types.uint32, types.uint32)
    return (
        KernelSpec("sort_rows", make_sort_rows(variant), types.void(a.offsets, *rows, types.uint32)),
        KernelSpec("open_rows", make_open_rows(variant), opened),
        KernelSpec("send_tile", make_send_tile(variant), sent),
    )


def _fused_signature(variant: Variant, a: _Arrays) -> Any:
    state = (a.cells, a.sums, a.sums, a.bytes, a.potentials, a.shorts, a.shorts, a.bytes, a.bytes)
    parameters = (a.floats, a.floats, a.floats, a.shorts, a.shorts, a.shorts, a.floats)
    rows = (a.offsets, a.ids, *_fused_entries(variant, a), a.bytes, a.ids, _array(types.uint64))
    scalars = (types.float32, types.int64, a.sums.dtype, *(types.uint32,) * 3, types.int64)
    flags = (types.uint32,) * 3
    common = (*(types.float32,) * 3, *(types.int32,) * 3, types.float32)
    lists = (_array(types.uint64), a.bytes, a.ids, a.ids, a.ids, a.floats)
    return types.void(a.steering, a.steering, *lists, *state, *parameters, *rows, *scalars, *flags, *common)


def _fused_entries(variant: Variant, a: _Arrays) -> tuple[Any, Any]:
    """Contributions and delays: as they lie on the device, or words of several in host memory."""
    if not variant.streamed:
        return _contributions(variant), a.bytes
    words = _array(types.int32)
    return words if packed_contributions(variant) else _contributions(variant), words if variant.delays else a.bytes


def _contributions(variant: Variant) -> Any:
    return _array({16: types.int16, 32: types.int32, 64: types.int64}[variant.contribution_bits])


def _dynamics_signature(variant: Variant, a: _Arrays) -> Any:
    stimulus = (a.steering, a.steering, a.table_offsets, a.ids, a.bytes)
    log = (a.ids, a.floats)
    state = (a.sums, a.bytes, a.potentials, a.shorts, a.shorts, a.bytes)
    parameters = (a.bytes, a.floats, a.floats, a.floats, a.shorts, a.shorts, a.shorts, a.floats)
    history = (a.longs, a.shorts, types.int32)
    scalars = (types.float32, types.int64, a.sums.dtype, types.uint32)
    return types.void(*stimulus, *log, *state, *parameters, *history, *scalars)


def _force_signature(a: _Arrays) -> Any:
    stimulus = (a.steering, a.steering, a.table_offsets, a.ids, a.bytes)
    log = (a.ids, a.floats)
    return types.void(*stimulus, *log, a.bytes, a.bytes, a.longs, a.shorts, types.int32)


def _propagate_signature(variant: Variant, a: _Arrays) -> Any:
    rows = (a.offsets, a.ids, _contributions(variant), a.bytes, a.bytes)
    return types.void(a.steering, a.ids, *rows, a.sums, a.bytes, types.uint32, types.uint32)


def _computed_signature(a: _Arrays) -> Any:
    rows = (a.offsets, a.ids, a.floats, a.floats, _array(types.int8), a.bytes, a.bytes, a.floats)
    scalars = (types.float64, types.int64, types.float64, types.uint32, types.uint32)
    return types.void(a.steering, a.ids, a.floats, *rows, a.sums, a.bytes, *scalars)


def _learn_signature(a: _Arrays) -> Any:
    rules = (a.longs, a.longs, a.floats, a.floats, a.longs, a.ids, a.ids)
    return types.void(a.steering, *rules, a.longs, a.shorts, a.floats, a.floats, types.int64)
