"""Modulators (FEATURES section 2): the firings of driver areas, *drives*, and the signals and factors that follow."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Extras, Floats, Modulation, Steering, Turn, Words
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, INDEX, ORIGIN
from burstproof.engine.cuda.kernels.features import rules_of_features
from burstproof.engine.cuda.plan.features import DRIVE_ROWS, NOT_FIRED
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.features.tables import EXCITABILITY
from burstproof.engine.rules import CERTAIN

_ONE, _ZERO = np.float32(1), np.float32(0)


@cache
def make_first_drive(in_ring: bool) -> Callable[..., Any]:
    """``first_drive(burst, drives)``: index of a burst's first drive; a ring of rows if ``in_ring``, else one row."""
    rows, last_row = np.uint32(DRIVE_ROWS), np.uint32(DRIVE_ROWS - 1)

    def first_drive(burst: np.uint32, drives: Words) -> Any:
        if not in_ring:
            return np.uint32(0)
        return np.uint32(np.uint32(burst & last_row) * np.uint32(np.uint32(drives.size) // rows))

    return cuda.jit(device=True)(first_drive)  # type: ignore[no-any-return]


@cache
def make_drive(in_ring: bool = False) -> Callable[..., Any]:
    """``drive(neuron, potential, burst, extras)``: store a driver's firing, unless one of a lower id is there."""
    first_drive, none, one, high_shift = make_first_drive(in_ring), np.uint32(0), np.uint32(1), np.uint64(32)

    def drive(neuron: np.uint32, potential: np.float32, burst: np.uint32, extras: Extras) -> None:
        driver = np.uint32(extras.driver_of[neuron])
        if driver != none:
            bits = np.uint64(np.float32(potential).view(np.uint32))
            word = np.uint64((np.uint64(neuron) << high_shift) | bits)
            cuda.atomic.min(extras.drives, np.uint32(first_drive(burst, extras.drives) + driver - one), word)

    return cuda.jit(device=True)(drive)  # type: ignore[no-any-return]


def make_clear_drives(shard: ShardVariant) -> Callable[..., Any]:
    """``clear_drives(burst, modulation)``, one block: in a ring, clear the drives of the burst after ``burst``."""
    in_ring, one, rows, silent = shard.makes_factors, np.uint32(1), np.uint32(DRIVE_ROWS), np.uint64(NOT_FIRED)
    first_drive = make_first_drive(in_ring)

    def clear_drives(burst: np.uint32, modulation: Modulation) -> None:
        if in_ring:
            drives, item = modulation.drives, np.uint32(cuda.threadIdx.x)
            first = first_drive(np.uint32(burst + one), drives)
            while item < np.uint32(drives.size) // rows:
                drives[np.uint32(first + item)] = silent
                item = np.uint32(item + np.uint32(cuda.blockDim.x))

    return cuda.jit(device=True)(clear_drives)  # type: ignore[no-any-return]


@cache
def make_signal_of() -> Callable[..., Any]:
    """``signal_of(first, modulator, modulation)``: section 2.1; the drives of the burst before begin at ``first``."""
    strength, silent, low = rules_of_features().strength, np.uint64(NOT_FIRED), np.uint64(0xFFFFFFFF)

    def signal_of(first: np.uint32, item: np.uint32, m: Modulation) -> Any:
        magnitude, full_scale, share = m.magnitudes[item], m.full_scales[item], _ZERO
        word = m.drives[np.uint32(first + m.modulator_drivers[item])]
        if word != silent:
            share = strength(np.uint32(word & low).view(np.float32), full_scale)
        return magnitude * share

    return cuda.jit(device=True)(signal_of)  # type: ignore[no-any-return]


@cache
def make_product() -> Callable[..., Any]:
    """``product(signals, first, modulation, at)``: the factor of list ``at``."""
    one = np.uint32(1)

    def product(signals: Floats, first: np.uint32, modulation: Modulation, at: np.uint32) -> Any:
        """((1 (1 + s1)) (1 + s2))... over list ``at``."""
        factor = _ONE
        for item in range(modulation.list_starts[at], modulation.list_starts[np.uint32(at + one)]):
            share = _ONE + signals[np.uint32(first + modulation.list_items[item])]
            factor = factor * share
        return factor

    return cuda.jit(device=True)(product)  # type: ignore[no-any-return]


def _make_bound_of() -> Callable[..., Any]:
    share_of, endless, certain = rules_of_features().modulated_share, np.float32(np.inf), CERTAIN

    def bound_of(largest: np.float32, factor: np.float32) -> Any:
        """A sleep bound, as ``FeaturePlan.factors`` computes it."""
        bound = largest
        if factor == factor and largest < endless:
            bound = share_of(largest, factor)
        return bound if bound < certain else endless

    return cuda.jit(device=True)(bound_of)  # type: ignore[no-any-return]


@cache
def make_scale_classes() -> Callable[..., Any]:
    """``scale_classes(signals, first, modulation, factors, bounds, row)``, one block: factors, bounds of all classes.

    Signals begin at ``first``; results go to row ``row`` of ``factors`` and ``bounds``.
    """
    product, bound_of, no_factor = make_product(), _make_bound_of(), np.float32(np.nan)
    one, three = np.uint32(1), np.uint32(3)

    def scale_classes(
        signals: Floats, first: np.uint32, m: Modulation, factors: Floats, bounds: Floats, row: np.uint32
    ) -> None:
        item, count = np.uint32(cuda.threadIdx.x), np.uint32(three * m.class_count)
        while item < count:
            factor = no_factor
            if m.list_starts[item] < m.list_starts[np.uint32(item + one)]:
                factor = product(signals, first, m, item)
            factors[np.uint32(row * count + item)] = factor
            if item % three == np.uint32(EXCITABILITY):
                of_class = np.uint32(item // three)
                bounds[np.uint32(row * m.class_count + of_class)] = bound_of(m.largest_excitabilities[of_class], factor)
            item = np.uint32(item + np.uint32(cuda.blockDim.x))

    return cuda.jit(device=True)(scale_classes)  # type: ignore[no-any-return]


def _make_transmit() -> Callable[..., Any]:
    product, one = make_product(), np.uint32(1)

    def transmit(first: np.uint32, m: Modulation, rule: np.uint32) -> Any:
        """Section 2.3: the factor T of a rule."""
        gains = np.uint32(np.uint32(3) * m.class_count + rule)
        gates = np.uint32(gains + m.rule_count)
        factor = product(m.signals, first, m, gains)
        start, end = m.list_starts[gates], m.list_starts[np.uint32(gates + one)]
        if start < end:
            strongest = _ZERO
            for item in range(start, end):
                strongest = max(strongest, m.signals[np.uint32(first + m.list_items[item])])
            factor = factor * strongest
        return factor

    return cuda.jit(device=True)(transmit)  # type: ignore[no-any-return]


def _make_teach() -> Callable[..., Any]:
    product, one, two, three = make_product(), np.uint32(1), np.uint32(2), np.uint32(3)

    def teach(first: np.uint32, m: Modulation, pair: np.uint32) -> Any:
        """Section 4: reward and learning factor of a plastic pair."""
        rates = np.uint32(three * m.class_count + two * m.rule_count + pair)
        rewards = np.uint32(rates + m.pair_count)
        factor = product(m.signals, first, m, rates)
        if m.rewarded[pair] != np.uint8(0):
            reward = _ZERO
            for item in range(m.list_starts[rewards], m.list_starts[np.uint32(rewards + one)]):
                reward = reward + m.signals[np.uint32(first + m.list_items[item])]
            factor = reward * factor
        return factor

    return cuda.jit(device=True)(teach)  # type: ignore[no-any-return]


def _make_burst_done(shard: ShardVariant) -> Callable[..., Any]:
    """``burst_done(steering, turn)`` -> whether the burst of the turn was done, and its number, uint32.

    If blocks compute the factors, the burst is the last one of the batch that was done.
    """

    def last_of_batch(steering: Steering, turn: Turn) -> Any:
        last = steering.report[INDEX]
        return last >= 0, np.uint32(steering.report[ORIGIN] + last + np.int64(1))

    def by_turn(steering: Steering, turn: Turn) -> Any:
        burst = np.uint32(np.uint32(steering.report[ORIGIN]) + turn.place + np.uint32(1))
        return steering.report[INDEX] == np.int64(turn.place), burst

    def by_control(steering: Steering, turn: Turn) -> Any:
        return steering.control[ACTIVE] != 0, np.uint32(steering.control[BURST])

    found = last_of_batch if shard.makes_factors else by_turn if shard.merged else by_control
    return cuda.jit(device=True)(found)  # type: ignore[no-any-return]


def make_modulate(shard: ShardVariant) -> Callable[..., None]:
    """``modulate(...)``, one block: compute the next burst's factors from the drivers that fired in this one."""
    burst_done, signal_of, scale_classes = _make_burst_done(shard), make_signal_of(), make_scale_classes()
    transmit, teach, silent, one = _make_transmit(), _make_teach(), np.uint64(NOT_FIRED), np.uint32(1)
    overlapped, in_ring = shard.merged and shard.overlapped, shard.makes_factors
    wait_for_last, let_next_start = make_wait_for_last(overlapped), make_let_next_start(overlapped)
    first_drive = make_first_drive(in_ring)

    def modulate(steering: Steering, modulation: Modulation, turn: Turn) -> None:
        m = modulation
        let_next_start()
        wait_for_last()
        done, burst = burst_done(steering, turn)
        if not done:
            return
        thread, step = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
        row = np.uint32(np.uint32(burst + one) & one)
        first, item, drives = np.uint32(row * m.modulator_count), thread, first_drive(burst, m.drives)
        while item < m.modulator_count:
            m.signals[np.uint32(first + item)] = signal_of(drives, item, m)
            item = np.uint32(item + step)
        cuda.syncthreads()
        item = thread
        while item < np.uint32(m.drives.size) and not in_ring:
            m.drives[item] = silent
            item = np.uint32(item + step)
        scale_classes(m.signals, first, m, m.area_factors, m.sleep_bounds, row)
        item = thread
        while item < m.rule_count:
            m.transmission[np.uint32(row * m.rule_count + item)] = transmit(first, m, item)
            item = np.uint32(item + step)
        item = thread
        while item < m.pair_count:
            m.learning[np.uint32(row * m.pair_count + item)] = teach(first, m, item)
            item = np.uint32(item + step)

    return modulate
