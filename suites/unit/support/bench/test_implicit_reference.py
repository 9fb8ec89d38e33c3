"""The implicit reference agrees with the specification, and refuses what it does not know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.errors import InputError
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize
from burstproof.network.synthetic.spec import SyntheticSpec
from suites.support.bench.implicit_reference import ImplicitReference
from suites.support.parity.large import slim
from suites.support.parity.simulator_check import recordings_differ
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("ST-6", "BE-4")

DRIVEN = driven_spec(2000, 100, 0.05, seed=3)
SPECS = {
    "driven": DRIVEN,
    "blocks": replace(DRIVEN, connectivity="block", blocks=8, inside_fraction=0.8),
    "limit and larger contributions": replace(
        DRIVEN,
        weights=2.0,
        postsynaptic_potential=1.5,
        threshold=4.0,
        threshold_limit=40.0,
        refractory_period=3,
        excitability=0.2,
    ),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", thinned(SPECS, "a network of several", keep=first(1)))
def test_it_agrees_with_the_reference(name: str, threads: int) -> None:
    """Forty bursts with forced firings on the way: recordings and the state equal bit for bit."""
    spec = SPECS[name]
    plan = {1: Stimulus(forced=initial_stimulus(spec)), 7: Stimulus(forced=np.arange(0, 2000, 40, dtype=np.uint32))}
    engine = ReferenceEngine.create(synthesize(spec))
    implicit = ImplicitReference(spec, engine.fixed_point, threads)
    want = engine.run(40, plan)
    assert np.count_nonzero(want.fired_counts) > 30
    assert recordings_differ(want, implicit.run(40, plan)) == []
    assert slim(engine.state()).differences(implicit.state()) == ()
    again = ImplicitReference(spec, engine.fixed_point, threads)
    again.restore(engine.state())
    assert recordings_differ(engine.run(5), again.run(5)) == []


def test_a_fault_is_seen() -> None:
    """A potential that is one bit off shows in the comparison of states."""
    engine = ReferenceEngine.create(synthesize(DRIVEN))
    implicit = ImplicitReference(DRIVEN, engine.fixed_point, 1)
    plan = {1: Stimulus(forced=initial_stimulus(DRIVEN))}
    engine.run(6, plan)
    implicit.run(6, plan)
    place = int(np.flatnonzero(engine.v > 0)[0])
    engine.v[place] = np.nextafter(engine.v[place], np.float32(9))
    assert slim(engine.state()).differences(implicit.state()) == ("membrane_potentials",)


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("delays", replace(DRIVEN, delays=(1, 2))),
        ("weights", replace(DRIVEN, weights=(1, 2))),
        ("weights", replace(DRIVEN, postsynaptic_potential=0.5)),
        ("inhibitory_fraction", replace(DRIVEN, inhibitory_fraction=0.1)),
        ("consecutive_fire_limit", replace(DRIVEN, consecutive_fire_limit=3)),
        ("accumulates", replace(DRIVEN, accumulates=False)),
        ("connectivity", replace(DRIVEN, connectivity="fixed_in_degree")),
    ],
)
def test_rules_it_does_not_know_are_refused(field: str, spec: SyntheticSpec) -> None:
    point = ReferenceEngine.create(synthesize(DRIVEN)).fixed_point
    with pytest.raises(InputError, match=field):
        ImplicitReference(spec, point)
