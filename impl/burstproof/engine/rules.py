"""The dynamics of one candidate as scalar functions, compiled by numba for the CPU and for CUDA alike.

The functions are made for a network's ``Features``: the switch of an unused feature is a constant, so the compiler
removes its code. They are written so that no compiler may contract or reorder the float32 operations. The executable
specification in ``reference.py`` shares nothing with this module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Storage, storage_for
from burstproof.network.features import ModulatorKind
from burstproof.network.model import Network
from burstproof.network.schema import NO_LIMIT, UNLIMITED_FIRES, Parameters

CERTAIN = np.float32(0.999)
"""From this excitability on, a neuron in its window fires without a draw."""

Compiled = Callable[..., Any]
Compiler = Callable[[Compiled], Compiled]
"""``numba.njit`` or ``cuda.jit(device=True)``, with their options."""


@dataclass(frozen=True)
class Features:
    """The rules that a network uses under its options; part of the key of compiled kernels.

    The first fields have the names of ``Parameters`` and say whether any neuron uses them: ``refractory_periods`` also
    if only a countdown runs, ``snooze_periods`` only with a finite fire limit. ``restarts``: some neuron does not
    accumulate. ``clamp_potentials``: potentials stay within 0...255 (FEATURES section 6).
    """

    threshold_limits: bool
    decays: bool
    refractory_periods: bool
    consecutive_fire_limits: bool
    snooze_periods: bool
    excitabilities: bool
    restarts: bool
    countdown_only_candidates: bool
    negative_sum_lowers: bool
    restart_all: bool
    emulate_batch_path: bool
    batch_ignores_limit_and_zeroes: bool
    storage: Storage
    clamp_potentials: bool

    @property
    def counts_decide(self) -> bool:
        """Whether the count of fires must be checked before a candidate is tested.

        Without finite limits and excitability it is enough to check it when a neuron fires: at 65535 it is blocked.
        """
        return self.consecutive_fire_limits or self.excitabilities

    def general(self) -> Features:
        """The features of the general kernels, which serve all networks under the same profile."""
        names = {*Parameters._fields, "restarts", "emulate_batch_path"}
        used = {item.name: True for item in dataclasses.fields(self) if item.name in names}
        return dataclasses.replace(self, **used)  # type: ignore[arg-type]


def features_of(network: Network, options: EngineOptions) -> Features:
    """The features that ``network`` uses under ``options``."""
    neurons = network.neurons
    finite = (neurons.consecutive_fire_limits != 0) & (neurons.consecutive_fire_limits != UNLIMITED_FIRES)
    profile = options.profile
    snoozes = bool((neurons.snooze_periods[finite] != 0).any())
    areas = network.features.areas.values()
    acting = {network.features.modulators[position].kind for area in areas for position in area.modulators}
    homeostatic = any(area.homeostat is not None for area in areas)
    return Features(
        threshold_limits=bool((neurons.threshold_limits != NO_LIMIT).any()),
        decays=bool((neurons.leak_coefficients != 0).any()) or homeostatic or ModulatorKind.LEAK in acting,
        refractory_periods=bool(
            any(area.spike_train for area in areas)
            or snoozes
            or (neurons.refractory_periods != 0).any()
            or (neurons.refractory_countdowns != 0).any()
        ),
        consecutive_fire_limits=bool(finite.any()),
        snooze_periods=snoozes,
        excitabilities=bool((neurons.excitabilities < CERTAIN).any()) or ModulatorKind.FIRING_PROBABILITY in acting,
        restarts=bool((~neurons.mp_charge_accumulation).any()),
        countdown_only_candidates=profile.countdown_only_candidates,
        negative_sum_lowers=profile.negative_sum_lowers,
        restart_all=profile.restart_all,
        emulate_batch_path=options.emulate_batch_path,
        batch_ignores_limit_and_zeroes=profile.batch_ignores_limit_and_zeroes,
        storage=storage_for(options.precision, neurons.thresholds),
        clamp_potentials=network.features.clamp_potentials,
    )


class Rules(NamedTuple):
    """Compiled scalar functions.

    ``draw(neuron, burst)`` -> float32 in [0, 1].
    ``tick(rc, cc, consecutive_fire_limit)`` -> (rc, cc) after one burst of the countdown; call where rc > 0.
    ``candidate(x, v, cc, own, neuron, burst, batch)`` -> (fired, v_before_reset, v, rc, cc) of a candidate whose rc is
    0. ``x`` is the float32 sum; rc and cc are int32; ``own`` are the neuron's ``Parameters``, 16-bit ones as int32;
    ``neuron`` and ``burst`` (mod 2^32) are uint32; ``batch``: whether the batch path is emulated in this burst.
    """

    draw: Compiled
    tick: Compiled
    candidate: Compiled


def _make_draw(compiler: Compiler) -> Compiled:
    two_to_minus_32 = np.float32(2.0**-32)
    mul_id, mul_burst = np.uint32(2654435761), np.uint32(1597334677)
    mul_seed, add_seed = np.uint32(747796405), np.uint32(2891336453)
    mul_word = np.uint32(277803737)
    top_shift, base_shift, fold_shift = np.uint32(28), np.uint32(4), np.uint32(22)

    @compiler
    def draw(neuron: np.uint32, burst: np.uint32) -> np.float32:
        seed = np.uint32(np.uint32(neuron * mul_id) + np.uint32(burst * mul_burst))
        state = np.uint32(np.uint32(seed * mul_seed) + add_seed)
        shift = np.uint32(np.uint32(state >> top_shift) + base_shift)
        word = np.uint32(np.uint32(np.uint32(state >> shift) ^ state) * mul_word)
        mixed = np.uint32(np.uint32(word >> fold_shift) ^ word)
        return np.float32(mixed) * two_to_minus_32

    return draw


def make_rules(features: Features, compiler: Compiler) -> Rules:
    """Compile the functions for ``features`` with ``compiler``."""
    limited, fires_limited = features.threshold_limits, features.consecutive_fire_limits
    counts = features.counts_decide
    snoozes, refractory, draws = features.snooze_periods, features.refractory_periods, features.excitabilities
    floors, all_accumulate = not features.negative_sum_lowers, not features.restarts
    batch_path, batch_beta = features.emulate_batch_path, features.batch_ignores_limit_and_zeroes
    zero, certain, clamps, full = np.float32(0), CERTAIN, features.clamp_potentials, np.float32(255)
    unlimited = np.int32(UNLIMITED_FIRES)
    draw = _make_draw(compiler)

    @compiler
    def tick(rc: np.int32, cc: np.int32, limit: int) -> tuple[np.int32, np.int32]:
        rc = np.int32(rc - 1)
        if fires_limited and rc == 0 and limit != 0 and limit != UNLIMITED_FIRES and cc >= limit:
            cc = np.int32(0)
        return rc, cc

    @compiler
    def within(v: np.float32) -> np.float32:
        """``v`` clamped to 0...255, by comparisons, which keep -0 and NaN on every device."""
        if v < zero:
            v = zero
        return full if v > full else v

    @compiler
    def candidate(
        x: np.float32,
        v: np.float32,
        cc: np.int32,
        own: Any,
        neuron: np.uint32,
        burst: np.uint32,
        batch: bool,
    ) -> tuple[bool, np.float32, np.float32, np.int32, np.int32]:
        rc = np.int32(0)
        if floors and x < zero and (all_accumulate or own.mp_charge_accumulation):
            x = zero
        v = v + x
        if clamps:
            v = within(v)
        limit = own.consecutive_fire_limits
        finite = fires_limited and limit != 0 and limit != UNLIMITED_FIRES
        window: bool | np.bool_ = v >= own.thresholds
        ceiling = own.threshold_limits if limited else NO_LIMIT
        if v > ceiling and not (batch_path and batch_beta and batch):
            window = False
        if window:  # rare, so all further tests are behind this branch
            if counts and cc >= np.int32(limit if finite else unlimited):
                if batch_path and batch:
                    left = zero if batch_beta else v * own.decays
                    return False, v, within(left) if clamps else left, rc, (np.int32(0) if finite else cc)
                return False, v, v, rc, np.int32(0)
            if draws and own.excitabilities < certain:
                window = own.excitabilities > zero and draw(neuron, burst) < own.excitabilities
        if window:
            if cc < 65535:
                cc = np.int32(cc + 1)
            if refractory:
                rc = np.int32(own.refractory_periods)
                if snoozes and finite and cc >= limit and not (batch_path and batch):
                    rc = np.int32(min(own.refractory_periods + own.snooze_periods, 65535))
            return True, v, zero, rc, cc
        if finite:
            cc = np.int32(0)
        left = v * own.decays
        return False, v, within(left) if clamps else left, rc, cc

    return Rules(draw, tick, candidate)
