"""Neurons that are awake, put aside by each warp of an owner and tested together.

Where candidates may sleep (``kernels.neuron``), about one in twenty of a warp does not, reads parameters of its own,
and the others wait for it. So a warp first does what all others of its neurons need, and notes those that are awake in
shared memory; whenever they fill the warp it tests them, a lane each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Identity, Ids, Network
from burstproof.engine.cuda.kernels.consume import Loaded, Moment
from burstproof.engine.cuda.kernels.identity import make_seed
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.rules import make_rules

TEAM = 1 if SIMULATED else WARP
"""Threads that put neurons aside together."""
_ALL = 0xFFFFFFFF


def places_aside(threads: int, per_thread: int) -> int:
    """Numbers of neurons that a block has room for: a team may lack one of its size, and then find as many again."""
    return threads // TEAM * _room(per_thread)


def _room(per_thread: int) -> int:
    return (per_thread + 1) * TEAM


def make_wakes(shard: ShardVariant) -> Callable[..., Any]:
    """``wakes(neuron, p, moment, loaded, network, identity)``: whether a neuron is awake.

    That is a candidate that may fire, or one whose parameters are needed for another reason; with stimulus all are.
    """
    features = shard.variant.features
    refractory, fire_limits = features.refractory_periods, features.consecutive_fire_limits
    draw, seed_of = make_rules(features, cuda.jit(device=True)).draw, make_seed(shard)
    nothing, none, last = shard.variant.word.added(0), np.int32(0), np.int32(1)

    def wakes(neuron: np.uint32, p: int, moment: Moment, loaded: Loaded, network: Network, identity: Identity) -> bool:
        if moment.stimulated != 0 or np.int64(neuron) == network.power_neuron:
            return True
        if refractory and loaded.rc[p] > none:
            return fire_limits and loaded.rc[p] == last
        if loaded.word[p] == nothing:
            return False
        if loaded.cc[p] != none:
            return True
        return bool(draw(neuron, seed_of(neuron, moment.burst, identity)) <= network.largest_excitability)

    return cuda.jit(device=True)(wakes)  # type: ignore[no-any-return]


@cache
def make_put_aside(per_thread: int) -> Callable[..., Any]:
    """``put_aside(wakes, local, waiting, aside)`` -> uint32: how many wait now, after those of this turn.

    ``waiting`` did before. All threads of a warp call it; ``aside`` is uint16 in shared memory.
    """
    room, lanes, one = np.uint32(_room(per_thread)), np.uint32(TEAM), np.uint32(1)

    def by_thread(wakes: bool, local: np.uint32, waiting: np.uint32, aside: Ids) -> Any:
        if wakes:
            aside[np.uint32(np.uint32(cuda.threadIdx.x) * room + waiting)] = np.uint16(local)
            waiting = np.uint32(waiting + one)
        return waiting

    def by_warp(wakes: bool, local: np.uint32, waiting: np.uint32, aside: Ids) -> Any:
        thread = np.uint32(cuda.threadIdx.x)
        votes = np.uint32(cuda.ballot_sync(_ALL, wakes))
        if wakes:
            before = np.uint32(votes & np.uint32(np.uint32(one << np.uint32(thread % lanes)) - one))
            place = np.uint32(waiting + np.uint32(cuda.popc(before)))
            aside[np.uint32(np.uint32(thread // lanes) * room + place)] = np.uint16(local)
        return np.uint32(waiting + np.uint32(cuda.popc(votes)))

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


@cache
def make_take_aside(per_thread: int) -> Callable[..., Any]:
    """``take_aside(waiting, aside)`` -> (uint32 the number in the owner of a neuron that waits, whether there is one).

    Each thread of a team gets one of the last. All of them call it, between ``put_aside``.
    """
    room, lanes, zero, one = np.uint32(_room(per_thread)), np.uint32(TEAM), np.uint32(0), np.uint32(1)

    def take_aside(waiting: np.uint32, aside: Ids) -> Any:
        thread = np.uint32(cuda.threadIdx.x)
        lane, own = np.uint32(thread % lanes), np.uint32(np.uint32(thread // lanes) * room)
        local, exists = zero, lane < waiting
        if not SIMULATED:
            cuda.syncwarp(_ALL)
        if exists:
            local = np.uint32(aside[np.uint32(own + np.uint32(waiting - lane) - one)])
        if not SIMULATED:
            cuda.syncwarp(_ALL)
        return local, exists

    return cuda.jit(device=True)(take_aside)  # type: ignore[no-any-return]
