"""Recordings of single bursts, and of bursts one after another."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from burstproof.engine.recorder import recording_of, recording_of_one
from burstproof.engine.state import Burst, Record, Recording

pytestmark = pytest.mark.requirement("BE-20")


@pytest.mark.parametrize("record", Record)
@pytest.mark.parametrize("fired", [0, 1, 5])
def test_one_burst_is_recorded_as_several_are(record: Record, fired: int) -> None:
    burst = Burst(7, np.arange(fired, dtype=np.uint32), np.ones(fired, np.float32), 9)
    one, several = recording_of_one(burst, record), recording_of([burst], record)
    for item in fields(Recording):
        found, expected = getattr(one, item.name), getattr(several, item.name)
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()
