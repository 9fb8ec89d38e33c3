"""Shapes of the kernel that stays on the device."""

from __future__ import annotations

import pytest

from burstproof.engine.cuda.plan.block_size import FusedShape, staying_shape

pytestmark = pytest.mark.requirement("BE-12", "BE-20")


@pytest.mark.parametrize(
    ("neurons", "per_thread", "expected"),
    [
        (100_000, 1, 1),  # one turn of one neuron a thread
        (1_000_000, 2, 5),  # 4.9 neurons for each of 202 752 threads
        (1_200_000, 2, 3),  # 5.9: two turns of 3 rather than of 5 and 1
        (5_000_000, 2, 5),  # 24.7: five turns
        (100_000, 4, 4),  # never smaller than the chunks of a batch
    ],
)
def test_turns_of_a_staying_kernel_are_equal(neurons: int, per_thread: int, expected: int) -> None:
    shape = staying_shape(FusedShape(512, per_thread), neurons, 132 * 1536)
    assert (shape.threads, shape.per_thread) == (512, expected)
