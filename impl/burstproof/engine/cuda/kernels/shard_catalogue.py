"""The catalogue of a shard's kernels: every kernel of a variant as (name, Python function, numba signature)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from burstproof.engine.cuda.kernels.catalogue import KernelSpec, kernel_spec, tile_kernels
from burstproof.engine.cuda.kernels.merged import make_merged
from burstproof.engine.cuda.kernels.plastic import make_learn
from burstproof.engine.cuda.kernels.propagate import make_propagate, make_propagate_computed
from burstproof.engine.cuda.kernels.shard import make_dynamics
from burstproof.engine.cuda.kernels.shard_ahead import make_census, make_stimulate
from burstproof.engine.cuda.kernels.shard_deliver import make_age, make_collect, make_send
from burstproof.engine.cuda.plan.shard_variant import ShardVariant


@lru_cache(maxsize=64)
def shard_catalogue(shard: ShardVariant) -> tuple[KernelSpec, ...]:
    """Every kernel that a shard of ``shard`` launches."""
    return tuple(kernel_spec(name, function, shard) for name, function in _kernels(shard).items())


def _kernels(shard: ShardVariant) -> dict[str, Callable[..., None]]:
    variant = shard.variant
    found = {"stimulate": make_stimulate(variant)}
    if shard.merged:
        return {**found, "merged": make_merged(shard)}
    found["dynamics"] = make_dynamics(shard)
    if variant.count_ahead:
        found["census"] = make_census(variant)
    if not shard.collects:
        return {**found, "send": make_send(shard)}
    found["collect"] = make_collect(shard)
    if shard.fused:
        return {**found, **tile_kernels(variant)}
    found["propagate"] = make_propagate(variant)
    if variant.computed:
        found["propagate_computed"] = make_propagate_computed(variant)
    if variant.plastic:
        found.update(learn=make_learn(variant), age=make_age())
    return found
