"""Kernel of plasticity: every plastic synapse, every burst (SEMANTICS section 5)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import History, Plasticity, Steering
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, HISTORY
from burstproof.engine.cuda.plan.variant import Variant


def make_learn(variant: Variant) -> Callable[..., None]:
    """``learn(...)``: change the weights of all mappings whose window of history exists."""
    all_window = variant.plastic_all_window
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
                both = before and after
                if all_window:
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
                if all_window:
                    weight = min(max(weight, nothing), highest)
                weights[position] = weight
                plasticity.eligibility[position] = change
                entry += step

    return learn
