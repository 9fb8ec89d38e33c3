"""CPU kernel for plasticity with decaying eligibility, reward, learning factors and bounds (FEATURES section 4)."""

from __future__ import annotations

import numpy as np

from burstproof.engine.compiler import inner_compiler
from burstproof.engine.cpu.arrays import Computed, Neurons, Plastic, Turn
from burstproof.engine.features.rules import make_feature_rules
from burstproof.engine.rules import Compiled


def make_change_modes() -> Compiled:
    """``change`` for ``synapses.make_learn``, if a plastic rule has more than potentiation and depression steps."""
    rules_of_synapse = make_feature_rules(inner_compiler)
    eligibility_of, weight_of, zero = rules_of_synapse.eligibility, rules_of_synapse.weight, np.float32(0)

    @inner_compiler
    def change(turn: Turn, rules: Plastic, computed: Computed, neurons: Neurons) -> None:
        rule, last, factor = turn.rule, neurons.last_fired, rules.learning[turn.burst & 1, turn.rule]
        rise, fall, decay = rules.potentiations[rule], rules.depressions[rule], rules.decays[rule]
        if rules.frozen[rule] or (rise == zero and fall == zero and factor == zero):
            return
        oldest = max(turn.burst - turn.window, 0)
        for j in range(turn.first, turn.end):
            before, after = last[rules.sources[j]] > oldest, last[rules.targets[j]] > oldest
            e = eligibility_of(rules.eligibility[j], decay, before, after, rise, fall)
            rules.eligibility[j] = e
            place = rules.positions[j]
            computed.weights[place] = weight_of(
                computed.weights[place], e, factor, rules.etas[rule], rules.max_weights[rule]
            )

    return change
