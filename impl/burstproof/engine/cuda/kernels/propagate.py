"""Kernels that add the contributions of what fired to the slots of the FCL; a warp takes a fired neuron."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import ComputedRows, Deferred, Fcl, Identity, Log, Rows, Scale, Steering, Transmission
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, CLAMPED, COUNT, SLOT, START
from burstproof.engine.cuda.kernels.deferred import (
    make_past,
    make_row_rule,
    make_rows_due,
    make_update_row,
    make_update_weight,
    make_waiting,
)
from burstproof.engine.cuda.kernels.features import rules_of_features
from burstproof.engine.cuda.kernels.identity import make_id_of
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant

_ROUND = 6755399441055744.0
"""1.5 * 2^52: adding and subtracting it rounds a float64 below 2^51 in magnitude to an integer, half to even."""
_ROUND_BELOW = 2251799813685248.0


def make_propagate(variant: Variant) -> Callable[..., None]:
    """``propagate(...)``: send the static contributions of the burst's fired list."""
    delayed, clamps, deliver = variant.delays, variant.clamps, make_deliver(variant)
    number, offset = variant.accumulator, variant.offset
    lanes = np.uint32(WARP - 1)

    def propagate(steering: Steering, log: Log, rows: Rows, fcl: Fcl) -> None:
        control = steering.control
        if control[ACTIVE] == 0:
            return
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & lanes)
        item = np.int64(thread // np.uint32(WARP))
        items = np.int64(np.uint32(cuda.gridsize(1)) // np.uint32(WARP))
        start, count = control[START], control[COUNT]
        slot = np.uint32(control[SLOT])
        while item < count:
            source = log.log_ids[start + item]
            entry = offset(rows.offsets[source] + offset(lane))
            end = rows.offsets[np.uint32(source + np.uint32(1))]
            while entry < end:
                place = np.uint64(rows.targets[entry])
                if delayed:
                    arrival = np.uint32(slot + np.uint32(rows.delays[entry]))
                    if arrival >= fcl.ring:
                        arrival = np.uint32(arrival - fcl.ring)
                    place = np.uint64(place + np.uint64(arrival) * np.uint64(fcl.stride))
                deliver(place, number(rows.contributions[entry]), fcl)
                entry = offset(entry + offset(WARP))
            if clamps and lane == np.uint32(0) and rows.clamped_sources[source] != 0:
                control[CLAMPED] = 1
            item += items

    return propagate


@cache
def make_quantise() -> Callable[..., Any]:
    """``quantise(contribution, scale)`` -> (int64 units, whether it was clamped); NaN gives 0."""
    half, below = np.float64(_ROUND), np.float64(_ROUND_BELOW)

    def quantise(contribution: np.float32, scale: Scale) -> Any:
        scaled = np.float64(contribution) * scale.scale
        if scaled < below and scaled > -below:
            scaled = (scaled + half) - half
        if scaled > scale.clamp_float:
            return scale.clamp, True
        if scaled < -scale.clamp_float:
            return np.int64(-scale.clamp), True
        if scaled != scaled:
            return np.int64(0), False
        return np.int64(scaled), False

    return cuda.jit(device=True)(quantise)  # type: ignore[no-any-return]


def make_propagate_computed(shard: ShardVariant) -> Callable[..., None]:
    """``propagate_computed(...)``: send contributions that depend on a plastic weight or on the source's potential.

    Where learning is deferred, the weights of these rows are first brought up to date, and those of the rows due in
    this burst after them. Reads of rows in host memory start at a multiple of a warp's entries, to be aligned.
    """
    variant, aligned = shard.variant, shard.variant.streamed
    delayed, rounds, offset = variant.delays, variant.round_mp_driven, variant.offset
    quantise, deliver = make_quantise(), make_deliver(variant)
    lanes, silent = np.uint32(WARP - 1), np.float32(0)
    half, cap = np.float64(0.5), np.float64(255)
    transmits, degenerates = variant.extras.transmits, variant.extras.degenerates
    degenerated, defers = rules_of_features().degenerated, variant.defers_learning
    past, waiting, update_weight, id_of = make_past(), make_waiting(), make_update_weight(), make_id_of(shard)
    rows_due, update_row, rule_of_row = make_rows_due(), make_update_row(shard), make_row_rule()

    def propagate_computed(
        steering: Steering,
        log: Log,
        rows: ComputedRows,
        fcl: Fcl,
        scale: Scale,
        transmission: Transmission,
        deferred: Deferred,
        identity: Identity,
    ) -> None:
        control = steering.control
        if control[ACTIVE] == 0:
            return
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & lanes)
        item = np.int64(thread // np.uint32(WARP))
        items = np.int64(np.uint32(cuda.gridsize(1)) // np.uint32(WARP))
        start, count = control[START], control[COUNT]
        slot, burst = np.uint32(control[SLOT]), control[BURST]
        if transmits:
            factors = np.uint32(np.uint32(np.uint32(control[BURST]) & np.uint32(1)) * transmission.rule_count)
        while item < count:
            source = log.log_ids[start + item]
            driven = rows.mp_driven[source] != 0
            potential = silent
            if driven:
                potential = log.log_potentials[start + item]
                if not potential > silent:
                    potential = silent
                if rounds:
                    potential = np.float32(min(np.float64(int(np.float64(potential) + half)), cap))
            if defers:
                source_past = past(deferred.histories[source], burst)
                bursts = waiting(source_past, source, burst, False, control, deferred)
                rule, row_rule = np.uint32(0), rule_of_row(np.uint32(0), source_past, burst, deferred)
            divisor = rows.divisors[source]
            begin = offset(rows.computed_offsets[source])
            entry = offset(begin + offset(lane))
            if aligned:
                entry = offset(entry - begin % offset(WARP))
            end = rows.computed_offsets[np.uint32(source + np.uint32(1))]
            while entry < end:
                sign, weight = np.int64(0), silent
                if not aligned or entry >= begin:
                    sign = np.int64(rows.signs[entry])
                    if defers:
                        weight = rows.weights[entry]
                        target_word = deferred.histories[id_of(rows.computed_targets[entry], identity)]
                        if np.uint32(deferred.learning_rules[entry]) != rule:
                            rule = np.uint32(deferred.learning_rules[entry])
                            row_rule = rule_of_row(rule, source_past, burst, deferred)
                        weight = update_weight(np.uint64(entry), weight, target_word, row_rule, bursts, burst, rows)
                if sign != 0:
                    psp = rows.psps[entry]
                    if driven:
                        psp = potential
                    if not defers:
                        weight = rows.weights[entry]
                    contribution = np.float32(np.float32(weight * psp) / divisor)
                    if transmits:
                        rule = np.uint32(transmission.synapse_rules[entry])
                        contribution = np.float32(contribution * transmission.transmission[np.uint32(factors + rule)])
                    units, clamped = quantise(contribution, scale)
                    if clamped:
                        control[CLAMPED] = 1
                    place = np.uint64(rows.computed_targets[entry])
                    if delayed:
                        arrival = np.uint32(slot + np.uint32(rows.computed_delays[entry]))
                        if arrival >= fcl.ring:
                            arrival = np.uint32(arrival - fcl.ring)
                        place = np.uint64(place + np.uint64(arrival) * np.uint64(fcl.stride))
                    deliver(place, np.int64(sign * units), fcl)
                if degenerates and (not aligned or entry >= begin):
                    loss = transmission.degeneration[source]
                    if loss > silent:
                        rows.psps[entry] = degenerated(rows.psps[entry], loss)
                entry = offset(entry + offset(WARP))
            item += items
        if defers:
            due = np.int64(count + rows_due(control, deferred))
            while item < due:
                update_row(item - count, lane, control, rows, deferred, identity)
                item += items

    return propagate_computed
