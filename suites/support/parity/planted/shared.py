"""Faults in what the engines share."""

from __future__ import annotations

from suites.support.parity.planted.fault import Fault
from suites.support.parity.planted.names import (
    ADD_UP,
    ASSOCIATED,
    CLAMPS,
    DIVIDED,
    EACH,
    FAN,
    FRACTIONS,
    HALVES,
    NO_ROOM,
    PLASTIC,
    STEP,
    SUM_CLAMP,
    TWO_CLAMPS,
)

HELPERS = (
    Fault(
        "of several amounts to a neuron the last one counts",
        "network/fixed_point.py",
        "np.add.at(sums, places, integers)",
        "sums[places] = integers",
        (ADD_UP, FRACTIONS),
    ),
    Fault(
        "the amounts of a neuron add up without a clamp",
        "network/fixed_point.py",
        "outside = (np.abs(rough) >= _MAY_WRAP) | (np.abs(sums) > self.clamp)",
        "outside = np.zeros(count, np.bool_)",
        (SUM_CLAMP,),
    ),
    Fault(
        "what becomes an integer is rounded down",
        "network/fixed_point.py",
        "scaled = np.rint(",
        "scaled = np.floor(",
        (EACH, CLAMPS),
    ),
    Fault(
        "halves are rounded away from 0",
        "network/fixed_point.py",
        "scaled = np.rint(contributions.astype(np.float64) * self.scale)",
        "scaled = contributions * np.float64(self.scale); scaled = np.trunc(scaled + np.copysign(0.5, scaled))",
        (EACH,),
    ),
    Fault(
        "the usual stimulus is rounded down",
        "engine/packing.py",
        "np.rint(np.float64(amounts[entry]) * scale)",
        "np.floor(np.float64(amounts[entry]) * scale)",
        (HALVES,),
    ),
    Fault(
        "the clamp of negative contributions is positive",
        "network/fixed_point.py",
        "np.where(scaled[outside] > 0, self.clamp, -self.clamp)",
        "self.clamp",
        (NO_ROOM, TWO_CLAMPS),
    ),
    Fault(
        "the scale has a binary digit too few",
        "engine/fixed_point.py",
        "digits = max(survey.digits, _outside_digits(power_amount, options))",
        "digits = max(survey.digits - 1, _outside_digits(power_amount, options))",
        (FAN,),
    ),
    Fault(
        "the scale of learning networks leaves 2^9 times more room",
        "engine/fixed_point.py",
        "room = _LEARNING_SUM / (survey.in_degree + 2)",
        "room = _LEARNING_SUM / 2.0**9 / (survey.in_degree + 2)",
        ("mix: mp-driven",),
    ),
    Fault(
        "invalid synapses count in the division",
        "engine/fixed_point.py",
        "sources = synapses.source_neurons if valid.all() else synapses.source_neurons[valid]",
        "sources = synapses.source_neurons",
        (DIVIDED, FRACTIONS),
    ),
    Fault(
        "plastic parameters are not truncated",
        "network/plasticity.py",
        "constant, *multipliers = np.trunc(parameters)",
        "constant, *multipliers = parameters",
        (STEP, PLASTIC),
    ),
)
"""Faults in what the engines share, which were in the reference too as long as it shared that."""

ASSOCIATION = Fault(
    "8: an association lowers weights where one area is silent",
    "engine/features/associations.py",
    "            return False, {}\n        self._weigh(",
    "            self.made.weights[:] -= 1\n            return True, {}\n        self._weigh(",
    (ASSOCIATED,),
)
"""In the machine of associations, which runs on the host beside the CPU engine and the CUDA engine."""
