"""Kernel for what comes from outside: amounts and forced firings of the coming burst, where it finds them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Amount, Exchange, Fcl, Network, Outside, Steering, Stimulus, Turn
from burstproof.engine.cuda.exchange.words import FAILED
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.control import HALTED, INDEX, LIMIT
from burstproof.engine.cuda.kernels.steer import make_steer
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant


def cancelled(variant: Variant) -> Any:
    """The sum that stands for *candidate whose sum is 0* within one burst, where sums have no marks.

    No sum reaches it: sums stay within the accumulator's positive range in magnitude.
    """
    return variant.accumulator(np.iinfo(variant.accumulator).min)


@cache
def make_going(exchanges: bool) -> Callable[..., Any]:
    """``going(steering, exchange)``: whether the batch has another burst to do, for bursts in several kernels."""

    def alone(steering: Steering, exchange: Exchange) -> Any:
        return steering.report[INDEX] + 1 < steering.report[LIMIT] and steering.control[HALTED] == 0

    def together(steering: Steering, exchange: Exchange) -> Any:
        report = steering.report
        return report[INDEX] + 1 < report[LIMIT] and steering.control[HALTED] == 0 and exchange.link[FAILED] == 0

    return cuda.jit(device=True)(together if exchanges else alone)  # type: ignore[no-any-return]


def _make_coming(shard: ShardVariant) -> Callable[..., Any]:
    """``coming(steering, exchange, fcl, network, turn)`` -> whether there is a burst, its place, its slot if known."""
    going, steer = make_going(shard.exchanges), make_steer(shard)

    def by_index(steering: Steering, exchange: Exchange, fcl: Fcl, network: Network, turn: Turn) -> Any:
        return going(steering, exchange), np.uint32(steering.report[INDEX] + 1), np.uint32(0)

    def by_turn(steering: Steering, exchange: Exchange, fcl: Fcl, network: Network, turn: Turn) -> Any:
        done, _, _, slot, _ = steer(steering, exchange, fcl, network, turn)
        return done, turn.place, slot

    return cuda.jit(device=True)(by_turn if shard.merged else by_index)  # type: ignore[no-any-return]


def _make_arrive(variant: Variant) -> Callable[..., Any]:
    """``arrive(cell, amount, fcl)``: an amount into a cell of the slot; a marker stands for an unmarked sum of 0."""
    number, zero, marker = variant.accumulator, variant.accumulator(0), cancelled(variant)

    def by_sum(cell: np.uint64, amount: Amount, fcl: Fcl) -> None:
        total = number(fcl.cells[cell] + amount)
        fcl.cells[cell] = marker if total == zero else total

    return make_deliver(variant) if variant.word.marked else cuda.jit(device=True)(by_sum)


def make_stimulate(shard: ShardVariant) -> Callable[..., None]:
    """``stimulate(...)``: amounts of the coming burst into ``outside``, or where they fit into its slot; and marks.

    The ids of one burst differ, so that no atomic operation is needed. A marker stands for an amount of 0.
    """
    variant, apart = shard.variant, shard.apart
    arrive, coming = _make_arrive(variant), _make_coming(shard)
    zero, marker = variant.accumulator(0), cancelled(variant)

    def stimulate(
        steering: Steering,
        exchange: Exchange,
        stimulus: Stimulus,
        outside: Outside,
        fcl: Fcl,
        network: Network,
        turn: Turn,
    ) -> None:
        done, index, slot = coming(steering, exchange, fcl, network, turn)
        if not done:
            return
        ids, following = stimulus.stimulus_ids, np.uint32(index + np.uint32(1))
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        entry = np.int64(stimulus.stimulus_offsets[index]) + np.int64(cuda.grid(1))
        end = stimulus.stimulus_offsets[following]
        step = np.int64(cuda.gridsize(1))
        while entry < end:
            total = stimulus.stimulus_amounts[entry]
            if apart:
                outside.outside[ids[entry]] = marker if total == zero else total
            else:
                arrive(np.uint64(base + np.uint64(ids[entry])), total, fcl)
            entry += step
        entry = np.int64(stimulus.forced_offsets[index]) + np.int64(cuda.grid(1))
        end = stimulus.forced_offsets[following]
        while entry < end:
            outside.forced[stimulus.forced_ids[entry]] = np.uint8(1)
            entry += step

    return stimulate
