"""Kernel for stimulus: puts amounts and forced firings where the coming burst finds them."""

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
    """The sum that stands for *candidate whose sum is 0* within one burst, if sums have no marks.

    No sum reaches it: sums stay within the accumulator's positive range in magnitude.
    """
    return variant.accumulator(np.iinfo(variant.accumulator).min)


@cache
def make_going(exchanges: bool) -> Callable[..., Any]:
    """``going(steering, exchange)``: whether the batch has another burst to do, for bursts of several kernels."""

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
        runs, _, _, slot, _ = steer(steering, exchange, fcl, network, turn)
        return runs, turn.place, slot

    return cuda.jit(device=True)(by_turn if shard.merged else by_index)  # type: ignore[no-any-return]


def make_peek(shard: ShardVariant) -> Callable[..., Any]:
    """``peek(neuron, base, fcl)``: the sum that has arrived for a neuron if ``admit`` needs it, else 0."""
    blind, number = shard.apart or shard.variant.word.marked, shard.variant.accumulator

    def peek(neuron: np.uint32, base: np.uint64, fcl: Fcl) -> Any:
        if blind:
            return number(0)
        return number(fcl.cells[np.uint64(base + np.uint64(neuron))])

    return cuda.jit(device=True)(peek)  # type: ignore[no-any-return]


def make_admit(shard: ShardVariant) -> Callable[..., Any]:
    """``admit(neuron, before, amount, base, outside, fcl)``: add an amount to the slot if it fits, else to ``outside``.

    ``base`` is the first cell of the slot, ``before`` what ``peek`` found. The ids of one burst are distinct, so no
    atomic operation is needed. A marker stands for a total of 0.
    """
    variant, apart = shard.variant, shard.apart
    number, marked, deliver = variant.accumulator, variant.word.marked, make_deliver(variant)
    zero, marker = variant.accumulator(0), cancelled(variant)

    def admit(neuron: np.uint32, before: Amount, amount: Amount, base: np.uint64, outside: Outside, fcl: Fcl) -> None:
        cell, total = np.uint64(base + np.uint64(neuron)), number(before + amount)
        if apart:
            outside.outside[neuron] = marker if total == zero else total
        elif marked:
            deliver(cell, amount, fcl)
        else:
            fcl.cells[cell] = marker if total == zero else total

    return cuda.jit(device=True)(admit)  # type: ignore[no-any-return]


def make_stimulate(shard: ShardVariant) -> Callable[..., None]:
    """``stimulate(...)``: store the amounts of the coming burst, and the marks of its forced firings."""
    peek, admit, coming = make_peek(shard), make_admit(shard), _make_coming(shard)

    def stimulate(
        steering: Steering,
        exchange: Exchange,
        stimulus: Stimulus,
        outside: Outside,
        fcl: Fcl,
        network: Network,
        turn: Turn,
    ) -> None:
        runs, index, slot = coming(steering, exchange, fcl, network, turn)
        if not runs:
            return
        ids, following = stimulus.stimulus_ids, np.uint32(index + np.uint32(1))
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        entry = np.int64(stimulus.stimulus_offsets[index]) + np.int64(cuda.grid(1))
        end = stimulus.stimulus_offsets[following]
        entry_forced = np.int64(stimulus.forced_offsets[index]) + np.int64(cuda.grid(1))
        end_forced = stimulus.forced_offsets[following]
        step = np.int64(cuda.gridsize(1))
        while entry < end:
            before = peek(ids[entry], base, fcl)
            admit(ids[entry], before, stimulus.stimulus_amounts[entry], base, outside, fcl)
            entry += step
        while entry_forced < end_forced:
            outside.forced[stimulus.forced_ids[entry_forced]] = np.uint8(1)
            entry_forced += step

    return stimulate
