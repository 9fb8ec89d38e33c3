"""Kernels for what comes from outside: stimulus into the FCL, forced firings into the fired list."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Bytes, Fcl, History, Ids, Log, Parameters, State, Steering, Stimulus
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, COUNT, INDEX, SLOT, START
from burstproof.engine.cuda.kernels.marks import FIRED_MARK
from burstproof.engine.cuda.kernels.neuron import make_value
from burstproof.engine.cuda.plan.variant import Restart, Variant
from burstproof.engine.stimulus import FORCED_POTENTIAL


def cancelled(variant: Variant) -> Any:
    """The sum that stands for *candidate whose sum is 0* within one burst, where candidates have no flags.

    No sum reaches it: sums stay within the accumulator's positive range in magnitude.
    """
    return variant.accumulator(np.iinfo(variant.accumulator).min)


def make_inject(variant: Variant) -> Callable[..., None]:
    """``inject(...)``: add the burst's stimulus to its slot.

    The ids of one burst differ, so that no atomic operation is needed.
    """
    flagged = variant.flags
    number = variant.accumulator
    zero, marker = variant.accumulator(0), cancelled(variant)

    def inject(steering: Steering, stimulus: Stimulus, fcl: Fcl) -> None:
        if steering.control[ACTIVE] == 0:
            return
        index = steering.report[INDEX]
        base = np.uint64(np.uint64(steering.control[SLOT]) * np.uint64(fcl.stride))
        entry = np.int64(stimulus.stimulus_offsets[index]) + np.int64(cuda.grid(1))
        end = stimulus.stimulus_offsets[index + 1]
        step = np.int64(cuda.gridsize(1))
        while entry < end:
            place = np.uint64(base + np.uint64(stimulus.stimulus_ids[entry]))
            total = number(fcl.sums[place] + stimulus.stimulus_amounts[entry])
            if flagged:
                fcl.flags[place] = np.uint8(1)
            elif total == zero:
                total = marker
            fcl.sums[place] = total
            entry += step

    return inject


@cache
def make_note_firing() -> Callable[..., Any]:
    """``note_firing(neuron, burst, history)``: keep the history that plasticity needs."""

    def note_firing(neuron: np.uint32, burst: np.int64, history: History) -> None:
        streak = np.int32(0)
        if history.last_fired[neuron] == burst - 1:
            streak = np.int32(history.streaks[neuron])
        if streak < history.longest:
            streak = np.int32(streak + 1)
        history.streaks[neuron] = np.uint16(streak)
        history.last_fired[neuron] = burst

    return cuda.jit(device=True)(note_firing)  # type: ignore[no-any-return]


@cache
def make_place_of_forced() -> Callable[..., Any]:
    """``place_of_forced(neuron, low, high, ids)`` -> place of ``neuron`` among the ascending ids, or ``high``."""

    def place_of_forced(neuron: np.uint32, low: np.int64, high: np.int64, ids: Ids) -> Any:
        end = high
        while low < high:
            middle = (low + high) >> 1
            if ids[middle] < neuron:
                low = middle + 1
            else:
                high = middle
        return low if low < end and ids[low] == neuron else end

    return cuda.jit(device=True)(place_of_forced)  # type: ignore[no-any-return]


def make_force(variant: Variant) -> Callable[..., None]:
    """``force(...)``: append the burst's forced firings that did not fire anyway."""
    plastic = variant.plastic
    restart_fired = variant.restart is Restart.FIRED
    note_firing, accumulates = make_note_firing(), make_value(variant, "mp_charge_accumulation")
    potential = FORCED_POTENTIAL

    def force(
        steering: Steering,
        stimulus: Stimulus,
        forced_hits: Bytes,
        log: Log,
        state: State,
        parameters: Parameters,
        history: History,
    ) -> None:
        control = steering.control
        if control[ACTIVE] == 0:
            return
        index = steering.report[INDEX]
        entry = np.int64(stimulus.forced_offsets[index]) + np.int64(cuda.grid(1))
        end = stimulus.forced_offsets[index + 1]
        step = np.int64(cuda.gridsize(1))
        while entry < end:
            if forced_hits[entry] != 0:
                forced_hits[entry] = np.uint8(0)
            else:
                neuron = stimulus.forced_ids[entry]
                place = control[START] + np.int64(cuda.atomic.add(control, COUNT, np.int64(1)))
                log.log_ids[place] = neuron
                log.log_potentials[place] = potential
                if plastic:
                    note_firing(neuron, control[BURST], history)
                if restart_fired and accumulates(parameters.mp_charge_accumulation, neuron) == 0:
                    state.marks[neuron] = np.uint8(state.marks[neuron] | np.uint8(FIRED_MARK))
            entry += step

    return force
