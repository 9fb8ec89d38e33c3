"""Every backend keeps the scale of the sums that a run began with (SEMANTICS section 7)."""

from __future__ import annotations

import pytest

from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.errors import NetworkError
from suites.support.parity import backends
from suites.support.parity.scaled import AT_WORK, PLAN, START

pytestmark = pytest.mark.requirement("BE-4", "BE-17", "ST-5")


@pytest.mark.parametrize("backend", backends.ALL)
def test_a_run_goes_on_at_the_scale_it_began_with(backend: backends.Backend) -> None:
    """A scale that the network brings along is kept, in the state too, and a state of another scale is refused."""
    reference, engine = ReferenceEngine.create(START), backend.create(START, EngineOptions())
    other = backend.create(START.replace(fixed_point=None), EngineOptions())
    try:
        assert other.fixed_point.k != AT_WORK.k
        assert engine.fixed_point == engine.state().fixed_point == AT_WORK
        reference.run(2, PLAN)
        engine.restore(reference.state())
        reference.run(3, PLAN)
        engine.run(3, PLAN)
        assert engine.state().differences(reference.state()) == ()
        with pytest.raises(NetworkError, match=r"replace\(fixed_point=state\.fixed_point\)"):
            other.restore(reference.state())
    finally:
        engine.close()
        other.close()
