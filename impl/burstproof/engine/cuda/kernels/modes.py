"""Learning with decaying eligibility, reward, learning factors and bounds of the weight (FEATURES section 4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import History, Modes, Plasticity, Steering
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, HISTORY
from burstproof.engine.cuda.kernels.features import rules_of_features
from burstproof.engine.cuda.plan.variant import Variant


def make_learn_modes(variant: Variant) -> Callable[..., None]:
    """``learn(...)``: update eligibility and weights of all mappings whose window the history covers."""
    eligibility_of, weight_of = rules_of_features().eligibility, rules_of_features().weight
    in_order, nothing = variant.learns_in_order, np.float32(0)

    def learn(steering: Steering, plasticity: Plasticity, history: History, modes: Modes) -> None:
        control, last_fired, traces = steering.control, history.last_fired, plasticity.eligibility
        weights, sources, targets = plasticity.weights, plasticity.plastic_sources, plasticity.plastic_targets
        if control[ACTIVE] == 0:
            return
        burst = control[BURST]
        row = np.uint32(np.uint32(np.uint32(burst) & np.uint32(1)) * modes.pair_count)
        thread, step = np.uint64(cuda.grid(1)), np.uint64(cuda.gridsize(1))
        for rule in range(plasticity.rules):
            window, factor = plasticity.rule_windows[rule], modes.learning[np.uint32(row + np.uint32(rule))]
            potentiation, depression = plasticity.potentiations[rule], plasticity.depressions[rule]
            decay, eta, most = modes.rule_decays[rule], modes.etas[rule], modes.max_weights[rule]
            idle = potentiation == nothing and depression == nothing and factor == nothing
            if control[HISTORY] < window - 1 or modes.frozen[rule] != np.uint8(0) or idle:
                continue
            since = max(burst - window, 0)
            entry = np.uint64(np.uint64(plasticity.rule_starts[rule]) + thread)
            end = np.uint64(plasticity.rule_starts[np.uint64(rule) + np.uint64(1)])
            while entry < end:
                source_fired, target_fired = last_fired[sources[entry]] > since, last_fired[targets[entry]] > since
                position = entry
                if not in_order:
                    position = np.uint64(plasticity.plastic_positions[entry])
                trace = eligibility_of(traces[position], decay, source_fired, target_fired, potentiation, depression)
                traces[position] = trace
                weights[position] = weight_of(weights[position], trace, factor, eta, most)
                entry = np.uint64(entry + step)

    return learn
