"""The catalogue of kernels: every kernel of a variant as (name, Python function, numba signature).

Nothing is compiled here. Importing this module imports numba-cuda.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from burstproof.engine.cuda.kernels.burst import make_burst
from burstproof.engine.cuda.kernels.deferred import make_settle
from burstproof.engine.cuda.kernels.dynamics import make_count_ahead, make_dynamics
from burstproof.engine.cuda.kernels.enqueue import make_enqueue
from burstproof.engine.cuda.kernels.gather import make_begin, make_gather
from burstproof.engine.cuda.kernels.lists import make_collect, make_send_lists
from burstproof.engine.cuda.kernels.modes import make_learn_modes
from burstproof.engine.cuda.kernels.modulators import make_modulate
from burstproof.engine.cuda.kernels.owners import make_owners_burst
from burstproof.engine.cuda.kernels.plastic import make_age, make_learn
from burstproof.engine.cuda.kernels.propagate import make_propagate, make_propagate_computed
from burstproof.engine.cuda.kernels.recall import make_send_ahead, make_send_recalled
from burstproof.engine.cuda.kernels.spec import KernelSpec, kernel_spec
from burstproof.engine.cuda.kernels.stimulus import make_stimulate
from burstproof.engine.cuda.kernels.streaming import make_propagate_streamed
from burstproof.engine.cuda.kernels.tiles import make_open_rows, make_send_tile, make_sort_rows
from burstproof.engine.cuda.plan.block_size import ENQUEUE_REGISTERS
from burstproof.engine.cuda.plan.shard_variant import ShardVariant, whole
from burstproof.engine.cuda.plan.variant import Variant


@lru_cache(maxsize=64)
def catalogue(variant: Variant | ShardVariant) -> tuple[KernelSpec, ...]:
    """Every kernel that a shard of ``variant`` launches, or a whole network on one device."""
    shard = variant if isinstance(variant, ShardVariant) else whole(variant)
    made = {"stimulate": make_stimulate(shard), **(_one_kernel(shard) if shard.merged else _phases(shard))}
    if shard.extras.modulators:
        made["modulate"] = make_modulate(shard)
    most = {"burst": shard.registers, "enqueue": ENQUEUE_REGISTERS}
    return tuple(kernel_spec(name, function, shard, most.get(name)) for name, function in made.items())


def _one_kernel(shard: ShardVariant) -> dict[str, Callable[..., None]]:
    """A burst in one kernel: that kernel and those around it."""
    variant = shard.variant
    found = {"burst": make_burst(shard) if variant.queues is None else make_owners_burst(shard)}
    if shard.exchanges and variant.queues is None:
        return found
    if variant.tiles:
        found.update(_tiles(variant))
    if variant.recalled > 1 or variant.calendar:
        found["sort_rows"] = make_sort_rows(variant)
    if variant.recalled:
        found["send_ahead"] = make_send_ahead(variant)
    if variant.queues is not None:
        found["enqueue"] = make_enqueue(shard)
        if shard.exchanges:
            return found
    elif variant.recalled:
        found["send_recalled"] = make_send_recalled(variant)
    return {**found, "begin": make_begin(), "gather": make_gather(variant)}


def _phases(shard: ShardVariant) -> dict[str, Callable[..., None]]:
    """A burst of several kernels, one after another."""
    variant, found = shard.variant, {"dynamics": make_dynamics(shard)}
    if variant.count_ahead:
        found["count_ahead"] = make_count_ahead(shard)
    if shard.exchanges and not shard.collects:
        return {**found, "send_lists": make_send_lists(shard)}
    if shard.exchanges:
        found["collect"] = make_collect(shard)
    if shard.fused:
        return {**found, **_tiles(variant)}
    if variant.streamed:
        found["propagate_streamed"] = make_propagate_streamed(variant)
    else:
        found["propagate"] = make_propagate(variant)
    if variant.computed:
        found["propagate_computed"] = make_propagate_computed(shard)
    if variant.defers_learning:
        found["settle"] = make_settle(shard)
    elif variant.plastic:
        learn = make_learn_modes(variant) if variant.extras.modes else make_learn(variant)
        found.update(learn=learn, age=make_age())
    return found


def _tiles(variant: Variant) -> dict[str, Callable[..., None]]:
    """The kernels that propagate tile by tile."""
    return {
        "sort_rows": make_sort_rows(variant),
        "open_rows": make_open_rows(variant),
        "send_tile": make_send_tile(variant),
    }
