"""The dense pass over all neurons: consume the burst's slot, apply section 3 of SEMANTICS, list who fired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.kernels.control import ACTIVE, BATCH, BURST, CANDIDATES, INDEX, SLOT, START
from burstproof.engine.cuda.kernels.neuron import make_neuron
from burstproof.engine.cuda.kernels.stimulus import cancelled, make_note_firing, make_place_of_forced
from burstproof.engine.cuda.kernels.storage import make_widen
from burstproof.engine.cuda.kernels.warp import WARP, make_reserve, make_tally
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.profile import BATCH_PATH_CANDIDATES


def make_count_ahead(variant: Variant) -> Callable[..., None]:
    """``count_ahead(control, sums, flags, power_neuron, neurons)``: candidates of the burst, for the batch path."""
    flagged = variant.flags
    tally = make_tally()
    zero = variant.accumulator(0)
    lanes = np.uint32(WARP - 1)

    def count_ahead(control: Any, sums: Any, flags: Any, power_neuron: Any, neurons: Any) -> None:
        if control[ACTIVE] == 0:
            return
        base = np.uint64(control[SLOT]) * np.uint64(neurons)
        neuron = np.uint64(cuda.grid(1))
        step = np.uint64(cuda.gridsize(1))
        seen = np.int32(0)
        while neuron < np.uint64(neurons):
            place = np.uint64(base + neuron)
            is_candidate = flags[place] != 0 if flagged else sums[place] != zero
            if is_candidate or np.int64(neuron) == power_neuron:
                seen = np.int32(seen + 1)
            neuron = np.uint64(neuron + step)
        tally(seen, np.uint32(np.uint32(cuda.grid(1)) & lanes), control, BATCH)

    return count_ahead


def make_dynamics(variant: Variant) -> Callable[..., None]:
    """``dynamics(...)``: one pass over all neurons in a grid-stride loop whose bound is the same for a whole warp.

    ``power_neuron`` is -1 where there is none.
    """
    neuron_burst, widen = make_neuron(variant, joins_here=False), make_widen(variant.features.storage)
    reserve, tally = make_reserve(), make_tally()
    note_firing, place_of_forced = make_note_firing(), make_place_of_forced()
    flagged, plastic, count_ahead = variant.flags, variant.plastic, variant.count_ahead
    refractory = variant.features.refractory_periods
    number, zero, marker = variant.accumulator, variant.accumulator(0), cancelled(variant)
    silent = np.float32(0)
    lanes = np.uint32(WARP - 1)
    batch_from = np.int64(BATCH_PATH_CANDIDATES)

    def dynamics(
        control: Any,
        report: Any,
        forced_offsets: Any,
        forced_ids: Any,
        forced_hits: Any,
        log_ids: Any,
        log_potentials: Any,
        sums: Any,
        flags: Any,
        potentials: Any,
        countdowns: Any,
        counts: Any,
        marks: Any,
        accumulates: Any,
        thresholds: Any,
        threshold_limits: Any,
        keep: Any,
        refractory_periods: Any,
        fire_limit: Any,
        snooze_periods: Any,
        excitabilities: Any,
        last_fired: Any,
        streaks: Any,
        longest: Any,
        unit: Any,
        power_neuron: Any,
        power_amount: Any,
        neurons: Any,
    ) -> None:
        if control[ACTIVE] == 0:
            return
        burst = control[BURST]
        burst_seed = np.uint32(burst & 0xFFFFFFFF)
        start = control[START]
        base = np.uint64(control[SLOT]) * np.uint64(neurons)
        index = report[INDEX]
        forced_low = np.int64(forced_offsets[index])
        forced_high = np.int64(forced_offsets[index + 1])
        batch = count_ahead and control[BATCH] >= batch_from
        common = (
            thresholds[0],
            threshold_limits[0],
            keep[0],
            np.int32(refractory_periods[0]),
            np.int32(fire_limit[0]),
            np.int32(snooze_periods[0]),
            excitabilities[0],
        )
        lane = np.uint32(np.uint32(cuda.grid(1)) & lanes)
        step = np.uint64(cuda.gridsize(1))
        first = np.uint64(np.uint32(cuda.grid(1)) - lane)
        seen = np.int32(0)
        while first < np.uint64(neurons):
            neuron = np.uint32(first + np.uint64(lane))
            first = np.uint64(first + step)
            fired = False
            potential = silent
            if neuron < neurons:
                place = np.uint64(base + np.uint64(neuron))
                total = sums[place]
                if flagged:
                    is_candidate = flags[place] != 0
                else:
                    is_candidate = total != zero
                    if total == marker:
                        total = zero
                if is_candidate:
                    sums[place] = zero
                    if flagged:
                        flags[place] = np.uint8(0)
                if np.int64(neuron) == power_neuron:
                    total = number(total + power_amount)
                    is_candidate = True
                v, rc = silent, np.int32(0)
                if refractory:
                    rc = np.int32(countdowns[neuron])
                if is_candidate:
                    seen = np.int32(seen + 1)
                    v = widen(potentials[neuron])
                place_of_own = forced_high
                if forced_low < forced_high:
                    place_of_own = place_of_forced(neuron, forced_low, forced_high, forced_ids)
                fired, potential = neuron_burst(
                    neuron,
                    burst_seed,
                    is_candidate,
                    place_of_own < forced_high,
                    batch,
                    total,
                    v,
                    rc,
                    potentials,
                    countdowns,
                    counts,
                    marks,
                    accumulates,
                    thresholds,
                    threshold_limits,
                    keep,
                    refractory_periods,
                    fire_limit,
                    snooze_periods,
                    excitabilities,
                    common,
                    unit,
                )
                if fired:
                    if plastic:
                        note_firing(neuron, burst, longest, last_fired, streaks)
                    if place_of_own < forced_high:
                        forced_hits[place_of_own] = np.uint8(1)
            place_in_list = reserve(fired, lane, control)
            if fired:
                log_ids[start + place_in_list] = neuron
                log_potentials[start + place_in_list] = potential
        tally(seen, lane, control, CANDIDATES)

    return dynamics
