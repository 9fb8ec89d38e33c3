"""Kernels for what comes from outside: stimulus into the FCL, forced firings into the fired list."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, COUNT, INDEX, SLOT, START
from burstproof.engine.cuda.kernels.marks import FIRED_MARK
from burstproof.engine.cuda.plan.variant import Restart, Variant
from burstproof.engine.stimulus import FORCED_POTENTIAL


def cancelled(variant: Variant) -> Any:
    """The sum that stands for *candidate whose sum is 0* within one burst, where candidates have no flags.

    No sum reaches it: sums stay within the accumulator's positive range in magnitude.
    """
    return variant.accumulator(np.iinfo(variant.accumulator).min)


def make_inject(variant: Variant) -> Callable[..., None]:
    """``inject(control, report, offsets, ids, amounts, sums, flags, neurons)``: add the burst's stimulus to its slot.

    The ids of one burst differ, so that no atomic operation is needed.
    """
    flagged = variant.flags
    number = variant.accumulator
    zero, marker = variant.accumulator(0), cancelled(variant)

    def inject(
        control: Any, report: Any, offsets: Any, ids: Any, amounts: Any, sums: Any, flags: Any, neurons: Any
    ) -> None:
        if control[ACTIVE] == 0:
            return
        index = report[INDEX]
        base = np.uint64(control[SLOT]) * np.uint64(neurons)
        entry = np.int64(offsets[index]) + np.int64(cuda.grid(1))
        end = offsets[index + 1]
        step = np.int64(cuda.gridsize(1))
        while entry < end:
            place = np.uint64(base + np.uint64(ids[entry]))
            total = number(sums[place] + amounts[entry])
            if flagged:
                flags[place] = np.uint8(1)
            elif total == zero:
                total = marker
            sums[place] = total
            entry += step

    return inject


@cache
def make_note_firing() -> Callable[..., Any]:
    """``note_firing(neuron, burst, longest, last_fired, streaks)``: keep the history that plasticity needs."""

    def note_firing(neuron: Any, burst: Any, longest: Any, last_fired: Any, streaks: Any) -> None:
        streak = np.int32(0)
        if last_fired[neuron] == burst - 1:
            streak = np.int32(streaks[neuron])
        if streak < longest:
            streak = np.int32(streak + 1)
        streaks[neuron] = np.uint16(streak)
        last_fired[neuron] = burst

    return cuda.jit(device=True)(note_firing)  # type: ignore[no-any-return]


@cache
def make_place_of_forced() -> Callable[..., Any]:
    """``place_of_forced(neuron, low, high, ids)`` -> place of ``neuron`` among the ascending ids, or ``high``."""

    def place_of_forced(neuron: Any, low: Any, high: Any, ids: Any) -> Any:
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
    note_firing = make_note_firing()
    potential = FORCED_POTENTIAL

    def force(
        control: Any,
        report: Any,
        offsets: Any,
        ids: Any,
        hits: Any,
        log_ids: Any,
        log_potentials: Any,
        marks: Any,
        accumulates: Any,
        last_fired: Any,
        streaks: Any,
        longest: Any,
    ) -> None:
        if control[ACTIVE] == 0:
            return
        index = report[INDEX]
        entry = np.int64(offsets[index]) + np.int64(cuda.grid(1))
        end = offsets[index + 1]
        step = np.int64(cuda.gridsize(1))
        while entry < end:
            if hits[entry] != 0:
                hits[entry] = np.uint8(0)
            else:
                neuron = ids[entry]
                place = control[START] + np.int64(cuda.atomic.add(control, COUNT, np.int64(1)))
                log_ids[place] = neuron
                log_potentials[place] = potential
                if plastic:
                    note_firing(neuron, control[BURST], longest, last_fired, streaks)
                if restart_fired and accumulates[neuron] == 0:
                    marks[neuron] = np.uint8(marks[neuron] | np.uint8(FIRED_MARK))
            entry += step

    return force
