"""Cases worked out by hand, one module for each part of the rules."""

from suites.support.parity.cases.dynamics import dynamics_cases
from suites.support.parity.cases.forced import forced_cases
from suites.support.parity.cases.learning import learning_cases
from suites.support.parity.cases.limits import limit_cases
from suites.support.parity.cases.subnormal import subnormal_cases
from suites.support.parity.cases.sums import sum_cases
from suites.support.parity.cases.synapses import synapse_cases

CASES = [
    *dynamics_cases(),
    *limit_cases(),
    *synapse_cases(),
    *sum_cases(),
    *forced_cases(),
    *learning_cases(),
    *subnormal_cases(),
]
