"""Kernel of plasticity: every plastic synapse, every burst (SEMANTICS section 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, HISTORY
from burstproof.engine.cuda.plan.variant import Variant


def make_learn(variant: Variant) -> Callable[..., None]:
    """``learn(...)``: change the weights of all mappings whose window of history exists."""
    all_window = variant.plastic_all_window
    nothing, highest = np.float32(0), np.float32(255)

    def learn(
        control: Any,
        starts: Any,
        windows: Any,
        potentiations: Any,
        depressions: Any,
        positions: Any,
        sources: Any,
        targets: Any,
        last_fired: Any,
        streaks: Any,
        weights: Any,
        eligibility: Any,
        rules: Any,
    ) -> None:
        if control[ACTIVE] == 0:
            return
        burst = control[BURST]
        thread = np.int64(cuda.grid(1))
        step = np.int64(cuda.gridsize(1))
        for rule in range(rules):
            window = windows[rule]
            if control[HISTORY] < window - 1:
                continue
            since = max(burst - window, 0)
            entry = starts[rule] + thread
            end = starts[rule + 1]
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
                    change = potentiations[rule]
                    weight = np.float32(weight + change)
                elif (before or after) and depressions[rule] > nothing:
                    change = np.float32(-depressions[rule])
                    weight = max(np.float32(weight + change), nothing)
                if all_window:
                    weight = min(max(weight, nothing), highest)
                weights[position] = weight
                eligibility[position] = change
                entry += step

    return learn
