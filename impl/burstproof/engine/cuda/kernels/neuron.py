"""One neuron of a burst: the rules of section 3 applied to what was loaded, its state written back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.kernels.marks import CANDIDATE_MARK, FIRED_MARK
from burstproof.engine.cuda.kernels.storage import make_narrow
from burstproof.engine.cuda.plan.variant import Restart, Variant
from burstproof.engine.rules import make_rules
from burstproof.engine.stimulus import FORCED_POTENTIAL


def make_neuron(variant: Variant, joins_here: bool = True) -> Callable[..., Any]:
    """``neuron_burst(...)`` -> (whether it joins the fired list, its potential there).

    ``total`` and ``is_candidate`` come from the slot, ``v`` and ``rc`` from the state. ``common`` holds the value of
    each parameter that is one for all neurons; the others are columns. ``batch`` says that the batch path is emulated
    in this burst. Where forced firings join the list later, ``is_forced`` only keeps the countdown from ticking.
    """
    features = variant.features
    rules = make_rules(features, cuda.jit(device=True))
    candidate, tick, narrow = rules.candidate, rules.tick, make_narrow(features.storage)
    refractory, ticks = (
        features.refractory_periods,
        features.refractory_periods and not features.countdown_only_candidates,
    )
    limits, fire_limits, counts_decide = (
        features.threshold_limits,
        features.consecutive_fire_limits,
        features.counts_decide,
    )
    batch_path, batch_zeroes = features.emulate_batch_path, features.batch_ignores_limit_and_zeroes
    snoozes, excitability_matters, leaks = features.snooze_periods, features.excitabilities, features.decays
    mixed = features.restarts
    restart_candidates = variant.restart is Restart.CANDIDATES
    restart_all = variant.restart is Restart.ALL
    restart_fired = variant.restart is Restart.FIRED
    uniform = variant.uniform
    one_thresholds, one_threshold_limits, one_keep = bool(uniform & 1), bool(uniform & 2), bool(uniform & 4)
    one_refractory_periods, one_fire_limit = bool(uniform & 8), bool(uniform & 16)
    one_snooze_periods, one_excitabilities = bool(uniform & 32), bool(uniform & 64)
    silent, one, full = np.float32(0), np.float32(1), np.uint16(65535)
    no_limit, given = np.float32(3.4028235e38), np.float32(FORCED_POTENTIAL)
    marked_candidate, marked_fired = np.uint8(CANDIDATE_MARK), np.uint8(FIRED_MARK)

    def neuron_burst(
        neuron: Any,
        burst_seed: Any,
        is_candidate: Any,
        is_forced: Any,
        batch: Any,
        total: Any,
        v: Any,
        rc: Any,
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
    ) -> Any:
        fired = False
        potential = silent
        restarts = False
        accumulating = True
        if mixed:
            accumulating = accumulates[neuron] != 0
            mark = marks[neuron]
            if restart_candidates:
                restarts = (mark & marked_candidate) != 0 and rc == 0
            elif restart_all:
                restarts = not accumulating
            elif restart_fired:
                restarts = (mark & marked_fired) != 0
        limit, cc = np.int32(0), np.int32(0)
        if counts_decide and (is_candidate or rc > 0):
            if fire_limits:
                limit = np.int32(common[4] if one_fire_limit else fire_limit[neuron])
            cc = np.int32(counts[neuron])
        if refractory and rc > 0:
            if (is_candidate or ticks) and not is_forced:
                new_rc, new_cc = tick(rc, cc, limit)
                countdowns[neuron] = np.uint16(new_rc)
                if fire_limits and new_cc != cc:
                    counts[neuron] = np.uint16(new_cc)
            if restarts:
                potentials[neuron] = narrow(silent)
        elif is_candidate:
            if restarts:
                v = silent
            ceiling, factor, excitability = no_limit, one, one
            period, snooze = np.int32(0), np.int32(0)
            if limits:
                ceiling = common[1] if one_threshold_limits else threshold_limits[neuron]
            if leaks:
                factor = common[2] if one_keep else keep[neuron]
            if refractory:
                period = np.int32(common[3] if one_refractory_periods else refractory_periods[neuron])
            if snoozes:
                snooze = np.int32(common[5] if one_snooze_periods else snooze_periods[neuron])
            if excitability_matters:
                excitability = common[6] if one_excitabilities else excitabilities[neuron]
            threshold = common[0] if one_thresholds else thresholds[neuron]
            x = np.float32(np.float32(total) * unit)
            fired, potential, v, new_rc, new_cc = candidate(
                x,
                v,
                cc,
                threshold,
                ceiling,
                factor,
                period,
                limit,
                snooze,
                excitability,
                neuron,
                burst_seed,
                accumulating,
                batch,
            )
            if counts_decide:
                if new_cc != cc:
                    counts[neuron] = np.uint16(new_cc)
            elif fired:
                count = counts[neuron]
                if count == full:
                    fired, v, new_rc = False, potential, np.int32(0)
                    if batch_path and batch:
                        v = silent if batch_zeroes else np.float32(potential * factor)
                    else:
                        counts[neuron] = np.uint16(0)
                else:
                    counts[neuron] = np.uint16(count + np.uint16(1))
            potentials[neuron] = narrow(v)
            if refractory and new_rc != 0:
                countdowns[neuron] = np.uint16(new_rc)
        elif restarts:
            potentials[neuron] = narrow(silent)
        if mixed:
            new_mark = np.uint8(0)
            if is_candidate and not accumulating and not fired and not is_forced:
                new_mark = marked_candidate
            if mark != new_mark:
                marks[neuron] = new_mark
        joins = is_forced and joins_here and not fired
        if joins:
            if restart_fired and not accumulating:
                marks[neuron] = np.uint8(marks[neuron] | marked_fired)
            fired = True
            potential = given
        return fired, potential

    return cuda.jit(device=True)(neuron_burst)  # type: ignore[no-any-return]
