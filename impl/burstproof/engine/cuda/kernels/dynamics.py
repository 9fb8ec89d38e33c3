"""The dense pass over all neurons: consume the burst's slot, apply section 3 of SEMANTICS, list who fired."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import (
    Bytes,
    Fcl,
    History,
    Log,
    Network,
    Parameters,
    State,
    Steering,
    Stimulus,
)
from burstproof.engine.cuda.kernels.control import ACTIVE, BATCH, BURST, CANDIDATES, INDEX, SLOT, START
from burstproof.engine.cuda.kernels.neuron import Found, make_neuron
from burstproof.engine.cuda.kernels.stimulus import cancelled, make_note_firing, make_place_of_forced
from burstproof.engine.cuda.kernels.storage import make_widen
from burstproof.engine.cuda.kernels.warp import WARP, make_reserve, make_tally
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.profile import BATCH_PATH_CANDIDATES


def make_count_ahead(variant: Variant) -> Callable[..., None]:
    """``count_ahead(...)``: candidates of the burst, for the batch path."""
    flagged = variant.flags
    tally = make_tally()
    zero = variant.accumulator(0)
    lanes = np.uint32(WARP - 1)

    def count_ahead(steering: Steering, fcl: Fcl, network: Network) -> None:
        control, neurons = steering.control, network.neurons
        if control[ACTIVE] == 0:
            return
        base = np.uint64(np.uint64(control[SLOT]) * np.uint64(fcl.stride))
        neuron = np.uint64(cuda.grid(1))
        step = np.uint64(cuda.gridsize(1))
        seen = np.int32(0)
        while neuron < np.uint64(neurons):
            place = np.uint64(base + neuron)
            is_candidate = fcl.flags[place] != 0 if flagged else fcl.sums[place] != zero
            if is_candidate or np.int64(neuron) == network.power_neuron:
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
        steering: Steering,
        stimulus: Stimulus,
        forced_hits: Bytes,
        log: Log,
        fcl: Fcl,
        state: State,
        parameters: Parameters,
        history: History,
        network: Network,
    ) -> None:
        control, neurons = steering.control, network.neurons
        if control[ACTIVE] == 0:
            return
        burst = control[BURST]
        burst_seed = np.uint32(burst & 0xFFFFFFFF)
        start = control[START]
        base = np.uint64(np.uint64(control[SLOT]) * np.uint64(fcl.stride))
        index = steering.report[INDEX]
        forced_low = np.int64(stimulus.forced_offsets[index])
        forced_high = np.int64(stimulus.forced_offsets[index + 1])
        batch = count_ahead and control[BATCH] >= batch_from
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
                total = fcl.sums[place]
                if flagged:
                    is_candidate = fcl.flags[place] != 0
                else:
                    is_candidate = total != zero
                    if total == marker:
                        total = zero
                if is_candidate:
                    fcl.sums[place] = zero
                    if flagged:
                        fcl.flags[place] = np.uint8(0)
                if np.int64(neuron) == network.power_neuron:
                    total = number(total + network.power_amount)
                    is_candidate = True
                v, rc = silent, np.int32(0)
                if refractory:
                    rc = np.int32(state.countdowns[neuron])
                if is_candidate:
                    seen = np.int32(seen + 1)
                    v = widen(state.potentials[neuron])
                place_of_own = forced_high
                if forced_low < forced_high:
                    place_of_own = place_of_forced(neuron, forced_low, forced_high, stimulus.forced_ids)
                fired, potential = neuron_burst(
                    neuron,
                    burst_seed,
                    is_candidate,
                    place_of_own < forced_high,
                    batch,
                    Found(total, v, rc),
                    state,
                    parameters,
                    network.unit,
                )
                if fired:
                    if plastic:
                        note_firing(neuron, burst, history)
                    if place_of_own < forced_high:
                        forced_hits[place_of_own] = np.uint8(1)
            place_in_list = reserve(fired, lane, control)
            if fired:
                log.log_ids[start + place_in_list] = neuron
                log.log_potentials[start + place_in_list] = potential
        tally(seen, lane, control, CANDIDATES)

    return dynamics
