"""What the CPU engine counts in a burst, over several blocks of neurons."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.state import Stimulus
from suites.support.parity.builder import network

pytestmark = pytest.mark.requirement("BE-4")

NEURONS = 2500


@pytest.mark.thorough("compiles kernels")
@pytest.mark.parametrize("amount", [0.0, 2.0], ids=["flags", "sums"])
def test_candidates_are_counted_over_all_blocks(amount: float) -> None:
    """A stimulus of 0 makes a candidate that its sum does not show, so that flags are kept beside the sums."""
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.reference import ReferenceEngine

    net = network(NEURONS)
    options = EngineOptions(cpu=CpuOptions(threads=1))
    generator = np.random.default_rng(3)
    engines = [CpuEngine.create(net, options), ReferenceEngine.create(net, options)]
    try:
        for _ in range(3):
            ids = np.flatnonzero(generator.random(NEURONS) < 0.6).astype(np.uint32)
            amounts = generator.choice([amount, 1.0, 2.0], len(ids)).astype(np.float32)
            mine, specified = (engine.step(Stimulus(ids, amounts, np.empty(0, np.uint32))) for engine in engines)
            assert mine.candidates == specified.candidates == len(ids)
            assert mine.fired_ids.tolist() == specified.fired_ids.tolist()
    finally:
        for engine in engines:
            engine.close()
