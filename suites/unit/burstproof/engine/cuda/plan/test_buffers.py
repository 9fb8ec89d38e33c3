"""How long the graph of a batch is."""

from __future__ import annotations

import pytest

from burstproof.engine.cuda.plan.buffers import graph_length

pytestmark = pytest.mark.requirement("BE-12")


@pytest.mark.parametrize(
    ("bursts", "most", "length"),
    [(1, 128, 1), (2, 128, 2), (3, 128, 4), (65, 128, 128), (128, 128, 128), (65, 100, 100), (1, 1, 1), (5, 8, 8)],
)
def test_the_shortest_graph_that_holds_a_batch(bursts: int, most: int, length: int) -> None:
    assert graph_length(bursts, most) == length
