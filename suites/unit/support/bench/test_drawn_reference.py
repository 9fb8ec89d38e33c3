"""The reference that draws its synapses agrees with the one that holds them, on every kind that a device can make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.errors import InputError
from burstproof.network.synthetic.build import synthesize
from burstproof.network.synthetic.kinds import KINDS, MICROCIRCUIT, seeded_network
from suites.support.bench.drawn_reference import DrawnReference
from suites.support.parity.large import slim
from suites.support.parity.simulator_check import recordings_differ
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("ST-6", "BE-4")

PLAIN = [kind for kind in KINDS if kind != MICROCIRCUIT and seeded_network(kind, 2000, 30, 0.05).plain]


@pytest.mark.parametrize("kind", thinned(PLAIN, "seconds for each kind", keep=first(1)))
@pytest.mark.parametrize("threads", [1, 3])
def test_it_agrees_with_the_reference(kind: str, threads: int) -> None:
    """Thirty bursts, a restored state among them: recordings and states equal bit for bit."""
    made = seeded_network(kind, 2000, 30, 0.05, seed=3)
    plan = {burst: Stimulus(forced=ids) for burst, ids in made.start().items()}
    engine = ReferenceEngine.create(synthesize(made.spec))
    drawn = DrawnReference(made.spec, engine.fixed_point, threads)
    want = engine.run(25, plan)
    assert np.count_nonzero(want.fired_counts) == 25
    assert recordings_differ(want, drawn.run(25, plan)) == []
    assert slim(engine.state()).differences(drawn.state()) == ()
    again = DrawnReference(made.spec, engine.fixed_point, threads)
    again.restore(slim(engine.state()))
    assert recordings_differ(engine.run(5), again.run(5)) == []


def test_weights_beyond_its_table_are_refused() -> None:
    made = seeded_network("weights", 2000, 30, 0.05)
    point = ReferenceEngine.create(synthesize(made.spec)).fixed_point
    with pytest.raises(InputError, match="weights"):
        DrawnReference(replace(made.spec, weights=(1, 1 << 17)), point)
