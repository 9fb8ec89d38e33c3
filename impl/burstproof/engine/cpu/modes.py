"""Plasticity of the numba CPU engine with eligibility that decays, reward, learning factors and bounds (FEATURES 4)."""

from __future__ import annotations

import numpy as np

from burstproof.engine.cpu.arrays import Computed, Counters, Neurons, Plastic, Scalars
from burstproof.engine.cpu.compile import HISTORY, inner_compiler
from burstproof.engine.features.rules import make_feature_rules
from burstproof.engine.rules import Compiled


def make_learn_modes() -> Compiled:
    """``learn`` as in ``synapses.make_learn``, for networks of which some plastic rule has more than steps."""
    rules_of_synapse = make_feature_rules(inner_compiler)
    eligibility_of, weight_of, zero = rules_of_synapse.eligibility, rules_of_synapse.weight, np.float32(0)

    @inner_compiler
    def learn(
        burst: int,
        rules: Plastic,
        computed: Computed,
        neurons: Neurons,
        s: Scalars,
        counters: Counters,
        part: int,
        parts: int,
    ) -> None:
        last = neurons.last_fired
        for rule in range(len(rules.windows)):
            window, factor = rules.windows[rule], rules.learning[burst & 1, rule]
            rise, fall, decay = rules.potentiations[rule], rules.depressions[rule], rules.decays[rule]
            idle = rise == zero and fall == zero and factor == zero
            if counters[HISTORY] < window - 1 or rules.frozen[rule] or idle:
                continue
            oldest = max(burst - window, 0)
            first, count = rules.starts[rule], rules.starts[rule + 1] - rules.starts[rule]
            for j in range(first + part * count // parts, first + (part + 1) * count // parts):
                before, after = last[rules.sources[j]] > oldest, last[rules.targets[j]] > oldest
                e = eligibility_of(rules.eligibility[j], decay, before, after, rise, fall)
                rules.eligibility[j] = e
                place = rules.positions[j]
                computed.weights[place] = weight_of(
                    computed.weights[place], e, factor, rules.etas[rule], rules.max_weights[rule]
                )
        counters[HISTORY] = min(counters[HISTORY] + 1, s.longest_window - 1)

    return learn
