"""A shard's neuron in the network: its id, and the seed of its excitability draw."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Identity
from burstproof.engine.cuda.plan.shard_variant import ShardVariant

_DRAW_STEP = (2654435761 * pow(1597334677, -1, 1 << 32)) % (1 << 32)
"""A draw depends on id * 2654435761 + burst * 1597334677 mod 2^32: adding this to the burst adds 1 to the id."""


@cache
def make_in_register(opaque: bool) -> Callable[..., Any]:
    """``in_register(number)`` -> uint32: ``number``; if ``opaque``, the compiler does not see how it was computed.

    An address computed from it is then one wide product; computed from a sum, it would take 64-bit shifts and masks.
    """

    def same(number: np.uint32) -> Any:
        return number

    return _moved() if opaque and not SIMULATED else cuda.jit(device=True)(same)


def _moved() -> Callable[..., Any]:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    def typed(_typing: Any, number: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = ir.IntType(32)
            return builder.call(ir.InlineAsm(ir.FunctionType(word, [word]), "mov.u32 $0, $1;", "=r,r"), arguments)

        return types.uint32(types.uint32), emit

    return cuda.extending.intrinsic(typed)  # type: ignore[no-any-return]


def make_id_of(shard: ShardVariant) -> Callable[..., Any]:
    """``id_of(neuron, identity)``: id in the network; without an exchange a neuron's index is its id."""

    def same(neuron: np.uint32, identity: Identity) -> Any:
        return neuron

    def listed(neuron: np.uint32, identity: Identity) -> Any:
        return identity.members[neuron]

    def computed(neuron: np.uint32, identity: Identity) -> Any:
        return np.uint32(identity.first_id + neuron * identity.id_step)

    of_shard = computed if shard.spaced_ids else listed
    return cuda.jit(device=True)(of_shard if shard.exchanges else same)  # type: ignore[no-any-return]


def make_seed(shard: ShardVariant) -> Callable[..., Any]:
    """``seed(neuron, burst, identity)``: the burst seed that makes the draw depend on the id, not on the index."""
    id_of, draw_step = make_id_of(shard), np.uint32(_DRAW_STEP)

    def seed(neuron: np.uint32, burst: np.uint32, identity: Identity) -> Any:
        distance = np.uint32(id_of(neuron, identity) - neuron)
        return np.uint32(burst + np.uint32(distance * draw_step))

    return cuda.jit(device=True)(seed)  # type: ignore[no-any-return]
