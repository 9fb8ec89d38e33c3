"""One neuron in a burst: apply the rules of SEMANTICS section 3 to what was loaded, write the state back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Network, Neurons, Parameters
from burstproof.engine.cuda.kernels.features import Adapted, base_leaks_serve, make_in_force
from burstproof.engine.cuda.kernels.marks import CANDIDATE_MARK, FIRED_MARK, RESTARTING_MARK
from burstproof.engine.cuda.kernels.neuron_values import make_record, make_recorded_value, make_value
from burstproof.engine.cuda.kernels.storage import make_narrow
from burstproof.engine.cuda.plan.features import LEAKS
from burstproof.engine.cuda.plan.variant import Restart, Variant
from burstproof.engine.rules import make_rules
from burstproof.network.schema import NO_LIMIT


class Found(NamedTuple):
    """What is known of a neuron at the start of its burst: the sum that arrived, in units of 2^-k, and its state."""

    total: Any
    v: np.float32
    rc: np.int32
    cc: np.int32
    mark: np.uint32
    decay: np.float32
    record: Any


class Trial(NamedTuple):
    """What decides whether a candidate fires, besides its parameters.

    ``x`` is the input; ``left`` the factor that the leak leaves, if it was loaded; ``record`` the words of the neuron's
    record, unless it ``sleeps``.
    """

    x: np.float32
    v: np.float32
    cc: np.int32
    left: np.float32
    limit: np.int32
    accumulates: bool
    sleeps: bool
    record: Any


def make_own(variant: Variant, leaks_ahead: bool) -> Callable[..., Any]:
    """``own(parameters, neuron, trial, leaking)`` -> ``Parameters`` of one neuron.

    Unused parameters are not read. A neuron that ``sleeps`` cannot fire, whatever its sum: only its leak is read, and
    its threshold is NaN, so it is not in the window. A neuron that is ``leaking`` has its homeostat's leak.
    """
    features = variant.features
    limits, leaks = features.threshold_limits, features.decays and not base_leaks_serve(variant)
    refractory = features.refractory_periods
    snoozes, draws = features.snooze_periods, features.excitabilities
    decay_of = make_value(variant, "decays")
    threshold_of, limit_of, period_of, snooze_of, excitability_of = (
        make_recorded_value(variant, name)
        for name in ("thresholds", "threshold_limits", "refractory_periods", "snooze_periods", "excitabilities")
    )
    no_limit, one, never = np.float32(NO_LIMIT), np.float32(1), np.float32(np.nan)
    tells_sleepers = variant.record.tells_sleepers

    def own(parameters: Parameters, neuron: np.uint32, trial: Trial, leaking: bool) -> Any:
        ceiling, decay, excitability = no_limit, one, one
        period, snooze = np.int32(0), np.int32(0)
        threshold = never
        if leaks_ahead:
            decay = trial.left
        elif leaks and not leaking:
            decay = decay_of(parameters.decays, neuron)
        if tells_sleepers or not trial.sleeps:
            record = trial.record
            if limits:
                ceiling = limit_of(record, parameters.threshold_limits, neuron)
            if refractory:
                period = np.int32(period_of(record, parameters.refractory_periods, neuron))
            if snoozes:
                snooze = np.int32(snooze_of(record, parameters.snooze_periods, neuron))
            if draws:
                excitability = excitability_of(record, parameters.excitabilities, neuron)
            threshold = threshold_of(record, parameters.thresholds, neuron)
        # Numbers in the place of columns.
        return Parameters(threshold, ceiling, decay, period, trial.limit, snooze, excitability, trial.accumulates)  # type: ignore[arg-type]

    return cuda.jit(device=True)(own)  # type: ignore[no-any-return]


def make_restarts(variant: Variant) -> Callable[..., Any]:
    """``restarts(mark, accumulates, rc)``: whether a neuron restarts from 0 in this burst (``Restart``)."""
    marked_candidate, marked_fired = np.uint32(CANDIDATE_MARK), np.uint32(FIRED_MARK)

    def never(mark: np.uint32, accumulates: bool, rc: np.int32) -> Any:
        return False

    def candidates(mark: np.uint32, accumulates: bool, rc: np.int32) -> Any:
        return (mark & marked_candidate) != 0 and rc == 0

    def everyone(mark: np.uint32, accumulates: bool, rc: np.int32) -> Any:
        return not accumulates

    def fired(mark: np.uint32, accumulates: bool, rc: np.int32) -> Any:
        return (mark & marked_fired) != 0

    rules = {Restart.NONE: never, Restart.CANDIDATES: candidates, Restart.ALL: everyone, Restart.FIRED: fired}
    return cuda.jit(device=True)(rules[variant.restart])  # type: ignore[no-any-return]


def _make_tested(variant: Variant, leaks_ahead: bool) -> Callable[..., Any]:
    """``tested(trial, neuron, ...)`` -> (the factor that the leak leaves, and what ``Rules.candidate`` returns)."""
    features, adapts, homeostats = variant.features, variant.extras.adapts, variant.extras.homeostats
    own_of, in_force = make_own(variant, leaks_ahead), make_in_force(variant)
    leaks, none = np.uint8(LEAKS), np.uint8(0)
    candidate = make_rules(features, cuda.jit(device=True)).candidate
    twins_differ, unclamped = features.clamp_potentials and variant.extras.replays, candidate
    if twins_differ:
        unclamped = make_rules(replace(features, clamp_potentials=False), cuda.jit(device=True)).candidate

    def tested(
        trial: Trial,
        neuron: np.uint32,
        burst_seed: np.uint32,
        batch: bool,
        adapted: Adapted,
        classes: Any,
        neurons: Neurons,
    ) -> Any:
        leaking = homeostats and (adapted.flags & leaks) != none
        own = own_of(neurons.parameters, neuron, trial, leaking)
        if adapts:
            own = in_force(own, adapted, trial.sleeps, neuron, classes, neurons.extras)
        if twins_differ and neuron >= neurons.extras.loaded:
            fired, potential, v, rc, cc = unclamped(trial.x, trial.v, trial.cc, own, neuron, burst_seed, batch)
        else:
            fired, potential, v, rc, cc = candidate(trial.x, trial.v, trial.cc, own, neuron, burst_seed, batch)
        return own.decays, fired, potential, v, rc, cc

    return cuda.jit(device=True)(tested)  # type: ignore[no-any-return]


def make_ready(variant: Variant) -> Callable[..., Any]:
    """``ready(neuron, burst_seed, is_candidate, rc, cc, parameters, network)``: the record its burst needs, or none.

    The same record as in ``make_neuron``, if no class of neurons has a bound of its own.
    """
    draw, (record_of, nothing) = make_rules(variant.features, cuda.jit(device=True)).draw, make_record(variant)

    def ready(
        neuron: np.uint64,
        burst_seed: np.uint32,
        is_candidate: bool,
        rc: np.int32,
        cc: np.int32,
        parameters: Parameters,
        network: Network,
    ) -> Any:
        record = nothing
        awake = np.int32(cc != 0) | np.int32(not draw(neuron, burst_seed) > network.largest_excitability)
        if (((np.int32(is_candidate) & np.int32(rc == 0)) | np.int32(rc == 1)) & awake) != 0:
            record = record_of(parameters, neuron)
        return record

    return cuda.jit(device=True)(ready)  # type: ignore[no-any-return]


def make_neuron(
    variant: Variant, counted: bool, marked: bool, leaks_ahead: bool, records_ahead: bool
) -> Callable[..., Any]:
    """``neuron_burst(neuron, ...)`` -> (whether it fired by its potential, this potential; whether it joins by force).

    ``is_candidate`` comes from the slot. ``batch`` says that the batch path is emulated in this burst. ``counted``,
    ``marked``, ``leaks_ahead`` and ``records_ahead`` say that ``found`` has the count, the mark, the decay, the record.
    """
    features, adapts, tested = variant.features, variant.extras.adapts, _make_tested(variant, leaks_ahead)
    rules, restarts_of = make_rules(features, cuda.jit(device=True)), make_restarts(variant)
    tick, draw, narrow = rules.tick, rules.draw, make_narrow(features.storage)
    refractory, fire_limits = features.refractory_periods, features.consecutive_fire_limits
    ticks, counts_decide = refractory and not features.countdown_only_candidates, features.counts_decide
    batch_path, batch_zeroes = features.emulate_batch_path, features.batch_ignores_limit_and_zeroes
    may_sleep, sleepers_apart, none, zero = variant.sleeps, variant.sleeps and adapts, np.uint32(0), np.int32(0)
    mixed, restart_fired = features.restarts, variant.restart is Restart.FIRED
    fire_limit_of, (record_of, nothing) = make_recorded_value(variant, "consecutive_fire_limits"), make_record(variant)
    recorded = variant.record.words > 0
    silent, full = np.float32(0), np.uint16(65535)
    marked_candidate, marked_fired = np.uint32(CANDIDATE_MARK), np.uint8(FIRED_MARK)
    restarting, soon = np.uint32(RESTARTING_MARK), np.int32(2)

    def neuron_burst(
        neuron: np.uint32,
        burst_seed: np.uint32,
        burst: np.uint32,
        is_candidate: bool,
        is_forced: bool,
        batch: bool,
        found: Found,
        adapted: Adapted,
        classes: Any,
        neurons: Neurons,
        network: Network,
    ) -> Any:
        state, parameters = neurons.state, neurons.parameters
        v, rc = found.v, found.rc
        fired = False
        potential = silent
        restarts = False
        accumulating = True
        if mixed:
            mark = found.mark if marked else np.uint32(state.marks[neuron])
            accumulating = (mark & restarting) == none
            restarts = restarts_of(mark, accumulating, rc)
        limit, cc, asleep, record = np.int32(0), np.int32(0), False, nothing
        if records_ahead:
            cc, record = found.cc, found.record
            if fire_limits:
                limit = np.int32(fire_limit_of(record, parameters.consecutive_fire_limits, neuron))
        elif counts_decide and (is_candidate or rc > 0):
            cc = found.cc if counted else np.int32(state.counts[neuron])
            if may_sleep:
                bound = network.largest_excitability
                if adapts:
                    bound = classes.bounds[adapted.row]
                asleep = bool(np.int32(cc == 0) & np.int32(draw(neuron, burst_seed) > bound))
            if (recorded or fire_limits) and not asleep and rc < soon:  # a countdown that goes on needs neither
                record = record_of(parameters, neuron)
                if fire_limits:
                    limit = np.int32(fire_limit_of(record, parameters.consecutive_fire_limits, neuron))
        elif recorded and is_candidate:
            record = record_of(parameters, neuron)
        if refractory and rc > 0:
            if (is_candidate or ticks) and not is_forced:
                new_rc, new_cc = tick(rc, cc, limit)
                state.countdowns[neuron] = np.uint16(new_rc)
                if fire_limits and new_cc != cc:
                    state.counts[neuron] = np.uint16(new_cc)
            if restarts:
                state.potentials[neuron] = narrow(silent)
        elif is_candidate:
            if restarts:
                v = silent
            x = np.float32(np.float32(found.total) * network.unit)
            if sleepers_apart and asleep:  # most neurons are, and skip what the others need
                trial = Trial(x, v, zero, found.decay, zero, accumulating, True, nothing)
                decay, fired, potential, v, new_rc, new_cc = tested(
                    trial, neuron, burst_seed, batch, adapted, classes, neurons
                )
            else:
                trial = Trial(x, v, cc, found.decay, limit, accumulating, asleep and not sleepers_apart, record)
                decay, fired, potential, v, new_rc, new_cc = tested(
                    trial, neuron, burst_seed, batch, adapted, classes, neurons
                )
            if counts_decide:
                if new_cc != cc:
                    state.counts[neuron] = np.uint16(new_cc)
                if refractory and new_rc != 0:
                    state.countdowns[neuron] = np.uint16(new_rc)
            elif fired:
                count = state.counts[neuron]
                if count == full:
                    fired, v, new_rc = False, potential, np.int32(0)
                    if batch_path and batch:
                        v = silent if batch_zeroes else np.float32(potential * decay)
                    else:
                        state.counts[neuron] = np.uint16(0)
                else:
                    state.counts[neuron] = np.uint16(count + np.uint16(1))
            state.potentials[neuron] = narrow(v)
            if not counts_decide and refractory and new_rc != 0:
                state.countdowns[neuron] = np.uint16(new_rc)
        elif restarts:
            state.potentials[neuron] = narrow(silent)
        if mixed:
            new_mark = np.uint32(mark & restarting)
            if is_candidate and not accumulating and not fired and not is_forced:
                new_mark = np.uint32(new_mark | marked_candidate)
            if mark != new_mark:
                state.marks[neuron] = np.uint8(new_mark)
        joins = is_forced and not fired
        if joins and restart_fired and not accumulating:
            state.marks[neuron] = np.uint8(state.marks[neuron] | marked_fired)
        return fired, potential, joins

    return cuda.jit(device=True)(neuron_burst)  # type: ignore[no-any-return]
