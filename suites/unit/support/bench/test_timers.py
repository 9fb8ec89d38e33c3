"""What times and what waits, without a device."""

from __future__ import annotations

import numpy as np
import pytest

from suites.support.bench.timers import waits

pytestmark = pytest.mark.requirement("ST-6")


@pytest.mark.parametrize("us", [0.5, 20.0])
def test_a_wait_is_never_shorter_than_asked(us: float) -> None:
    taken = waits(us, 200)
    assert taken.shape == (200,)
    assert (taken >= us).all()
    assert np.isfinite(taken).all()
