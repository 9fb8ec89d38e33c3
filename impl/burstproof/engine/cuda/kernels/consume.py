"""What a burst does to one neuron: consume its sum and what comes from outside, then the rules of section 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.kernels.neuron import make_neuron
from burstproof.engine.cuda.kernels.stimulus import cancelled
from burstproof.engine.cuda.kernels.storage import make_widen
from burstproof.engine.cuda.plan.variant import Variant


def make_fetch(variant: Variant) -> Callable[..., Any]:
    """``fetch(neuron, neurons, base, cells, potentials, countdowns)`` -> sum, potential, countdown; zeros beyond all.

    ``base`` is the first cell of the slot that the burst consumes.
    """
    refractory, widen = variant.features.refractory_periods, make_widen(variant.features.storage)
    number, zero, silent = variant.accumulator, variant.accumulator(0), np.float32(0)

    def fetch(neuron: Any, neurons: Any, base: Any, cells: Any, potentials: Any, countdowns: Any) -> Any:
        if neuron >= neurons:
            return zero, silent, np.int32(0)
        rc = np.int32(0)
        if refractory:
            rc = np.int32(countdowns[neuron])
        return number(cells[np.uint64(base + np.uint64(neuron))]), widen(potentials[neuron]), rc

    return cuda.jit(device=True)(fetch)  # type: ignore[no-any-return]


def make_consume(variant: Variant, apart: bool, make_seed: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """``consume(neuron, ...)`` -> (whether it joins the fired list, its potential there, whether it is a candidate).

    ``arrived``, ``v`` and ``rc`` are what ``fetch`` found. ``apart``: stimulus lies in ``outside``, not in the slot; in
    either a marker stands for an amount of 0. ``make_seed()`` gives ``seed(neuron, burst_seed, identity)``, what
    excitability is drawn with.
    """
    neuron_burst, seed_of = make_neuron(variant), make_seed()
    flagged, draws, cell = variant.flags, variant.features.excitabilities, variant.cell
    number, zero, marker = variant.accumulator, variant.accumulator(0), cancelled(variant)

    def consume(
        neuron: Any,
        base: Any,
        burst_seed: Any,
        batch: Any,
        stimulated: Any,
        arrived: Any,
        v: Any,
        rc: Any,
        forced: Any,
        outside: Any,
        cells: Any,
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
        common: Any,
        unit: Any,
        power_neuron: Any,
        power_amount: Any,
        identity: Any,
    ) -> Any:
        cell_place = np.uint64(base + np.uint64(neuron))
        is_candidate = flags[cell_place] != 0 if flagged else arrived != zero
        if is_candidate:
            cells[cell_place] = cell(0)
            if flagged:
                flags[cell_place] = np.uint8(0)
            elif not apart and arrived == marker:
                arrived = zero
        is_forced = False
        if stimulated != 0:
            if apart:
                amount = outside[neuron]
                if amount != zero:
                    outside[neuron] = zero
                    is_candidate = True
                    if amount != marker:
                        arrived = number(arrived + amount)
            is_forced = forced[neuron] != 0
            if is_forced:
                forced[neuron] = np.uint8(0)
        if np.int64(neuron) == power_neuron:
            arrived = number(arrived + power_amount)
            is_candidate = True
        seed = burst_seed
        if draws and is_candidate:
            seed = seed_of(neuron, burst_seed, identity)
        joins, potential = neuron_burst(
            neuron,
            seed,
            is_candidate,
            is_forced,
            batch,
            arrived,
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
        return joins, potential, is_candidate

    return cuda.jit(device=True)(consume)  # type: ignore[no-any-return]
