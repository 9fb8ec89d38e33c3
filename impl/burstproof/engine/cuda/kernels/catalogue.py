"""The catalogue of kernels: every kernel of a variant as (name, Python function, numba signature).

Nothing is compiled here. Importing this module imports numba-cuda.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numba import types
from numba.np.numpy_support import from_dtype

from burstproof.engine.cuda.args import Field, fields_of, parameters_of
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
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """A kernel to compile: ``function`` in Python with the numba ``signature`` that it is launched with."""

    name: str
    function: Callable[..., None]
    signature: Any


def kernel_spec(name: str, function: Callable[..., None], variant: Variant | ShardVariant | None = None) -> KernelSpec:
    """``function``, whose signature follows from its annotations (``engine.cuda.args``)."""
    kinds = parameters_of(function, variant).values()
    return KernelSpec(name, function, types.void(*(_numba_type(kind, variant) for kind in kinds)))


def _numba_type(kind: Any, variant: Variant | ShardVariant | None) -> Any:
    if isinstance(kind, Field):
        scalar = from_dtype(kind.dtype)
        return types.Array(scalar, 1, "C") if kind.array else scalar
    fields = (_numba_type(field, variant) for field in fields_of(kind, variant).values())
    return types.BaseTuple.from_types(tuple(fields), pyclass=kind)


@lru_cache(maxsize=64)
def catalogue(variant: Variant) -> tuple[KernelSpec, ...]:
    """Every kernel that a network of ``variant`` launches."""
    made = _fused_kernels(variant) if variant.fused is not None else _separate_kernels(variant)
    return tuple(kernel_spec(name, function, variant) for name, function in made.items())


def _separate_kernels(variant: Variant) -> dict[str, Callable[..., None]]:
    """The kernels of a network whose bursts are done step by step."""
    found = {
        "advance": make_advance(),
        "inject": make_inject(variant),
        "dynamics": make_dynamics(variant),
        "force": make_force(variant),
        "propagate": make_propagate(variant),
    }
    if variant.count_ahead:
        found["count_ahead"] = make_count_ahead(variant)
    if variant.computed:
        found["propagate_computed"] = make_propagate_computed(variant)
    if variant.plastic:
        found["learn"] = make_learn(variant)
    return found


def _fused_kernels(variant: Variant) -> dict[str, Callable[..., None]]:
    """The kernels of a network whose bursts are done in one piece."""
    found = tile_kernels(variant) if variant.tiles else {}
    if variant.long_rows:
        send_piece = (make_send_piece_over_link if variant.streamed else make_send_piece)(variant)
        found["send_long"] = make_send_long(send_piece)
    return {
        **found,
        "begin": make_begin(),
        "stimulate": make_stimulate(variant),
        "fused": make_fused(variant),
        "gather": make_gather(variant),
    }


def tile_kernels(variant: Variant) -> dict[str, Callable[..., None]]:
    """The kernels that propagate tile by tile."""
    return {
        "sort_rows": make_sort_rows(variant),
        "open_rows": make_open_rows(variant),
        "send_tile": make_send_tile(variant),
    }
