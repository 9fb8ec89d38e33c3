"""The reference's own numbers against values worked out by hand from SEMANTICS section 7 and the table of formats."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.precision import Precision
from burstproof.engine.reference_numbers import float_of_sums, half_even, level_exponent, quantised, stored
from burstproof.network.fixed_point import FixedPoint

pytestmark = pytest.mark.requirement("BE-4", "BE-17", "SU-5")

INF, NAN = float("inf"), float("nan")
CLAMP = 2**62 // 3


def test_halves_go_to_even_on_both_sides_of_0() -> None:
    halves = np.array([-5, -3, -1, 1, 3, 5, 7])
    assert half_even(halves, np.ones(7, np.int64)).tolist() == [-2, -2, 0, 0, 2, 2, 4]
    assert half_even(halves, np.zeros(7, np.int64)).tolist() == halves.tolist()
    assert half_even(np.array([5, 6, 7, -5, -6, -7]), np.full(6, 2)).tolist() == [1, 2, 2, -1, -2, -2]


@pytest.mark.parametrize(
    ("contribution", "k", "units", "clamped"),
    [
        (0.75, 2, 3, False),
        (0.375, 2, 2, False),  # 1.5
        (0.625, 2, 2, False),  # 2.5
        (-0.375, 2, -2, False),
        (-0.625, 2, -2, False),
        (0.125, 2, 0, False),  # 0.5
        (2.0**-149, 149, 1, False),
        (-0.0, 10, 0, False),
        (NAN, 10, 0, False),
        (2.0**60, 0, 2**60, False),
        (2.0**61, 0, CLAMP, True),
        (-(2.0**61), 0, -CLAMP, True),
        (3e38, 149, CLAMP, True),
        (-3e38, 149, -CLAMP, True),
        (INF, 0, CLAMP, True),
        (-INF, 0, -CLAMP, True),
    ],
)
def test_a_contribution_becomes_an_integer(contribution: float, k: int, units: int, clamped: bool) -> None:
    scale = FixedPoint(k, 64, CLAMP, False)
    found, was_clamped = quantised(np.array([contribution], np.float32), scale)
    assert (found.tolist(), was_clamped) == ([units], clamped)


@pytest.mark.parametrize(
    ("total", "k", "number"),
    [
        (2**24 + 1, 0, 2.0**24),
        (2**24 + 3, 0, 2.0**24 + 4),
        (-(2**24) - 1, 0, -(2.0**24)),
        (2**54 + 2**30 + 1, 0, 2.0**54 + 2.0**31),  # float64 would end in the middle and lose the 1
        (-(2**54) - 2**30 - 1, 30, -(2.0**24) - 2),
        (2**62 - 1, 62, 1.0),
        (2**53 - 1, 0, 2.0**53),
        (1, 149, 2.0**-149),
        (0, 7, 0.0),
        (-3, 1, -1.5),
    ],
)
def test_a_sum_becomes_a_float_in_one_rounding(total: int, k: int, number: float) -> None:
    assert float_of_sums(np.array([total]), k).tolist() == [number]


@pytest.mark.parametrize(
    ("precision", "potential", "kept"),
    [
        (Precision.FP16, 1 + 2.0**-11, 1.0),
        (Precision.FP16, 1 + 3 * 2.0**-11, 1 + 2.0**-9),
        (Precision.FP16, 65519.0, 65504.0),
        (Precision.FP16, -INF, -65504.0),
        (Precision.FP16, 2.0**-25, 0.0),
        (Precision.FP16, 3 * 2.0**-25, 2.0**-23),
        (Precision.BF16, 1 + 2.0**-8, 1.0),
        (Precision.BF16, 1 + 3 * 2.0**-8, 1 + 2.0**-6),
        (Precision.BF16, INF, 2.0**128 - 2.0**120),
        (Precision.BF16, 2.0**-134, 0.0),
        (Precision.INT8, 0.5, 0.0),
        (Precision.INT8, 1.5, 2.0),
        (Precision.INT8, -2.5, -2.0),
        (Precision.INT8, 1000.0, 127.0),
        (Precision.INT8, -INF, -127.0),
        (Precision.INT8, NAN, 0.0),
    ],
)
def test_a_potential_is_kept_as(precision: Precision, potential: float, kept: float) -> None:
    """The step of int8 is 1 for a largest threshold of 127."""
    thresholds = np.array([127.0, -3.0, INF], np.float32)
    assert stored(np.array([potential], np.float32), precision, thresholds).tolist() == [kept]


@pytest.mark.parametrize(("threshold", "exponent"), [(127.0, 0), (128.0, 1), (63.5, -1), (0.0, -6), (3e38, 121)])
def test_the_step_of_int8_reaches_every_threshold(threshold: float, exponent: int) -> None:
    assert level_exponent(np.array([threshold], np.float32)) == exponent
