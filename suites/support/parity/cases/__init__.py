"""Cases worked out by hand, one module for each part of the rules."""

from suites.support.parity.cases.dynamics import dynamics_cases
from suites.support.parity.cases.feature_firing import firing_cases
from suites.support.parity.cases.feature_learning import teaching_cases
from suites.support.parity.cases.feature_memory import memory_cases
from suites.support.parity.cases.feature_parameters import parameter_cases
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

FEATURE_CASES = [*parameter_cases(), *firing_cases(), *teaching_cases(), *memory_cases()]
"""Cases of FEATURES.md, for the backends that model what they need."""
