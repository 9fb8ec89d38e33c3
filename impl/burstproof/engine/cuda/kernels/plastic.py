"""Plasticity burst by burst: these kernels update every plastic synapse in every burst (SEMANTICS section 5).

Where windows are short, learning is deferred instead (``kernels.deferred``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import History, Plasticity, Steering
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, HISTORY
from burstproof.engine.cuda.kernels.deferred import make_note_past
from burstproof.engine.cuda.plan.variant import Variant


def make_note_firing(variant: Variant) -> Callable[..., Any]:
    """``note_firing(neuron, burst, history)``: record in the history that the neuron fires."""

    def note_firing(neuron: np.uint32, burst: np.int64, history: History) -> None:
        streak = np.int32(0)
        if history.last_fired[neuron] == burst - 1:
            streak = np.int32(history.streaks[neuron])
        if streak < history.longest:
            streak = np.int32(streak + 1)
        history.streaks[neuron] = np.uint16(streak)
        history.last_fired[neuron] = burst

    return make_note_past() if variant.defers_learning else cuda.jit(device=True)(note_firing)


def make_age() -> Callable[..., None]:
    """``age(steering, history)``, one thread, after a burst: lengthen the known history, up to the longest window."""

    def age(steering: Steering, history: History) -> None:
        control = steering.control
        if cuda.grid(1) == 0 and control[ACTIVE] != 0 and control[HISTORY] < np.int64(history.longest) - 1:
            control[HISTORY] += 1

    return age


def make_learn(variant: Variant) -> Callable[..., None]:
    """``learn(...)``: update the weights of all mappings for whose window there is enough history.

    A synapse is potentiated if both ends fired in any burst of the window. Under the profile's other rule both must
    have fired in every burst of it, and weights stay within 0...255.
    """
    nothing, highest, all_window = np.float32(0), np.float32(255), variant.plastic_all_window

    def learn(steering: Steering, plasticity: Plasticity, history: History) -> None:
        control, last_fired, streaks = steering.control, history.last_fired, history.streaks
        positions, weights = plasticity.plastic_positions, plasticity.weights
        sources, targets = plasticity.plastic_sources, plasticity.plastic_targets
        if control[ACTIVE] == 0:
            return
        burst = control[BURST]
        thread, step = np.int64(cuda.grid(1)), np.int64(cuda.gridsize(1))
        for rule in range(plasticity.rules):
            window = plasticity.rule_windows[rule]
            if control[HISTORY] < window - 1:
                continue
            since = max(burst - window, 0)
            entry = plasticity.rule_starts[rule] + thread
            end = plasticity.rule_starts[rule + 1]
            while entry < end:
                source, target, position = sources[entry], targets[entry], positions[entry]
                before, after = last_fired[source] > since, last_fired[target] > since
                both = before and after
                if all_window:
                    both = (
                        last_fired[source] == burst
                        and last_fired[target] == burst
                        and np.int64(streaks[source]) >= window
                        and np.int64(streaks[target]) >= window
                    )
                weight, change = weights[position], nothing
                if both:
                    change = plasticity.potentiations[rule]
                    weight = np.float32(weight + change)
                elif (before or after) and plasticity.depressions[rule] > nothing:
                    change = np.float32(-plasticity.depressions[rule])
                    weight = max(np.float32(weight + change), nothing)
                if all_window:
                    weight = min(max(weight, nothing), highest)
                weights[position] = weight
                plasticity.eligibility[position] = change
                entry += step

    return learn
