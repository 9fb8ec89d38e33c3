"""A network that brings the scale of its sums along, as one that was saved in the middle of a run does."""

from __future__ import annotations

from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import EngineOptions
from burstproof.network.fixed_point import UNBOUNDED, FixedPoint
from suites.support.parity.builder import flags, network, stimulate, synapse

KEPT = FixedPoint(k=40, bits=64, clamp=2**62 - 1, exact=False, largest_sum=UNBOUNDED)
"""A scale that no plan gives the network below."""
START = network(
    5,
    [synapse(0, t, weight=0.7, delay=d) for t, d in ((1, 1), (2, 2), (3, 3))] + [synapse(4, 4)],
    thresholds=0.4,
    cortical_areas=[7, 7, 7, 7, 1],
    areas=[flags(uniform=False)],
).replace(fixed_point=KEPT)
PLAN = {b: stimulate({0: 1}) for b in (1, 3, 4)}
AT_WORK = plan_fixed_point(START, EngineOptions())
"""The scale that is kept; whether sums are exact, and their bound, follow from the network again."""
