"""Kernels of plasticity: every plastic synapse, every burst (SEMANTICS section 5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import History, Plasticity, Steering
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, HISTORY
from burstproof.engine.cuda.plan.variant import Variant

OLD = 255
"""The greatest age of a firing that learning looks at in bytes; wider windows are looked up in full."""


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


def make_note_ages() -> Callable[..., None]:
    """``note_ages(...)``: how many bursts ago each neuron last fired, in a byte: learning looks at two per synapse.

    0 is in this burst; ``OLD`` is that long ago or longer, or never.
    """
    oldest = np.int64(OLD)

    def note_ages(steering: Steering, history: History, sources: np.uint32) -> None:
        control, last_fired = steering.control, history.last_fired
        if control[ACTIVE] == 0:
            return
        neuron = np.uint32(cuda.grid(1))
        while neuron < sources:
            age, last = oldest, last_fired[neuron]
            if last > 0:
                age = min(control[BURST] - last, oldest)
            history.ages[neuron] = np.uint8(age)
            neuron = np.uint32(neuron + np.uint32(cuda.gridsize(1)))

    return note_ages


def make_age() -> Callable[..., None]:
    """``age(steering, plasticity, history)``, one thread, after a burst: which rules learnt in it.

    And plasticity can look back on one more past burst.
    """

    def age(steering: Steering, plasticity: Plasticity, history: History) -> None:
        control = steering.control
        if cuda.grid(1) != 0 or control[ACTIVE] == 0:
            return
        for rule in range(plasticity.rules):
            if control[HISTORY] >= plasticity.rule_windows[rule] - 1:
                plasticity.rule_learnt[rule] = control[BURST]
        if control[HISTORY] < np.int64(history.longest) - 1:
            control[HISTORY] += 1

    return age


def make_learn(variant: Variant) -> Callable[..., None]:
    """``learn(...)``: change the weights of all mappings whose window of history exists."""
    return _make_learn_all(variant) if variant.plastic_all_window else _make_learn_any(variant)


def _make_learn_any(variant: Variant) -> Callable[..., None]:
    """Learning from neurons that fired in any burst of the window.

    Where neither end of a synapse fired in the window, nor in the one of the burst before, nothing changes: its trace
    is 0 already if the rule learnt in that burst too.
    """
    nothing, in_order, oldest = np.float32(0), variant.learns_in_order, np.int64(OLD)

    def learn(steering: Steering, plasticity: Plasticity, history: History) -> None:
        control, ages, last_fired = steering.control, history.ages, history.last_fired
        weights, sources, targets = plasticity.weights, plasticity.plastic_sources, plasticity.plastic_targets
        if control[ACTIVE] == 0:
            return
        burst = control[BURST]
        thread, step = np.uint64(cuda.grid(1)), np.uint64(cuda.gridsize(1))
        for rule in range(plasticity.rules):
            window = plasticity.rule_windows[rule]
            if control[HISTORY] < window - 1:
                continue
            since, bytes_tell = max(burst - window, 0), window < oldest
            everything = plasticity.rule_learnt[rule] != burst - 1 or not bytes_tell
            raised, lowered = plasticity.potentiations[rule], plasticity.depressions[rule]
            entry = np.uint64(np.uint64(plasticity.rule_starts[rule]) + thread)
            end = np.uint64(plasticity.rule_starts[np.uint64(rule) + np.uint64(1)])
            while entry < end:
                source, target = sources[entry], targets[entry]
                age, other = np.int64(ages[source]), np.int64(ages[target])
                if everything or age <= window or other <= window:
                    before, after = age < window, other < window
                    if not bytes_tell:
                        before, after = last_fired[source] > since, last_fired[target] > since
                    position = entry
                    if not in_order:
                        position = np.uint64(plasticity.plastic_positions[entry])
                    change = nothing
                    if before and after:
                        change = raised
                        weights[position] = np.float32(weights[position] + change)
                    elif (before or after) and lowered > nothing:
                        change = np.float32(-lowered)
                        weights[position] = max(np.float32(weights[position] + change), nothing)
                    plasticity.eligibility[position] = change
                entry = np.uint64(entry + step)

    return learn


def _make_learn_all(variant: Variant) -> Callable[..., None]:
    """Learning from neurons that fired in all bursts of the window; weights stay within 0...255."""
    nothing, highest = np.float32(0), np.float32(255)

    def learn(steering: Steering, plasticity: Plasticity, history: History) -> None:
        control, last_fired, streaks = steering.control, history.last_fired, history.streaks
        positions, weights = plasticity.plastic_positions, plasticity.weights
        sources, targets = plasticity.plastic_sources, plasticity.plastic_targets
        if control[ACTIVE] == 0:
            return
        burst = control[BURST]
        thread = np.int64(cuda.grid(1))
        step = np.int64(cuda.gridsize(1))
        for rule in range(plasticity.rules):
            window = plasticity.rule_windows[rule]
            if control[HISTORY] < window - 1:
                continue
            since = max(burst - window, 0)
            entry = plasticity.rule_starts[rule] + thread
            end = plasticity.rule_starts[rule + 1]
            while entry < end:
                source, target, position = sources[entry], targets[entry], positions[entry]
                before = last_fired[source] > since
                after = last_fired[target] > since
                both = (
                    last_fired[source] == burst
                    and last_fired[target] == burst
                    and np.int64(streaks[source]) >= window
                    and np.int64(streaks[target]) >= window
                )
                weight = weights[position]
                change = nothing
                if both:
                    change = plasticity.potentiations[rule]
                    weight = np.float32(weight + change)
                elif (before or after) and plasticity.depressions[rule] > nothing:
                    change = np.float32(-plasticity.depressions[rule])
                    weight = max(np.float32(weight + change), nothing)
                weights[position] = min(max(weight, nothing), highest)
                plasticity.eligibility[position] = change
                entry += step

    return learn
