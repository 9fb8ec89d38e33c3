"""Numbers that kernels take from a packed network."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.cuda.host.launches import largest_excitability

pytestmark = pytest.mark.requirement("BE-4")


@pytest.mark.parametrize(
    ("excitabilities", "expected"),
    [
        ([0.1, 0.9, -1.0], 0.9),
        ([0.5, 0.999], np.inf),  # from 0.999 on there is no draw, so none keeps the neuron from firing
        ([0.5, 100.0], np.inf),
        ([-1.0, -2.0], 0.0),
        ([], 0.0),
    ],
)
def test_no_neuron_fires_at_a_draw_above_the_largest_excitability(excitabilities: list[float], expected: float) -> None:
    assert largest_excitability(np.array(excitabilities, np.float32)) == np.float32(expected)
